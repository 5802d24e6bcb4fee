//! What every implementation of a trait must do, to be run against each.

pub mod events;
pub mod journal;
mod leases;
pub mod older;
pub mod servers;
