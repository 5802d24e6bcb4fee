//! What the crash tests share.

use std::sync::Arc;
use std::time::Duration;

use ironic_client::IronicClient;
use placement_client::PlacementClient;
use tokio_util::sync::CancellationToken;
use unprovision::cloud::{Cloud, OpenStack};
use unprovision::core::{DEFAULT_TAG, Outcome, TearDownRequest};
use unprovision::orchestrator::{CaseReport, Orchestrator, Progress, RunError, Until};
use unprovision_testkit::rig::{Rig, SandboxClock, protected_by};
use unprovision_testkit::sandbox::Sandbox;
use uuid::Uuid;

use crate::plan::{MortalCloud, MortalJournal, Plan};

/// The names of all strategies that drive a tear-down.
pub(crate) fn strategies() -> impl Iterator<Item = &'static str> {
    unprovision::strategy::ALL.iter().map(|strategy| strategy.name())
}

pub(crate) fn secs(n: u64) -> Duration {
    Duration::from_secs(n)
}

/// The real cloud over the sandbox.
pub(crate) fn cloud_of(sandbox: &Sandbox) -> OpenStack {
    let clock = Arc::new(SandboxClock(sandbox.clone()));
    let ironic = Arc::new(IronicClient::new(sandbox.ironic()));
    let placement = Arc::new(PlacementClient::new(sandbox.placement()));
    OpenStack::new(ironic, placement, clock)
}

/// The rig, but its process is one that the plan kills.
pub(crate) fn mortal(rig: &Rig, plan: &Arc<Plan>) -> Rig {
    let cloud = MortalCloud {
        inner: cloud_of(&rig.sandbox),
        sandbox: rig.sandbox.clone(),
        plan: Arc::clone(plan),
    };
    let journal = Arc::new(MortalJournal {
        inner: Arc::clone(&rig.journal),
        plan: Arc::clone(plan),
    });
    with_cloud(
        &Rig {
            journal,
            ..rig.clone()
        },
        Arc::new(cloud),
    )
}

/// The rig with another cloud under its orchestrator.
pub(crate) fn with_cloud(rig: &Rig, cloud: Arc<dyn Cloud>) -> Rig {
    let clock = Arc::new(SandboxClock(rig.sandbox.clone()));
    let orchestrator = Orchestrator::builder(cloud, Arc::clone(&rig.journal), clock).build();
    Rig {
        orchestrator,
        ..rig.clone()
    }
}

/// Runs the tear-downs until they end, the journal fails or the process dies.
pub(crate) async fn until_it_dies(rig: &Rig, plan: &Plan, requests: &[TearDownRequest]) {
    tokio::select! {
        () = plan.died.cancelled() => {}
        _ = rig.tear_down(requests) => {}
    }
}

/// A new process on the same journal carries on with what is open, and begins with what never was.
pub(crate) async fn carry_on(rig: &Rig, requests: &[TearDownRequest]) -> Vec<CaseReport> {
    let rig = rig.restarted();
    let stop = CancellationToken::new();
    for report in resume(&rig).await {
        report.unwrap();
    }
    let mut reports = Vec::new();
    for request in requests {
        let id = request.case();
        if rig.journal.read(id).await.unwrap().is_empty() {
            reports.extend(rig.tear_down(std::slice::from_ref(request)).await.unwrap());
        } else {
            let report = rig.orchestrator.run(&[id], Until::Ended, &stop).await.remove(0);
            reports.push(report.unwrap());
        }
    }
    reports
}

/// Takes up whatever is open, with what is left of its limits.
pub(crate) async fn resume(rig: &Rig) -> Vec<Result<CaseReport, RunError>> {
    let open = rig.orchestrator.open_cases().await.unwrap();
    let open = open.iter().map(|case| (case.id, case.remaining()));
    let open = open.collect::<Vec<_>>();
    let stop = CancellationToken::new();
    rig.orchestrator.resume(&open, Until::Ended, &stop).await
}

/// How many of our requests that change something were answered.
pub(crate) fn our_writes(sandbox: &Sandbox) -> usize {
    let log = sandbox.log();
    log.requests()
        .filter(|request| request.who == "client" && request.method != "GET")
        .count()
}

/// How often the node went from something else to `deleting`.
pub(crate) fn tear_downs(sandbox: &Sandbox, node: Uuid) -> usize {
    let states = sandbox.log().states(node);
    states
        .iter()
        .filter(|(_, state)| state.as_str() == "deleting")
        .count()
}

pub(crate) fn assert_returned(reports: &[CaseReport], what: &str) {
    for report in reports {
        assert_eq!(
            report.outcome,
            Progress::Ended(Outcome::Returned),
            "{what}: {}",
            report.reason
        );
        assert!(!report.held, "{what}: held");
    }
}

/// Never offered while not free, offered now, and nothing of ours is left. `what` begins with the strategy's name; the queries
/// that it protects are judged.
pub(crate) fn assert_clean(sandbox: &Sandbox, node: Uuid, what: &str) {
    let strategy = what.split(',').next().unwrap_or(what);
    let (query, log) = (protected_by(strategy), sandbox.log());
    let exposure = query.exposure(&log, node);
    assert!(exposure.is_none(), "{what}: falsely offered {exposure:?}");
    assert!(query.is_offered(&log, node), "{what}: not offered again");
    let tagged = sandbox.with(|world, _| {
        let on_provider = world.provider(node).unwrap().traits.contains(DEFAULT_TAG);
        on_provider || world.node(node).unwrap().traits.contains(DEFAULT_TAG)
    });
    assert!(!tagged, "{what}: the tag is left");
    let left = sandbox.with(|world, _| world.holders(node));
    assert!(left.is_empty(), "{what}: {left:?} still hold the provider");
    let reserved = sandbox.with(|world, _| {
        let provider = world.provider(node).unwrap();
        provider
            .inventories
            .values()
            .map(|inventory| inventory.reserved)
            .sum::<u64>()
    });
    assert_eq!(reserved, 0, "{what}: a reservation is left");
}
