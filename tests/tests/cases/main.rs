//! The cases of `docs/cases.md` that concern a tear-down, each strategy against the sandbox, in virtual time.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that meets the unexpected fails"
)]

mod common;
mod conflicts;
mod elsewhere;
mod failures;
mod locks;
mod login;
mod refusals;
mod relook;
mod tags;
mod window;
