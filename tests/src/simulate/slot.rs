//! One node of a world, with its case.

use std::sync::Arc;

use ironic_client::NodeUuid;
use jiff::{SignedDuration, Timestamp};
use unprovision::core::{Case, CaseId, CaseState, Limits, TearDownRequest, guard_consumer};
use uuid::Uuid;

use super::dice::Dice;
use super::fleet::Nature;
use crate::model::judge::Parties;
use crate::model::nova::{Rule, Wanted};
use crate::model::worker::{Outgoing, Phase};
use crate::model::{Author, Bay, Breach, Machine, Watch};

/// A node with its case.
#[derive(Debug)]
pub(super) struct Slot {
    pub(super) bay: Bay,
    /// The node as a lagging replica has it, and until when it may be read so.
    pub(super) old: Option<(Machine, Timestamp)>,
    pub(super) instance: Uuid,
    pub(super) next: Uuid,
    pub(super) case: Option<Case>,
    pub(super) phase: Option<Phase>,
    /// The number of the worker: what is due for another one is void.
    pub(super) epoch: u32,
    /// When it goes on.
    pub(super) due: Option<Timestamp>,
    /// How soon it would look again by itself, and how often it has in vain.
    pub(super) patience: Option<SignedDuration>,
    pub(super) in_vain: u32,
    pub(super) late: Option<(Arc<Outgoing>, bool)>,
    pub(super) overtaken: bool,
    pub(super) exposed: Option<Breach>,
    pub(super) watch: Watch,
    pub(super) pass: Option<Wanted>,
    pub(super) pass_due: bool,
    pub(super) deletes: bool,
    pub(super) tracked: bool,
    pub(super) looks: u32,
}

impl Slot {
    pub(super) fn new(index: usize, now: Timestamp, nature: &Nature, dice: &mut Dice) -> Self {
        let number = |kind: u128| Uuid::from_u128((kind << 64) | (index as u128 + 1));
        let (node, instance) = (NodeUuid(number(1)), number(2));
        let mut bay = Bay::in_use(node, instance, now - SignedDuration::from_hours(24));
        bay.provider.nova = nature.nova.is_some();
        if nature.nova == Some(Rule::Current) {
            bay.provider.reserve(1, Author::Nova);
        } else if dice.chance(50) {
            bay.provider.reserve(1, Author::Operator);
        }
        for held in bay.provider.holders.values_mut() {
            held.elsewhere = dice.chance(100);
        }
        Self {
            bay,
            old: None,
            instance,
            next: number(3),
            case: None,
            phase: None,
            epoch: 0,
            due: None,
            patience: None,
            in_vain: 0,
            late: None,
            overtaken: false,
            exposed: None,
            watch: Watch::default(),
            pass: None,
            pass_due: false,
            deletes: false,
            tracked: dice.chance(500),
            looks: 0,
        }
    }

    pub(super) fn parties(&self) -> Parties {
        Parties {
            instance: self.instance,
            guard: guard_consumer(self.bay.node.uuid, self.instance),
            found_reserved: self.case.as_ref().is_some_and(|case| case.found.reserved > 0),
            tag: self
                .case
                .as_ref()
                .and_then(|case| Some(case.found.tag.as_ref()?.name.clone())),
        }
    }

    pub(super) fn id(&self) -> CaseId {
        CaseId::tear_down(self.bay.node.uuid, self.instance)
    }

    pub(super) fn request(&self, strategy: &str, limits: Limits) -> TearDownRequest {
        TearDownRequest {
            node: self.bay.node.uuid,
            instance: self.instance,
            strategy: strategy.to_owned(),
            tag: None,
            limits,
            nova_record_remains: true,
        }
    }

    pub(super) fn is_closed(&self) -> bool {
        let closed = |case: &Case| matches!(case.state, CaseState::Closed(_));
        self.late.is_none() && self.case.as_ref().is_some_and(closed)
    }

    /// What the node reads as: a replica may lag.
    pub(super) fn read_node(&self, now: Timestamp, stale: bool) -> &Machine {
        match &self.old {
            Some((old, until)) if stale && now < *until => old,
            _ => &self.bay.node,
        }
    }
}
