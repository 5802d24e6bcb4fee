//! Nodes that do not return, or not at once.

use unprovision_testkit::sandbox::ironic::State;

use crate::support::{Cloud, quick, slow};

#[tokio::test]
async fn the_time_is_up_and_the_hold_stays() {
    let cloud = Cloud::start(slow(1)).await;
    let one = cloud.only();
    let ran = cloud
        .run(&["delete", "node-0001", "--yes", "--wait=2s", "-o", "json"])
        .await;
    let row = ran.assert_code(4).row();
    assert_eq!(
        (row["outcome"].as_str(), row["held"].as_bool()),
        (Some("timed-out"), Some(true))
    );
    assert_eq!(row["returned_after_s"], serde_json::Value::Null);
    cloud.assert_held(one.node);
}

#[tokio::test]
async fn a_failed_cleaning_is_held_until_it_is_cured() {
    let cloud = Cloud::start(quick(1).each_node(|_, node| node.behaviour.clean_failures = 1)).await;
    let one = cloud.only();
    let ran = cloud.run(&["delete", "node-0001", "--yes", "-o", "json"]).await;
    let row = ran.assert_code(3).row();
    assert_eq!(
        (row["outcome"].as_str(), row["held"].as_bool()),
        (Some("failed"), Some(true))
    );
    assert_eq!(row["provision_state"], "clean failed");
    assert!(row["reason"].as_str().unwrap().contains("--reclean 1"), "{row}");
    cloud.assert_held(one.node);
    let ran = cloud.run(&["resume", "--reclean", "1", "-o", "json"]).await;
    assert_eq!(ran.assert_code(0).row()["outcome"], "returned");
    cloud.assert_returned(one.node);
}

/// What others have written cannot paint the terminal or forge lines.
#[tokio::test]
async fn the_text_of_others_is_shown_not_obeyed() {
    let cloud = Cloud::start(quick(1).each_node(|_, node| {
        node.name = Some("no\u{1b}[2Jde".to_owned());
        node.maintenance_reason = Some("fan\n2026-11-30T00:00:00Z node-0002 returned\u{9b}1m".to_owned());
        node.maintenance = true;
    }))
    .await;
    let one = cloud.only();
    let ran = cloud
        .run(&["delete", &one.node.to_string(), "--yes", "--wait=2s"])
        .await;
    ran.assert_code(3).assert_says(&[r"no\u{1b}[2Jde", r"fan\n2026"]);
    for text in [&ran.stdout, &ran.stderr] {
        assert!(!text.contains(['\u{1b}', '\u{9b}']), "{text}");
        assert!(
            !text.lines().any(|line| line.starts_with("2026-11-30T00:00:00Z")),
            "{text}"
        );
    }
}

#[tokio::test]
async fn a_failed_cleaning_may_be_started_again_at_once() {
    let cloud = Cloud::start(quick(1).each_node(|_, node| node.behaviour.clean_failures = 1)).await;
    let one = cloud.only();
    cloud
        .run(&["delete", "node-0001", "--yes", "--reclean", "1"])
        .await
        .assert_code(0)
        .assert_says(&["clean again"]);
    cloud.assert_returned(one.node);
}

#[tokio::test]
async fn a_failed_tear_down_may_be_sent_again() {
    let cloud = Cloud::start(quick(1).each_node(|_, node| node.behaviour.teardown_failures = 1)).await;
    let one = cloud.only();
    cloud
        .run(&["delete", "node-0001", "--yes", "--retry-error", "1", "--wait=30s"])
        .await
        .assert_code(0);
    cloud.assert_returned(one.node);
    assert_eq!(cloud.tear_downs(one.node), 2);
}

#[tokio::test]
async fn a_failed_tear_down_is_held() {
    let cloud = Cloud::start(quick(1).each_node(|_, node| node.behaviour.teardown_failures = 1)).await;
    let one = cloud.only();
    let row = cloud
        .run(&["delete", "node-0001", "--yes", "-o", "json"])
        .await
        .assert_code(3)
        .row();
    assert_eq!(
        (row["outcome"].as_str(), row["provision_state"].as_str()),
        (Some("failed"), Some("error"))
    );
    cloud.assert_held(one.node);
}

#[tokio::test]
async fn a_node_that_is_blocked_counts_more_than_one_that_is_late() {
    let cloud = Cloud::start(slow(3).each_node(|number, node| {
        node.behaviour.clean_failures = u32::from(number == 1);
        node.behaviour.cleaning = (number == 1).then(|| std::time::Duration::from_millis(200));
    }))
    .await;
    let all = cloud.deployed();
    let ran = cloud
        .run(&[
            "delete",
            "node-0001",
            "node-0002",
            "--yes",
            "--wait=8s",
            "-o",
            "json",
        ])
        .await;
    let rows = ran.assert_code(3).rows();
    assert_eq!(
        (rows[0]["outcome"].as_str(), rows[1]["outcome"].as_str()),
        (Some("failed"), Some("timed-out"))
    );
    cloud.assert_held(all[0].node);
    cloud.assert_held(all[1].node);
    assert_eq!(cloud.state(all[2].node), State::Active);
}

#[tokio::test]
async fn a_node_that_vanishes_is_gone() {
    let cloud = Cloud::start(slow(1)).await;
    let one = cloud.only();
    let child = cloud.spawn(&["delete", "node-0001", "--yes", "-o", "json"]);
    cloud.wait_for(one.node, State::Cleaning).await;
    cloud.sandbox().with(|world, _| world.remove_node(one.node));
    let ran = crate::support::finish(child).await;
    assert_eq!(ran.assert_code(3).row()["outcome"], "gone");
    assert!(!cloud.sandbox().is_offered(one.node));
}
