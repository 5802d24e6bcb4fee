//! Takes an OpenStack bare-metal node back to `available`, and keeps Placement from offering it before.
//!
//! The rule: *a resource provider must not be offered by Placement before its Ironic node is
//! `available`; and it must be offered promptly once it is.*
//!
//! Without features this crate is its pure core: [`core`] decides from what was observed, with one of the
//! [`strategy`] files, [`scope`] says which nodes are meant, [`watch`] tells what was seen
//! from outside, [`audit`] what does not fit, and [`view`] what is shown of it all; no runtime, no IO. The feature `orchestrator`
//! adds everything that acts: [`cloud`], [`journal`], [`orchestrator`].
#![warn(missing_docs)]

pub mod audit;
pub mod core;
pub mod scope;
pub mod strategy;
pub mod view;
pub mod watch;

#[cfg(feature = "orchestrator")]
pub mod cloud;
#[cfg(feature = "orchestrator")]
pub mod events;
#[cfg(feature = "orchestrator")]
pub mod guard;
#[cfg(feature = "orchestrator")]
pub mod journal;
#[cfg(feature = "orchestrator")]
pub mod orchestrator;
#[cfg(feature = "orchestrator")]
pub mod process;
#[cfg(feature = "orchestrator")]
pub mod servers;

/// A node is watched, decided about and written to by these types of the two clients.
pub use ironic_client::{Node, NodeUuid, ProvisionState};
