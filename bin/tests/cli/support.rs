//! A cloud of its own for each test, and the binary that is pointed at it.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tempfile::TempDir;
use tokio::process::{Child, Command};
use tokio::time::timeout;
use unprovision_testkit::sandbox::ironic::State;
use unprovision_testkit::sandbox::judge::{self, Query};
use unprovision_testkit::sandbox::serve::{Served, real_clock, serve};
use unprovision_testkit::sandbox::{Builder, Sandbox, Service};
use uuid::Uuid;

/// No command here takes longer, unless it hangs.
const LIMIT: Duration = Duration::from_secs(60);

/// A sandbox with sockets, and a home with a journal in it.
pub(crate) struct Cloud {
    served: Served,
    home: TempDir,
}

/// A command that has ended.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// A node and its instance.
#[derive(Clone, Debug)]
pub(crate) struct Deployed {
    pub(crate) node: Uuid,
    pub(crate) instance: String,
}

/// So many nodes with an instance; without a Nova, and quick.
pub(crate) fn quick(deployed: usize) -> Builder {
    let (teardown, cleaning) = (Duration::from_millis(200), Duration::from_millis(400));
    Sandbox::builder()
        .nodes(deployed)
        .deployed(deployed)
        .teardown(teardown)
        .cleaning(cleaning)
        .configure(|config| {
            config.ironic.timing.lock_tail = Duration::from_millis(20);
            config.ironic.timing.agent_boot = Duration::from_millis(50);
        })
}

/// A node that takes so long to be cleaned that nobody waits for it.
pub(crate) fn slow(deployed: usize) -> Builder {
    quick(deployed).cleaning(Duration::from_secs(3600))
}

impl Cloud {
    /// A cloud whose nodes are not Nova's.
    pub(crate) async fn start(builder: Builder) -> Self {
        let cloud = Self::with_nova_traits(builder).await;
        for node in cloud.sandbox().nodes() {
            cloud
                .sandbox()
                .with(|world, _| world.edit_provider(node, |provider| provider.traits.clear()));
        }
        cloud
    }

    /// A cloud whose providers have the traits that Nova sets.
    pub(crate) async fn with_nova_traits(builder: Builder) -> Self {
        let served = serve(builder.clock(real_clock()).build()).await.unwrap();
        Self {
            served,
            home: tempfile::tempdir().unwrap(),
        }
    }

    pub(crate) fn sandbox(&self) -> &Sandbox {
        self.served.sandbox()
    }

    pub(crate) fn served(&self) -> &Served {
        &self.served
    }

    pub(crate) fn home(&self) -> &Path {
        self.home.path()
    }

    pub(crate) fn deployed(&self) -> Vec<Deployed> {
        let all = self.sandbox().deployed().into_iter();
        all.map(|(node, instance)| Deployed {
            node,
            instance: instance.to_string(),
        })
        .collect()
    }

    /// The one node that is deployed.
    pub(crate) fn only(&self) -> Deployed {
        self.deployed().remove(0)
    }

