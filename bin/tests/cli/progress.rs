//! How far long work is: on a terminal in a line that changes and goes, elsewhere in plain lines; and Ctrl-C in the middle.

use std::collections::BTreeSet;
use std::io::Read;
use std::time::Duration;

use http::Method;
use rustix::process::Signal;
use serde_json::Value;
use tokio::task::JoinHandle;
use unprovision::audit::FindingKind;
use unprovision_testkit::sandbox::{Fault, Service};

use crate::asking::terminal;
use crate::audit::{NOW, plant};
use crate::support::{Cloud, Ran, finish, quick, send, slow};

/// A command with a terminal as its standard error.
struct OnTerminal {
    child: tokio::process::Child,
    seen: JoinHandle<String>,
    /// What was drawn so far.
    so_far: std::sync::Arc<std::sync::Mutex<String>>,
}

impl OnTerminal {
    fn start(cloud: &Cloud, args: &[&str], env: &[(&str, &str)]) -> Self {
        let (mut ours, theirs) = terminal();
        let mut command = cloud.command(args);
        command.env("TERM", "xterm").envs(env.iter().copied());
        let child = command.stderr(theirs).spawn().unwrap();
        // Our copy of its end would keep the terminal open.
        drop(command);
        let so_far = std::sync::Arc::<std::sync::Mutex<String>>::default();
        let drawn = so_far.clone();
        let seen = tokio::task::spawn_blocking(move || {
            let mut piece = [0; 4096];
            while let Ok(count @ 1..) = ours.read(&mut piece) {
                drawn
                    .lock()
                    .unwrap()
                    .push_str(&String::from_utf8_lossy(&piece[..count]));
            }
            drawn.lock().unwrap().clone()
        });
        Self { child, seen, so_far }
    }

