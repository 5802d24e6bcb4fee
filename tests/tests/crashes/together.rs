//! Two processes at the same node, with the same journal.

use std::time::Duration;

use tokio_util::sync::CancellationToken;
use unprovision::core::CannotOpen;
use unprovision::journal::JournalError;
use unprovision::orchestrator::{CaseReport, RunError, Until};
use unprovision_testkit::rig::Rig;
use unprovision_testkit::sandbox::{Fault, Sandbox, Service};

use crate::common::{assert_clean, assert_returned, our_writes, resume, secs, strategies, tear_downs};

/// A cloud in which each request takes a while, so that two processes get between each other's steps.
fn slow_cloud() -> Sandbox {
    let sandbox = Sandbox::builder()
        .nodes(1)
        .deployed(1)
        .teardown(secs(4))
        .cleaning(secs(8))
        .build();
    for service in [Service::Ironic, Service::Placement] {
        sandbox.fault(
            Fault::on(service)
                .from("client")
                .delay(Duration::from_millis(20))
                .delay_reply(Duration::from_millis(20)),
        );
    }
    sandbox
}

/// From the same instant to after the end of the other's run.
fn offsets() -> impl Iterator<Item = Duration> {
    let fine = (0..40).map(|step| Duration::from_millis(15 * step));
    fine.chain([1, 3, 5, 8, 11, 12, 13, 14, 60].map(secs))
}

/// Fenced, or told that the node has left the instance already (only the journal knows more then; see `resume`).
fn is_turned_away(result: &Result<CaseReport, RunError>) -> bool {
    matches!(
        result,
        Err(RunError::Journal(JournalError::Fenced(_)) | RunError::CannotOpen(CannotOpen::NoInstance { .. }))
    )
}

/// One carries it through, the other is turned away (or finds it done); the cloud sees one tear-down.
fn assert_one_did_it(rig: &Rig, both: Vec<Result<CaseReport, RunError>>, what: &str) {
    for result in &both {
        assert!(result.is_ok() || is_turned_away(result), "{what}: {result:?}");
    }
    let done = both.into_iter().flatten().collect::<Vec<_>>();
    assert!(!done.is_empty(), "{what}: both were turned away");
    assert_returned(&done, what);
    let node = done[0].node.0;
    assert_clean(&rig.sandbox, node, what);
    assert_eq!(tear_downs(&rig.sandbox, node), 1, "{what}");
}

/// The second process asks for the very same tear-down.
#[tokio::test(start_paused = true)]
async fn the_same_tear_down_asked_for_twice_is_done_once() {
    for strategy in strategies() {
        for offset in offsets().filter(|offset| *offset < secs(10)) {
            let rig = Rig::new(slow_cloud());
            let (node, instance) = rig.sandbox.deployed()[0];
            let request = rig.request(node, instance, strategy);
            let other = rig.restarted();
            let first = async { rig.tear_down(std::slice::from_ref(&request)).await };
            let second = async {
                tokio::time::sleep(offset).await;
                other.tear_down(std::slice::from_ref(&request)).await
            };
            let (first, second) = tokio::join!(first, second);
            let both = vec![
                first.map(|mut reports| reports.remove(0)),
                second.map(|mut reports| reports.remove(0)),
            ];
            assert_one_did_it(&rig, both, &format!("{strategy}, {offset:?} later"));
        }
    }
}

/// The second process takes up the case that the first works on.
#[tokio::test(start_paused = true)]
async fn a_case_that_two_work_on_is_carried_through_by_one() {
    for strategy in strategies() {
        for offset in offsets() {
            let rig = Rig::new(slow_cloud());
            let (node, instance) = rig.sandbox.deployed()[0];
            let request = rig.request(node, instance, strategy);
            let other = rig.restarted();
            let first = rig.orchestrator.check(&request).await.unwrap();
            let id = rig.orchestrator.open(&request, first).await.unwrap();
            let stop = CancellationToken::new();
            let ids = [id];
            let first = rig.orchestrator.run(&ids, Until::Ended, &stop);
            let second = async {
                tokio::time::sleep(offset).await;
                resume(&other).await
            };
            let (mut both, second) = tokio::join!(first, second);
            both.extend(second);
            let what = format!("{strategy}, {offset:?} later");
            assert_one_did_it(&rig, both, &what);
            let writes = our_writes(&rig.sandbox);
            let most = if strategy == "trait-tagging" { 10 } else { 6 };
            assert!(writes <= most, "{what}: {writes} writes");
        }
    }
}
