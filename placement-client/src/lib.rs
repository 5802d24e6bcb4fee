//! OpenStack Placement behind an async trait.
//!
//! [`Placement`] is what a program uses and mocks; [`PlacementClient`] speaks the real API through
//! any [`unprovision_session::Transport`]. Facts about the API were measured on Placement 16.0.0
//! (API 1.0 to 1.39).
#![warn(missing_docs)]
#![allow(
    clippy::result_large_err,
    reason = "an error is rare, and says all about its call"
)]

mod allocation;
mod answer;
mod api;
mod client;
mod error;
mod microversion;
mod names;
mod provider;
mod request;
mod right;
mod wire;

pub use allocation::{
    Consumer, ConsumerAllocations, ConsumerGeneration, ProviderAllocations, Units, UnitsOf,
};
pub use api::{CandidateQuery, Placement, ProviderFilter};
pub use client::PlacementClient;
pub use error::{Error, ErrorKind};
pub use microversion::{Feature, SUPPORTED};
pub use names::{ConsumerType, ConsumerUuid, InvalidName, ProviderUuid, ResourceClass, TraitName};
pub use provider::{Candidate, Generation, Inventories, Inventory, ProviderTraits, ResourceProvider};
pub use right::Right;

#[cfg(feature = "mock")]
pub use api::MockPlacement;
