//! C02 a node that is locked while `active`.

use http::Method;
use serde_json::json;
use unprovision_session::Service;

use crate::common::Scene;

/// Ironic answers 409 after some seconds; then the lock is waited out, and exactly one tear-down is accepted.
#[tokio::test]
async fn c02_a_lock_is_waited_out() {
    let scene = Scene::per_strategy(
        "locked",
        &["--step-seconds", "2", "--knob", "lab_reboot_seconds=9"],
    )
    .await;
    for node in &scene.nodes {
        let path = format!("/v1/nodes/{}/states/power", node.node);
        scene
            .api
            .call(
                Service::Ironic,
                Method::PUT,
                &path,
                &json!({ "target": "rebooting" }),
            )
            .await
            .unwrap();
    }
    let reports = scene.tear_down().await;
    scene.assert_returned(&reports).await;
    for node in &scene.nodes {
        let (accepted, all) = scene.count(node, "deleted");
        assert!(
            accepted == 1 && all > 1,
            "{}: {accepted} of {all} accepted",
            node.name
        );
    }
    assert_eq!(
        scene.requests_to(&Method::PATCH, "").1,
        0,
        "the tear-down itself does all that is to be done"
    );
    scene.assert_unexposed().await;
}
