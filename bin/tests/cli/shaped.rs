//! Lists as tables, for scripts and to the letter; nodes that are watched; what shells and `man` are given.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::Path;
use std::time::Duration;

use rustix::process::Signal;
use rustix::termios::{Winsize, tcsetwinsize};
use tokio::io::{AsyncBufReadExt, BufReader};
use unprovision::core::{CaseId, Entry};
use unprovision::journal::{Journal, Seq, SqliteJournal};
use unprovision_testkit::sandbox::ironic::State;

use crate::asking::terminal;
use crate::support::{Cloud, bare, finish, send, slow};

/// Compares with what was kept, to the letter. To write it anew: `UNPROVISION_GOLDEN=write`.
pub(crate) fn assert_golden(name: &str, said: &str) {
    let path = format!("{}/tests/cli/golden/{name}", env!("CARGO_MANIFEST_DIR"));
    if std::env::var_os("UNPROVISION_GOLDEN").is_some() {
        std::fs::create_dir_all(Path::new(&path).parent().unwrap()).unwrap();
        std::fs::write(&path, said).unwrap();
    }
    let golden = std::fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(said, golden, "{path}");
}

/// A cloud with a node of each kind, and a journal that knows two cases; both are the same each time.
async fn still() -> Cloud {
    let cloud = Cloud::start(slow(2).nodes(4)).await;
    let nodes = cloud.sandbox().nodes();
    cloud.sandbox().with(|world, _| {
        world.edit_node(nodes[2], |node| node.maintenance = true);
        world.edit_node(nodes[3], |node| node.provision_state = State::Manageable);
        world.reserve(nodes[2], 1);
    });
    let kept = include_str!("golden/entries.json");
    let kept: BTreeMap<CaseId, Vec<Entry>> = serde_json::from_str(kept).unwrap();
    let journal = SqliteJournal::open(&cloud.home().join("journal.sqlite"))
        .await
        .unwrap();
    for (case, entries) in kept {
        journal.append(case, Seq(0), &entries).await.unwrap();
    }
    cloud
}

#[tokio::test]
async fn lists_and_stories_are_as_they_were() {
    let cloud = still().await;
    for (name, args) in [
        ("nodes", &["nodes"][..]),
        ("cases", &["cases", "--all"]),
        ("candidates", &["candidates", "--resource-class", "baremetal"]),
    ] {
        for form in ["table", "json", "csv", "value"] {
            let ran = cloud.run(&[args, &["-o", form]].concat()).await;
            assert!(ran.stderr.is_empty(), "{}", ran.stderr);
            assert_golden(&format!("{name}.{form}"), &ran.stdout);
        }
    }
    for form in ["table", "json"] {
        let ran = cloud.run(&["show", "node-0001", "-o", form]).await;
        assert_golden(&format!("show.{form}"), &ran.assert_code(0).stdout);
    }
}

#[tokio::test]
async fn columns_are_chosen_as_in_openstacks_own_command_line() {
    let cloud = still().await;
    let ran = cloud
        .run(&["nodes", "-f", "value", "-c", "name", "-c", "provision_state"])
        .await;
    let expected = "node-0001 active\nnode-0002 active\nnode-0003 available\nnode-0004 manageable\n";
    assert_eq!(ran.assert_code(0).stdout, expected);
    let ran = cloud
        .run(&["nodes", "--format", "csv", "--column", "maintenance"])
        .await;
    assert_eq!(ran.stdout, "maintenance\nfalse\nfalse\ntrue\nfalse\n");
    let ran = cloud.run(&["cases", "--all", "-f", "value", "-c", "name"]).await;
    assert_eq!(ran.stdout, "node-0001\nnode-0002\n");
    let ran = cloud.run(&["nodes", "--state", "error", "-f", "value"]).await;
    assert_eq!(ran.assert_code(0).stdout, "", "nothing is no line");
    let before = cloud.sandbox().log().requests().count();
    for args in [
        &["nodes", "-c", "nam"][..],
        &["cases", "-c", "nam"],
        &["audit", "-c", "nam"],
        &["candidates", "--resource-class", "baremetal", "-c", "nam"],
    ] {
        let ran = cloud.run(args).await;
        ran.assert_code(2)
            .assert_says(&["there is no column `nam`, did you mean `name`?", "there are: "]);
    }
    assert_eq!(
        cloud.sandbox().log().requests().count(),
        before,
        "nothing was asked"
    );
}

