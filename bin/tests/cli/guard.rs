//! `unprovision guard` beside a Nova that deletes servers.

use std::time::Duration;

use rustix::process::Signal;
use serde_json::Value;
use tokio::process::Child;
use tokio::time::timeout;
use unprovision_testkit::sandbox::ironic::State;
use unprovision_testkit::sandbox::{Builder, Service, judge};
use uuid::Uuid;

use crate::support::{Cloud, finish, quick, send};

/// Two nodes that take a while, first in `deleting`, then in `cleaning`.
fn while_leaving(teardown: u64, cleaning: u64) -> Builder {
    quick(2)
        .teardown(Duration::from_secs(teardown))
        .cleaning(Duration::from_secs(cleaning))
}

/// The writes that are not Nova's.
fn ours(cloud: &Cloud) -> Vec<String> {
    let log = cloud.sandbox().log();
    let writes = log
        .requests()
        .filter(|line| line.who != "nova" && line.service != Service::Keystone && !line.method.is_safe());
    writes
        .map(|line| format!("{} {} {}", line.service, line.method, line.path))
        .collect()
}

fn nova_deletes(cloud: &Cloud, instance: &str) {
    let instance = instance.parse().unwrap();
    cloud
        .sandbox()
        .with(|world, now| world.nova_delete(instance, now));
}

