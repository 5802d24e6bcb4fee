//! The orchestrator: observe, decide, record, one write, observe again.
//!
//! ```text
//! observe ──► decide (pure) ──► journal: Intended ──► Cloud::apply ──► journal: Applied | Refused | Unknown
//!    ▲                                                                                │
//!    └────────────────────────────────────────────────────────────────────────────────┘
//! ```
//!
//! Each case has its own worker; one watcher looks at all nodes that are waited for. Tear-downs go through a gate:
//! all nodes are held before the first is torn down, and no more are under way than Ironic takes.

mod abandon;
mod admission;
mod error;
mod gate;
mod lease;
mod let_in;
mod nova;
mod open;
mod record;
mod report;
mod watcher;
mod worker;

use std::fmt;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

use futures::stream::{self, FuturesUnordered, StreamExt};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use crate::cloud::{Clock, Cloud, CloudError, Reads};
use crate::core::{
    Case, CaseId, CaseState, Entry, Event, Limits, Observation, Process, TearDownRequest, WaitFor,
};
use crate::journal::{Journal, Seq};
use crate::process;

pub use abandon::Abandoned;
pub(crate) use admission::Admission;
pub use error::RunError;
pub(crate) use gate::Gate;
use lease::Lease;
pub(crate) use lease::Term;
use let_in::LetIn;
pub(crate) use nova::Nova;
pub use report::{CaseReport, Progress};
pub(crate) use watcher::{Waits, Watcher};
pub(crate) use worker::{First, Place, Worker};

/// So many cases are taken up side by side: a journal makes one write of what comes together.
const TAKEN_UP_AT_ONCE: usize = 64;

/// Is told what happens, as it happens.
pub trait Observer: fmt::Debug + Send + Sync {
    /// An entry was written to the case's journal; the case has it already.
    fn entry(&self, _case: &Case, _entry: &Entry) {}

    /// The node and its provider were looked at; what is decided next is decided from this.
    fn looked(&self, _case: &Case, _seen: &Observation) {}

    /// The case waits for something else than before.
    fn waiting(&self, _case: &Case, _for_what: &WaitFor) {}

    /// A look or a write failed, and is tried again.
    fn trouble(&self, _case: &Case, _error: &CloudError) {}

    /// Nova cannot be asked, and what it would be asked for is decided without it; said once.
    fn unchecked(&self, _case: &Case, _why: &str) {}
}

#[derive(Debug)]
struct Silent;
impl Observer for Silent {}

/// How far a case is followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Until {
    /// To its end.
    Ended,
    /// Until Ironic has accepted the tear-down. The hold stays, and somebody has to [`Orchestrator::resume`] it.
    Accepted,
    /// Until nothing is left to do now: whoever comes back later goes on.
    Settled,
}

/// Takes nodes back to `available`. Cheap to clone.
///
/// ```
/// use std::{sync::Arc, time::Duration};
///
/// use tokio_util::sync::CancellationToken;
/// use unprovision::NodeUuid;
/// use unprovision::cloud::OpenStack;
/// use unprovision::core::{Limits, Outcome, TearDownRequest};
/// use unprovision::journal::MemoryJournal;
/// use unprovision::orchestrator::{Orchestrator, Progress, Until};
/// # use {ironic_client::IronicClient, placement_client::PlacementClient};
/// # use unprovision_testkit::{rig::SandboxClock, sandbox::Sandbox};
///
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let sandbox = Sandbox::builder().nodes(1).deployed(1).cleaning(Duration::from_secs(600)).build();
/// # let (node, instance) = sandbox.deployed().remove(0);
/// # let (to_ironic, to_placement) = (sandbox.ironic(), sandbox.placement());
/// # let clock = Arc::new(SandboxClock(sandbox.clone()));
/// // `to_ironic` and `to_placement` are transports: HTTP with a Keystone token, or a sandbox in the same process.
/// let ironic = Arc::new(IronicClient::new(to_ironic));
/// let placement = Arc::new(PlacementClient::new(to_placement));
/// let cloud = Arc::new(OpenStack::new(ironic, placement, clock.clone()));
/// let orchestrator = Orchestrator::builder(cloud, Arc::new(MemoryJournal::new()), clock).build();
///
/// let request = TearDownRequest {
///     node: NodeUuid(node),
///     instance,
///     strategy: "hand-over".to_owned(),
///     tag: None,
///     limits: Limits {
///         deadline: "2026-01-04T00:00:00Z".parse()?,
///         retry_error: 0,
///         reclean: 1,
///         release_nova_reservations: true,
///     },
///     nova_record_remains: true,
/// };
/// let first = orchestrator.check(&request).await?; // touches nothing
/// let case = orchestrator.open(&request, first).await?;
/// let report = orchestrator.run(&[case], Until::Ended, &CancellationToken::new()).await.remove(0)?;
/// assert_eq!(report.outcome, Progress::Ended(Outcome::Returned));
/// # assert!(unprovision_testkit::sandbox::judge::exposure(&sandbox.log(), node).is_none());
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Orchestrator {
    parts: Arc<Parts>,
}

