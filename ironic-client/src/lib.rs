//! OpenStack Ironic behind an async trait.
//!
//! [`Ironic`] is what a program uses and mocks; [`IronicClient`] speaks the real API through any
//! [`unprovision_session::Transport`]. Facts about the API were measured on Ironic 39.0.0
//! (API 1.1 to 1.115).
#![warn(missing_docs)]
#![allow(
    clippy::result_large_err,
    reason = "an error is rare, and says all about its call"
)]

mod answer;
mod api;
mod client;
mod error;
mod microversion;
mod node;
pub mod notification;
mod paging;
mod provision_state;
mod request;
mod right;

pub use api::{CleanStep, Ironic, NodeFilter, ProvisionRequest};
pub use client::IronicClient;
pub use error::{Error, ErrorKind};
pub use microversion::{Feature, SUPPORTED};
pub use node::{Fault, Node, NodeField, NodeUuid, PowerState};
pub use notification::{NotANotification, Notification};
pub use provision_state::{ProvisionState, TRANSITIONS, Transition, Verb};
pub use right::Right;

#[cfg(feature = "mock")]
pub use api::MockIronic;
