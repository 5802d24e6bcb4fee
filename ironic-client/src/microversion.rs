//! What each microversion of Ironic gives, by name.

use unprovision_session::{Microversion, VersionRange};

/// The microversions that this client speaks.
///
/// Below 1.38 (Rocky, 2018) node traits and rescue states are missing. 1.115 is the newest one whose answers
/// were looked at (Ironic 39.0.0).
pub const SUPPORTED: VersionRange = VersionRange {
    min: Microversion::new(1, 38),
    max: Microversion::new(1, 115),
};

/// Something that not every microversion in [`SUPPORTED`] gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Feature {
    /// `inspect wait` is a state of its own; before, such nodes read `inspecting`.
    InspectWait,
    /// The verb `abort` is taken in `inspect wait`.
    InspectAbort,
    /// [`Node::fault`](crate::Node::fault).
    Fault,
    /// [`Node::conductor_group`](crate::Node::conductor_group) and the filter by it.
    ConductorGroup,
    /// [`Node::protected`](crate::Node::protected).
    Protected,
    /// [`Node::owner`](crate::Node::owner) and the filter by it.
    Owner,
    /// [`Node::retired`](crate::Node::retired).
    Retired,
    /// [`Node::shard`](crate::Node::shard) and the filter by it.
    Shard,
    /// The verb `unhold`.
    Unhold,
    /// The verb `service` and its states.
    Service,
    /// The verb `abort` is taken in `wait call-back`.
    DeployAbort,
}

impl Feature {
    /// The first microversion that gives it.
    pub fn since(self) -> Microversion {
        let minor = match self {
            Self::InspectWait => 39,
            Self::InspectAbort => 41,
            Self::Fault => 42,
            Self::ConductorGroup => 46,
            Self::Protected => 48,
            Self::Owner => 50,
            Self::Retired => 61,
            Self::Shard => 82,
            Self::Unhold => 85,
            Self::Service => 87,
            Self::DeployAbort => 110,
        };
        Microversion::new(1, minor)
    }
}
