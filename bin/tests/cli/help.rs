//! What the command says of itself.

use crate::support::{bare, finish};

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
