//! The pure core: what was observed goes in, at most one write comes out.
//!
//! [`decide`] runs the common rules (`rules`), asks the strategy, turns its step into a decision
//! (`tear_down` for the way out of the instance) and has [`check`] veto it. Nothing here waits, sends or reads a clock.

mod action;
mod build;
mod by_hand;
mod case;
mod check;
mod decision;
mod doubt;
mod entry;
mod free;
mod guard;
mod guarded;
mod holding;
mod ids;
mod nova;
mod observation;
mod open;
mod pace;
mod process;
mod recover;
mod rules;
mod server;
mod tag;
mod tear_down;
mod undo;

pub use action::{Action, ActionKind, Giver, Owner};
pub use by_hand::by_hand;
pub use case::{Attempts, Case, CaseState, LastAttempt};
pub use check::{Veto, check};
pub use decision::{Decision, Ending, LookAgain, Outcome, Step, Wait, WaitFor, decide};
pub use entry::{Entry, Event, Found, Kind, Limits, Refusal, RefusalKind};
pub use free::{NotFree, is_free, why_not_free, why_not_free_for_nova};
pub use guard::{GuardPolicy, NotGuarded, Road, open_guard, road};
pub use ids::{CaseId, GUARD_PROJECT, GUARD_USER, guard_consumer, guard_consumer_since, guard_owner};
pub use nova::{NovaAnswer, NovaSays, whom_to_ask};
pub use observation::{HeldBy, Observation, ProviderView};
pub use open::{CannotOpen, TearDownRequest, open};
pub use process::{Claim, Process};
pub use rules::{Holder, Seen, Stage};
pub use server::{Server, Tie};
pub use tag::{DEFAULT_TAG, NotATag, Tag, tag_name};
pub use tear_down::{Start, start_of};
pub use undo::undo;
