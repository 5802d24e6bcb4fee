//! The question before anything is erased.

use std::fs::{File, OpenOptions};
use std::io::Write;

use rustix::process::Signal;
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::Child;

use crate::support::{Cloud, Ran, finish, quick, send};

/// A terminal: our end, and the command's.
pub(crate) fn terminal() -> (File, File) {
    let ours = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&ours).unwrap();
    unlockpt(&ours).unwrap();
    let theirs = ptsname(&ours, Vec::new()).unwrap().into_string().unwrap();
    let theirs = OpenOptions::new().read(true).write(true).open(theirs).unwrap();
    (File::from(ours), theirs)
}

/// Runs the command with a terminal as its standard input, where somebody types this.
pub(crate) async fn typed(cloud: &Cloud, args: &[&str], text: &str) -> Ran {
    let (mut ours, theirs) = terminal();
    let child: Child = cloud.command(args).stdin(theirs).spawn().unwrap();
    ours.write_all(text.as_bytes()).unwrap();
    finish(child).await
}

#[tokio::test]
async fn there_is_nobody_to_ask() {
    let cloud = Cloud::start(quick(1)).await;
    let one = cloud.only();
    for args in [
        vec!["delete", "node-0001"],
        vec!["delete", "node-0001", "--instance", &one.instance],
    ] {
        cloud
            .run(&args)
            .await
            .assert_code(2)
            .assert_says(&["no terminal", "--yes"]);
    }
    assert_eq!(cloud.sandbox().log().requests().count(), 0);
}

#[tokio::test]
async fn the_answer_is_no() {
    let broken = quick(1).each_node(|_, node| {
        node.maintenance = true;
        node.maintenance_reason = Some("broken fan".to_owned());
    });
    let cloud = Cloud::start(broken).await;
    let one = cloud.only();
    for text in ["n\n", "\n", "yesterday\n"] {
        let ran = typed(&cloud, &["delete", "node-0001"], text).await;
        let shown = [
            "yes: broken fan".to_owned(),
            one.node.to_string(),
            one.instance.clone(),
            "active".to_owned(),
            "hand-over".to_owned(),
        ];
        ran.assert_code(2)
            .assert_says(&shown.each_ref().map(String::as_str))
            .assert_says(&["[y/N]", "nothing was touched"]);
    }
    assert_eq!(cloud.writes(), [""; 0]);
    cloud
        .run(&["resume"])
        .await
        .assert_code(0)
        .assert_says(&["nothing is open"]);
}

#[tokio::test]
async fn the_answer_is_yes() {
    let cloud = Cloud::start(quick(1)).await;
    let one = cloud.only();
    typed(&cloud, &["delete", "node-0001"], "y\n")
        .await
        .assert_code(0)
        .assert_says(&["[y/N]"]);
    cloud.assert_returned(one.node);
}

/// Nobody has to answer a question that does not matter any more.
#[tokio::test]
async fn a_signal_is_an_answer_too() {
    let cloud = Cloud::start(quick(1)).await;
    let (_ours, theirs) = terminal();
    let mut child = cloud
        .command(&["delete", "node-0001"])
        .stdin(theirs)
        .spawn()
        .unwrap();
    let mut said = BufReader::new(child.stderr.take().unwrap()).lines();
    while let Some(line) = said.next_line().await.unwrap()
        && !line.contains("[y/N]")
    {}
    send(&child, Signal::TERM);
    assert_eq!(finish(child).await.code, Some(1));
    let last = said.next_line().await.unwrap().unwrap();
    assert!(last.contains("nothing was touched"), "{last}");
    assert_eq!(cloud.writes(), [""; 0]);
}
