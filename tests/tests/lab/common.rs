//! What the cases share: nodes with instances, an orchestrator behind proxies, and both judges.

use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use http::Method;
use ironic_client::NodeUuid;
use jiff::SignedDuration;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use unprovision::cloud::{Clock, SystemClock};
use unprovision::core::{
    Case, CaseId, DEFAULT_TAG, Limits, Outcome, TearDownRequest, WaitFor, guard_consumer,
};
use unprovision::orchestrator::{CaseReport, Observer, Orchestrator, Progress, RunError, Until};
use unprovision_session::Service;
use unprovision_testkit::lab::order::{self, Before, Promise};
use unprovision_testkit::lab::sampler::{Samples, Sampling};
use unprovision_testkit::lab::{Api, Deployed, Lab, Proxies, Setup};
use unprovision_testkit::rig::each_with;
use uuid::Uuid;

/// How long anything may take on a busy machine.
const PATIENCE: Duration = Duration::from_secs(180);

/// The names of all strategies that drive a tear-down.
pub(crate) fn strategies() -> impl Iterator<Item = &'static str> + Clone {
    unprovision::strategy::ALL.iter().map(|strategy| strategy.name())
}

pub(crate) fn secs(n: u64) -> Duration {
    Duration::from_secs(n)
}

pub(crate) fn outcome(report: &CaseReport) -> Outcome {
    match report.outcome {
        Progress::Ended(outcome) => outcome,
        other => panic!("not ended: {other} ({})", report.reason),
    }
}

