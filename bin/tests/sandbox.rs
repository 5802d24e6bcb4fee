//! `unprovision sandbox`, end to end: started, used with nothing but its environment, and stopped.
#![cfg(feature = "sandbox")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::thread::sleep;
use std::time::Duration;

use serde_json::Value;
use tempfile::TempDir;

const BINARY: &str = env!("CARGO_BIN_EXE_unprovision");

/// A sandbox that ends with the test, whatever becomes of it.
struct Running(Child);

impl Running {
    fn start(args: &[&str]) -> Self {
        let mut command = Command::new(BINARY);
        command
            .arg("sandbox")
            .args(args)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        Self(command.spawn().unwrap())
    }

    fn signal(&self, name: &str) {
        let sent = Command::new("kill")
            .args([name, &self.0.id().to_string()])
            .status()
            .unwrap();
        assert!(sent.success());
    }

    /// The exit status, within ten seconds.
    fn end(&mut self) -> Option<i32> {
        for _ in 0..100 {
            if let Some(status) = self.0.try_wait().unwrap() {
                return status.code();
            }
            sleep(Duration::from_millis(100));
        }
        panic!("it does not end");
    }

    fn said(&mut self) -> String {
        let mut text = String::new();
        self.0.stderr.take().unwrap().read_to_string(&mut text).unwrap();
        text
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn wait_for(file: &Path) -> String {
    for _ in 0..300 {
        if let Ok(text) = std::fs::read_to_string(file) {
            return text;
        }
        sleep(Duration::from_millis(100));
    }
    panic!("{} does not appear", file.display());
}

/// What a shell makes of the lines.
fn sourced<'a>(lines: impl Iterator<Item = &'a str>) -> BTreeMap<String, String> {
    let set = |line: &'a str| line.strip_prefix("export ")?.split_once('=');
    let pairs = lines.map(|line| set(line).unwrap_or_else(|| panic!("{line}")));
    pairs
        .map(|(name, value)| (name.to_owned(), value.trim_matches('\'').to_owned()))
        .collect()
}

/// Runs the built binary with the sandbox's environment, a home and nothing else.
fn client(environment: &BTreeMap<String, String>, home: &TempDir, args: &[&str]) -> Output {
    let mut command = Command::new(BINARY);
    command
        .env_clear()
        .env("HOME", home.path())
        // For root the journal would be in /var/lib.
        .env("XDG_STATE_HOME", home.path())
        .envs(environment)
        .args(args)
        .current_dir(home.path());
    command.output().unwrap()
}

#[test]
fn a_node_is_deleted_with_nothing_but_the_environment() {
    let home = TempDir::new().unwrap();
    let file = home.path().join("sandbox.env");
    let path = file.to_str().unwrap();
    let mut sandbox = Running::start(&[
        "--nodes",
        "2",
        "--deployed",
        "1",
        "--cleaning",
        "500ms",
        "--env-file",
        path,
    ]);
    let environment = sourced(wait_for(&file).lines());
    assert!(environment["OS_AUTH_URL"].starts_with("http://127.0.0.1:"));

    let delete = ["delete", "node-0001", "--yes", "--wait", "-o", "json"];
    let output = client(&environment, &home, &delete);
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let rows: Vec<Value> = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(
        (rows.len(), &rows[0]["outcome"]),
        (1, &Value::from("returned")),
        "{rows:?}"
    );
    assert_eq!(rows[0]["provision_state"], "available");

    sandbox.signal("-TERM");
    assert_eq!(sandbox.end(), Some(0));
    assert!(!file.exists(), "the environment is of no use any more");
    let said = sandbox.said();
    assert!(said.contains("2 nodes, 1 of them with an instance"), "{said}");
    assert!(said.contains("unprovision delete node-0001 --instance"), "{said}");
}

#[test]
fn the_environment_goes_to_standard_output_where_no_file_is_named() {
    let mut sandbox = Running::start(&["--nova", "old", "--quiet"]);
    let lines = BufReader::new(sandbox.0.stdout.take().unwrap()).lines();
    let lines = lines.take(5).collect::<Result<Vec<_>, _>>().unwrap();
    assert!(sourced(lines.iter().map(String::as_str)).contains_key("OS_AUTH_URL"));
    sandbox.signal("-INT");
    assert_eq!(sandbox.end(), Some(0));
    assert_eq!(sandbox.said(), "");
}

#[test]
fn what_cannot_be_served_is_refused_before_anything_listens() {
    for (args, why) in [
        (["--listen", "0.0.0.0:0"], "loopback"),
        (["--listen", "nowhere"], "127.0.0.1:8080"),
        (["--deployed", "9"], "--nodes 4"),
        (["--cleaning", "soon"], "90s"),
    ] {
        let mut sandbox = Running::start(&args);
        assert_eq!(sandbox.end(), Some(2), "{args:?}");
        let said = sandbox.said();
        assert!(said.contains(why), "{said}");
    }
}
