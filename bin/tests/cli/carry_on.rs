//! What is left behind, and carried on.

use std::time::Duration;

use rustix::process::Signal;
use unprovision_testkit::sandbox::ironic::State;

use crate::support::{Cloud, finish, quick, send, slow};

/// Cleaning that lasts long enough to be interrupted.
fn a_while() -> unprovision_testkit::sandbox::Builder {
    quick(1).cleaning(Duration::from_secs(4))
}

#[tokio::test]
async fn accepted_now_and_waited_for_later() {
    let cloud = Cloud::start(a_while()).await;
    let one = cloud.only();
    let ran = cloud
        .run(&["delete", "node-0001", "--yes", "--no-wait", "-o", "json"])
        .await;
    let row = ran.assert_code(0).row();
    assert_eq!(
        (row["outcome"].as_str(), row["held"].as_bool()),
        (Some("accepted"), Some(true))
    );
    assert!(
        row["reason"].as_str().unwrap().contains("unprovision resume"),
        "{row}"
    );
    cloud.assert_held(one.node);
    let ran = cloud.run(&["resume", "node-0001", "-o", "json"]).await;
    let row = ran.assert_code(0).row();
    assert_eq!(
        (row["outcome"].as_str(), row["instance"].as_str()),
        (Some("returned"), Some(one.instance.as_str()))
    );
    cloud.assert_returned(one.node);
    assert_eq!(cloud.tear_downs(one.node), 1);
}

#[tokio::test]
async fn killed_in_the_middle_of_the_wait() {
    for strategy in ["hand-over", "reserve-on-delete"] {
        let cloud = Cloud::start(a_while()).await;
        let one = cloud.only();
        let mut child = cloud.spawn(&["delete", "node-0001", "--yes", "--strategy", strategy]);
        cloud.wait_for(one.node, State::Cleaning).await;
        child.kill().await.unwrap();
        assert!(!cloud.sandbox().is_offered(one.node));
        let ran = cloud.run(&["resume", "-o", "json"]).await;
        assert_eq!(ran.assert_code(0).row()["outcome"], "returned");
        cloud.assert_returned(one.node);
        assert_eq!(cloud.tear_downs(one.node), 1);
    }
}

#[tokio::test]
async fn killed_and_found_returned() {
    let cloud = Cloud::start(quick(1)).await;
    let one = cloud.only();
    let mut child = cloud.spawn(&["delete", "node-0001", "--yes"]);
    cloud.wait_for(one.node, State::Cleaning).await;
    child.kill().await.unwrap();
    cloud.wait_for(one.node, State::Available).await;
    cloud.run(&["resume"]).await.assert_code(0);
    cloud.assert_returned(one.node);
}

#[tokio::test]
async fn a_signal_stops_the_waiting_not_the_hold() {
    for signal in [Signal::INT, Signal::TERM] {
        let cloud = Cloud::start(a_while()).await;
        let one = cloud.only();
        let child = cloud.spawn(&["delete", "node-0001", "--yes", "-o", "json"]);
        cloud.wait_for(one.node, State::Cleaning).await;
        send(&child, signal);
        let ran = finish(child).await;
        let row = ran
            .assert_code(1)
            .assert_says(&["stays held", "unprovision resume"])
            .row();
        assert_eq!(
            (row["outcome"].as_str(), row["held"].as_bool()),
            (Some("stopped"), Some(true))
        );
        cloud.assert_held(one.node);
        cloud.run(&["resume"]).await.assert_code(0);
        cloud.assert_returned(one.node);
    }
}

#[tokio::test]
async fn a_second_signal_ends_the_process_at_once() {
    let cloud = Cloud::start(quick(1)).await;
    let one = cloud.only();
    // Placement takes a minute to answer: the first signal waits for that, the second one does not.
    let fault = unprovision_testkit::sandbox::Fault::on(unprovision_testkit::sandbox::Service::Placement);
    let child = cloud.spawn(&["delete", "node-0001", "--yes"]);
    cloud.wait_for(one.node, State::Deleting).await;
    cloud
        .sandbox()
        .fault(fault.delay(Duration::from_secs(60)).times(u32::MAX));
    tokio::time::sleep(Duration::from_secs(1)).await;
    send(&child, Signal::INT);
    tokio::time::sleep(Duration::from_millis(500)).await;
    send(&child, Signal::INT);
    let began = tokio::time::Instant::now();
    finish(child)
        .await
        .assert_code(1)
        .assert_says(&["once more to stop at once"]);
    assert!(began.elapsed() < Duration::from_secs(10));
    cloud.assert_never_exposed(one.node);
}

#[tokio::test]
async fn only_the_nodes_that_are_named_are_carried_on() {
    let cloud = Cloud::start(slow(2)).await;
    let all = cloud.deployed();
    cloud
        .run(&["delete", "node-0001", "node-0002", "--yes", "--no-wait"])
        .await
        .assert_code(0);
    let uuid = all[1].node.to_string();
    let ran = cloud
        .run(&["resume", &uuid, "node-0009", "--wait=1s", "-o", "json"])
        .await;
    let row = ran
        .assert_code(4)
        .assert_says(&["node node-0009: nothing is open"])
        .row();
    assert_eq!(row["node"], uuid);
    cloud.assert_held(all[0].node);
    cloud.assert_held(all[1].node);
}

#[tokio::test]
async fn nothing_is_open() {
    let cloud = Cloud::start(quick(1)).await;
    let ran = cloud.run(&["resume", "-o", "json"]).await;
    assert!(
        ran.assert_code(0)
            .assert_says(&["nothing is open"])
            .rows()
            .is_empty()
    );
    cloud.run(&["delete", "node-0001", "--yes"]).await.assert_code(0);
    cloud
        .run(&["resume", "node-0001"])
        .await
        .assert_code(0)
        .assert_says(&["nothing is open"]);
}

#[tokio::test]
async fn what_was_allowed_at_the_start_is_still_allowed() {
    let cloud = Cloud::start(a_while().each_node(|_, node| node.behaviour.clean_failures = 1)).await;
    let one = cloud.only();
    cloud
        .run(&["delete", "node-0001", "--yes", "--no-wait", "--reclean", "1"])
        .await
        .assert_code(0);
    cloud
        .run(&["resume"])
        .await
        .assert_code(0)
        .assert_says(&["clean again"]);
    cloud.assert_returned(one.node);
}

#[tokio::test]
async fn whoever_comes_later_takes_over() {
    let cloud = Cloud::start(a_while()).await;
    let one = cloud.only();
    let first = cloud.spawn(&["delete", "node-0001", "--yes", "-o", "json"]);
    cloud.wait_for(one.node, State::Cleaning).await;
    let second = cloud.spawn(&["resume", "-o", "json"]);
    let (first, second) = tokio::join!(finish(first), finish(second));
    assert_eq!(second.assert_code(0).row()["outcome"], "returned");
    let row = first.assert_code(1).row();
    assert_eq!(
        (row["outcome"].as_str(), row["instance"].as_str()),
        (Some("error"), Some(one.instance.as_str()))
    );
    assert!(
        row["reason"].as_str().unwrap().contains("another process"),
        "{row}"
    );
    cloud.assert_returned(one.node);
}
