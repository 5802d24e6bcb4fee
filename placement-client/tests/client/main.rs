//! The client over a transport in memory.
#![allow(clippy::unwrap_used, reason = "helpers of tests are not seen as tests")]

mod allocations;
mod calls;
mod errors;
mod fake;
mod versions;