    /// The command, with nothing of our own environment but what it needs.
    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = bare(args);
        command
            .current_dir(self.home())
            .env("HOME", self.home())
            .env("UNPROVISION_JOURNAL", self.home().join("journal.sqlite"))
            .env("UNPROVISION_POLL", "100ms")
            .envs(self.served.environment());
        command
    }

    pub(crate) async fn run(&self, args: &[&str]) -> Ran {
        finish(self.command(args).spawn().unwrap()).await
    }

    pub(crate) fn spawn(&self, args: &[&str]) -> Child {
        self.command(args).spawn().unwrap()
    }

    pub(crate) fn state(&self, node: Uuid) -> State {
        self.sandbox()
            .with(|world, _| world.node(node).unwrap().provision_state)
    }

    /// Waits until the node is in this state.
    pub(crate) async fn wait_for(&self, node: Uuid, state: State) {
        let reached = async {
            while self.state(node) != state {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        timeout(LIMIT, reached)
            .await
            .unwrap_or_else(|_| panic!("{node} did not get to {state:?}"));
    }

    /// The writes that the services have seen, logins aside.
    pub(crate) fn writes(&self) -> Vec<String> {
        let log = self.sandbox().log();
        let writes = log
            .requests()
            .filter(|line| line.service != Service::Keystone && !line.method.is_safe());
        writes
            .map(|line| format!("{} {} {}", line.service, line.method, line.path))
            .collect()
    }

    /// How many tear-downs were asked of Ironic.
    pub(crate) fn tear_downs(&self, node: Uuid) -> usize {
        let path = format!("ironic PUT /v1/nodes/{node}/states/provision");
        self.writes().iter().filter(|write| **write == path).count()
    }

    /// The node was never offered before it was free.
    pub(crate) fn assert_never_exposed(&self, node: Uuid) {
        let exposure = judge::exposure(&self.sandbox().log(), node);
        assert!(exposure.is_none(), "{exposure:?}");
    }

    /// The node is free, offered, and was never offered before.
    pub(crate) fn assert_returned(&self, node: Uuid) {
        self.assert_returned_to(Query::default(), node);
    }

    /// The same for the queries that a strategy protects.
    pub(crate) fn assert_returned_to(&self, query: Query<'_>, node: Uuid) {
        let log = self.sandbox().log();
        let exposure = query.exposure(&log, node);
        assert!(exposure.is_none(), "{exposure:?}");
        assert_eq!(self.state(node), State::Available);
        assert!(query.is_offered(&log, node), "{node} is not offered again");
    }

    /// The node is on its way, held, and was never offered.
    pub(crate) fn assert_held(&self, node: Uuid) {
        self.assert_never_exposed(node);
        assert!(!self.sandbox().is_offered(node));
        let holders = self
            .sandbox()
            .with(|world, _| world.provider(node).unwrap().holders.len());
        assert_eq!(holders, 1);
    }
}

impl Ran {
    pub(crate) fn assert_code(&self, code: i32) -> &Self {
        assert_eq!(
            self.code,
            Some(code),
            "stdout:\n{}\nstderr:\n{}",
            self.stdout,
            self.stderr
        );
        self
    }

    /// Standard error says all of this.
    pub(crate) fn assert_says(&self, parts: &[&str]) -> &Self {
        for part in parts {
            assert!(self.stderr.contains(part), "`{part}` is not in:\n{}", self.stderr);
        }
        self
    }

    /// The list on standard output.
    pub(crate) fn rows(&self) -> Vec<Value> {
        serde_json::from_str(&self.stdout)
            .unwrap_or_else(|error| panic!("{error}:\n{}\n{}", self.stdout, self.stderr))
    }

    /// The only object of the list on standard output.
    pub(crate) fn row(&self) -> Value {
        let mut rows = self.rows();
        assert_eq!(rows.len(), 1);
        rows.remove(0)
    }
}

/// The command with no environment at all.
pub(crate) fn bare(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_unprovision"));
    command.args(args).env_clear().kill_on_drop(true);
    command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

/// The same in a folder that is its home as well, with nothing in it but what the test puts there.
pub(crate) fn bare_in(folder: &Path, args: &[&str]) -> Command {
    let mut command = bare(args);
    command.current_dir(folder).env("HOME", folder);
    command
}

pub(crate) async fn finish(child: Child) -> Ran {
    finish_within(child, LIMIT).await
}

pub(crate) async fn finish_within(child: Child, limit: Duration) -> Ran {
    let output = timeout(limit, child.wait_with_output())
        .await
        .expect("it hangs")
        .unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    Ran {
        code: output.status.code(),
        stdout: text(output.stdout),
        stderr: text(output.stderr),
    }
}

pub(crate) fn send(child: &Child, signal: Signal) {
    let pid = child
        .id()
        .and_then(|id| Pid::from_raw(id.try_into().unwrap()))
        .unwrap();
    kill_process(pid, signal).unwrap();
}
