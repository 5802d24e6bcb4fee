//! The HTTP transport against servers that stand for Keystone and a service.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "clippy's exception for tests does not see helpers beside them"
)]

mod fake;
mod identity;
mod login;
mod secrets;
mod tls;
mod wire;
