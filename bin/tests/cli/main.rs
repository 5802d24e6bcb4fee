//! The built binary, end to end, against the sandbox behind real sockets.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test may panic"
)]

mod asking;
mod audit;
mod carry_on;
mod config;
mod delete;
mod doctor;
mod errors;
mod guard;
mod guard_odd;
mod guard_start;
mod help;
mod notifications;
mod outcomes;
mod progress;
mod refused;
mod repairs;
mod replicas;
mod secrets;
mod seen;
mod service;
mod shaped;
mod stale;
mod support;
mod told;
mod unreadable;
