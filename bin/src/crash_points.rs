//! For the tests: the process kills itself at the N-th point, before or after a journal append or a write to the cloud.
//!
//! Only with the feature `crash-points`, and only where `CRASH_AT` names N. It dies as by `kill -9`: nothing is
//! flushed, closed or told.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use async_trait::async_trait;
use futures::stream::BoxStream;
use rustix::process::{Signal, getpid, kill_process};
use unprovision::cloud::{Cloud, CloudError, Reads};
use unprovision::core::{Action, CaseId, Entry, Observation};
use unprovision::journal::{Journal, JournalError, Seq};
use unprovision::{Node, NodeUuid};

/// Which point is the last.
const VARIABLE: &str = "CRASH_AT";

/// Counts the points that were passed.
#[derive(Debug)]
struct Fuse {
    last: u32,
    passed: AtomicU32,
}

impl Fuse {
    fn pass(&self, point: impl fmt::Display) {
        let nth = self.passed.fetch_add(1, Ordering::Relaxed) + 1;
        if nth == self.last {
            eprintln!("crash point {nth}: {point}");
            // A process may always signal itself.
            let _ = kill_process(getpid(), Signal::KILL);
        }
    }
}

#[derive(Debug)]
struct MortalCloud(Arc<dyn Cloud>, Arc<Fuse>);

#[derive(Debug)]
struct MortalJournal(Arc<dyn Journal>, Arc<Fuse>);

/// The cloud and the journal, with the points in them where the environment asks for that.
pub(crate) fn fit(cloud: Arc<dyn Cloud>, journal: Arc<dyn Journal>) -> (Arc<dyn Cloud>, Arc<dyn Journal>) {
    let Some(last) = std::env::var(VARIABLE).ok().and_then(|text| text.parse().ok()) else {
        return (cloud, journal);
    };
    let fuse = Arc::new(Fuse {
        last,
        passed: AtomicU32::new(0),
    });
    (
        Arc::new(MortalCloud(cloud, Arc::clone(&fuse))),
        Arc::new(MortalJournal(journal, fuse)),
    )
}

#[async_trait]
impl Cloud for MortalCloud {
    async fn find(&self, uuid_or_name: &str) -> Result<Option<Node>, CloudError> {
        self.0.find(uuid_or_name).await
    }

    async fn nodes(&self, nodes: &[NodeUuid]) -> Result<BTreeMap<NodeUuid, Node>, CloudError> {
        self.0.nodes(nodes).await
    }

    async fn observe(&self, node: NodeUuid, reads: Reads) -> Result<Observation, CloudError> {
        self.0.observe(node, reads).await
    }

    async fn apply(&self, node: NodeUuid, action: &Action) -> Result<(), CloudError> {
        self.1.pass(format_args!("before the write: {action}"));
        let answer = self.0.apply(node, action).await;
        self.1.pass(format_args!("after the write: {action}"));
        answer
    }
}

#[async_trait]
impl Journal for MortalJournal {
    async fn append(&self, case: CaseId, after: Seq, new: &[Entry]) -> Result<Seq, JournalError> {
        let events = new.iter().map(|entry| &entry.event).collect::<Vec<_>>();
        self.1.pass(format_args!("before the entry: {events:?}"));
        let answer = self.0.append(case, after, new).await;
        self.1.pass(format_args!("after the entry: {events:?}"));
        answer
    }

    async fn read(&self, case: CaseId) -> Result<Vec<Entry>, JournalError> {
        self.0.read(case).await
    }

    fn open_cases(&self) -> BoxStream<'_, Result<CaseId, JournalError>> {
        self.0.open_cases()
    }
}
