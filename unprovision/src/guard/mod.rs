//! The guard: keeps Placement right while somebody else, usually Nova, tears nodes down.
//!
//! ```text
//! look, every 0.5 s: nodes that are deleting or cleaning ─┐ a node that is new, or has changed
//! sweep, every 60 s: all nodes, all that is offered ──────┤
//! a source of events, if there is one ────────────────────┤ a hint
//!                                                         ▼
//!              one worker for each node on its way: observe, decide, record, one write, observe again
//! ```
//!
//! It uses the orchestrator's worker, so there is one loop for both. It never changes a node's provision state, and it
//! never lets go of a node that it holds before that is free. What may stop its writes is in `brakes`.

mod asks;
mod assign;
mod attend;
mod brakes;
mod events;
mod hints;
mod looks;
mod memory;
mod notice;
mod peers;
mod pool;
mod stand_down;
mod sweep;

use std::fmt;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Semaphore, mpsc};
use tokio_util::sync::CancellationToken;

use crate::NodeUuid;
use crate::cloud::{Clock, Cloud, Fleet};
use crate::core::{GuardPolicy, Process};
use crate::events::EventSource;
use crate::journal::Journal;
use crate::orchestrator::{CaseReport, Nova, Observer, Parts, RunError, Until, Watcher};
use crate::scope::Scopes;
use crate::servers::Servers;
use unprovision_session::Class;

pub use brakes::Brakes;
use events::AlsoEvents;
pub use events::{Events, KEPT, NodeEvent, NodeEventKind, Told};
use hints::Hearing;
use memory::Memory;
pub use notice::{Notice, Status};
pub use stand_down::Held;

/// What the guard does, how often, and how far it may go.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// The strategy's name.
    pub strategy: String,
    /// From one look at the nodes that are deleting or cleaning to the next.
    pub look: Duration,
    /// From one look at all nodes, and all that is offered, to the next.
    pub sweep: Duration,
    /// How many nodes are looked at or written to at the same time.
    pub concurrency: NonZeroUsize,
    /// Whether to lift the reservation that Nova leaves on a free node until its next pass.
    pub release_nova_reservations: bool,
    /// The share of a resource class that may be held, before all writes stop (rule 14).
    pub max_held_share: f64,
    /// So many of a class may always be held.
    pub max_held_floor: usize,
    /// How many nodes may be released in the first interval of sweeps, before all writes stop (rule 14).
    pub max_releases_at_start: usize,
    /// The share of the nodes that must still be there, or nothing is released or closed (rule 13).
    pub min_nodes_share: f64,
    /// Which nodes are guarded, each with its own of what is said above; without any, the whole cloud.
    pub scopes: Scopes,
    /// While this file exists, nothing is written.
    pub pause_file: Option<PathBuf>,
    /// So long may Ironic say nothing although nodes change, before that is told.
    pub silence: Duration,
    /// Without Nova's word nothing is released: it is asked before each release, not only where there is doubt.
    pub nova_required: bool,
    /// Nothing is written at all; what would be is said.
    pub dry_run: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            strategy: "hand-over".to_owned(),
            look: Duration::from_millis(500),
            sweep: Duration::from_secs(60),
            concurrency: NonZeroUsize::MIN.saturating_add(15),
            release_nova_reservations: true,
            max_held_share: 0.8,
            max_held_floor: 10,
            max_releases_at_start: 100,
            min_nodes_share: 0.5,
            scopes: Scopes::default(),
            pause_file: None,
            silence: Duration::from_secs(600),
            nova_required: false,
            dry_run: false,
        }
    }
}

/// Is told what happens to nodes, and to the guard itself.
pub trait GuardObserver: Observer {
    /// Something that concerns the guard, or a node without a case.
    fn notice(&self, _notice: &Notice) {}
}

/// What the guard acts on and with.
#[derive(Clone, Debug)]
pub struct Adapters {
    /// Looks at one node, and does one write.
    pub cloud: Arc<dyn Cloud>,
    /// Looks at all nodes.
    pub fleet: Arc<dyn Fleet>,
    /// Keeps the cases.
    pub journal: Arc<dyn Journal>,
    /// Tells the time.
    pub clock: Arc<dyn Clock>,
    /// Is told what happens.
    pub observer: Arc<dyn GuardObserver>,
    /// Which cloud this is, in words without secrets; a case that was begun in another one is left alone.
    pub identity: Option<String>,
    /// Says when something has happened to a node; without one it is found by looking.
    pub events: Option<Arc<dyn EventSource>>,
    /// Whom to ask for a server where there is doubt; without one that is not checked.
    pub servers: Option<Arc<dyn Servers>>,
}

/// Keeps Placement from offering nodes that somebody else tears down.
#[derive(Debug)]
pub struct Guard {
    parts: Parts,
    fleet: Arc<dyn Fleet>,
    observer: Arc<dyn GuardObserver>,
    settings: Settings,
    brakes: Arc<Brakes>,
    events: Arc<Events>,
    watcher: Watcher,
    memory: Memory,
    hearing: Hearing,
}