    async fn until_it_shows(&self, words: &str) {
        let shown = async {
            while !self.so_far.lock().unwrap().contains(words) {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        let within = tokio::time::timeout(Duration::from_secs(50), shown).await;
        assert!(within.is_ok(), "`{words}` in {:?}", self.so_far.lock().unwrap());
    }

    /// How it ended, and all that was drawn.
    async fn end(self) -> (Ran, String) {
        (finish(self.child).await, self.seen.await.unwrap())
    }
}

/// These words were said, nothing of a bar is left, no colour was used, and the cursor is where it belongs.
fn assert_clean(drawn: &str, last: &str) {
    let colours = drawn.split("\u{1b}[").skip(1).filter(|rest| {
        let end = rest.trim_start_matches(|c: char| c.is_ascii_digit() || c == ';');
        end.starts_with('m')
    });
    assert_eq!(colours.count(), 0, "{drawn:?}");
    assert_eq!(
        drawn.matches("\u{1b}[?25l").count(),
        drawn.matches("\u{1b}[?25h").count(),
        "{drawn:?}"
    );
    assert!(drawn.contains(last), "`{last}` in {drawn:?}");
    // In the last line stands nothing.
    assert!(drawn.ends_with('\n') || drawn.ends_with("\u{1b}[2K"), "{drawn:?}");
}

/// A cloud whose holders take their time.
async fn many() -> Cloud {
    let cloud = Cloud::start(quick(1).nodes(40)).await;
    let slow = Fault::on(Service::Placement).path("/resource_providers/*/allocations");
    cloud.sandbox().fault(slow.delay(Duration::from_millis(300)));
    cloud
}

#[tokio::test]
async fn a_long_look_shows_how_far_it_is_and_ctrl_c_ends_it_cleanly() {
    let cloud = many().await;
    let few = [("UNPROVISION_CONCURRENCY", "4")];
    let audit = OnTerminal::start(&cloud, &["audit", "--deep"], &few);
    let (ran, drawn) = audit.end().await;
    ran.assert_code(0);
    assert!(drawn.contains("listing nodes and providers"), "{drawn:?}");
    assert!(
        drawn.contains("providers looked at ") && drawn.contains(" of 40"),
        "{drawn:?}"
    );
    assert_clean(&drawn, "");

    let audit = OnTerminal::start(&cloud, &["audit", "--deep"], &few);
    audit.until_it_shows("8 of 40").await;
    send(&audit.child, Signal::INT);
    let (ran, drawn) = audit.end().await;
    ran.assert_code(1);
    assert_eq!(ran.stdout, "");
    assert_clean(&drawn, "stopped before anything was begun; nothing was touched");
    assert_eq!(cloud.writes(), [""; 0]);
}

#[tokio::test]
async fn nothing_is_drawn_for_machines_in_files_or_quietly() {
    let cloud = many().await;
    let few = [("UNPROVISION_CONCURRENCY", "4"), ("NO_COLOR", "1")];
    for quiet in [
        &["-q", "audit", "--deep"][..],
        &["--log-format", "json", "audit", "--deep"],
    ] {
        let (ran, drawn) = OnTerminal::start(&cloud, quiet, &few).end().await;
        ran.assert_code(0);
        assert_eq!(drawn, "");
    }
    let in_file = cloud.command(&["audit", "--deep"]).envs(few).spawn().unwrap();
    let ran = finish(in_file).await;
    assert_eq!(ran.assert_code(0).stderr, "", "it takes less than ten seconds");
    let verbose = OnTerminal::start(&cloud, &["-v", "audit", "--deep"], &few);
    let (ran, drawn) = verbose.end().await;
    ran.assert_code(0);
    assert!(
        drawn.contains("logged in") && drawn.contains(" of 40"),
        "{drawn:?}"
    );
    assert_clean(&drawn, "");
}

/// Every ten seconds, where nobody can see a bar.
#[tokio::test]
async fn elsewhere_it_is_said_in_plain_lines() {
    let cloud = many().await;
    let one = cloud
        .command(&["audit", "--deep"])
        .env("UNPROVISION_CONCURRENCY", "1")
        .spawn()
        .unwrap();
    let ran = finish(one).await;
    ran.assert_code(0);
    let line = ran.stderr.lines().next().unwrap_or_default();
    assert!(
        line.starts_with("providers looked at: ") && line.ends_with(" of 40"),
        "{}",
        ran.stderr
    );
    assert!(!ran.stderr.contains('\u{1b}'));
}

/// What was repaired by then stays repaired and is told, the rest is left.
#[tokio::test]
async fn repairs_show_how_far_they_are_and_ctrl_c_stops_between_two() {
    let cloud = Cloud::with_nova_traits(quick(4).nodes(14)).await;
    plant(&cloud, &[FindingKind::AllocationWithoutInstance; 5]);
    let slow = Fault::on(Service::Placement)
        .method(Method::PUT)
        .path("/allocations/*");
    cloud.sandbox().fault(slow.delay(Duration::from_millis(1500)));
    let fix = ["--fix", "allocation-without-instance", "--yes", "-o", "json"];
    let fix = OnTerminal::start(&cloud, &[&NOW[..], &fix].concat(), &[]);
    fix.until_it_shows("findings repaired ").await;
    fix.until_it_shows(" 1 of 5").await;
    send(&fix.child, Signal::INT);
    let (ran, drawn) = fix.end().await;
    ran.assert_code(3);
    let rows = ran.rows();
    let became = |word: &str| {
        rows.iter()
            .filter(|row| row["repair"].get(word).is_some())
            .count()
    };
    assert!(became("done") >= 1 && became("left") >= 2, "{}", ran.stdout);
    assert_eq!(became("done") + became("left"), 5, "{}", ran.stdout);
    let is_stopped = |row: &&Value| row["repair"]["left"] == "stopped";
    assert_eq!(rows.iter().filter(is_stopped).count(), became("left"));
    assert_clean(&drawn, "stopping as soon as the requests under way are answered");
    assert_eq!(cloud.writes().len(), became("done"));
}

/// The count goes on below the lines of the nodes; Ctrl-C says where each of them is.
#[tokio::test]
async fn many_tear_downs_are_counted_and_ctrl_c_says_where_they_are() {
    let cloud = Cloud::start(slow(3)).await;
    let nodes = cloud.sandbox().nodes();
    cloud
        .sandbox()
        .with(|world, _| world.edit_node(nodes[0], |node| node.behaviour.clean_failures = 1));
    let delete = [
        "delete",
        "node-0001",
        "node-0002",
        "node-0003",
        "--yes",
        "-o",
        "json",
    ];
    let delete = OnTerminal::start(&cloud, &delete, &[]);
    delete.until_it_shows("nodes done with ").await;
    for number in 1..=3 {
        delete
            .until_it_shows(&format!("node-000{number} deleting -> cleaning"))
            .await;
    }
    send(&delete.child, Signal::INT);
    let (ran, drawn) = delete.end().await;
    ran.assert_code(1);
    for row in ran.rows() {
        assert_eq!(
            (&row["outcome"], &row["held"]),
            (&"stopped".into(), &true.into()),
            "{row}"
        );
    }
    assert_clean(
        &drawn,
        "stopping the waiting as soon as the requests under way are answered",
    );
    for node in nodes {
        cloud.assert_held(node);
    }
    let open = cloud.run(&["cases", "-f", "value", "-c", "name"]).await;
    // They began at the same moment.
    let names = open.stdout.lines().collect::<BTreeSet<_>>();
    assert_eq!(names, ["node-0001", "node-0002", "node-0003"].into());
}

/// The second signal ends it at once, and leaves the terminal as it should be.
#[tokio::test]
async fn the_second_signal_clears_the_terminal_too() {
    let cloud = Cloud::start(slow(2)).await;
    let nodes = cloud.sandbox().nodes();
    let hangs = Fault::on(Service::Ironic)
        .path("/v1/nodes/**")
        .delay(Duration::from_secs(30));
    let delete = ["delete", "node-0001", "node-0002", "--yes"];
    let delete = OnTerminal::start(&cloud, &delete, &[]);
    delete.until_it_shows("node-0002 deleting -> cleaning").await;
    cloud.sandbox().fault(hangs);
    tokio::time::sleep(Duration::from_millis(500)).await;
    send(&delete.child, Signal::INT);
    delete.until_it_shows("once more to stop at once").await;
    send(&delete.child, Signal::INT);
    let (ran, drawn) = delete.end().await;
    ran.assert_code(1);
    assert_clean(&drawn, "once more to stop at once");
    for node in nodes {
        cloud.assert_held(node);
    }
}

/// The first look at everything is shown, until it is done.
#[tokio::test]
async fn the_first_sweep_of_a_guard_is_shown() {
    let cloud = Cloud::start(quick(1).nodes(4)).await;
    let slow = Fault::on(Service::Ironic)
        .path("/v1/nodes")
        .delay(Duration::from_secs(1));
    cloud.sandbox().fault(slow);
    let guard = OnTerminal::start(&cloud, &["guard", "--once"], &[]);
    let (ran, drawn) = guard.end().await;
    ran.assert_code(0);
    assert!(
        drawn.contains("looking at all nodes for the first time"),
        "{drawn:?}"
    );
    assert_clean(&drawn, "guard starts");
}

/// Help and errors are no more coloured than the rest.
#[tokio::test]
async fn nothing_is_coloured_on_a_terminal() {
    let cloud = Cloud::start(quick(1)).await;
    for args in [
        &["delte"][..],
        &["audit", "--fix", "everything"],
        &["nodes", "-c", "nam"],
    ] {
        let (ran, drawn) = OnTerminal::start(&cloud, args, &[("CLICOLOR_FORCE", "1")])
            .end()
            .await;
        ran.assert_code(2);
        assert!(!drawn.is_empty() && !drawn.contains('\u{1b}'), "{drawn:?}");
    }
}
