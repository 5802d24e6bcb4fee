//! `hand-over`: the unit goes from the instance to us, and from us back to the pool.
//!
//! - **When it acts**: before the tear-down it moves the instance's allocation to our own consumer, in one request
//!   that Placement applies as a whole; at `available` it releases it.
//! - **What it owns**: one consumer per node and instance. The inventory and the traits stay as they are, so Nova's
//!   resource tracker and we have nothing to fight over.
//! - **Which window stays open**: none from the first hold to the first `available`. Where Placement refuses the hand-over
//!   because the node is reserved already (Nova since 26.1, Placement before 14.0.0), that reservation is adopted and
//!   the hold taken as soon as it falls: the window is one look at Placement.

use super::{Gap, Strategy, act, without_provider};
use crate::core::{Action, ActionKind, Case, Holder, LookAgain, Owner, RefusalKind, Seen, Stage, Step};

/// The strategy `hand-over`.
#[derive(Clone, Copy, Debug)]
pub struct HandOver;

impl Strategy for HandOver {
    fn name(&self) -> &'static str {
        "hand-over"
    }

    fn promise(&self) -> &'static str {
        "never offered from the first hold to the first `available`, also beside an unmodified Nova"
    }

    fn window(&self) -> &'static str {
        "none; one look at Placement where Placement is older than 14.0.0 and Nova lifts its own reservation early"
    }

    fn gaps(&self) -> &'static [Gap] {
        &[Gap::AdoptedReservation, Gap::FrozenWriter]
    }

    fn decide(&self, case: &Case, seen: &Seen<'_>) -> Step {
        let Some((view, class)) = seen.provider else {
            return without_provider(seen.stage);
        };
        let take = || act(Action::hand_over(case, view, class));
        let release = |whose| act(Action::release(case, view, whose));
        // Nobody can claim a unit of a reserved provider, and before Placement 14.0.0 nobody can hand one over.
        let refused = case
            .refusal(ActionKind::HandOver)
            .is_some_and(|why| why.kind == RefusalKind::NoCapacity);
        // Beside Nova's own reservation the guard writes nothing (rule 9).
        let nobodys = seen.holder == Holder::Nobody || case.is_guard();
        let adopted = view.is_reserved(class) && (refused || nobodys);
        match (seen.stage, seen.holder) {
            (Stage::InUse, Holder::Instance | Holder::Nobody) if !adopted => take(),
            (Stage::InUse, _) => Step::TearDown,
            (Stage::Returning, Holder::Instance | Holder::Nobody) if !adopted => take(),
            (Stage::Returning, Holder::Instance) => release(Owner::Instance),
            (Stage::Returning, Holder::Guard) => Step::Wait(LookAgain::Seldom),
            // Somebody's allocation is not ours to take; the reservation hides the node when it goes.
            (Stage::Returning, Holder::Other(_)) if !view.is_reserved(class) => {
                act(Action::reserve_all(view, class))
            }
            (Stage::Returning, Holder::Nobody | Holder::Other(_)) => Step::Wait(LookAgain::Often),
            (Stage::Ready, Holder::Guard) => release(Owner::Guard),
            (Stage::Ready, Holder::Instance) => release(Owner::Instance),
            (Stage::Ready, Holder::Nobody | Holder::Other(_)) => Step::Done,
        }
    }
}
