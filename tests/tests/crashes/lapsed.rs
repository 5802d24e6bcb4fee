//! A process that stands still until its lease may have run out sends nothing of what it had decided before (rule 16).

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use ironic_client::{Node, NodeUuid};
use jiff::Timestamp;
use unprovision::cloud::{Clock, Cloud, CloudError, OpenStack, Reads};
use unprovision::core::{Action, Event, Observation, Process};
use unprovision::journal::JournalError;
use unprovision::orchestrator::{Orchestrator, RunError, Until};
use unprovision::process;
use unprovision_testkit::rig::{Rig, SandboxClock};
use unprovision_testkit::sandbox::Sandbox;

use crate::common::{
    assert_clean, assert_returned, cloud_of, our_writes, resume, secs, strategies, tear_downs,
};

/// As long as a process may stand still without any harm, and longer.
const SHORT: u64 = 5;
const LONG: u64 = 60;

/// A process stands still: time has gone on for it when it comes back, and none of its timers has rung.
#[derive(Clone, Debug)]
struct Still {
    clock: SandboxClock,
    stood: Arc<AtomicU64>,
}

#[async_trait]
impl Clock for Still {
    fn now(&self) -> Timestamp {
        self.clock.now()
    }

    fn elapsed(&self) -> Duration {
        self.clock.elapsed() + secs(self.stood.load(Ordering::Relaxed))
    }

    async fn sleep(&self, how_long: Duration) {
        self.clock.sleep(how_long).await;
    }
}

/// The cloud of a process that stands still at one of its writes, the intent to which is on record.
#[derive(Debug)]
struct StillCloud {
    inner: OpenStack,
    clock: Still,
    /// At which write.
    nth: usize,
    for_seconds: u64,
    /// What it does before the write, once it goes on: its lease is renewed meanwhile, or not.
    then: Duration,
    writes: AtomicUsize,
    /// Whether it came to send it.
    sent: Arc<AtomicUsize>,
}

#[async_trait]
impl Cloud for StillCloud {
    async fn find(&self, uuid_or_name: &str) -> Result<Option<Node>, CloudError> {
        self.inner.find(uuid_or_name).await
    }

    async fn nodes(&self, nodes: &[NodeUuid]) -> Result<BTreeMap<NodeUuid, Node>, CloudError> {
        self.inner.nodes(nodes).await
    }

    async fn observe(&self, node: NodeUuid, reads: Reads) -> Result<Observation, CloudError> {
        self.inner.observe(node, reads).await
    }

    async fn apply(&self, node: NodeUuid, action: &Action) -> Result<(), CloudError> {
        if self.writes.fetch_add(1, Ordering::Relaxed) == self.nth {
            self.clock.stood.fetch_add(self.for_seconds, Ordering::Relaxed);
            tokio::time::sleep(self.then).await;
            self.sent.fetch_add(1, Ordering::Relaxed);
        }
        self.inner.apply(node, action).await
    }
}

fn replica(number: u32) -> Process {
    Process {
        namespace: format!("of {number}"),
        ..process::this()
    }
}

fn works_as(rig: &Rig, number: u32, cloud: Arc<dyn Cloud>, clock: Arc<dyn Clock>) -> Rig {
    let orchestrator = Orchestrator::builder(cloud, Arc::clone(&rig.journal), clock)
        .process(replica(number))
        .build();
    Rig {
        orchestrator,
        ..rig.clone()
    }
}

/// The first process, which stands still, and how often it sent what it was about to send.
fn stands_still(nth: usize, for_seconds: u64, then: Duration) -> (Rig, Arc<AtomicUsize>) {
    let sandbox = Sandbox::builder()
        .nodes(1)
        .deployed(1)
        .teardown(secs(4))
        .cleaning(secs(20))
        .build();
    let clock = Still {
        clock: SandboxClock(sandbox.clone()),
        stood: Arc::default(),
    };
    let sent = Arc::<AtomicUsize>::default();
    let cloud = StillCloud {
        inner: cloud_of(&sandbox),
        clock: clock.clone(),
        nth,
        for_seconds,
        then,
        writes: AtomicUsize::new(0),
        sent: Arc::clone(&sent),
    };
    let rig = works_as(&Rig::new(sandbox), 1, Arc::new(cloud), Arc::new(clock));
    (rig, sent)
}

/// How often nobody knew what had become of a write because of the lease.
async fn told(rig: &Rig, case: unprovision::core::CaseId) -> usize {
    let entries = rig.journal.read(case).await.unwrap();
    let unknown = entries.iter().filter(
        |entry| matches!(&entry.event, Event::Unknown { message } if message.contains("others may have taken over")),
    );
    unknown.count()
}

