//! Faults on the way, and the sandbox under tokio's paused clock.
#![allow(
    clippy::unwrap_used,
    reason = "a helper of a test may fail as the test itself may"
)]

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Method, Request, StatusCode};
use serde_json::{Value, json};
use unprovision_session::{Transport, TransportError};
use unprovision_testkit::sandbox::handle::beginning;
use unprovision_testkit::sandbox::ironic::State;
use unprovision_testkit::sandbox::{Fault, Sandbox, Service, judge};

fn sandbox() -> Sandbox {
    Sandbox::builder().nodes(2).deployed(1).build()
}

fn request(method: Method, path: &str, body: Option<Value>) -> Request<Bytes> {
    Request::builder()
        .method(method)
        .uri(path)
        .header("x-openstack-ironic-api-version", "1.87")
        .header("openstack-api-version", "placement 1.39")
        .body(Bytes::from(body.map(|body| body.to_string()).unwrap_or_default()))
        .unwrap()
}

async fn state(ironic: &Arc<dyn Transport>, path: &str) -> String {
    let response = ironic.send(request(Method::GET, path, None)).await.unwrap();
    let body: Value = serde_json::from_slice(response.body()).unwrap();
    body["provision_state"].as_str().unwrap_or("?").to_owned()
}

fn deleted(path: &str) -> Request<Bytes> {
    request(
        Method::PUT,
        &format!("{path}/states/provision"),
        Some(json!({"target": "deleted"})),
    )
}

#[tokio::test(start_paused = true)]
async fn time_is_tokios_and_begins_in_2026() {
    let sandbox = sandbox();
    assert_eq!(sandbox.now(), beginning());
    assert_eq!(sandbox.now().to_string(), "2026-01-01T00:00:00Z");
    let (node, _) = sandbox.deployed()[0];
    let (ironic, path) = (sandbox.ironic(), format!("/v1/nodes/{node}"));
    assert_eq!(
        ironic.send(deleted(&path)).await.unwrap().status(),
        StatusCode::ACCEPTED
    );
    assert_eq!(state(&ironic, &path).await, "deleting");
    tokio::time::sleep(Duration::from_secs(10)).await;
    assert_eq!(state(&ironic, &path).await, "cleaning");
    tokio::time::sleep(Duration::from_secs(30)).await;
    assert_eq!(state(&ironic, &path).await, "available");
    let requests: Vec<String> = sandbox
        .log()
        .requests()
        .map(|line| format!("{} {} {}", line.who, line.method, line.status))
        .collect();
    assert_eq!(requests[..2], ["client PUT 202 Accepted", "client GET 200 OK"]);
}

#[tokio::test(start_paused = true)]
async fn a_lost_reply_was_applied_and_a_lost_request_was_not() {
    let sandbox = sandbox();
    let (node, _) = sandbox.deployed()[0];
    let (ironic, path) = (sandbox.ironic(), format!("/v1/nodes/{node}"));
    sandbox.fault(
        Fault::on(Service::Ironic)
            .path("/v1/nodes/*/states/provision")
            .nth(1)
            .lose_request(),
    );
    sandbox.fault(
        Fault::on(Service::Ironic)
            .path("/v1/nodes/*/states/provision")
            .nth(2)
            .lose_reply(),
    );
    let error = ironic.send(deleted(&path)).await.unwrap_err();
    assert!(matches!(error, TransportError::NotSent { .. }), "{error:?}");
    assert_eq!(state(&ironic, &path).await, "active");
    let error = ironic.send(deleted(&path)).await.unwrap_err();
    assert!(matches!(error, TransportError::MaybeApplied { .. }), "{error:?}");
    assert_eq!(state(&ironic, &path).await, "deleting");
}

