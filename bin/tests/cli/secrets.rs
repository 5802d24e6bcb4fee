//! Nothing secret is printed, however much is logged.

use unprovision_testkit::sandbox::Fault;
use unprovision_testkit::sandbox::Service;

use crate::support::{Cloud, bare_in, finish, quick};

#[tokio::test]
async fn neither_password_nor_token_is_printed() {
    let cloud = Cloud::start(quick(1)).await;
    let password = cloud
        .served()
        .environment()
        .into_iter()
        .find(|(name, _)| *name == "OS_PASSWORD")
        .unwrap()
        .1;
    cloud
        .sandbox()
        .fault(Fault::on(Service::Placement).bad_gateway().times(1));
    let ran = finish(
        cloud
            .command(&["-vvv", "delete", "node-0001", "--yes", "-o", "json"])
            .spawn()
            .unwrap(),
    )
    .await;
    ran.assert_code(0);
    assert!(ran.stderr.lines().count() > 20, "{}", ran.stderr);
    // All of the sandbox's tokens begin so.
    for secret in [password.as_str(), "gAAAA"] {
        assert!(
            !ran.stderr.contains(secret) && !ran.stdout.contains(secret),
            "{secret}"
        );
    }
}

/// A file that is no TOML is told by line and column: the line itself may hold a password.
#[tokio::test]
async fn a_line_that_cannot_be_read_is_not_repeated() {
    let folder = tempfile::tempdir().unwrap();
    for text in [
        "[notifications]\nurl = amqp://me:hunter2@host/\n",
        "journal = postgres://me:hunter2@host/journal\n",
        "journal = \"a\"\njournal = \"postgres://me:hunter2@host/journal\"\n",
    ] {
        std::fs::write(folder.path().join("unprovision.toml"), text).unwrap();
        let mut command = bare_in(folder.path(), &["config"]);
        let ran = finish(command.spawn().unwrap()).await;
        ran.assert_code(2).assert_says(&["unprovision.toml", "line"]);
        assert!(!ran.stderr.contains("hunter2"), "{}", ran.stderr);
    }
}

/// Whoever has not encoded the password's `/` or `#` learns what is wrong, and nobody else the password.
#[tokio::test]
async fn a_journals_password_is_not_shown_whatever_is_in_it() {
    let folder = tempfile::tempdir().unwrap();
    for url in [
        "mysql://me:hunter2/x@127.0.0.1:9/journal",
        "mysql://me:hunter2#x@127.0.0.1:9/journal",
        "postgresql://me:x@127.0.0.1:9/journal?password=hunter2",
        "mysql:/me:hunter2@127.0.0.1:9/journal",
    ] {
        for args in [&["config"][..], &["cases"]] {
            let mut command = bare_in(folder.path(), args);
            command.env("UNPROVISION_JOURNAL", url);
            let ran = finish(command.spawn().unwrap()).await;
            let said = format!("{}{}", ran.stdout, ran.stderr);
            assert!(!said.contains("hunter2"), "{args:?}: {said}");
        }
    }
}
