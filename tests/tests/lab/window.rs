//! C01 the window after a delete, C06 automated cleaning off, C08 many at once, C15 resource classes.

use http::Method;
use serde_json::Value;
use unprovision::core::Outcome;
use unprovision_session::Service;
use unprovision_testkit::lab::{Lab, order};

use crate::common::{Scene, before, guard, outcome, until};

/// Every strategy, on nodes that are locked while they clean and on nodes that clean like an agent.
#[tokio::test]
async fn whole_delete() {
    let whole = async |what: &str, flags: &[&str]| {
        let scene = Scene::per_strategy(what, flags).await;
        let reports = scene.tear_down().await;
        scene.assert_returned(&reports).await;
        for node in &scene.nodes {
            assert_eq!(scene.count(node, "deleted"), (1, 1), "{}", node.name);
            let left = scene.api.consumer(node.instance).await.unwrap();
            assert_eq!(
                left["allocations"],
                serde_json::json!({}),
                "the instance holds nothing"
            );
        }
        scene.assert_unexposed().await;
    };
    let agent = [
        "--interface",
        "agent",
        "--step-seconds",
        "3",
        "--knob",
        "lab_tear_down_seconds=1",
    ];
    let fake = ["--step-seconds", "4", "--knob", "lab_tear_down_seconds=1"];
    tokio::join!(whole("fake", &fake), whole("agent", &agent));
}

/// What an unfixed Nova does: it drops the allocation as soon as the instance has left the node. Both judges see it.
#[tokio::test]
async fn control_shows_the_bug() {
    let scene = Scene::new("control", 2, &["--step-seconds", "6"]).await;
    let nova = scene.api.through(&scene.proxies);
    for node in &scene.nodes {
        nova.provision(node.node, "deleted").await.unwrap();
    }
    for node in &scene.nodes {
        until("the instance has left", async || {
            nova.node(node.node).await.unwrap()["instance_uuid"].is_null()
        })
        .await;
        nova.drop_consumer(node.instance).await.unwrap();
    }
    for node in &scene.nodes {
        scene.until_state(node, "available").await;
    }
    let log = scene.proxies.recorder.exchanges();
    let nodes = scene.nodes.clone();
    let samples = scene.samples().await;
    for node in &nodes {
        let faults = order::faults(&log, &before(node));
        assert_eq!(
            faults.len(),
            2,
            "torn down without a hold, and offered too early: {faults:#?}"
        );
        assert!(samples.exposed(node.node) > 0 && !samples.exposed_for(node.node).is_zero());
    }
}

/// The node passes `deleting` and `cleaning` at once: no state in between need be seen.
#[tokio::test]
async fn c06_a_node_that_is_not_cleaned_returns_at_once() {
    let scene = Scene::per_strategy("noclean", &["--no-clean", "--step-seconds", "60"]).await;
    let reports = scene.tear_down().await;
    scene.assert_returned(&reports).await;
    assert!(
        reports
            .iter()
            .all(|report| report.returned_after_s.unwrap() < 45.0),
        "{reports:?}"
    );
    scene.assert_unexposed().await;
}

/// All ten are held before the first one is torn down; each is torn down once.
#[tokio::test]
async fn c08_ten_deletes_at_once() {
    let scene = Scene::new("ten", 10, &["--step-seconds", "3"]).await;
    let reports = scene.tear_down().await;
    scene.assert_returned(&reports).await;
    let log = scene.proxies.recorder.exchanges();
    let nodes = scene.nodes.iter().map(|node| (before(node), scene.promise(node)));
    let nodes = nodes.collect::<Vec<_>>();
    assert!(
        order::all_held_first(&log, &nodes),
        "all are held before the first is torn down"
    );
    assert!(scene.nodes.iter().all(|node| scene.count(node, "deleted").0 == 1));
    scene.assert_unexposed().await;
}

