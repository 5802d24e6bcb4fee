//! `unprovision guard` where something is not as usual: a reader that leaves, a state that nobody knows, a Nova that can be asked.

use std::time::Duration;

use http::Method;
use rustix::process::Signal;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::Child;
use tokio::time::{sleep, timeout};
use unprovision_testkit::sandbox::ironic::State;
use unprovision_testkit::sandbox::{Builder, Service};
use uuid::Uuid;

use crate::support::{Cloud, Ran, finish, quick, send};

fn guarding(cloud: &Cloud, more: &[&str], variables: &[(&str, &str)]) -> Child {
    let mut command = cloud.command(&["guard"]);
    command
        .args(more)
        .env("UNPROVISION_GUARD__LOOK", "100ms")
        .env("UNPROVISION_GUARD__SWEEP", "1s")
        .envs(variables.iter().copied());
    command.spawn().unwrap()
}

fn nova_deletes(cloud: &Cloud, instance: &str) {
    let instance = instance.parse().unwrap();
    cloud
        .sandbox()
        .with(|world, now| world.nova_delete(instance, now));
}

fn becomes(cloud: &Cloud, node: Uuid, state: State) {
    cloud.sandbox().with(|world, now| {
        world.edit_node(node, |node| {
            node.provision_state = state;
            node.provision_updated_at = Some(now);
        })
    });
}

async fn until(what: &str, holds: impl Fn() -> bool) {
    let reached = async {
        while !holds() {
            sleep(Duration::from_millis(20)).await;
        }
    };
    timeout(Duration::from_secs(60), reached)
        .await
        .unwrap_or_else(|_| panic!("it never came to: {what}"));
}

/// On a busy machine the start takes seconds: longer than a tear-down.
async fn looks(cloud: &Cloud) {
    let before = looked(cloud);
    until("the guard looks", || looked(cloud) > before).await;
}

/// Its looks so far at nodes that are being deleted.
fn looked(cloud: &Cloud) -> usize {
    let log = cloud.sandbox().log();
    let looks = log
        .requests()
        .filter(|line| line.path.contains("provision_state=deleting"));
    looks.count()
}

async fn stopped(guard: Child) -> Ran {
    send(&guard, Signal::TERM);
    finish(guard).await
}

/// As `unprovision guard --events - | head -1`: the reader leaves after the first event. That is said, and stops nothing.
#[tokio::test]
async fn a_reader_of_the_events_that_leaves_stops_nothing() {
    let cloud = Cloud::with_nova_traits(quick(2).teardown(Duration::from_secs(3))).await;
    let mut guard = guarding(&cloud, &["--events", "-"], &[]);
    let mut lines = BufReader::new(guard.stdout.take().unwrap()).lines();
    looks(&cloud).await;
    let [one, other] = &cloud.deployed()[..] else {
        panic!()
    };
    nova_deletes(&cloud, &one.instance);
    let first = timeout(Duration::from_secs(60), lines.next_line()).await.unwrap();
    let first: Value = serde_json::from_str(&first.unwrap().unwrap()).unwrap();
    assert_eq!(first["node"], one.node.to_string());
    drop(lines);

    nova_deletes(&cloud, &other.instance);
    for node in [one.node, other.node] {
        cloud.wait_for(node, State::Available).await;
        until("offered", || cloud.sandbox().is_offered(node)).await;
    }
    let ran = stopped(guard).await;
    ran.assert_code(0).assert_says(&[
        "whoever read the events has gone; the guard goes on",
        "guard stopped",
    ]);
    let told = ran.stderr.matches("whoever read the events").count();
    assert_eq!(told, 1, "{}", ran.stderr);
    assert!(!ran.stderr.contains("panicked"), "{}", ran.stderr);
    for node in [one.node, other.node] {
        cloud.assert_returned(node);
    }
}

