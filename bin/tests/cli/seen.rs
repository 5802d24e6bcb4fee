//! What is seen from outside: `candidates` and `watch`.

use std::time::Duration;

use rustix::process::Signal;
use serde_json::Value;
use unprovision_testkit::sandbox::config::NovaRule;
use unprovision_testkit::sandbox::ironic::State;
use unprovision_testkit::sandbox::{Fault, Service};

use crate::support::{Cloud, Ran, finish, quick, send, slow};

/// The windows of this kind, of the only node.
fn windows<'a>(row: &'a Value, what: &str) -> Vec<&'a Value> {
    let all = row["windows"].as_array().unwrap().iter();
    all.filter(|window| window["what"] == what).collect()
}

fn seconds(row: &Value, key: &str) -> f64 {
    row[key].as_f64().unwrap_or_else(|| panic!("{key} in {row}"))
}

/// Waits until the command has looked at both services: when it asks Placement for the second time, its first look is
/// complete.
async fn looked(cloud: &Cloud) {
    let candidates = |line: &unprovision_testkit::sandbox::log::RequestLine<'_>| {
        line.path.starts_with("/allocation_candidates")
    };
    while cloud.sandbox().log().requests().filter(candidates).count() < 2 {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn candidates_are_told_apart_by_what_ironic_says() {
    let cloud = Cloud::start(quick(1).nodes(12)).await;
    let one = cloud.only();
    let args = ["candidates", "--resource-class", "baremetal", "-o", "json"];
    let ran = cloud.run(&args).await;
    let rows = ran.assert_code(0).rows();
    assert!(
        rows.len() == 11 && rows.iter().all(|row| row["free"] == true),
        "{rows:?}"
    );
    // What an unfixed Nova does.
    cloud
        .sandbox()
        .with(|world, _| world.edit_provider(one.node, |provider| provider.holders.clear()));
    let before = cloud.sandbox().log().requests().count();
    let ran = cloud
        .run(&["candidates", "--resource-class", "CUSTOM_BAREMETAL"])
        .await;
    ran.assert_code(3);
    for words in [
        "NO: the node is `active`",
        one.instance.as_str(),
        "1 of them offered although not free",
    ] {
        assert!(ran.stdout.contains(words), "{}", ran.stdout);
    }
    let log = cloud.sandbox().log();
    let lists = |line: &&_| {
        let line: &unprovision_testkit::sandbox::log::RequestLine<'_> = line;
        line.path.starts_with("/allocation_candidates") || line.path.starts_with("/v1/nodes")
    };
    let asked = log.requests().skip(before).collect::<Vec<_>>();
    assert_eq!(asked.iter().filter(lists).count(), 3, "no request for each node");
    assert_eq!(cloud.writes(), [""; 0]);
}

#[tokio::test]
async fn candidates_may_be_asked_for_as_a_flavor_does() {
    let cloud = Cloud::start(quick(1).nodes(3)).await;
    let args = ["candidates", "--resource-class", "baremetal", "-o", "json"];
    let rows = async |more: &[&str]| {
        cloud
            .run(&[&args, more].concat())
            .await
            .assert_code(0)
            .rows()
            .len()
    };
    assert_eq!(rows(&[]).await, 2);
    assert_eq!(rows(&["--limit", "1"]).await, 1);
    assert_eq!(rows(&["--required", "COMPUTE_NODE"]).await, 0);
    assert_eq!(rows(&["--forbidden", "COMPUTE_NODE"]).await, 2);
    for (more, says) in [
        (["--limit", "0"], "--limit"),
        (["--required", "lower"], "A-Z"),
        (["-o", "svg"], "table, json"),
    ] {
        cloud
            .run(&[&args[..3], &more].concat())
            .await
            .assert_code(2)
            .assert_says(&[says]);
    }
    for (class, says) in [
        ("baremetl", ["CUSTOM_BAREMETL", "did you mean `baremetal`?"]),
        ("gold", ["CUSTOM_GOLD", "there are: baremetal"]),
    ] {
        let none = cloud.run(&["candidates", "--resource-class", class]).await;
        none.assert_code(2).assert_says(&says);
    }
    cloud
        .run(&[&args[..3], &["--required", "CUSTOM_NEVER_HEARD_OF"]].concat())
        .await
        .assert_code(2)
        .assert_says(&["CUSTOM_NEVER_HEARD_OF"]);
}

/// What the command says of the one node, whose server Nova deletes after the first look.
async fn watched_while_nova_deletes(cloud: &Cloud, until: &str) -> Ran {
    let args = [
        "watch",
        "node-0001",
        "--every",
        "200ms",
        "--until",
        until,
        "-o",
        "json",
    ];
    let child = cloud.spawn(&args);
    looked(cloud).await;
    let instance = cloud.only().instance.parse().unwrap();
    cloud
        .sandbox()
        .with(|world, now| world.nova_delete(instance, now));
    finish(child).await
}

/// The bug, as an unfixed Nova makes it, proven without touching anything.
#[tokio::test]
async fn watching_shows_what_an_old_nova_exposes() {
    let cloud = Cloud::with_nova_traits(quick(1).nova(NovaRule::Old).cleaning(Duration::from_secs(6))).await;
    let ran = watched_while_nova_deletes(&cloud, "7s").await;
    let row = ran
        .assert_code(3)
        .assert_says(&[
            "is looked at every 200ms, for 7s",
            "node-0001 is active, not offered",
            "is cleaning, OFFERED ALTHOUGH NOT FREE",
        ])
        .row();
    assert!(
        seconds(&row, "exposed_s") > 1.0 && !windows(&row, "exposed").is_empty(),
        "{row}"
    );
    assert!(seconds(&row, "resolution_s") > 0.0, "{row}");
}

/// Since 26.1 a settled server's node stays reserved, and longer than needed: until the next pass.
#[tokio::test]
async fn watching_shows_what_a_current_nova_leaves_idle() {
    let cloud = Cloud::with_nova_traits(quick(1).nova(NovaRule::Current)).await;
    let row = watched_while_nova_deletes(&cloud, "8s")
        .await
        .assert_code(0)
        .row();
    assert!(windows(&row, "exposed").is_empty(), "{row}");
    assert!(
        seconds(&row, "held_s") > 0.0 && seconds(&row, "idle_while_free_s") > 0.5,
        "{row}"
    );
}

/// Beside a delete of ours; it ends by itself once the node is back, and has changed nothing.
#[tokio::test]
async fn watching_a_delete_of_ours_shows_no_exposure() {
    let cloud = Cloud::start(quick(1).cleaning(Duration::from_secs(2))).await;
    let one = cloud.only();
    let child = cloud.spawn(&["watch", "node-0001", "--every", "100ms", "-o", "json"]);
    looked(&cloud).await;
    tokio::time::sleep(Duration::from_millis(500)).await;
    assert_eq!(cloud.writes(), [""; 0]);
    cloud.run(&["delete", "node-0001", "--yes"]).await.assert_code(0);
    let row = finish(child)
        .await
        .assert_code(0)
        .assert_says(&["free and offered"])
        .row();
    assert_eq!(
        (row["exposed_s"].as_f64(), row["failed_samples"].as_u64()),
        (Some(0.0), Some(0))
    );
    assert!(seconds(&row, "held_s") >= 2.0, "{row}");
    let states = row["provision_states"].as_array().unwrap();
    let states = states
        .iter()
        .map(|span| span["what"].as_str().unwrap())
        .collect::<Vec<_>>();
    assert!(
        states.first() == Some(&"active") && states.last() == Some(&"available"),
        "{states:?}"
    );
    cloud.assert_returned(one.node);
}

#[tokio::test]
async fn a_signal_ends_the_watch_with_the_result_so_far() {
    let cloud = Cloud::start(slow(1)).await;
    let child = cloud.spawn(&["watch", "node-0001", "--every", "100ms", "-o", "svg", "-q"]);
    looked(&cloud).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    send(&child, Signal::INT);
    let ran = finish(child).await;
    assert_eq!(ran.assert_code(0).stderr, "");
    assert!(
        ran.stdout.starts_with("<svg ") && ran.stdout.contains("node-0001: exposed 0.0 s"),
        "{}",
        ran.stdout
    );
    assert_eq!(cloud.writes(), [""; 0]);
}

#[tokio::test]
async fn a_look_that_fails_is_a_gap() {
    let cloud = Cloud::start(slow(1)).await;
    let broken = Fault::on(Service::Placement)
        .path("/allocation_candidates")
        .status(http::StatusCode::INTERNAL_SERVER_ERROR, "{}");
    cloud.sandbox().fault(broken.nth(3).times(2));
    let ran = cloud
        .run(&[
            "watch",
            "node-0001",
            "--every",
            "100ms",
            "--until",
            "2s",
            "-o",
            "json",
        ])
        .await;
    let row = ran.assert_code(0).assert_says(&["a gap begins"]).row();
    assert_eq!(row["failed_samples"], 2);
    let held = windows(&row, "held");
    assert_eq!(held.len(), 2, "{row}");
    assert_eq!(
        (held[0]["ended"].as_bool(), held[1]["ended"].as_bool()),
        (Some(false), Some(false))
    );

    let always = Fault::on(Service::Placement).path("/allocation_candidates");
    cloud
        .sandbox()
        .fault(always.status(http::StatusCode::FORBIDDEN, "{}").times(u32::MAX));
    cloud
        .run(&["watch", "node-0001"])
        .await
        .assert_code(1)
        .assert_says(&["not allowed"]);
}

#[tokio::test]
async fn what_cannot_be_watched_is_refused() {
    let cloud = Cloud::start(quick(1)).await;
    let uuid = cloud.only().node.to_string();
    for (args, says) in [
        (vec!["watch"], "<NODE>"),
        (vec!["watch", "nope"], "Ironic does not know node nope"),
        (vec!["watch", "node-*"], "patterns are not taken"),
        (vec!["watch", "node-0001", &uuid], "is named twice"),
        (vec!["watch", "node-0001", "--until", "soon"], "or `available`"),
        (vec!["watch", "node-0001", "--every", "1ms"], "100ms or more"),
    ] {
        cloud.run(&args).await.assert_code(2).assert_says(&[says]);
    }
    assert_eq!(cloud.state(cloud.only().node), State::Active);
}

/// The last pause is as long as what is left, not as long as all others.
#[tokio::test]
async fn a_watch_ends_when_its_time_is_over() {
    let cloud = Cloud::start(slow(1)).await;
    let args = ["watch", "node-0001", "--until", "1s", "--every", "1h"];
    cloud.run(&args).await.assert_code(0);
}