#[tokio::test(start_paused = true)]
async fn answers_are_replaced_as_often_as_wanted() {
    let sandbox = sandbox();
    let (node, _) = sandbox.deployed()[0];
    let (ironic, path) = (sandbox.ironic(), format!("/v1/nodes/{node}"));
    sandbox.fault(Fault::on(Service::Ironic).method(Method::PUT).times(3).locked());
    for _ in 0..3 {
        assert_eq!(
            ironic.send(deleted(&path)).await.unwrap().status(),
            StatusCode::CONFLICT
        );
    }
    assert_eq!(
        ironic.send(deleted(&path)).await.unwrap().status(),
        StatusCode::ACCEPTED
    );
    sandbox.clear_faults();
    sandbox.fault(Fault::on(Service::Ironic).nth(1).bad_gateway());
    sandbox.fault(Fault::on(Service::Ironic).nth(2).too_many(Duration::from_secs(7)));
    sandbox.fault(
        Fault::on(Service::Ironic)
            .nth(3)
            .status(StatusCode::SERVICE_UNAVAILABLE, "{}"),
    );
    let get = || ironic.send(request(Method::GET, &path, None));
    let response = get().await.unwrap();
    assert_eq!(
        (response.status(), &response.headers()["content-type"]),
        (StatusCode::BAD_GATEWAY, &"text/html".parse().unwrap())
    );
    let response = get().await.unwrap();
    assert_eq!(
        (response.status(), &response.headers()["retry-after"]),
        (StatusCode::TOO_MANY_REQUESTS, &"7".parse().unwrap())
    );
    assert_eq!(get().await.unwrap().status(), StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(get().await.unwrap().status(), StatusCode::OK);
}

#[tokio::test(start_paused = true)]
async fn reads_may_be_stale_by_time_or_by_exchanges() {
    let sandbox = sandbox();
    let (node, _) = sandbox.deployed()[0];
    let (ironic, path) = (sandbox.ironic(), format!("/v1/nodes/{node}"));
    sandbox.fault(Fault::on(Service::Ironic).method(Method::GET).nth(1).stale_by(1));
    sandbox.fault(
        Fault::on(Service::Ironic)
            .method(Method::GET)
            .nth(3)
            .stale(Duration::from_secs(8)),
    );
    ironic.send(deleted(&path)).await.unwrap();
    assert_eq!(
        state(&ironic, &path).await,
        "active",
        "a replica that lags by one exchange"
    );
    assert_eq!(state(&ironic, &path).await, "deleting");
    tokio::time::sleep(Duration::from_secs(10)).await;
    assert_eq!(state(&ironic, &path).await, "deleting", "as it was 8 seconds ago");
    assert_eq!(state(&ironic, &path).await, "cleaning");
}

#[tokio::test(start_paused = true)]
async fn hooks_stage_races() {
    let sandbox = sandbox();
    let (node, instance) = sandbox.deployed()[0];
    let placement = sandbox.placement();
    let inventories = format!("/resource_providers/{node}/inventories");
    // Another writer is faster, five times.
    sandbox.fault(
        Fault::on(Service::Placement)
            .method(Method::PUT)
            .path("/resource_providers/*/inventories")
            .times(5)
            .before(move |world, _| {
                world.edit_provider(node, |provider| provider.generation += 1);
            }),
    );
    let mut refused = 0;
    loop {
        let read = placement
            .send(request(Method::GET, &inventories, None))
            .await
            .unwrap();
        let body: Value = serde_json::from_slice(read.body()).unwrap();
        let write = placement
            .send(request(Method::PUT, &inventories, Some(body)))
            .await
            .unwrap();
        if write.status() == StatusCode::OK {
            break;
        }
        assert_eq!(write.status(), StatusCode::CONFLICT);
        refused += 1;
    }
    assert_eq!(refused, 5);
    // Nova deletes the allocation right after it was read.
    let allocations = format!("/allocations/{instance}");
    sandbox.fault(
        Fault::on(Service::Placement)
            .method(Method::GET)
            .path("/allocations/*")
            .nth(1)
            .after(move |world, now| {
                world.nova_release(instance, now);
            }),
    );
    let read = placement
        .send(request(Method::GET, &allocations, None))
        .await
        .unwrap();
    assert!(String::from_utf8_lossy(read.body()).contains("consumer_generation"));
    assert!(sandbox.is_offered(node));
    assert!(judge::exposure(&sandbox.log(), node).windows.len() == 1);
}

#[tokio::test(start_paused = true)]
async fn requests_and_answers_may_be_slow_or_arrive_late() {
    let sandbox = sandbox();
    let (node, _) = sandbox.deployed()[0];
    let (ironic, path) = (sandbox.ironic(), format!("/v1/nodes/{node}"));
    sandbox.fault(
        Fault::on(Service::Ironic)
            .method(Method::GET)
            .nth(1)
            .delay(Duration::from_secs(2)),
    );
    sandbox.fault(
        Fault::on(Service::Ironic)
            .method(Method::GET)
            .nth(2)
            .delay_reply(Duration::from_secs(3)),
    );
    let start = sandbox.now();
    state(&ironic, &path).await;
    state(&ironic, &path).await;
    assert_eq!(sandbox.now().duration_since(start).as_secs(), 5);
    // A write that arrives when nobody waits for it any more.
    sandbox.fault(
        Fault::on(Service::Ironic)
            .method(Method::PUT)
            .arrives_late(Duration::from_secs(60)),
    );
    assert!(ironic.send(deleted(&path)).await.is_err());
    tokio::time::sleep(Duration::from_secs(59)).await;
    assert_eq!(state(&ironic, &path).await, "active");
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!(state(&ironic, &path).await, "deleting");
}

#[tokio::test(start_paused = true)]
async fn faults_may_be_for_one_caller_or_query_only() {
    let sandbox = sandbox();
    let (guard, other) = (
        sandbox.transport(Service::Ironic, "guard"),
        sandbox.transport(Service::Ironic, "other"),
    );
    sandbox.fault(
        Fault::on(Service::Ironic)
            .from("guard")
            .path("/v1/**")
            .query("marker=")
            .status(StatusCode::NOT_FOUND, "{}"),
    );
    let marker = sandbox.nodes()[0];
    let get = |path: String| request(Method::GET, &path, None);
    assert_eq!(
        guard.send(get("/v1/nodes".into())).await.unwrap().status(),
        StatusCode::OK
    );
    let second = format!("/v1/nodes?marker={marker}");
    assert_eq!(
        guard.send(get(second.clone())).await.unwrap().status(),
        StatusCode::NOT_FOUND
    );
    assert_eq!(other.send(get(second)).await.unwrap().status(), StatusCode::OK);
}

#[tokio::test(start_paused = true)]
async fn the_judge_knows_tags_order_and_return() {
    let sandbox = sandbox();
    let (node, instance) = sandbox.deployed()[0];
    sandbox.with(|world, now| {
        world.edit_provider(node, |provider| {
            provider.traits.insert("CUSTOM_TAG".into());
        });
        world.nova_delete(instance, now);
    });
    let start = sandbox.now();
    tokio::time::sleep(Duration::from_secs(120)).await;
    let log = sandbox.log();
    let plain = judge::exposure(&log, node);
    assert!(plain.total >= Duration::from_secs(28), "{plain:?}");
    assert!(judge::exposure_forbidding(&log, node, "CUSTOM_TAG").is_none());
    let freed = judge::freed_at(&log, node, start).unwrap();
    let ten = Duration::from_secs(10);
    assert_eq!(plain.between(freed.checked_sub(ten).unwrap(), freed).total, ten);
    assert_eq!(freed, log.states(node).last().unwrap().0);
    assert_eq!(
        judge::offered_again_after(&log, node, start),
        Some(Duration::ZERO)
    );
    assert!(judge::is_offered(&log, node));
    // A window without length is one all the same: the order of two writes was wrong.
    sandbox.with(|world, _| {
        world.edit_node(node, |node| node.provision_state = State::Cleaning);
        world.edit_provider(node, |provider| {
            provider.inventories.clear();
        });
    });
    let windows = judge::exposure(&sandbox.log(), node).windows;
    assert_eq!((windows.len(), windows[1].0), (2, windows[1].1));
}

#[test]
fn worlds_are_values() {
    let mut one = Sandbox::builder().nodes(3).deployed(2).world(beginning());
    let (_, instance) = one.deployed()[0];
    let mut two = one.clone();
    assert_eq!(one.fingerprint(), two.fingerprint());
    one.nova_delete(instance, beginning());
    assert_ne!(one.fingerprint(), two.fingerprint());
    two.nova_delete(instance, beginning());
    assert_eq!(one.fingerprint(), two.fingerprint());
    let later = beginning().checked_add(Duration::from_secs(100)).unwrap();
    one.advance(later);
    while let Some(next) = two.next_event() {
        two.advance(next);
    }
    two.advance(later);
    assert_eq!(one.fingerprint(), two.fingerprint());
    assert!(
        one.log.iter().eq(two.log.iter()),
        "step by step or in one go, the same happens at the same times"
    );
}
