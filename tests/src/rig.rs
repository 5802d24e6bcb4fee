//! An orchestrator over a sandbox, with the sandbox's clock.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use ironic_client::{IronicClient, NodeUuid};
use jiff::{SignedDuration, Timestamp};
use placement_client::PlacementClient;
use tokio_util::sync::CancellationToken;
use unprovision::cloud::{Clock, OpenStack};
use unprovision::core::{Case, CaseId, DEFAULT_TAG, Limits, TearDownRequest};
use unprovision::journal::{Journal, MemoryJournal};
use unprovision::orchestrator::{Builder, CaseReport, Observer, Orchestrator, RunError, Until};
use unprovision::strategy;
use uuid::Uuid;

use crate::sandbox::Sandbox;
use crate::sandbox::judge::Query;

/// The sandbox's clock; sleeping is tokio's, so a paused runtime jumps ahead.
#[derive(Clone, Debug)]
pub struct SandboxClock(pub Sandbox);

#[async_trait]
impl Clock for SandboxClock {
    fn now(&self) -> Timestamp {
        self.0.now()
    }

    fn elapsed(&self) -> Duration {
        self.0.now().duration_since(Timestamp::UNIX_EPOCH).unsigned_abs()
    }

    async fn sleep(&self, how_long: Duration) {
        tokio::time::sleep(how_long).await;
    }
}

/// Everything that a test of a tear-down needs.
#[derive(Clone, Debug)]
pub struct Rig {
    /// The cloud.
    pub sandbox: Sandbox,
    /// The journal; it survives [`Rig::restarted`].
    pub journal: Arc<dyn Journal>,
    /// What is under test.
    pub orchestrator: Orchestrator,
}

impl Rig {
    /// An orchestrator over this sandbox, with a journal in memory.
    pub fn new(sandbox: Sandbox) -> Self {
        Self::with_journal(sandbox, Arc::new(MemoryJournal::new()))
    }

    /// An orchestrator over this sandbox, with this journal.
    pub fn with_journal(sandbox: Sandbox, journal: Arc<dyn Journal>) -> Self {
        Self::observed(sandbox, journal, Arc::new(Nobody))
    }

    /// The same, and somebody is told what happens.
    pub fn observed(sandbox: Sandbox, journal: Arc<dyn Journal>, observer: Arc<dyn Observer>) -> Self {
        Self::polling(sandbox, journal, observer, Duration::from_secs(1))
    }

    /// The same, and nodes are looked at this often.
    pub fn polling(
        sandbox: Sandbox,
        journal: Arc<dyn Journal>,
        observer: Arc<dyn Observer>,
        poll: Duration,
    ) -> Self {
        let builder = builder(&sandbox, &journal);
        let orchestrator = builder.observer(observer).poll(poll).build();
        Self {
            sandbox,
            journal,
            orchestrator,
        }
    }

    /// The same cloud and journal, by this name of the cloud.
    #[must_use]
    pub fn named(&self, cloud: &str) -> Self {
        let orchestrator = builder(&self.sandbox, &self.journal).identity(cloud).build();
        Self {
            orchestrator,
            ..self.clone()
        }
    }

    /// A new process on the same cloud and journal.
    #[must_use]
    pub fn restarted(&self) -> Self {
        Self::with_journal(self.sandbox.clone(), Arc::clone(&self.journal))
    }

    /// A request to tear this instance down, with two days of patience.
    pub fn request(&self, node: Uuid, instance: Uuid, strategy: &str) -> TearDownRequest {
        TearDownRequest {
            node: NodeUuid(node),
            instance,
            strategy: strategy.to_owned(),
            tag: None,
            limits: self.limits(Duration::from_secs(2 * 24 * 3600)),
            nova_record_remains: true,
        }
    }

    /// Limits with this much patience from now on, and no second attempts.
    pub fn limits(&self, patience: Duration) -> Limits {
        let patience = SignedDuration::try_from(patience).unwrap_or(SignedDuration::MAX);
        Limits {
            deadline: self.sandbox.now() + patience,
            retry_error: 0,
            reclean: 0,
            release_nova_reservations: true,
        }
    }

    /// Checks and opens these tear-downs.
    ///
    /// # Errors
    ///
    /// Where one of them may not begin; those before it are open then.
    pub async fn open(&self, requests: &[TearDownRequest]) -> Result<Vec<CaseId>, RunError> {
        let mut cases = Vec::with_capacity(requests.len());
        for request in requests {
            let first = self.orchestrator.check(request).await?;
            cases.push(self.orchestrator.open(request, first).await?);
        }
        Ok(cases)
    }

    /// Checks, opens and runs these tear-downs to their end.
    ///
    /// # Errors
    ///
    /// Where one of them may not begin, or cannot be carried on.
    pub async fn tear_down(&self, requests: &[TearDownRequest]) -> Result<Vec<CaseReport>, RunError> {
        let cases = self.open(requests).await?;
        self.orchestrator
            .run(&cases, Until::Ended, &CancellationToken::new())
            .await
            .into_iter()
            .collect()
    }
}

fn builder(sandbox: &Sandbox, journal: &Arc<dyn Journal>) -> Builder {
    let clock = Arc::new(SandboxClock(sandbox.clone()));
    Orchestrator::builder(Arc::new(cloud(sandbox)), Arc::clone(journal), clock)
}

/// The sandbox as the orchestrator sees it.
pub fn cloud(sandbox: &Sandbox) -> OpenStack {
    let ironic = Arc::new(IronicClient::new(sandbox.ironic()));
    let placement = Arc::new(PlacementClient::new(sandbox.placement()));
    OpenStack::new(ironic, placement, Arc::new(SandboxClock(sandbox.clone())))
}

/// The queries that a strategy protects: all of them, or where it tags those that forbid the tag. For any other name it is
/// all of them, so that whoever misspells one is judged more strictly.
pub fn protected_by(strategy: &str) -> Query<'static> {
    let tags = strategy::by_name(strategy).is_some_and(|strategy| strategy.uses_tag());
    Query {
        forbids: tags.then_some(DEFAULT_TAG),
    }
}

/// An observer who does not look.
#[derive(Debug)]
pub struct Nobody;

impl Observer for Nobody {}

/// The same limits for all of these cases.
pub fn each_with(cases: &[Case], limits: Limits) -> Vec<(CaseId, Limits)> {
    cases.iter().map(|case| (case.id, limits)).collect()
}
