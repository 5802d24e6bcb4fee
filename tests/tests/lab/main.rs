//! The cases on real services. They need a lab: `tests/run`, or `export UNPROVISION_LAB=$(tests/lab/lab up)`.
//!
//! Tests may run side by side; each has nodes of its own. Times are real, so a test drives several nodes at once.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test fails by panicking, also in its helpers"
)]

mod audit;
mod clouds;
mod common;
mod conflicts;
mod crash;
mod failures;
mod faults;
mod locks;
mod measured;
mod official;
mod rights;
mod window;