#[derive(Debug)]
pub(crate) struct Parts {
    pub(crate) cloud: Arc<dyn Cloud>,
    pub(crate) journal: Arc<dyn Journal>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) observer: Arc<dyn Observer>,
    pub(crate) admission: Arc<dyn Admission>,
    pub(crate) poll: Duration,
    pub(crate) looks: Semaphore,
    max_tear_downs: Option<NonZeroUsize>,
    pub(crate) identity: Option<String>,
    pub(crate) lease: Lease,
    pub(crate) nova: Option<Nova>,
    pub(crate) let_in: LetIn,
}

impl Parts {
    pub(crate) fn new(cloud: Arc<dyn Cloud>, journal: Arc<dyn Journal>, clock: Arc<dyn Clock>) -> Self {
        Self {
            cloud,
            journal,
            clock,
            observer: Arc::new(Silent),
            admission: Arc::new(admission::Always),
            poll: Duration::from_secs(1),
            looks: Semaphore::new(16),
            max_tear_downs: None,
            identity: None,
            lease: Lease::of(process::this()),
            nova: None,
            let_in: LetIn::default(),
        }
    }
}

/// Settings of an [`Orchestrator`].
#[derive(Debug)]
pub struct Builder {
    parts: Parts,
}

impl Builder {
    /// Who is told what happens. Default: nobody.
    #[must_use]
    pub fn observer(mut self, observer: Arc<dyn Observer>) -> Self {
        self.parts.observer = observer;
        self
    }

    /// How often the nodes that are waited for are looked at. Default: every second.
    #[must_use]
    pub fn poll(mut self, every: Duration) -> Self {
        self.parts.poll = every;
        self
    }

    /// How many cases look or write at the same time. Default: 16.
    #[must_use]
    pub fn concurrency(mut self, at_most: NonZeroUsize) -> Self {
        self.parts.looks = Semaphore::new(at_most.get());
        self
    }

    /// How many nodes may be deleting or cleaning on our behalf at the same time. Default: as many as Ironic takes.
    #[must_use]
    pub fn max_tear_downs(mut self, at_most: NonZeroUsize) -> Self {
        self.parts.max_tear_downs = Some(at_most);
        self
    }

    /// Which cloud this is, in words without secrets. Each case is recorded with it, and one that was begun in a cloud of
    /// another name is refused. Default: nobody says, and nothing is compared.
    #[must_use]
    pub fn identity(mut self, cloud: impl Into<String>) -> Self {
        self.parts.identity = Some(cloud.into());
        self
    }

    /// Who works. Default: this process. Two orchestrators of one process that share a journal need different names.
    #[must_use]
    pub fn process(mut self, us: Process) -> Self {
        self.parts.works_as(us);
        self
    }

    /// The orchestrator.
    pub fn build(self) -> Orchestrator {
        Orchestrator {
            parts: Arc::new(self.parts),
        }
    }
}

impl Orchestrator {
    /// An orchestrator of this cloud, with this journal and clock.
    pub fn builder(cloud: Arc<dyn Cloud>, journal: Arc<dyn Journal>, clock: Arc<dyn Clock>) -> Builder {
        Builder {
            parts: Parts::new(cloud, journal, clock),
        }
    }

    /// Looks whether the tear-down may begin. Touches nothing, and writes nothing.
    ///
    /// # Errors
    ///
    /// [`RunError::CannotOpen`] says what is wrong with the request; [`RunError::Cloud`] that the look failed.
    pub async fn check(&self, request: &TearDownRequest) -> Result<Entry, RunError> {
        self.entries_here(request.case()).await?;
        let seen = self.parts.observe(request.node, Reads::everything()).await?;
        Ok(self.parts.may_open(request, seen).await?)
    }