/// A line for each node at first, and then only for what has changed.
#[tokio::test]
async fn nodes_that_are_watched_are_told_when_they_change() {
    let cloud = Cloud::start(slow(1).nodes(2)).await;
    let mut child = cloud.spawn(&["nodes", "-w", "--every", "1s"]);
    let mut said = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut next = async || said.next_line().await.unwrap().unwrap();
    assert!(next().await.ends_with("node-0001 is active, offered: no"));
    assert!(next().await.ends_with("node-0002 is available, offered: yes"));
    let second = cloud.sandbox().nodes()[1];
    cloud
        .sandbox()
        .with(|world, _| world.edit_node(second, |node| node.maintenance = true));
    let line = next().await;
    assert!(
        line.ends_with("node-0002 is available, in maintenance, offered: YES, NOT FREE"),
        "{line}"
    );
    cloud.sandbox().with(|world, _| world.remove_node(second));
    assert!(next().await.ends_with(" is not in the list any more"));
    send(&child, Signal::INT);
    finish(child).await.assert_code(0);
    assert_eq!(cloud.writes(), [""; 0]);
    cloud
        .run(&["nodes", "-w", "--every", "1ms"])
        .await
        .assert_code(2)
        .assert_says(&["write 1s or more"]);
}

/// On a terminal it is drawn in its place, and no line is wider than that.
#[tokio::test]
async fn a_terminal_is_drawn_anew_and_its_width_is_kept() {
    let cloud = Cloud::start(slow(1).nodes(2)).await;
    let (mut ours, theirs) = terminal();
    let size = Winsize {
        ws_row: 40,
        ws_col: 70,
        ws_xpixel: 0,
        ws_ypixel: 0,
    };
    tcsetwinsize(&theirs, size).unwrap();
    let mut command = cloud.command(&["nodes", "--watch", "--every", "1s"]);
    let child = command.stdout(theirs).spawn().unwrap();
    // Our copy of its end would keep the terminal open.
    drop(command);
    let read = tokio::task::spawn_blocking(move || {
        let (mut text, mut piece) = (String::new(), [0; 4096]);
        while let Ok(count @ 1..) = ours.read(&mut piece) {
            text.push_str(&String::from_utf8_lossy(&piece[..count]));
        }
        text
    });
    tokio::time::sleep(Duration::from_millis(3500)).await;
    send(&child, Signal::INT);
    finish(child).await.assert_code(0);
    let text = read.await.unwrap();
    let drawn = text.split("\u{1b}[H\u{1b}[2J").collect::<Vec<_>>();
    assert!(drawn.len() > 2 && drawn[0].is_empty(), "{text:?}");
    for line in drawn[1].lines() {
        assert!(line.trim_end().chars().count() <= 70, "{line:?}");
    }
    assert!(
        drawn[1].contains("node-0001") && drawn[1].contains("Ctrl-C ends it"),
        "{text:?}"
    );
}

#[tokio::test]
async fn shells_and_man_are_given_what_they_want() {
    for (shell, part) in [
        ("bash", "complete -F _unprovision"),
        ("zsh", "#compdef unprovision"),
        ("fish", "complete -c unprovision"),
    ] {
        let ran = finish(bare(&["completions", shell]).spawn().unwrap()).await;
        ran.assert_code(0);
        for word in [part, "stand-down", "reclean", "free-not-offered"] {
            assert!(ran.stdout.contains(word), "{shell}: {word}");
        }
    }
    let folder = tempfile::tempdir().unwrap();
    let pages = folder.path().join("man1");
    let ran = finish(bare(&["man", pages.to_str().unwrap()]).spawn().unwrap()).await;
    ran.assert_code(0);
    for (page, part) in [
        ("unprovision.1", "unprovision\\-delete(1)"),
        ("unprovision-delete.1", "Everything on their disks is erased"),
        ("unprovision-guard-stand-down.1", "stand\\-down"),
    ] {
        let text = std::fs::read_to_string(pages.join(page)).unwrap();
        assert!(text.contains(part), "{page}: {text}");
    }
}