/// What one pass found and did.
#[derive(Debug, Default)]
pub struct Pass {
    /// What became of the nodes that were on their way, or hidden without need.
    pub reports: Vec<CaseReport>,
    /// Nodes that a person ought to look at, and why.
    pub findings: Vec<(NodeUuid, String)>,
    /// Nodes that could not be looked at, or whose case could not be carried on.
    pub failed: Vec<(NodeUuid, RunError)>,
    /// Why nothing can be said of the cloud, if so: Ironic shows no node at all, or none that a scope names.
    pub sees_nothing: Option<&'static str>,
    /// Why nothing was written, if so: somebody has stopped all writes, or an alarm has.
    pub stopped: Option<String>,
}

/// Asks for a node to be looked at.
pub(crate) type Attention = mpsc::UnboundedSender<NodeUuid>;

impl Guard {
    /// A guard with these settings.
    pub fn new(adapters: Adapters, settings: Settings) -> Self {
        let Adapters {
            cloud,
            fleet,
            journal,
            clock,
            observer,
            identity,
            events: source,
            servers,
        } = adapters;
        let brakes = Arc::new(Brakes::new(&settings, Arc::clone(&observer), clock.now()));
        let events = Arc::new(Events::new(Arc::clone(&clock)));
        let mut parts = Parts::new(cloud, journal, clock);
        parts.observer = Arc::new(AlsoEvents {
            observer: Arc::clone(&observer),
            events: Arc::clone(&events),
        });
        parts.admission = Arc::<Brakes>::clone(&brakes);
        parts.identity = identity;
        parts.nova = servers.map(|servers| Nova::new(servers, settings.nova_required));
        parts.looks = Semaphore::new(settings.concurrency.get());
        Self {
            parts,
            fleet,
            observer,
            settings,
            brakes,
            events,
            watcher: Watcher::new(),
            memory: Memory::default(),
            hearing: Hearing::of(source),
        }
    }

    /// Who works. Unless this is said, this process; two guards of one process that share a journal need different names.
    #[must_use]
    pub fn process(mut self, us: Process) -> Self {
        self.parts.works_as(us);
        self
    }

    /// What stops its writes, and lets them go on.
    pub fn brakes(&self) -> &Arc<Brakes> {
        &self.brakes
    }

    /// What happens to its nodes, for schedulers.
    pub fn events(&self) -> &Arc<Events> {
        &self.events
    }

    /// How it is.
    pub fn status(&self) -> Status {
        let brakes = self.brakes.status();
        Status {
            events: self.hearing.heard(),
            ..self.memory.status(brakes)
        }
    }

    /// Guards until it is stopped. What is held then stays held, and the next run carries on.
    ///
    /// Dropping the future is safe at any time.
    ///
    /// # Errors
    ///
    /// Where the journal cannot be read, or Ironic's API is too old for a scope. A cloud that cannot be looked at is waited for.
    pub async fn run(&self, stop: &CancellationToken) -> Result<(), RunError> {
        self.can_begin().await?;
        let (attention, wanted) = mpsc::unbounded_channel();
        self.carry_on(&attention).await?;
        // Before anything else: the sizes of the classes, and who is where.
        self.sweep(&attention).await;
        tokio::select! {
            () = self.tend(wanted, Until::Ended, stop, None) => {}
            () = self.look_for_ever(&attention) => {}
        }
        Ok(())
    }

    /// One look at everything; each node is worked on until there is nothing left to do for it now.
    ///
    /// # Errors
    ///
    /// Where the journal cannot be read, or not everything could be looked at.
    pub async fn once(&self, stop: &CancellationToken) -> Result<Pass, RunError> {
        self.can_begin().await?;
        let (attention, wanted) = mpsc::unbounded_channel();
        self.carry_on(&attention).await?;
        let ((), swept) = tokio::join!(self.say_nova(), self.try_sweep(&attention));
        swept?;
        drop(attention);
        let mut pass = Pass::default();
        self.tend(wanted, Until::Settled, stop, Some(&mut pass)).await;
        pass.sees_nothing = self.sees_nothing();
        pass.findings = self.memory.findings();
        pass.stopped = self.brakes.status().stopped;
        Ok(pass)
    }

    fn sees_nothing(&self) -> Option<&'static str> {
        match self.memory.nodes() {
            Some(0) => Some(notice::SEES_NOTHING),
            _ if self.memory.no_scope_has_nodes() => Some(notice::NO_NODE_FITS),
            _ => None,
        }
    }

    /// Whether everything that must be there is.
    pub(super) async fn can_begin(&self) -> Result<(), RunError> {
        self.can_tell_scopes().await?;
        self.can_ask_nova().await
    }

    /// A scope that Ironic's API cannot tell would be taken for empty, so nothing is begun.
    async fn can_tell_scopes(&self) -> Result<(), RunError> {
        match self.fleet.knows(&self.settings.scopes.reads()).await {
            Err(error) if error.class == Class::Refused => Err(error.into()),
            // The sweeps tell.
            _ => Ok(()),
        }
    }

    fn policy(&self) -> GuardPolicy<'_> {
        GuardPolicy {
            strategy: &self.settings.strategy,
            release_nova_reservations: self.settings.release_nova_reservations,
        }
    }

    fn notice(&self, notice: &Notice) {
        self.observer.notice(notice);
    }
}

/// An observer who does not look.
#[derive(Debug)]
pub struct Unobserved;

impl Observer for Unobserved {}

impl GuardObserver for Unobserved {}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.line(f)
    }
}
