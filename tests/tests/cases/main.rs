//! The cases of `docs/cases.md` that concern a tear-down, each strategy against the sandbox, in virtual time.

mod common;
mod conflicts;
mod failures;
mod locks;
mod refusals;
mod window;