#[tokio::test(start_paused = true)]
async fn what_was_about_to_be_sent_is_not_sent_after_a_long_stand() {
    for strategy in strategies() {
        for nth in 0.. {
            let mut stood = 0;
            for (for_seconds, then) in [(LONG, 0), (LONG, 1), (LONG, 10), (SHORT, 1)] {
                let what = format!("{strategy}, write {nth}, {for_seconds} s, then {then} s");
                // Whoever only ever stands still before a single look at the lease would send.
                let then = Duration::from_millis(1) + secs(then);
                let (rig, sent) = stands_still(nth, for_seconds, then);
                let (node, instance) = rig.sandbox.deployed()[0];
                let request = rig.request(node, instance, strategy);
                let reports = rig.tear_down(std::slice::from_ref(&request)).await.unwrap();
                assert_returned(&reports, &what);
                assert_clean(&rig.sandbox, node, &what);
                assert_eq!(tear_downs(&rig.sandbox, node), 1, "{what}");
                let told = told(&rig, request.case()).await;
                let sent = sent.load(Ordering::Relaxed);
                stood += told + sent;
                match for_seconds {
                    LONG => assert_eq!(sent, 0, "{what}"),
                    _ => assert_eq!(told, 0, "{what}"),
                }
            }
            if stood == 0 {
                assert!(nth > 1, "{strategy}: all writes were tried");
                break;
            }
            assert_eq!(stood, 4, "{strategy}, write {nth}");
        }
    }
}

/// Another process takes the case while the first stands still, and brings it to its end.
#[tokio::test(start_paused = true)]
async fn who_was_overtaken_sends_nothing_any_more() {
    for strategy in strategies() {
        for nth in 0..2 {
            let what = format!("{strategy}, write {nth}");
            let (rig, sent) = stands_still(nth, LONG, secs(300));
            let (node, instance) = rig.sandbox.deployed()[0];
            let request = rig.request(node, instance, strategy);
            let other = works_as(
                &rig,
                2,
                Arc::new(cloud_of(&rig.sandbox)),
                Arc::new(SandboxClock(rig.sandbox.clone())),
            );
            let first = rig.tear_down(std::slice::from_ref(&request));
            let second = async {
                tokio::time::sleep(secs(2)).await;
                let refused = resume(&other).await.remove(0);
                assert!(
                    matches!(refused, Err(RunError::Theirs { .. })),
                    "{what}: {refused:?}"
                );
                let before = our_writes(&rig.sandbox);
                assert_eq!(before, nth, "{what}: whose case it is not writes nothing");
                rig.journal.end_lease(&replica(1)).await.unwrap();
                let reports = resume(&other).await;
                let reports = reports.into_iter().map(Result::unwrap).collect::<Vec<_>>();
                assert_returned(&reports, &what);
                our_writes(&rig.sandbox)
            };
            let (first, after) = tokio::join!(first, second);
            assert!(
                matches!(first, Err(RunError::Journal(JournalError::Fenced(_)))),
                "{what}: {first:?}"
            );
            assert_eq!(sent.load(Ordering::Relaxed), 0, "{what}");
            assert_eq!(our_writes(&rig.sandbox), after, "{what}");
            assert_clean(&rig.sandbox, node, &what);
            assert_eq!(tear_downs(&rig.sandbox, node), 1, "{what}");
        }
    }
}

/// Whoever comes second is told whose the case is, and writes nothing; after the end there is nothing to wait for.
#[tokio::test(start_paused = true)]
async fn a_case_that_is_worked_on_is_left_alone_until_that_has_ended() {
    let sandbox = Sandbox::builder().nodes(1).deployed(1).cleaning(secs(20)).build();
    let rig = Rig::new(sandbox);
    let process = |number| {
        let clock = SandboxClock(rig.sandbox.clone());
        works_as(&rig, number, Arc::new(cloud_of(&rig.sandbox)), Arc::new(clock))
    };
    let (first, second) = (process(1), process(2));
    let (node, instance) = rig.sandbox.deployed()[0];
    let case = first
        .open(&[first.request(node, instance, "hand-over")])
        .await
        .unwrap();
    let stop = tokio_util::sync::CancellationToken::new();
    let meanwhile = async {
        tokio::time::sleep(secs(10)).await;
        let refused = resume(&second).await.remove(0);
        assert!(matches!(refused, Err(RunError::Theirs { .. })), "{refused:?}");
        stop.cancel();
    };
    let (stopped, ()) = tokio::join!(first.orchestrator.run(&case, Until::Ended, &stop), meanwhile);
    assert!(stopped[0].is_ok(), "{stopped:?}");
    assert!(rig.journal.leases().await.unwrap().is_empty(), "it has left");
    let reports = resume(&second).await.into_iter().map(Result::unwrap);
    assert_returned(&reports.collect::<Vec<_>>(), "the second");
    assert_clean(&rig.sandbox, node, "hand-over");
}
