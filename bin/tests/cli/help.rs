//! What the command says of itself.

use crate::support::{bare, finish};

#[tokio::test]
async fn every_help_has_an_example() {
    for command in [
        vec!["--help"],
        vec!["delete", "--help"],
        vec!["resume", "--help"],
        vec!["config", "--help"],
        vec!["candidates", "--help"],
        vec!["watch", "--help"],
    ] {
        let ran = finish(bare(&command).spawn().unwrap()).await;
        ran.assert_code(0);
        let (_, example) = ran
            .stdout
            .split_once("Example")
            .unwrap_or_else(|| panic!("{command:?}: {}", ran.stdout));
        assert!(
            example.contains("\n  ") && example.contains("unprovision "),
            "{command:?}"
        );
    }
}

#[tokio::test]
async fn it_says_its_version() {
    let ran = finish(bare(&["--version"]).spawn().unwrap()).await;
    assert_eq!(
        ran.assert_code(0).stdout,
        concat!("unprovision ", env!("CARGO_PKG_VERSION"), "\n")
    );
}

#[tokio::test]
async fn no_command_is_bad_usage() {
    finish(bare(&[]).spawn().unwrap())
        .await
        .assert_code(2)
        .assert_says(&["Usage"]);
    finish(bare(&["delte"]).spawn().unwrap())
        .await
        .assert_code(2)
        .assert_says(&["delete"]);
}
