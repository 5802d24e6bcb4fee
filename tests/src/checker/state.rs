//! A state of a small world.

use std::sync::{Arc, LazyLock};

use ironic_client::NodeUuid;
use jiff::{SignedDuration, Timestamp};
use placement_client::ConsumerUuid;
use unprovision::core::{Action, Case, CaseId, CaseState, Limits, TearDownRequest, guard_consumer};
use uuid::Uuid;

use super::scope::{Budget, Scope};
use crate::model::judge::{Parties, Watch, is_free, something_is_left};
use crate::model::nova::{Rule, Wanted};
use crate::model::worker::{Outgoing, Phase};
use crate::model::{Author, Bay, Key};

/// The node.
pub(super) const NODE: NodeUuid = NodeUuid(Uuid::from_u128(0xa));
/// The instance that leaves.
pub(super) const FIRST: Uuid = Uuid::from_u128(0x1);
/// The next one.
pub(super) const SECOND: Uuid = Uuid::from_u128(0x2);
/// Our consumer.
static GUARD: LazyLock<ConsumerUuid> = LazyLock::new(|| guard_consumer(NODE, FIRST));

/// How long a run may take: longer than everything else together.
const PATIENCE: SignedDuration = SignedDuration::from_hours(24 * 365);

/// One state.
#[derive(Clone, Debug)]
pub struct State {
    /// The node and its provider.
    pub bay: Arc<Bay>,
    /// The journal, folded.
    pub case: Option<Arc<Case>>,
    /// The process that works on the case, if one does.
    pub worker: Option<Phase>,
    /// What a process that was overtaken, or the net, still holds back.
    pub frozen: Option<Frozen>,
    /// Whether a write was applied that its sender had decided before it was overtaken.
    pub overtaken: bool,
    /// The judge.
    pub watch: Watch,
    /// Nova, or whoever schedules.
    pub nova: Nova,
    /// What may still go wrong.
    pub budget: Budget,
    /// The time, by our clock.
    pub now: Timestamp,
}

/// A write that has not arrived yet.
#[derive(Clone, Debug)]
pub struct Frozen {
    /// The write.
    pub outgoing: Arc<Outgoing>,
    /// Its sender is frozen, so it may come at any time; otherwise it comes before time passes, or never.
    pub sender: bool,
}

/// Nova, or another scheduler.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Nova {
    /// A delete of the server is under way.
    pub deletes: bool,
    /// What a pass that has begun means to write.
    pub pass: Option<Wanted>,
    /// The next instance was deployed once.
    pub deployed: bool,
}

impl State {
    /// The beginning: a node in use, nobody has asked for anything.
    pub fn begin(scope: &Scope) -> Self {
        let start = Timestamp::UNIX_EPOCH + SignedDuration::from_hours(24 * 365 * 30);
        let mut bay = Bay::in_use(NODE, FIRST, start);
        bay.provider.nova = scope.nova.is_some();
        if scope.nova == Some(Rule::Current) {
            bay.provider.reserve(1, Author::Nova);
        }
        if scope.found_reserved {
            bay.provider.reserve(1, Author::Operator);
        }
        for held in bay.provider.holders.values_mut() {
            held.elsewhere = scope.elsewhere;
        }
        Self {
            bay: Arc::new(bay),
            case: None,
            worker: None,
            frozen: None,
            overtaken: false,
            watch: Watch::default(),
            nova: Nova::default(),
            budget: scope.budget,
            now: start,
        }
    }

    /// The request that begins it all.
    pub fn request(&self, strategy: &str) -> TearDownRequest {
        TearDownRequest {
            node: NODE,
            instance: FIRST,
            strategy: strategy.to_owned(),
            tag: None,
            limits: Limits {
                deadline: self.now + PATIENCE,
                retry_error: 1,
                reclean: 1,
                release_nova_reservations: true,
            },
            nova_record_remains: true,
        }
    }

    /// The limits with which a case is taken up: what is left of the old ones, counted from now.
    pub fn limits_of(&self, case: &Case) -> Limits {
        Limits {
            deadline: self.now + PATIENCE,
            ..case.remaining()
        }
    }

    /// How far the clock goes when the time is up.
    pub fn to_the_deadline(&self) -> SignedDuration {
        PATIENCE
    }

    /// Who is who.
    pub fn parties(&self) -> Parties {
        let found = self.case.as_ref().map(|case| case.found.reserved);
        Parties {
            instance: FIRST,
            guard: *GUARD,
            found_reserved: found.is_some_and(|reserved| reserved > 0),
            tag: self
                .case
                .as_ref()
                .and_then(|case| Some(case.found.tag.as_ref()?.name.clone())),
        }
    }

    /// The case's identifier.
    pub fn id() -> CaseId {
        CaseId::tear_down(NODE, FIRST)
    }

    /// The instance as a consumer.
    pub fn first() -> ConsumerUuid {
        ConsumerUuid(FIRST)
    }

    /// The next instance as a consumer.
    pub fn second() -> ConsumerUuid {
        ConsumerUuid(SECOND)
    }

    /// Whether nobody works on the case any more, and it has ended.
    pub fn is_closed(&self) -> bool {
        let closed = |case: &Arc<Case>| matches!(case.state, CaseState::Closed(_));
        self.worker.is_none() && self.case.as_ref().is_some_and(closed)
    }

    /// The good end: closed, nothing of ours left, and the node is free and offered, carries an instance, or is held by
    /// somebody else.
    pub fn is_good(&self) -> bool {
        // What a frozen process has broken is told by itself.
        if self.case.is_none() || self.overtaken {
            return true;
        }
        if !self.is_closed() || something_is_left(&self.bay, &self.parties()) {
            return false;
        }
        let provider = &self.bay.provider;
        let kept = matches!(provider.by, Author::Operator | Author::Unclear);
        let others = kept || provider.holders.contains_key(&Self::second());
        let back = is_free(&self.bay.node) && (provider.is_offered() || others);
        back || self.bay.node.instance.is_some() || others
    }

    /// What tells it from other states.
    pub fn key(&self, key: &mut Key) -> u128 {
        key.begin(&self.bay, self.worker.as_ref());
        key.bay(&self.bay);
        key.put(&(&self.nova, self.budget, self.watch, self.overtaken));
        key.put(&(self.case.is_some(), self.worker.is_some()));
        if let Some(case) = &self.case {
            key.case(case, self.now);
        }
        if let Some(phase) = &self.worker {
            key.phase(phase);
        }
        if let Some(frozen) = &self.frozen {
            key.put(&(frozen.sender, frozen.outgoing.saw));
            key.action(&frozen.outgoing.action);
        }
        key.end()
    }

    /// The write that is about to leave.
    pub fn outgoing(&self) -> Option<&Action> {
        match &self.worker {
            Some(Phase::Sends(outgoing)) => Some(&outgoing.action),
            _ => None,
        }
    }
}
