//! What the cases share.

use std::time::Duration;

use tokio_util::sync::CancellationToken;
use unprovision::core::{ActionKind, CaseId, DEFAULT_TAG, Event, Limits, Outcome, TearDownRequest};
use unprovision::orchestrator::{CaseReport, Progress, Until};
use unprovision_testkit::rig::{Rig, protected_by};
use unprovision_testkit::sandbox::log::Change;
use unprovision_testkit::sandbox::{Caller, Sandbox, Service, World};
use uuid::Uuid;

/// The names of all strategies that drive a tear-down.
pub(crate) fn strategies() -> impl Iterator<Item = &'static str> {
    unprovision::strategy::ALL.iter().map(|strategy| strategy.name())
}

/// Those that write something before the tear-down; the others rely on what is there.
pub(crate) fn holding() -> impl Iterator<Item = &'static str> {
    strategies().filter(|strategy| *strategy != "wait-for-available")
}

pub(crate) fn secs(n: u64) -> Duration {
    Duration::from_secs(n)
}

/// One request per deployed node.
pub(crate) fn requests(rig: &Rig, strategy: &str) -> Vec<TearDownRequest> {
    rig.sandbox
        .deployed()
        .into_iter()
        .map(|(node, instance)| rig.request(node, instance, strategy))
        .collect()
}

/// The only deployed node and its instance.
pub(crate) fn only(sandbox: &Sandbox) -> (Uuid, Uuid) {
    sandbox.deployed().remove(0)
}

/// Takes up the only case, and carries it to its end.
pub(crate) async fn resumed(rig: &Rig, taken: &[(CaseId, Limits)]) -> CaseReport {
    let stop = CancellationToken::new();
    let reports = rig.orchestrator.resume(taken, Until::Ended, &stop).await;
    reports.into_iter().next().unwrap().unwrap()
}

pub(crate) fn outcome(report: &CaseReport) -> Outcome {
    match report.outcome {
        Progress::Ended(outcome) => outcome,
        other => panic!("not ended: {other} ({})", report.reason),
    }
}

/// Not offered a single instant while not free, and nothing of ours is left.
///
/// Where `what` is a strategy's name, the queries that it protects are judged, otherwise all of them.
pub(crate) fn assert_clean(sandbox: &Sandbox, node: Uuid, what: &str) {
    assert_unexposed(sandbox, node, what);
    assert!(
        is_offered(sandbox, node, what),
        "{what}: the node is not offered again"
    );
    let left = sandbox.with(|world, _| world.holders(node));
    assert!(left.is_empty(), "{what}: {left:?} still hold the provider");
    assert!(!is_tagged(sandbox, node), "{what}: the tag is left");
}

/// Not offered a single instant while not free; `what` as in [`assert_clean`].
pub(crate) fn assert_unexposed(sandbox: &Sandbox, node: Uuid, what: &str) {
    let exposure = protected_by(what).exposure(&sandbox.log(), node);
    assert!(exposure.is_none(), "{what}: falsely offered {exposure:?}");
}

/// Whether the queries that the strategy protects are offered the node now.
pub(crate) fn is_offered(sandbox: &Sandbox, node: Uuid, strategy: &str) -> bool {
    let offered = protected_by(strategy).is_offered(&sandbox.log(), node);
    assert!(
        sandbox.is_offered(node) || !offered,
        "the log says more than the world"
    );
    offered
}

/// How long after it was free the queries that the strategy protects were offered the node.
pub(crate) fn offered_again_after(
    sandbox: &Sandbox,
    node: Uuid,
    strategy: &str,
    since: jiff::Timestamp,
) -> Option<Duration> {
    protected_by(strategy).offered_again_after(&sandbox.log(), node, since)
}

/// Whether the node or its provider carries the tag.
pub(crate) fn is_tagged(sandbox: &Sandbox, node: Uuid) -> bool {
    sandbox.with(|world, _| {
        let on_node = world
            .node(node)
            .is_some_and(|node| node.traits.contains(DEFAULT_TAG));
        let provider = world.provider(node);
        on_node || provider.is_some_and(|provider| provider.traits.contains(DEFAULT_TAG))
    })
}

/// How many requests of this method and with this end of the path were answered with success, and how many in all.
pub(crate) fn count(sandbox: &Sandbox, method: &str, path_ends: &str) -> (usize, usize) {
    let log = sandbox.log();
    let all = log.iter().filter_map(|entry| match &entry.change {
        Change::Request {
            method: m,
            path,
            status,
            ..
        } if m.as_str() == method && path.ends_with(path_ends) => Some(*status),
        _ => None,
    });
    let all = all.collect::<Vec<_>>();
    (all.iter().filter(|status| status.is_success()).count(), all.len())
}

/// Requests that change something.
pub(crate) fn writes(sandbox: &Sandbox) -> usize {
    let log = sandbox.log();
    log.requests().filter(|request| request.method != "GET").count()
}

/// A request of an operator's, by the API; it must be accepted.
pub(crate) fn request(
    world: &mut World,
    now: jiff::Timestamp,
    service: Service,
    call: &str,
    body: &serde_json::Value,
) {
    let (method, path) = call.split_once(' ').unwrap();
    let request = http::Request::builder()
        .method(method)
        .uri(path)
        .header("X-OpenStack-Ironic-API-Version", "1.90")
        .header("OpenStack-API-Version", "placement 1.36")
        .header("Content-Type", "application/json")
        .extension(Caller("operator".into()))
        .body(bytes::Bytes::from(body.to_string()))
        .unwrap();
    let answer = world.handle(service, &request, now);
    assert!(answer.status().is_success(), "{call}: {:?}", answer.body());
}

/// When tear-downs were sent, in order, by the journals of these reports.
pub(crate) async fn tear_downs_sent(rig: &Rig, reports: &[CaseReport]) -> Vec<jiff::Timestamp> {
    let mut sent = Vec::new();
    for report in reports {
        let entries = rig
            .journal
            .read(CaseId::tear_down(report.node, report.instance.unwrap()))
            .await
            .unwrap();
        let tear_downs = entries.iter().filter(|entry| {
            matches!(&entry.event, Event::Intended { write } if write.kind() == ActionKind::Unprovision)
        });
        sent.extend(tear_downs.map(|entry| entry.at));
    }
    sent.sort();
    sent
}
