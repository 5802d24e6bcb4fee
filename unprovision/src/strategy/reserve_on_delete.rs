//! `reserve-on-delete`: all units are reserved first, and what was reserved before comes back last.
//!
//! - **When it acts**: before the tear-down it sets `reserved = total`; once the instance has left the node, it releases the
//!   instance's allocation; at `available` it sets `reserved` to the value that it found.
//! - **What it owns**: the difference between the reservation that it found and its own.
//! - **Which window stays open**: beside a Nova with the rule from before 26.1, the resource tracker takes the
//!   reservation back if it passes while the node is `deleting`; it is set again at the next look at Placement.

use super::{Gap, Strategy, act, without_provider};
use crate::core::{Action, Case, Holder, LookAgain, Owner, Seen, Stage, Step};

/// The strategy `reserve-on-delete`.
#[derive(Clone, Copy, Debug)]
pub struct ReserveOnDelete;

impl Strategy for ReserveOnDelete {
    fn name(&self) -> &'static str {
        "reserve-on-delete"
    }

    fn promise(&self) -> &'static str {
        "never offered from the first hold to the first `available`, where nobody else writes the inventory"
    }

    fn window(&self) -> &'static str {
        "beside a Nova from before 26.1: from a resource tracker's pass during `deleting` to our next look"
    }

    fn gaps(&self) -> &'static [Gap] {
        &[Gap::OldTracker, Gap::FrozenWriter]
    }

    fn decide(&self, case: &Case, seen: &Seen<'_>) -> Step {
        let Some((view, class)) = seen.provider else {
            return without_provider(seen.stage);
        };
        let reserved = view
            .inventories
            .inventories
            .get(class)
            .map(|inventory| inventory.reserved);
        let ours = case.has_reserved(view, class);
        let release = |whose| act(Action::release(case, view, whose));
        let reserve = || act(Action::reserve_all(view, class));
        let give_back = || act(Action::set_reserved(view, class, case.found.reserved));
        match (seen.stage, seen.holder) {
            (Stage::InUse | Stage::Returning, _) if reserved.is_some() && !view.is_reserved(class) => {
                reserve()
            }
            (Stage::InUse, _) => Step::TearDown,
            (Stage::Returning, Holder::Instance) => release(Owner::Instance),
            (Stage::Returning, Holder::Nobody | Holder::Guard | Holder::Other(_)) => {
                Step::Wait(LookAgain::Often)
            }
            (Stage::Ready, Holder::Instance) => release(Owner::Instance),
            (Stage::Ready, Holder::Guard) => release(Owner::Guard),
            (Stage::Ready, Holder::Nobody | Holder::Other(_)) if ours => give_back(),
            (Stage::Ready, Holder::Nobody | Holder::Other(_)) => Step::Done,
        }
    }
}