async fn until(what: &str, holds: impl Fn() -> bool) {
    let reached = async {
        while !holds() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    timeout(Duration::from_secs(60), reached)
        .await
        .unwrap_or_else(|_| panic!("it never came to: {what}"));
}

fn is_held_by_us(cloud: &Cloud, node: Uuid, instance: &str) -> bool {
    let holders = cloud.sandbox().with(|world, _| world.holders(node));
    !holders.is_empty() && holders.iter().all(|holder| holder.to_string() != instance)
}

fn guarding(cloud: &Cloud, more: &[&str]) -> Child {
    let mut command = cloud.command(&["guard"]);
    command.args(more).env("UNPROVISION_GUARD__LOOK", "100ms");
    command.spawn().unwrap()
}

#[tokio::test]
async fn a_guard_holds_stops_and_carries_on() {
    let cloud = Cloud::with_nova_traits(while_leaving(2, 5)).await;
    let [one, other] = &cloud.deployed()[..] else {
        panic!()
    };
    let guard = guarding(&cloud, &[]);
    tokio::time::sleep(Duration::from_millis(500)).await;
    nova_deletes(&cloud, &one.instance);
    until("held", || is_held_by_us(&cloud, one.node, &one.instance)).await;
    send(&guard, Signal::TERM);
    let ran = finish(guard).await;
    ran.assert_code(0).assert_says(&[
        "guard starts; 0 open cases",
        "node-0001 hand the unit over from",
        "by hand: `openstack resource provider allocation delete",
        "what is held stays held",
    ]);
    cloud.assert_held(one.node);

    let guard = guarding(&cloud, &[]);
    cloud.wait_for(one.node, State::Available).await;
    until("offered again", || cloud.sandbox().is_offered(one.node)).await;
    send(&guard, Signal::INT);
    let ran = finish(guard).await;
    ran.assert_code(0).assert_says(&[
        "guard starts; 1 open cases",
        "node-0001 is taken up again",
        "node-0001 returned",
    ]);
    cloud.assert_returned(one.node);
    assert_eq!(cloud.state(other.node), State::Active);
    assert!(
        ours(&cloud).iter().all(|write| !write.starts_with("ironic")),
        "{:?}",
        ours(&cloud)
    );
}

#[tokio::test]
async fn signals_stop_all_writes_and_let_them_go_on() {
    let cloud = Cloud::with_nova_traits(quick(1).teardown(Duration::from_secs(5))).await;
    let one = cloud.only();
    let guard = guarding(&cloud, &[]);
    tokio::time::sleep(Duration::from_millis(700)).await;
    send(&guard, Signal::USR1);
    tokio::time::sleep(Duration::from_millis(200)).await;
    nova_deletes(&cloud, &one.instance);
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(ours(&cloud), Vec::<String>::new());
    send(&guard, Signal::USR2);
    until("held", || is_held_by_us(&cloud, one.node, &one.instance)).await;
    until("offered again", || cloud.sandbox().is_offered(one.node)).await;
    send(&guard, Signal::TERM);
    finish(guard)
        .await
        .assert_code(0)
        .assert_says(&["paused, nothing is written", "goes on"]);
    cloud.assert_returned(one.node);
}

#[tokio::test]
async fn single_passes_tell_by_their_status_whether_something_is_held() {
    let cloud = Cloud::with_nova_traits(while_leaving(3600, 1)).await;
    cloud.run(&["guard", "--once"]).await.assert_code(0);
    let one = cloud.deployed().remove(0);
    nova_deletes(&cloud, &one.instance);
    let ran = cloud.run(&["guard", "--once", "--dry-run", "-o", "json"]).await;
    ran.assert_code(3)
        .assert_says(&["not sent: hand the unit over from", "this is a dry run"]);
    assert_eq!(ours(&cloud), Vec::<String>::new());

    let ran = cloud.run(&["guard", "--once", "-o", "json"]).await;
    let row = ran.assert_code(3).row();
    assert_eq!(
        (row["held"].as_bool(), row["outcome"].as_str()),
        (Some(true), Some("waits"))
    );
    assert_eq!(row["instance"].as_str(), Some(one.instance.as_str()));
    cloud.assert_held(one.node);
}

#[tokio::test]
async fn standing_down_lists_what_lifts_the_rest() {
    let cloud = Cloud::with_nova_traits(while_leaving(3600, 1)).await;
    let one = cloud.deployed().remove(0);
    nova_deletes(&cloud, &one.instance);
    cloud.run(&["guard", "--once"]).await.assert_code(3);
    let ours = cloud.sandbox().with(|world, _| world.holders(one.node)).remove(0);
    let command = format!("openstack resource provider allocation delete {ours}");
    let ran = cloud.run(&["guard", "stand-down", "-o", "json"]).await;
    let row = ran.assert_code(3).row();
    assert_eq!(row["commands"], serde_json::json!([command]));
    assert_eq!(
        (row["name"].as_str(), row["node"].as_str()),
        (Some("node-0001"), Some(&*one.node.to_string()))
    );
    let ran = cloud.run(&["guard", "stand-down"]).await;
    assert!(ran.assert_code(3).stdout.contains(&command), "{}", ran.stdout);

    cloud.sandbox().with(|world, now| {
        world.edit_node(one.node, |node| {
            node.provision_state = State::Available;
            node.instance_uuid = None;
            node.provision_updated_at = Some(now);
        })
    });
    let ran = cloud.run(&["guard", "stand-down"]).await;
    assert!(
        ran.assert_code(0).stdout.contains("nothing of ours holds a node"),
        "{}",
        ran.stdout
    );
    assert!(cloud.sandbox().is_offered(one.node));
    assert!(judge::exposure(&cloud.sandbox().log(), one.node).is_none());
}

/// A check, and standing down, beside a guard that is at work: what that one holds is not nothing.
#[tokio::test]
async fn beside_a_running_guard_what_it_holds_is_listed() {
    let cloud = Cloud::with_nova_traits(while_leaving(2, 3600)).await;
    let one = cloud.deployed().remove(0);
    let guard = guarding(&cloud, &[]);
    let by = format!("process {} on ", guard.id().unwrap());
    tokio::time::sleep(Duration::from_millis(500)).await;
    nova_deletes(&cloud, &one.instance);
    until("held", || is_held_by_us(&cloud, one.node, &one.instance)).await;

    let ran = cloud.run(&["guard", "--once", "-o", "json"]).await;
    let row = ran.assert_code(3).row();
    assert_eq!(
        (row["held"].as_bool(), row["outcome"].as_str()),
        (Some(true), Some("elsewhere"))
    );
    assert!(row["reason"].as_str().unwrap().starts_with(&by), "{row}");
    ran.assert_says(&["not alone: ", &by]);

    let ran = cloud.run(&["guard", "stand-down"]).await;
    let listed = &ran.assert_code(3).stdout;
    for words in ["node-0001", &by, "stop that guard first"] {
        assert!(listed.contains(words), "{listed}");
    }
    send(&guard, Signal::TERM);
    finish(guard).await.assert_code(0);
    cloud.assert_held(one.node);
}

/// Where somebody has stopped all writes, a check cannot say that all is well.
#[tokio::test]
async fn a_pass_while_writes_are_stopped_needs_somebody() {
    let cloud = Cloud::with_nova_traits(quick(1)).await;
    cloud.run(&["guard", "--once"]).await.assert_code(0);
    let mut command = cloud.command(&["guard", "--once"]);
    command.env("UNPROVISION_GUARD__PAUSE_FILE", "/dev/null");
    let ran = finish(command.spawn().unwrap()).await;
    ran.assert_code(3)
        .assert_says(&["nothing was written: paused: the file /dev/null is there"]);
}

/// `resume` is for tear-downs; the guard's cases are the guard's.
#[tokio::test]
async fn resume_leaves_the_guards_cases_alone() {
    let cloud = Cloud::with_nova_traits(while_leaving(3600, 1)).await;
    let one = cloud.deployed().remove(0);
    nova_deletes(&cloud, &one.instance);
    cloud.run(&["guard", "--once"]).await.assert_code(3);
    let ran = cloud.run(&["resume", "-o", "json"]).await;
    assert_eq!(ran.assert_code(0).rows(), Vec::<serde_json::Value>::new());
    ran.assert_says(&["1 case is the guard's: `unprovision guard` carries it on"]);
    assert!(!ran.stderr.contains("nothing is open"), "{}", ran.stderr);
    let named = cloud.run(&["resume", "node-0001"]).await;
    named
        .assert_code(2)
        .assert_says(&["the case of node-0001", "`unprovision guard` carries it on"]);
    let other = cloud.run(&["resume", "node-0002"]).await;
    other
        .assert_code(2)
        .assert_says(&["(open: no tear-down; 1 case is the guard's"]);
    cloud.assert_held(one.node);
}

#[tokio::test]
async fn bad_usage_of_the_guard_is_refused() {
    let cloud = Cloud::with_nova_traits(quick(1)).await;
    for (args, why) in [
        (
            &["guard", "--strategy", "hand-ovr"][..],
            "there is no such strategy",
        ),
        (
            &["guard", "--strategy", "wait-for-available"],
            "relies on the instance's allocation",
        ),
        (
            &["guard", "--strategy", "trait-tagging"],
            "has to tag the node before",
        ),
        (&["guard", "--once", "stand-down"], "stand-down"),
        (&["guard", "node-0001"], "node-0001"),
    ] {
        cloud.run(args).await.assert_code(2).assert_says(&[why]);
    }
    assert_eq!(ours(&cloud), Vec::<String>::new());
}

/// Each line is an object; a full disk or a reader that has gone stops nothing, and is said.
#[tokio::test]
async fn events_are_written_as_lines() {
    let (cloud, other) = (
        Cloud::with_nova_traits(quick(1)).await,
        Cloud::with_nova_traits(quick(1)).await,
    );
    let node = cloud.only().node;
    let file = cloud.home().join("events.jsonl");
    let guards = |cloud: &Cloud, place: &str| {
        let mut command = cloud.command(&["guard", "--events", place]);
        command.env("UNPROVISION_GUARD__LOOK", "100ms");
        command.spawn().unwrap()
    };
    let all = guards(&cloud, file.to_str().unwrap());
    let full = guards(&other, "/dev/full");
    tokio::time::sleep(Duration::from_secs(2)).await;
    for cloud in [&cloud, &other] {
        let instance = cloud.only().instance.parse().unwrap();
        let sandbox = cloud.sandbox();
        sandbox.with(|world, now| world.nova_delete(instance, now));
    }
    for cloud in [&cloud, &other] {
        cloud.wait_for(node, State::Available).await;
    }
    tokio::time::sleep(Duration::from_secs(2)).await;
    for guard in [&all, &full] {
        send(guard, Signal::TERM);
    }
    let (all, full) = (finish(all).await, finish(full).await);
    all.assert_code(0);
    full.assert_code(0)
        .assert_says(&["could not be written to /dev/full", "the guard goes on"]);
    let text = std::fs::read_to_string(&file).unwrap();
    let told = text
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap());
    let told = told.collect::<Vec<_>>();
    let last = told.last().unwrap();
    assert_eq!(
        (&last["event"], &last["node"]),
        (&"released".into(), &node.to_string().into()),
        "{text}"
    );
    let refused = cloud.run(&["guard", "--events", "/no/such/folder/file"]).await;
    refused
        .assert_code(2)
        .assert_says(&["--events: /no/such/folder/file cannot be written"]);
}