/// Ironic has a state that this version does not know: over the whole way from its word on the wire to the operator.
#[tokio::test]
async fn a_state_that_nobody_knows_is_held_told_and_ends_with_available() {
    let slow = quick(2)
        .teardown(Duration::from_secs(3))
        .cleaning(Duration::from_secs(3600));
    let cloud = Cloud::with_nova_traits(slow).await;
    let [one, _] = &cloud.deployed()[..] else { panic!() };
    let file = cloud.home().join("events.jsonl");
    let guard = guarding(&cloud, &["--events", file.to_str().unwrap()], &[]);
    looks(&cloud).await;
    nova_deletes(&cloud, &one.instance);
    cloud.wait_for(one.node, State::Cleaning).await;
    until("held", || !cloud.sandbox().is_offered(one.node)).await;
    becomes(&cloud, one.node, State::Quarantined);
    let stuck = || {
        let events = std::fs::read_to_string(&file).unwrap_or_default();
        events.contains("\"event\":\"stuck\"") && events.contains("quarantined")
    };
    until("stuck", stuck).await;
    sleep(Duration::from_secs(2)).await;
    cloud.assert_held(one.node);
    becomes(&cloud, one.node, State::Available);
    until("offered", || cloud.sandbox().is_offered(one.node)).await;
    sleep(Duration::from_millis(500)).await;
    let ran = stopped(guard).await;
    ran.assert_code(0).assert_says(&[
        " -> quarantined",
        "waits: the node is in a state that this version does not know: `quarantined`",
        "quarantined -> available",
        "returned: the node is available and offered",
    ]);
    cloud.assert_returned(one.node);
}

fn with_nova() -> Builder {
    quick(1)
        .teardown(Duration::from_secs(3))
        .configure(|config| config.nova.in_catalog = true)
}

/// What is asked of Nova is among the first lines, and `doctor` says the same.
#[tokio::test]
async fn whether_nova_is_asked_is_said_at_the_start_and_by_doctor() {
    let (with, without) = (
        Cloud::with_nova_traits(with_nova()).await,
        Cloud::with_nova_traits(quick(1)).await,
    );
    let missing = "the catalog has no service of the type `compute`";
    for (cloud, ask, says, doctor) in [
        (
            &with,
            "auto",
            "Nova is asked for the server where there is doubt",
            "shows the servers of all projects",
        ),
        (
            &with,
            "required",
            "Nova is asked for the server before each release",
            "shows the servers of all projects",
        ),
        (
            &with,
            "off",
            "Nova is not asked: it is switched off. Not checked: ",
            "Nova is not asked for servers",
        ),
        (
            &without,
            "auto",
            missing,
            "Nova cannot be asked for servers; not checked: ",
        ),
    ] {
        let guard = guarding(cloud, &[], &[("UNPROVISION_NOVA__ASK", ask)]);
        looks(cloud).await;
        // It is said beside the first looks.
        sleep(Duration::from_secs(3)).await;
        stopped(guard).await.assert_code(0).assert_says(&[says]);
        let mut command = cloud.command(&["doctor"]);
        let ran = finish(command.env("UNPROVISION_NOVA__ASK", ask).spawn().unwrap()).await;
        assert!(
            ran.assert_code(0).stdout.contains(doctor),
            "{ask}: {}",
            ran.stdout
        );
    }
    let required = [("UNPROVISION_NOVA__ASK", "required")];
    let refused = finish(guarding(&without, &[], &required)).await;
    refused
        .assert_code(2)
        .assert_says(&["Nova is to be asked before each release, and cannot be: no endpoint for nova"]);
}

/// Nova has the server still: the node that somebody tore down behind its back stays held, and `delete` is refused with its word.
#[tokio::test]
async fn a_server_that_lives_keeps_its_node_where_novas_word_is_required() {
    let cloud = Cloud::with_nova_traits(with_nova()).await;
    let one = cloud.only();
    let refused = cloud.run(&["delete", "node-0001", "--yes"]).await;
    refused
        .assert_code(2)
        .assert_says(&["Nova manages node node-0001", "is `ACTIVE` on it"]);
    let required = [("UNPROVISION_NOVA__ASK", "required")];
    let guard = guarding(&cloud, &[], &required);
    looks(&cloud).await;
    let path = format!("/v1/nodes/{}/states/provision", one.node);
    let target = json!({ "target": "deleted" });
    let answer = cloud
        .sandbox()
        .with(|world, _| world.ask(Service::Ironic, Method::PUT, &path, Some(target)));
    assert!(answer.status.is_success(), "{answer:?}");
    cloud.wait_for(one.node, State::Available).await;
    sleep(Duration::from_secs(5)).await;
    let ran = stopped(guard).await;
    ran.assert_code(0).assert_says(&[
        "waits: the node is free, but Nova says that server",
        "behind Nova's back",
    ]);
    cloud.assert_held(one.node);
}
