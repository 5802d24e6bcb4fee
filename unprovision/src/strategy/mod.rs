//! How a node is kept from being offered while it is on its way: one small file per strategy.
//!
//! A strategy sees only nodes that passed the common rules, and says one [`Step`]. It cannot build the tear-down itself, and a
//! write that would offer a node too early is vetoed whatever it says.

mod hand_over;
mod reserve_on_delete;
mod trait_tagging;
mod wait_for_available;

use std::fmt;

use ironic_client::Right as InIronic;
use placement_client::{Feature, Right as InPlacement};

use crate::core::{Action, Case, Found, LookAgain, Seen, Stage, Step};

pub use hand_over::HandOver;
pub use reserve_on_delete::ReserveOnDelete;
pub use trait_tagging::TraitTagging;
pub use wait_for_available::WaitForAvailable;

/// A way to keep a node from being offered.
pub trait Strategy: fmt::Debug + Send + Sync {
    /// Its name in the configuration.
    fn name(&self) -> &'static str;

    /// What it promises, in a sentence.
    fn promise(&self) -> &'static str;

    /// The window that it leaves open, in a sentence.
    fn window(&self) -> &'static str;

    /// Whether it marks nodes with a tag. Then the traits are read at every look, and the case records its tag.
    fn uses_tag(&self) -> bool {
        false
    }

    /// What it needs of both services, besides that it may look.
    fn needs(&self) -> Needs {
        Needs::OF_ALL
    }

    /// Why it cannot keep its promise for what was found; then nothing is begun.
    fn may_begin(&self, _found: &Found) -> Result<(), &'static str> {
        Ok(())
    }

    /// Why it cannot guard deletes that somebody else does.
    fn guards(&self) -> Result<(), &'static str> {
        Ok(())
    }

    /// Beside whom it leaves a window open, for machines: the checker has to find each, and no other.
    fn gaps(&self) -> &'static [Gap] {
        &[]
    }

    /// What to do next.
    fn decide(&self, case: &Case, seen: &Seen<'_>) -> Step;
}

/// What a strategy needs of both services.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Needs {
    /// What Placement's API must have.
    pub features: &'static [Feature],
    /// What must be allowed in Ironic. Who only guards changes no provision state.
    pub in_ironic: &'static [InIronic],
    /// What must be allowed in Placement.
    pub in_placement: &'static [InPlacement],
}

impl Needs {
    /// What all strategies need: whichever it is, a node that is gone is reserved as a whole (rule 11).
    pub const OF_ALL: Self = Self {
        features: &[
            Feature::ErrorCodes,
            Feature::ReserveAll,
            Feature::ConsumerGenerations,
        ],
        in_ironic: &[InIronic::ChangeStates],
        in_placement: &[InPlacement::WriteAllocations, InPlacement::WriteInventories],
    };
}

/// Beside whom a strategy cannot promise that a node is never offered too early.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Gap {
    /// Nova from before 26.1: a pass of its tracker takes a reservation back while the node still carries its instance.
    OldTracker,
    /// Any Nova: a pass of its tracker that has read the node before we marked it takes the mark from the provider.
    Tracker,
    /// Any Nova: a user deletes the server there as well, and Nova drops the instance's allocation.
    NovaDeletes,
    /// Placement from before 14.0.0, which refuses to move a unit of a reserved provider: that reservation is adopted, and
    /// whoever lifts it early exposes the node until our next look.
    AdoptedReservation,
    /// Queries that do not forbid the tag.
    PlainQueries,
    /// A process of ours that is frozen between its last look at its lease and the request's first byte, or whose request is that
    /// long on its way, and is overtaken: its write may still fit.
    FrozenWriter,
}

impl Gap {
    /// Its name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::OldTracker => "old-tracker",
            Self::Tracker => "tracker",
            Self::NovaDeletes => "nova-deletes",
            Self::AdoptedReservation => "adopted-reservation",
            Self::PlainQueries => "plain-queries",
            Self::FrozenWriter => "frozen-writer",
        }
    }
}

/// All strategies; the first is the default.
pub const ALL: &[&dyn Strategy] = &[&HandOver, &ReserveOnDelete, &WaitForAvailable, &TraitTagging];

/// The strategy of this name.
pub fn by_name(name: &str) -> Option<&'static dyn Strategy> {
    ALL.iter().copied().find(|strategy| strategy.name() == name)
}

/// Placement does not know the node, so it offers nothing; a provider that appears is seen at the next look.
fn without_provider(stage: Stage) -> Step {
    match stage {
        Stage::InUse => Step::TearDown,
        Stage::Returning => Step::Wait(LookAgain::Often),
        Stage::Ready => Step::Done,
    }
}

/// The write; where what was seen does not allow to build it, another look.
fn act(action: Option<Action>) -> Step {
    action.map_or(Step::Wait(LookAgain::Often), Step::Act)
}