    /// Records a tear-down that [`Orchestrator::check`] let pass. Nothing is sent yet: [`Orchestrator::run`] does that.
    pub async fn open(&self, request: &TearDownRequest, mut first: Entry) -> Result<CaseId, RunError> {
        let id = request.case();
        let has = Seq(self.entries_here(id).await?);
        if let Event::Opened { cloud, .. } = &mut first.event {
            cloud.clone_from(&self.parts.identity);
        }
        self.parts.journal.append(id, has, &[first]).await?;
        Ok(id)
    }

    /// How many entries the journal has of a case; refused while it is open in another cloud.
    async fn entries_here(&self, id: CaseId) -> Result<u64, RunError> {
        let entries = self.parts.journal.read(id).await?;
        if let Some(case) = Case::fold(id, &entries)
            && !matches!(case.state, CaseState::Closed(_))
        {
            self.belongs_here(&case)?;
        }
        Ok(entries.len() as u64)
    }

    /// Whether the case was begun in this cloud, as far as both are known.
    ///
    /// # Errors
    ///
    /// [`RunError::OtherCloud`] where it was not.
    pub fn belongs_here(&self, case: &Case) -> Result<(), RunError> {
        self.parts.belongs_here(case)
    }

    /// Works on the cases until each has ended (or is accepted), or `stop` is cancelled: then the waiting ends, not the
    /// hold. The reports come in the order of the cases.
    ///
    /// Dropping the future is safe at any time: the next run carries on from the journal.
    pub async fn run(
        &self,
        cases: &[CaseId],
        until: Until,
        stop: &CancellationToken,
    ) -> Vec<Result<CaseReport, RunError>> {
        let gate = gate::Gate::new(
            cases.len(),
            self.parts.max_tear_downs,
            Arc::clone(&self.parts.clock),
        );
        let watcher = watcher::Watcher::new();
        let place = Place {
            parts: &self.parts,
            gate: &gate,
            watcher: &watcher,
            until,
            stop,
        };
        let work = cases.iter().enumerate().map(|(index, case)| {
            let worker = worker::Worker::begin(place, *case, None);
            async move { (index, worker.await) }
        });
        let mut work = work.collect::<FuturesUnordered<_>>();
        let mut reports = (0..cases.len()).map(|_| None).collect::<Vec<_>>();
        let working = async {
            let watching = watcher.watch(&self.parts);
            tokio::pin!(watching);
            loop {
                tokio::select! {
                    done = work.next() => match done {
                        Some((index, report)) => reports[index] = Some(report),
                        None => break,
                    },
                    () = &mut watching => {}
                }
            }
        };
        self.parts.under_lease(working).await;
        let missing = |index: usize| Err(RunError::NoCase(cases[index]));
        reports
            .into_iter()
            .enumerate()
            .map(|(index, report)| report.unwrap_or_else(|| missing(index)))
            .collect()
    }

    /// Takes up cases that have not ended, each with its limits from now on, and works on them like
    /// [`Orchestrator::run`]. [`Case::remaining`] are the limits of a case that was only interrupted.
    pub async fn resume(
        &self,
        cases: &[(CaseId, Limits)],
        until: Until,
        stop: &CancellationToken,
    ) -> Vec<Result<CaseReport, RunError>> {
        let taken = cases.iter().map(|(case, limits)| self.take_up(*case, *limits));
        let taken = stream::iter(taken).buffered(TAKEN_UP_AT_ONCE);
        let taken = taken.collect::<Vec<_>>().await;
        let ids = taken
            .iter()
            .zip(cases)
            .filter(|(taken, _)| taken.is_ok())
            .map(|(_, (id, _))| *id);
        let mut reports = self.run(&ids.collect::<Vec<_>>(), until, stop).await.into_iter();
        let mut next = |id| reports.next().unwrap_or(Err(RunError::NoCase(id)));
        taken
            .into_iter()
            .zip(cases)
            .map(|(taken, (id, _))| taken.and_then(|()| next(*id)))
            .collect()
    }

    async fn take_up(&self, id: CaseId, limits: Limits) -> Result<(), RunError> {
        let (mut case, mut seq) = self.parts.read(id).await?;
        if matches!(case.state, CaseState::Closed(_)) {
            return Ok(());
        }
        self.parts.take(&mut case, &mut seq, Some(limits)).await
    }
}
