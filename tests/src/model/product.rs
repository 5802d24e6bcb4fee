//! The product as the model runs it, and where a test may break it on purpose.

use std::fmt;

use jiff::Timestamp;
use unprovision::core::{self, Case, Decision, Observation};
use unprovision::strategy::Strategy;

/// How a write leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Sent {
    /// With the generations that it relies on.
    pub conditional: bool,
    /// A tear-down only after one more look at the node.
    pub looks_before: bool,
}

/// What is under test. The product itself is [`AsIs`]; a breakage changes one of these.
pub trait Product: fmt::Debug + Sync {
    /// What to do next.
    fn decide(&self, strategy: &dyn Strategy, case: &Case, seen: &Observation, now: Timestamp) -> Decision {
        core::decide(strategy, case, seen, now)
    }

    /// How the writes leave.
    fn sends(&self) -> Sent {
        Sent {
            conditional: true,
            looks_before: true,
        }
    }
}

/// The product as it is.
#[derive(Clone, Copy, Debug)]
pub struct AsIs;

impl Product for AsIs {}
