//! C03 `error` after a tear-down, C04 `clean failed`, C05 maintenance, C09 a node that vanishes.

use std::sync::Arc;

use http::Method;
use serde_json::Value;
use unprovision::core::{Limits, Outcome};
use unprovision_session::Service;
use unprovision_testkit::lab::Setup;

use crate::common::{Scene, Waits, limits, outcome, resume, secs, strategies, tear_down, until};

/// A tear-down that fails is a failure and stays held; where a second attempt was asked for, that is made, once.
#[tokio::test]
async fn c03_error_is_a_failure_or_retried() {
    let flags = [
        "--step-seconds",
        "2",
        "--knob",
        "lab_tear_down_failures=1",
        "--knob",
        "lab_tear_down_seconds=1",
    ];
    let kinds = strategies().count();
    let scene = Scene::new("error", 2 * kinds, &flags).await;
    let mut requests = scene.requests();
    requests[kinds..]
        .iter_mut()
        .for_each(|request| request.limits.retry_error = 1);
    let reports = tear_down(&scene.orchestrator(Setup::default()).await, &requests)
        .await
        .unwrap();
    for (report, node) in reports.iter().zip(&scene.nodes).take(kinds) {
        assert_eq!(outcome(report), Outcome::Failed, "{report:?}");
        let shown = scene.api.node(node.node).await.unwrap();
        assert!(report.held && shown["provision_state"] == "error", "{report:?}");
        assert!(
            report.reason.contains(shown["last_error"].as_str().unwrap()),
            "{report:?}"
        );
        scene.assert_held(node, &report.strategy).await;
        assert_eq!(scene.count(node, "deleted").0, 1);
    }
    for (report, node) in reports.iter().zip(&scene.nodes).skip(kinds) {
        assert_eq!(outcome(report), Outcome::Returned, "{report:?}");
        scene.assert_clean(node, &report.strategy).await;
        assert_eq!(scene.count(node, "deleted").0, 2);
    }
    scene.assert_unexposed().await;
}

/// A cleaning that fails is a failure and stays held; the cure is taken up later, with leave to clean again.
#[tokio::test]
async fn c04_a_failed_cleaning_is_held_then_cured() {
    let case = async |what: &str, flags: &[&str], maintenance: usize| {
        let scene = Scene::per_strategy(what, flags).await;
        let orchestrator = scene.orchestrator(Setup::default()).await;
        let reports = tear_down(&orchestrator, &scene.requests()).await.unwrap();
        for (report, node) in reports.iter().zip(&scene.nodes) {
            assert_eq!(outcome(report), Outcome::Failed, "{what}: {report:?}");
            assert!(
                report.held && scene.api.node(node.node).await.unwrap()["provision_state"] == "clean failed"
            );
            scene.assert_held(node, &report.strategy).await;
            assert_eq!(
                (scene.count(node, "manage").1, scene.count(node, "provide").1),
                (0, 0)
            );
        }
        let cure = Limits {
            reclean: 1,
            ..limits(secs(150))
        };
        for report in resume(&orchestrator, cure).await {
            assert_eq!(outcome(&report), Outcome::Returned, "{what}: {report:?}");
        }
        for node in &scene.nodes {
            scene.assert_clean(node, what).await;
            let verbs = ["deleted", "manage", "provide"].map(|verb| scene.count(node, verb).0);
            assert_eq!(verbs, [1, 1, 1], "{what}");
        }
        let ended = scene.requests_to(&Method::DELETE, "/maintenance").0;
        assert_eq!(
            ended,
            maintenance * scene.nodes.len(),
            "{what}: only what the failure has set is ended"
        );
        scene.assert_unexposed().await;
    };
    let agent = ["--interface", "agent", "--step-seconds", "2"];
    let failing = |knob| [&agent[..], &["--knob", knob]].concat();
    let (agent_fails, boot_fails) = (failing("lab_clean_failures=1"), failing("lab_boot_timeouts=1"));
    tokio::join!(
        case(
            "fails",
            &["--step-seconds", "2", "--knob", "lab_clean_failures=1"],
            1
        ),
        case("fails-agent", &agent_fails, 1),
        case("boot-timeout", &boot_fails, 0),
    );
}

/// Somebody's maintenance stops the agent: that is said, the node stays held, and it goes on once that ends.
#[tokio::test]
async fn c05_maintenance_pauses_the_wait() {
    let scene = Scene::per_strategy("maintained", &["--interface", "agent", "--step-seconds", "8"]).await;
    let waits = Waits::default();
    let orchestrator = scene
        .orchestrator(Setup {
            observer: Arc::new(waits.clone()),
            ..Setup::default()
        })
        .await;
    let requests = scene.requests();
    let meddle = async {
        for node in &scene.nodes {
            scene.until_state(node, "clean wait").await;
            scene.maintenance(node, true).await;
        }
        until("it is said", async || waits.contain("on fire")).await;
        tokio::time::sleep(secs(10)).await;
        for node in &scene.nodes {
            assert_eq!(
                scene.api.node(node.node).await.unwrap()["provision_state"],
                "clean wait"
            );
            scene.assert_held(node, "in maintenance").await;
            scene.maintenance(node, false).await;
        }
    };
    let (reports, ()) = tokio::join!(tear_down(&orchestrator, &requests), meddle);
    scene.assert_returned(&reports.unwrap()).await;
    scene.assert_unexposed().await;
}

/// Somebody removes the node while it cleans (Ironic lets go of an unlocked one in maintenance). That is not a success;
/// the provider is never offered, and nothing of ours keeps Nova from deleting it.
#[tokio::test]
async fn c09_a_node_that_is_removed_is_gone_and_never_offered() {
    let scene = Scene::per_strategy("removed", &["--interface", "agent", "--step-seconds", "60"]).await;
    let remove = async {
        for node in &scene.nodes {
            scene.until_state(node, "clean wait").await;
            // A node that is gone before that keeps its instance's allocation, which is not ours.
            until("the instance is released", async || {
                let waits = scene.promise(node).instance;
                waits || !scene.placement(node.node).await.0.contains(&node.instance)
            })
            .await;
            scene.maintenance(node, true).await;
            let path = &format!("/v1/nodes/{}", node.node);
            until("the node is removed", async || {
                scene
                    .api
                    .ask(Service::Ironic, Method::DELETE, path, &Value::Null)
                    .await
                    .unwrap()
                    .0
                    .is_success()
            })
            .await;
        }
    };
    let (reports, ()) = tokio::join!(scene.tear_down(), remove);
    for (report, node) in reports.iter().zip(&scene.nodes) {
        assert_eq!(outcome(report), Outcome::Gone, "{report:?}");
        scene.assert_held(node, &report.strategy).await;
        let (holders, inventories) = scene.placement(node.node).await;
        assert!(holders.is_empty(), "{}: {holders:?}", report.strategy);
        assert_eq!(inventories[node.class().unwrap().as_str()]["reserved"], 1);
    }
    scene.assert_unexposed().await;
}
