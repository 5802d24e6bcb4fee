//! The guard beside a real Nova, which has the bug. They need a lab with one: `tests/run`, or
//! `export UNPROVISION_NOVA_LAB=$(tests/lab/lab up --nova current --proxied --notify)`.
//!
//! Only one test at a time: each starts nova-compute anew, with the rule that it is about, and listens where Nova
//! looks for Ironic and Placement. So all that Nova says to them is on record.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test fails by panicking, also in its helpers"
)]

mod claimed;
mod common;
mod guard;
mod measured;
#[cfg(feature = "rabbitmq")]
mod said;
mod servers;
mod settled;
mod story;
mod table;
mod tally;
mod ways;
