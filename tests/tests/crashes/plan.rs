//! Where a process dies: wrappers around journal and cloud that count what passes and stop at one point for ever.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use futures::stream::BoxStream;
use ironic_client::{Node, NodeUuid};
use tokio_util::sync::CancellationToken;
use unprovision::cloud::{Cloud, CloudError, Reads};
use unprovision::core::{Action, CaseId, Entry, Observation, Process};
use unprovision::journal::{Journal, JournalError, Seq};
use unprovision_testkit::sandbox::{Fault, Sandbox, Service};

/// A point at which a run is disturbed, relative to one append or one write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Point {
    /// The process dies; the entry is not written.
    DiesBeforeAppend,
    /// The entry is written, and the process dies.
    DiesAfterAppend,
    /// The journal fails without having written the entry.
    AppendFails,
    /// The journal has written the entry, and fails all the same.
    AppendSucceedsAndFails,
    /// The process dies; nothing was sent.
    DiesBeforeWrite,
    /// The write was done, and the process dies before it learns of it.
    DiesAfterWrite,
    /// The request is under way when the process dies, and arrives three seconds later.
    DiesWhileWriteIsUnderWay,
    /// The request gets lost; the process goes on.
    RequestLost,
    /// The answer gets lost; the process goes on.
    AnswerLost,
}

impl Point {
    pub(crate) const OF_APPENDS: [Self; 4] = [
        Self::DiesBeforeAppend,
        Self::DiesAfterAppend,
        Self::AppendFails,
        Self::AppendSucceedsAndFails,
    ];
    pub(crate) const OF_WRITES: [Self; 5] = [
        Self::DiesBeforeWrite,
        Self::DiesAfterWrite,
        Self::DiesWhileWriteIsUnderWay,
        Self::RequestLost,
        Self::AnswerLost,
    ];
}

/// At which append or write (counted from 1) what happens; and how many there were.
#[derive(Debug, Default)]
pub(crate) struct Plan {
    at: Option<(Point, usize)>,
    appends: AtomicUsize,
    writes: AtomicUsize,
    /// Cancelled when the process dies.
    pub(crate) died: CancellationToken,
}

impl Plan {
    pub(crate) fn at(point: Point, nth: usize) -> Arc<Self> {
        Arc::new(Self {
            at: Some((point, nth)),
            ..Self::default()
        })
    }

    pub(crate) fn undisturbed() -> Arc<Self> {
        Arc::default()
    }

    pub(crate) fn appends(&self) -> usize {
        self.appends.load(Ordering::Relaxed)
    }

    pub(crate) fn writes(&self) -> usize {
        self.writes.load(Ordering::Relaxed)
    }

    fn is(&self, point: Point, nth: usize) -> bool {
        self.at == Some((point, nth))
    }

    async fn die_at(&self, point: Point, nth: usize) {
        if self.is(point, nth) {
            self.died.cancel();
            std::future::pending::<()>().await;
        }
    }
}

/// The journal of a process that dies.
#[derive(Debug)]
pub(crate) struct MortalJournal {
    pub(crate) inner: Arc<dyn Journal>,
    pub(crate) plan: Arc<Plan>,
}

#[async_trait]
impl Journal for MortalJournal {
    async fn append(&self, case: CaseId, after: Seq, new: &[Entry]) -> Result<Seq, JournalError> {
        let nth = self.plan.appends.fetch_add(1, Ordering::Relaxed) + 1;
        self.plan.die_at(Point::DiesBeforeAppend, nth).await;
        if self.plan.is(Point::AppendFails, nth) {
            return Err(disk_full());
        }
        let appended = self.inner.append(case, after, new).await;
        self.plan.die_at(Point::DiesAfterAppend, nth).await;
        if self.plan.is(Point::AppendSucceedsAndFails, nth) {
            return Err(disk_full());
        }
        appended
    }

    async fn read(&self, case: CaseId) -> Result<Vec<Entry>, JournalError> {
        self.inner.read(case).await
    }

    fn open_cases(&self) -> BoxStream<'_, Result<CaseId, JournalError>> {
        self.inner.open_cases()
    }

    fn cases(&self) -> BoxStream<'_, Result<CaseId, JournalError>> {
        self.inner.cases()
    }

    async fn keep_lease(&self, of: &Process, for_the_next: Duration) -> Result<(), JournalError> {
        self.inner.keep_lease(of, for_the_next).await
    }

    async fn end_lease(&self, of: &Process) -> Result<(), JournalError> {
        self.inner.end_lease(of).await
    }

    async fn leases(&self) -> Result<BTreeSet<Process>, JournalError> {
        self.inner.leases().await
    }
}

fn disk_full() -> JournalError {
    JournalError::Storage {
        journal: "test".to_owned(),
        message: "the disk is full".to_owned(),
        source: None,
    }
}

/// The cloud of a process that dies.
#[derive(Debug)]
pub(crate) struct MortalCloud<C> {
    pub(crate) inner: C,
    pub(crate) sandbox: Sandbox,
    pub(crate) plan: Arc<Plan>,
}

impl<C: fmt::Debug> MortalCloud<C> {
    /// What happens to the one request of this write.
    fn disturb(&self, action: &Action, how: impl Fn(Fault) -> Fault) {
        let service = if action.is_to_ironic() {
            Service::Ironic
        } else {
            Service::Placement
        };
        for method in [http::Method::PUT, http::Method::POST, http::Method::DELETE] {
            self.sandbox
                .fault(how(Fault::on(service).method(method).from("client").nth(1)));
        }
    }
}

#[async_trait]
impl<C: Cloud> Cloud for MortalCloud<C> {
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
        let nth = self.plan.writes.fetch_add(1, Ordering::Relaxed) + 1;
        self.plan.die_at(Point::DiesBeforeWrite, nth).await;
        if self.plan.is(Point::RequestLost, nth) {
            self.disturb(action, Fault::lose_request);
        }
        if self.plan.is(Point::AnswerLost, nth) {
            self.disturb(action, Fault::lose_reply);
        }
        if self.plan.is(Point::DiesWhileWriteIsUnderWay, nth) {
            self.disturb(action, |fault| fault.arrives_late(crate::common::secs(3)));
        }
        let applied = self.inner.apply(node, action).await;
        self.sandbox.clear_faults();
        self.plan.die_at(Point::DiesAfterWrite, nth).await;
        self.plan.die_at(Point::DiesWhileWriteIsUnderWay, nth).await;
        applied
    }
}