/// Asks until the answer is yes.
pub(crate) async fn until<F: Future<Output = bool>>(what: &str, mut ask: impl FnMut() -> F) {
    let deadline = tokio::time::Instant::now() + PATIENCE;
    while !ask().await {
        assert!(tokio::time::Instant::now() < deadline, "in vain: {what}");
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

/// Deployed nodes of one class, looked at by both judges.
pub(crate) struct Scene {
    pub(crate) lab: Lab,
    pub(crate) api: Api,
    pub(crate) proxies: Proxies,
    pub(crate) nodes: Vec<Deployed>,
    sampling: Sampling,
    /// By which strategy a node is torn down; it is judged by what that promises, and otherwise strictly.
    asked: Mutex<BTreeMap<Uuid, &'static str>>,
}

impl Scene {
    /// So many new nodes with instances; the sampler looks at them from now on.
    pub(crate) async fn new(what: &str, count: usize, flags: &[&str]) -> Self {
        let lab = Lab::from_env().unwrap_or_else(|error| panic!("{error}"));
        let seeded = lab.seed(count, &Lab::unique(what), flags).await.unwrap();
        let nodes = lab.deploy(&seeded).await.unwrap();
        Self::of(lab, nodes).await
    }

    /// One node for each strategy.
    pub(crate) async fn per_strategy(what: &str, flags: &[&str]) -> Self {
        Self::new(what, strategies().count(), flags).await
    }

    /// These nodes, which are of one class.
    pub(crate) async fn of(lab: Lab, nodes: Vec<Deployed>) -> Self {
        let api = lab.api().await.unwrap();
        let proxies = lab.proxies().await.unwrap();
        let first = &nodes[0];
        let class = first.class().unwrap();
        let sampling = Sampling::start(api.clone(), &first.resource_class, class.as_str());
        Self {
            lab,
            api,
            proxies,
            nodes,
            sampling,
            asked: Mutex::default(),
        }
    }

    pub(crate) async fn orchestrator(&self, setup: Setup) -> Orchestrator {
        self.lab.orchestrator(&self.proxies, setup).await.unwrap()
    }

    /// A request for each node, with the strategies taken in turn.
    pub(crate) fn requests(&self) -> Vec<TearDownRequest> {
        let strategies = strategies().cycle();
        self.nodes
            .iter()
            .zip(strategies)
            .map(|(node, strategy)| self.request(node, strategy))
            .collect()
    }

    /// A request for this node, which is judged from now on by what the strategy promises.
    pub(crate) fn request(&self, node: &Deployed, strategy: &'static str) -> TearDownRequest {
        self.asked.lock().unwrap().insert(node.node, strategy);
        request(node, strategy)
    }

    fn strategy_of(&self, node: &Deployed) -> &'static str {
        self.asked
            .lock()
            .unwrap()
            .get(&node.node)
            .copied()
            .unwrap_or_default()
    }

    /// What the order is judged by.
    pub(crate) fn promise(&self, node: &Deployed) -> Promise {
        Promise::of(self.strategy_of(node))
    }

    /// Tears down all nodes, with the strategies taken in turn.
    pub(crate) async fn tear_down(&self) -> Vec<CaseReport> {
        tear_down(&self.orchestrator(Setup::default()).await, &self.requests())
            .await
            .unwrap()
    }

    /// What Placement says now of one node: who holds it, and its inventories.
    pub(crate) async fn placement(&self, node: Uuid) -> (BTreeSet<Uuid>, Value) {
        (
            self.api.holders(node).await.unwrap(),
            self.api.inventories(node).await.unwrap()["inventories"].clone(),
        )
    }

    pub(crate) async fn is_offered(&self, node: &Deployed) -> bool {
        let class = node.class().unwrap();
        let offered = if self.promise(node).tag {
            self.api.candidates_forbidding(class.as_str(), DEFAULT_TAG).await
        } else {
            self.api.candidates(class.as_str()).await
        };
        offered.unwrap().contains(&node.node)
    }

    /// The node is offered, and nothing of ours is left.
    pub(crate) async fn assert_clean(&self, node: &Deployed, what: &str) {
        assert!(
            self.is_offered(node).await,
            "{what}: {} is not offered again",
            node.name
        );
        let (holders, inventories) = self.placement(node.node).await;
        assert!(holders.is_empty(), "{what}: {holders:?} still hold {}", node.name);
        let class = node.class().unwrap();
        assert_eq!(
            inventories[class.as_str()]["reserved"],
            0,
            "{what}: {}",
            node.name
        );
        let guard = self.api.consumer(guard(node)).await.unwrap();
        assert_eq!(guard["allocations"], json!({}), "{what}: our consumer is left");
        let shown = self.api.node(node.node).await.unwrap();
        assert_eq!(shown["traits"], json!([]), "{what}: a tag is left");
    }

    /// Nobody can get the node: it is no candidate.
    pub(crate) async fn assert_held(&self, node: &Deployed, what: &str) {
        assert!(!self.is_offered(node).await, "{what}: {} is offered", node.name);
    }

    /// The reports are all of this outcome, and every node is clean.
    pub(crate) async fn assert_returned(&self, reports: &[CaseReport]) {
        for (report, node) in reports.iter().zip(&self.nodes) {
            assert_eq!(outcome(report), Outcome::Returned, "{report:?}");
            let (freed, returned) = (report.freed_after_s, report.returned_after_s);
            assert!(freed.unwrap() <= returned.unwrap(), "{report:?}");
            self.assert_clean(node, &report.strategy).await;
        }
    }

    /// Both judges: the order of what was said, and what the sampler saw. Nothing was reserved at first.
    pub(crate) async fn assert_unexposed(self) -> Samples {
        let log = self.proxies.recorder.exchanges();
        let promises = self.nodes.iter().map(|node| self.promise(node));
        let promises = promises.collect::<Vec<_>>();
        let samples = self.sampling.stop().await.unwrap();
        assert!(samples.count() > 5, "only {} samples", samples.count());
        let untagged = samples.forbidding_the_tag();
        for (node, promise) in self.nodes.iter().zip(promises) {
            let faults = order::faults_of(&log, &before(node), promise);
            assert!(faults.is_empty(), "{}: {faults:#?}", node.name);
            let seen = if promise.tag { &untagged } else { &samples };
            assert_eq!(seen.exposed(node.node), 0, "{}", node.name);
        }
        samples
    }

    /// What the sampler saw, whatever it was.
    pub(crate) async fn samples(self) -> Samples {
        self.sampling.stop().await.unwrap()
    }

    /// How often this was accepted, of all requests for it.
    pub(crate) fn count(&self, node: &Deployed, target: &str) -> (usize, usize) {
        let log = self.proxies.recorder.exchanges();
        let all = log
            .iter()
            .filter(|exchange| exchange.asks(node.node, target))
            .count();
        (order::accepted(&log, node.node, target), all)
    }

    /// How many requests of this method and with this end of the path were accepted, of all.
    pub(crate) fn requests_to(&self, method: &Method, path_ends: &str) -> (usize, usize) {
        let log = self.proxies.recorder.exchanges();
        let fits = |e: &&unprovision_testkit::proxy::Exchange| {
            e.call.method == *method && e.call.path.ends_with(path_ends)
        };
        let all = log.iter().filter(fits).collect::<Vec<_>>();
        (
            all.iter().filter(|exchange| exchange.is_accepted()).count(),
            all.len(),
        )
    }

    /// How many requests that change something have left.
    pub(crate) fn writes(&self) -> usize {
        self.proxies
            .recorder
            .exchanges()
            .iter()
            .filter(|exchange| exchange.is_write())
            .count()
    }

    /// Waits until the node is in this state.
    pub(crate) async fn until_state(&self, node: &Deployed, state: &str) {
        until(&format!("{} is {state}", node.name), async || {
            self.api.node(node.node).await.unwrap()["provision_state"] == state
        })
        .await;
    }

    /// Puts a node into or out of a person's maintenance. While the node is locked the real Ironic refuses that.
    pub(crate) async fn maintenance(&self, node: &Deployed, on: bool) {
        let method = if on { Method::PUT } else { Method::DELETE };
        let body = if on {
            json!({ "reason": "on fire" })
        } else {
            Value::Null
        };
        let path = &format!("/v1/nodes/{}/maintenance", node.node);
        until("maintenance is changed", async || {
            self.api
                .ask(Service::Ironic, method.clone(), path, &body)
                .await
                .unwrap()
                .0
                .is_success()
        })
        .await;
    }
}

pub(crate) fn guard(node: &Deployed) -> Uuid {
    guard_consumer(NodeUuid(node.node), node.instance).0
}

pub(crate) fn before(node: &Deployed) -> Before {
    Before {
        node: node.node,
        instance: node.instance,
        reserved: 0,
    }
}

pub(crate) fn request(node: &Deployed, strategy: &str) -> TearDownRequest {
    TearDownRequest {
        node: NodeUuid(node.node),
        instance: node.instance,
        strategy: strategy.to_owned(),
        tag: None,
        limits: limits(PATIENCE),
        nova_record_remains: true,
    }
}

/// Limits with this much patience from now on, and no second attempts.
pub(crate) fn limits(patience: Duration) -> Limits {
    let deadline = SystemClock.now() + SignedDuration::try_from(patience).unwrap();
    Limits {
        deadline,
        retry_error: 0,
        reclean: 0,
        release_nova_reservations: true,
    }
}

/// Checks, opens and runs these tear-downs to their end.
pub(crate) async fn tear_down(
    orchestrator: &Orchestrator,
    requests: &[TearDownRequest],
) -> Result<Vec<CaseReport>, RunError> {
    let cases = open(orchestrator, requests).await?;
    run(orchestrator, &cases).await
}

/// Checks and opens these tear-downs.
pub(crate) async fn open(
    orchestrator: &Orchestrator,
    requests: &[TearDownRequest],
) -> Result<Vec<CaseId>, RunError> {
    let mut cases = Vec::new();
    for request in requests {
        let first = orchestrator.check(request).await?;
        cases.push(orchestrator.open(request, first).await?);
    }
    Ok(cases)
}

/// Runs these to their end.
pub(crate) async fn run(orchestrator: &Orchestrator, cases: &[CaseId]) -> Result<Vec<CaseReport>, RunError> {
    orchestrator
        .run(cases, Until::Ended, &CancellationToken::new())
        .await
        .into_iter()
        .collect()
}

/// Takes up all cases that have not ended, and runs them to their end.
pub(crate) async fn resume(orchestrator: &Orchestrator, limits: Limits) -> Vec<CaseReport> {
    let open = orchestrator.open_cases().await.unwrap();
    let taken = each_with(&open, limits);
    let reports = orchestrator
        .resume(&taken, Until::Ended, &CancellationToken::new())
        .await;
    reports.into_iter().map(Result::unwrap).collect()
}

/// Remembers what was waited for.
#[derive(Clone, Debug, Default)]
pub(crate) struct Waits(Arc<Mutex<Vec<String>>>);

impl Waits {
    pub(crate) fn contain(&self, words: &str) -> bool {
        self.0.lock().unwrap().iter().any(|waited| waited.contains(words))
    }
}

impl Observer for Waits {
    fn waiting(&self, _: &Case, for_what: &WaitFor) {
        self.0.lock().unwrap().push(for_what.to_string());
    }
}
