//! The built program as a guard beside Nova.

use std::fs::{File, read_to_string};
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};

use http::Method;
use tempfile::TempDir;
use tokio::process::{Child, Command};
use unprovision_session::Service;
use unprovision_testkit::proxy::Exchange;

use crate::common::{Stage, until};

/// A guard process, and what it leaves for the next one.
pub(crate) struct Guard {
    folder: TempDir,
    child: Child,
}

impl Guard {
    /// Starts it, as somebody would who has named the clouds and nothing else; returns when it looks at nodes.
    pub(crate) async fn start(stage: &Stage) -> Self {
        Self::with(stage, "").await
    }

    /// The same, with a configuration file.
    pub(crate) async fn with(stage: &Stage, settings: &str) -> Self {
        let (folder, looks) = (tempfile::tempdir().unwrap(), looks(stage));
        std::fs::write(folder.path().join("unprovision.toml"), settings).unwrap();
        let child = spawn(stage, folder.path());
        let guard = Self { folder, child };
        guard.until_it_looks(stage, looks).await;
        stage.say("the guard looks");
        guard
    }

    /// Kills it with no warning, and starts it again.
    pub(crate) async fn kill_and_restart(&mut self, stage: &Stage) {
        self.child.kill().await.unwrap();
        let looks = looks(stage);
        stage.say("the guard is killed");
        self.child = spawn(stage, self.folder.path());
        self.until_it_looks(stage, looks).await;
        stage.say("the guard looks again");
    }

    /// Asks it to end.
    pub(crate) async fn stop(mut self) -> ExitStatus {
        let pid = self.child.id().unwrap().to_string();
        let asked = Command::new("kill").args(["-TERM", &pid]).status().await;
        assert!(asked.unwrap().success());
        self.child.wait().await.unwrap()
    }

    /// What it has said so far.
    pub(crate) fn said(&self) -> String {
        read_to_string(log(self.folder.path())).unwrap()
    }

    async fn until_it_looks(&self, stage: &Stage, before: usize) {
        until("the guard looks at nodes", async || {
            // Its first look at those that leave comes after its first one at all nodes.
            looks(stage) > before + 1
        })
        .await;
    }
}

/// Its looks so far at nodes that are being deleted.
fn looks(stage: &Stage) -> usize {
    let looks = |exchange: &&Exchange| {
        exchange.call.service == Service::Ironic
            && exchange.call.method == Method::GET
            && exchange.call.agent.starts_with("unprovision/")
            && exchange.call.path.contains("provision_state=deleting")
    };
    stage.proxies.recorder.exchanges().iter().filter(looks).count()
}

fn log(folder: &Path) -> PathBuf {
    folder.join("guard.log")
}

fn spawn(stage: &Stage, folder: &Path) -> Child {
    let said = File::options()
        .append(true)
        .create(true)
        .open(log(folder))
        .unwrap();
    let mut guard = command(stage, folder);
    guard.arg("guard").stderr(said).spawn().unwrap()
}

/// The built program on this stage's cloud, with all that it leaves in this folder.
pub(crate) fn command(stage: &Stage, folder: &Path) -> Command {
    let mut command = Command::new(program());
    command
        .current_dir(folder)
        .env_clear()
        .env("HOME", folder)
        .env("OS_CLIENT_CONFIG_FILE", stage.lab.clouds_yaml())
        .env("UNPROVISION_OS_CLOUD", "lab")
        .env("UNPROVISION_IRONIC__CLOUD", "lab-system")
        .env("UNPROVISION_JOURNAL", folder.join("journal.sqlite"))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .kill_on_drop(true);
    command
}

/// The command line, built with the tests.
fn program() -> PathBuf {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap();
    let program = target.join("debug/unprovision");
    assert!(
        program.is_file(),
        "build it first: cargo build -p unprovision-cli --all-features"
    );
    program
}
