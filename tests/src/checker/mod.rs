//! Exhaustive checking: every order in which ours, the services, Nova, an operator and chance can move one small world.
//!
//! [`check`] searches a [`Scope`] breadth first, so a trace that it shows is one of the shortest. What it runs is the
//! real core; what it judges by is [`crate::model::judge`].

mod moves;
mod rivals;
mod scope;
mod search;
mod state;
mod step;
mod trace;
mod verdict;

pub use moves::Move;
pub use scope::{Budget, Scope};
pub use search::{Report, check, check_until};
pub use state::State;
pub use trace::Trace;
pub use verdict::{Verdict, Violation, Window, World, breach_of, examine};
