//! How a node is kept from being offered while it is on its way: one small file per strategy.
//!
//! A strategy sees only nodes that passed the common rules, and says one [`Step`]. It cannot build the tear-down itself, and a
//! write that would offer a node too early is vetoed whatever it says.

mod hand_over;
mod reserve_on_delete;

use std::fmt;

use crate::core::{Case, Seen, Step};

pub use hand_over::HandOver;
pub use reserve_on_delete::ReserveOnDelete;

/// A way to keep a node from being offered.
pub trait Strategy: fmt::Debug + Send + Sync {
    /// Its name in the configuration.
    fn name(&self) -> &'static str;

    /// What it promises, in a sentence.
    fn promise(&self) -> &'static str;

    /// The window that it leaves open, in a sentence.
    fn window(&self) -> &'static str;

    /// What to do next.
    fn decide(&self, case: &Case, seen: &Seen<'_>) -> Step;
}

/// All strategies; the first is the default.
pub const ALL: &[&dyn Strategy] = &[&HandOver, &ReserveOnDelete];

/// The strategy of this name.
pub fn by_name(name: &str) -> Option<&'static dyn Strategy> {
    ALL.iter().copied().find(|strategy| strategy.name() == name)
}
