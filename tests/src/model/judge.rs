//! What must never happen, judged from the world alone.
//!
//! Nothing here asks the program under test, and its idea of a free node is its own.

use std::fmt;

use ironic_client::ProvisionState;
use placement_client::{ConsumerUuid, TraitName};
use unprovision::core::Action;
use uuid::Uuid;

use super::bay::{Author, Bay, Machine, Maintenance};
use super::worker::Saw;

/// A rule that was broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Breach {
    /// Offered between the first write of ours and the first moment at which the node is free.
    Exposed,
    /// The same, to queries that do not forbid the tag of a strategy that works by a tag.
    ExposedToPlainQueries,
    /// A write of ours made Placement offer a node that was not free when it was looked at.
    OfferedBlindly,
    /// A tear-down hit a node that carries another instance.
    Wiped,
    /// Something of somebody else's was changed.
    Foreign,
    /// The case is closed, nobody works on it, and something of ours is still there.
    LeftBehind,
    /// From here on nothing that may be relied upon brings the node back.
    Stuck,
    /// Any of these, after a write that a frozen process had decided before another took the case over.
    ByFrozenWriter,
}

impl fmt::Display for Breach {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Exposed => "offered although not free",
            Self::ExposedToPlainQueries => "offered to plain queries although not free",
            Self::OfferedBlindly => "offered by a write that was not decided from a free node",
            Self::Wiped => "another instance's node was torn down",
            Self::Foreign => "something that is not ours was changed",
            Self::LeftBehind => "closed, and something of ours is left",
            Self::Stuck => "the node does not come back",
            Self::ByFrozenWriter => "a frozen process sent what it had decided before it was overtaken",
        })
    }
}

/// Free for the next instance.
pub fn is_free(node: &Machine) -> bool {
    node.state == ProvisionState::Available
        && node.instance.is_none()
        && node.maintenance == Maintenance::No
        && node.powered
        && !node.retired
}

/// Whom the judge takes for what.
#[derive(Clone, Debug)]
pub struct Parties {
    /// The instance that leaves.
    pub instance: Uuid,
    /// Our consumer.
    pub guard: ConsumerUuid,
    /// Whether the unit was reserved before we came: then it is put back to that, whoever wrote it last.
    pub found_reserved: bool,
    /// The tag by which a strategy holds.
    pub tag: Option<TraitName>,
}

/// How far the promise has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Watch {
    /// Nothing was written yet.
    #[default]
    Before,
    /// From the first write of ours on.
    Promised,
    /// The node was free once.
    Kept,
}

impl Watch {
    /// A write of ours was applied. Where somebody else had claimed the unit before we came, what we do is first aid, and
    /// the promise begins once he has let go.
    pub fn begin(&mut self, before: &Bay, parties: &Parties) {
        let own = |consumer: &ConsumerUuid| *consumer == parties.guard || consumer.0 == parties.instance;
        let mut holders = before.provider.holders.iter();
        if *self == Self::Before && !holders.any(|(consumer, held)| held.here && !own(consumer)) {
            *self = Self::Promised;
        }
    }

    /// The case has ended. A node that was handed back to its instance is nobody's promise any more.
    pub fn rest(&mut self, bay: &Bay, parties: &Parties, closed: bool) {
        let held = bay.provider.holders.get(&ConsumerUuid(parties.instance));
        if closed && bay.node.instance == Some(parties.instance) && held.is_some_and(|held| held.here) {
            *self = Self::Before;
        }
    }

    /// Looks at the world after each change.
    pub fn look(&mut self, bay: &Bay, parties: &Parties) -> Option<Breach> {
        if *self != Self::Promised {
            return None;
        }
        if is_free(&bay.node) {
            *self = Self::Kept;
            return None;
        }
        let tag = parties.tag.as_ref();
        if bay.provider.is_offered_without(tag) {
            return Some(Breach::Exposed);
        }
        bay.provider.is_offered().then_some(Breach::ExposedToPlainQueries)
    }
}

/// Whether something of ours is there.
pub fn something_is_left(bay: &Bay, parties: &Parties) -> bool {
    // Nova's tracker makes a provider follow its node.
    let tagged = parties.tag.as_ref().is_some_and(|tag| {
        bay.node.traits.contains(tag.as_str()) || (!bay.provider.nova && bay.provider.traits.contains(tag))
    });
    let reserved = bay.provider.by == Author::Us && !parties.found_reserved;
    reserved || tagged || bay.provider.holders.contains_key(&parties.guard)
}

/// What an applied write of ours has broken.
pub fn of_a_write(before: &Bay, after: &Bay, action: &Action, saw: Saw, parties: &Parties) -> Option<Breach> {
    if action.drives_the_node() {
        let carried = before.node.instance;
        let others = carried.is_some_and(|carried| carried != parties.instance);
        return match action {
            Action::Unprovision { .. } if others => Some(Breach::Wiped),
            _ if others => Some(Breach::Foreign),
            // Ironic has no conditional request: what changes between look and write cannot be seen.
            Action::ClearMaintenance { .. } => {
                let persons = before.node.maintenance == Maintenance::Person;
                (persons && !saw.clean_failure).then_some(Breach::Foreign)
            }
            _ => None,
        };
    }
    let is_offered = |bay: &Bay| bay.provider.is_offered_without(parties.tag.as_ref());
    let offered = is_offered(after) && !is_offered(before);
    // What hid it may be gone by now; whether that was a promise broken is judged by what is offered.
    let hidden = saw.hidden && matches!(action, Action::Release { .. });
    if offered && !saw.free && !hidden && !is_free(&after.node) {
        return Some(Breach::OfferedBlindly);
    }
    foreign(before, after, parties).then_some(Breach::Foreign)
}

fn foreign(before: &Bay, after: &Bay, parties: &Parties) -> bool {
    let (before_here, after_here) = (&before.provider, &after.provider);
    let own = |consumer: &ConsumerUuid| *consumer == parties.guard || consumer.0 == parties.instance;
    let others = |bay: &Bay| {
        let others = bay.provider.holders.iter().filter(|(consumer, _)| !own(consumer));
        others
            .map(|(consumer, held)| (*consumer, *held))
            .collect::<Vec<_>>()
    };
    let elsewhere = |bay: &Bay| {
        let held = bay.provider.holders.get(&ConsumerUuid(parties.instance));
        held.is_some_and(|held| held.elsewhere)
    };
    // Nova's reservation may be lifted on a node that is free; a person's only where Nova rules the inventory anyway.
    let lowered = after_here.reserved < before_here.reserved;
    let reservation = lowered
        && match before_here.by {
            Author::Us | Author::Unclear | Author::Nobody => false,
            Author::Nova | Author::Operator => !before_here.nova,
        };
    let traits = |bay: &Bay| {
        let others = bay
            .provider
            .traits
            .iter()
            .filter(|name| Some(*name) != parties.tag.as_ref());
        others.cloned().collect::<Vec<_>>()
    };
    let marks = traits(before) != traits(after);
    marks || others(before) != others(after) || elsewhere(before) != elsewhere(after) || reservation
}