/// A pipe that nobody reads yet delays neither the start nor the end.
#[tokio::test]
async fn events_wait_for_no_reader() {
    let cloud = Cloud::with_nova_traits(quick(1).cleaning(Duration::from_secs(3))).await;
    let one = cloud.only();
    let pipe = cloud.home().join("events");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status();
    assert!(made.unwrap().success());
    let place = pipe.to_str().unwrap();
    let guard = guarding(&cloud, &["--events", place]);
    tokio::time::sleep(Duration::from_millis(500)).await;
    nova_deletes(&cloud, &one.instance);
    until("held", || is_held_by_us(&cloud, one.node, &one.instance)).await;
    let copy = cloud.home().join("copy");
    let mut reader = std::process::Command::new("cat");
    let mut reader = reader
        .arg(&pipe)
        .stdout(std::fs::File::create(&copy).unwrap())
        .spawn()
        .unwrap();
    let read = || std::fs::read_to_string(&copy).unwrap();
    until("told", || read().contains("released")).await;
    send(&guard, Signal::TERM);
    let ran = finish(guard).await;
    let words = format!("nobody reads the events from {place}");
    ran.assert_code(0).assert_says(&[&words]);
    assert_eq!(ran.stderr.matches("nobody reads").count(), 1, "{}", ran.stderr);
    assert!(reader.wait().unwrap().success());
    assert!(read().contains("missed"), "{}", read());
}
