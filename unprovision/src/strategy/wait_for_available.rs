//! `wait-for-available`: the instance keeps its allocation until the node is free.
//!
//! - **When it acts**: at `available` it releases the instance's allocation. Before the tear-down it writes nothing, so where that
//!   is refused there is nothing to hand back.
//! - **What it owns**: nothing. It relies on the allocation that the instance has.
//! - **Which window stays open**: whoever else drops that allocation, as Nova does when the server is deleted there, leaves
//!   nothing that holds the node. So it protects only tear-downs that we drive.

use super::{Gap, Strategy, act, without_provider};
use crate::core::{Action, ActionKind, Case, Found, Holder, LookAgain, Owner, Seen, Stage, Step};

/// The strategy `wait-for-available`.
#[derive(Clone, Copy, Debug)]
pub struct WaitForAvailable;

const UNHELD: &str = "the instance holds nothing of the node in Placement, so nothing would keep it from being offered; use `hand-over`";

impl Strategy for WaitForAvailable {
    fn name(&self) -> &'static str {
        "wait-for-available"
    }

    fn promise(&self) -> &'static str {
        "never offered before the first `available`, as long as nobody else drops the instance's allocation"
    }

    fn window(&self) -> &'static str {
        "where somebody else drops the instance's allocation, as Nova does when the server is deleted there: from then to the \
         first `available`"
    }

    fn gaps(&self) -> &'static [Gap] {
        &[Gap::NovaDeletes]
    }

    fn may_begin(&self, found: &Found) -> Result<(), &'static str> {
        if found.units.is_empty() {
            Err(UNHELD)
        } else {
            Ok(())
        }
    }

    fn guards(&self) -> Result<(), &'static str> {
        Err(
            "`wait-for-available` relies on the instance's allocation, which whoever deletes the server drops: use \
             `hand-over`",
        )
    }

    fn decide(&self, case: &Case, seen: &Seen<'_>) -> Step {
        let Some((view, class)) = seen.provider else {
            return without_provider(seen.stage);
        };
        let release = |whose| act(Action::release(case, view, whose));
        let torn_down = case.sent(ActionKind::Unprovision) > 0;
        match (seen.stage, seen.holder) {
            (Stage::InUse, Holder::Nobody) if !torn_down && !view.is_reserved(class) => Step::Blocked(UNHELD),
            (Stage::InUse, _) => Step::TearDown,
            (Stage::Returning, _) => Step::Wait(LookAgain::Seldom),
            (Stage::Ready, Holder::Instance) => release(Owner::Instance),
            (Stage::Ready, Holder::Guard) => release(Owner::Guard),
            (Stage::Ready, Holder::Nobody | Holder::Other(_)) => Step::Done,
        }
    }
}