/// A class whose name Nova mangles is held all the same.
#[tokio::test]
async fn c15_odd_class_names_are_held() {
    let held = async |class: &str| {
        let scene = Scene::per_strategy("class", &["--resource-class", class, "--step-seconds", "2"]).await;
        let reports = scene.tear_down().await;
        scene.assert_returned(&reports).await;
        scene.assert_unexposed().await;
    };
    tokio::join!(held("baremetal.gp2.small"), held("bm--x..y"));
}

/// A protected node is refused before anything is touched.
#[tokio::test]
async fn c25_a_protected_node_is_refused() {
    let scene = Scene::per_strategy("protected", &[]).await;
    let protect = serde_json::json!([{ "op": "replace", "path": "/protected", "value": true }]);
    for (node, request) in scene.nodes.iter().zip(scene.requests()) {
        let path = format!("/v1/nodes/{}", node.node);
        scene
            .api
            .call(Service::Ironic, Method::PATCH, &path, &protect)
            .await
            .unwrap();
        let orchestrator = scene.orchestrator(Default::default()).await;
        let refused = orchestrator.check(&request).await.unwrap_err().to_string();
        assert!(refused.contains("protected"), "{refused}");
    }
    assert_eq!(scene.writes(), 0);
    scene.assert_unexposed().await;
}

/// Refused for good although the look before did not show it: Placement is put back in favour of the instance.
#[tokio::test]
async fn c25_what_ironic_refuses_is_handed_back() {
    let scene = Scene::per_strategy("refused", &[]).await;
    let orchestrator = scene.orchestrator(Default::default()).await;
    let requests = scene.requests();
    let mut cases = Vec::new();
    for request in &requests {
        let first = orchestrator.check(request).await.unwrap();
        cases.push(orchestrator.open(request, first).await.unwrap());
    }
    let protect = serde_json::json!([{ "op": "replace", "path": "/protected", "value": true }]);
    scene.proxies.recorder.interfere(std::sync::Arc::new(Protect {
        api: scene.api.clone(),
        body: protect,
    }));
    let stop = tokio_util::sync::CancellationToken::new();
    let reports = orchestrator
        .run(&cases, unprovision::orchestrator::Until::Ended, &stop)
        .await;
    for (report, node) in reports.into_iter().map(Result::unwrap).zip(&scene.nodes) {
        assert_eq!(outcome(&report), Outcome::Blocked, "{report:?}");
        let (holders, inventories) = scene.placement(node.node).await;
        assert_eq!(
            holders.into_iter().collect::<Vec<_>>(),
            [node.instance],
            "{report:?}"
        );
        assert_eq!(inventories[node.class().unwrap().as_str()]["reserved"], 0);
        let back = scene.api.consumer(node.instance).await.unwrap();
        assert_eq!(
            (&back["project_id"], &back["consumer_type"]),
            (&"a".repeat(32).into(), &"INSTANCE".into())
        );
        assert_eq!(
            scene.api.consumer(guard(node)).await.unwrap()["allocations"],
            serde_json::json!({})
        );
        assert_eq!(scene.count(node, "deleted").0, 0);
    }
    scene.assert_unexposed().await;
}

/// Protects a node just before its tear-down arrives.
#[derive(Debug)]
struct Protect {
    api: unprovision_testkit::lab::Api,
    body: Value,
}

#[async_trait::async_trait]
impl unprovision_testkit::proxy::Interfere for Protect {
    async fn before(&self, call: &unprovision_testkit::proxy::Call) {
        if call.method == Method::PUT
            && let Some(node) = call.path.strip_suffix("/states/provision")
        {
            self.api
                .ask(Service::Ironic, Method::PATCH, node, &self.body)
                .await
                .unwrap();
        }
    }
}

/// Without a lab nothing is skipped: the test fails, and says how to start one.
#[test]
fn a_missing_lab_is_a_failure_that_says_what_to_do() {
    let told = unprovision_testkit::lab::LabError::NotRunning.to_string();
    assert!(
        told.contains("tests/run") && told.contains("tests/lab/lab up"),
        "{told}"
    );
    Lab::from_env().unwrap_or_else(|error| panic!("{error}"));
}
