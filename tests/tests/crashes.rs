//! A process may die at any point, and two may work at the same time: the end is the same, and nothing is done twice.
#![allow(
    clippy::unwrap_used,
    reason = "clippy's exception for tests does not see helpers beside them"
)]

#[path = "crashes/common.rs"]
mod common;
#[path = "crashes/everywhere.rs"]
mod everywhere;
#[path = "crashes/frozen.rs"]
mod frozen;
#[path = "crashes/lapsed.rs"]
mod lapsed;
#[path = "crashes/plan.rs"]
mod plan;
#[path = "crashes/together.rs"]
mod together;
