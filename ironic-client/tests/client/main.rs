//! The client over a transport in memory.
#![allow(clippy::unwrap_used, reason = "helpers of tests are not seen as tests")]

mod calls;
mod errors;
mod fake;
mod notifications;
mod paging;
mod versions;
