//! The guard beside a Nova, on the sandbox with its own clock. Judged by the sandbox's log, never by what the guard says.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "clippy's exception for tests does not see helpers beside them"
)]

mod brakes;
mod common;
mod events;
mod failures;
mod fleet;
mod free;
mod hints;
mod nova;
mod odd;
mod placement;
mod replicas;
mod scopes;
mod trace;
mod window;
