//! C20 on a real RabbitMQ (`tests/lab/lab broker`): what Ironic says there wakes the guard, and what goes wrong there does it
//! no harm. The cloud is the sandbox, in real time.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "clippy's exception for tests does not see helpers beside them"
)]

mod common;
mod guarding;
mod queue;
mod refused;
mod tls;
