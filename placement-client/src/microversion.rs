//! What each microversion of Placement gives, by name.

use std::fmt;

use unprovision_session::{Microversion, VersionRange};

/// The microversions that this client speaks.
///
/// Below 1.28 (Rocky, 2018) consumers have no generations, so that a write could undo somebody else's; 1.39 is the
/// newest one that there is (Placement 16.0.0).
pub const SUPPORTED: VersionRange = VersionRange {
    min: Microversion::new(1, 28),
    max: Microversion::new(1, 39),
};

/// Something that this workspace relies on, by the microversion that first gives it. All but the last two lie at or
/// below the lowest of [`SUPPORTED`] and are therefore always there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Feature {
    /// Forbidden traits: `required=!T`.
    ForbiddenTraits,
    /// A `code` in the body of an error, which tells conflicts apart.
    ErrorCodes,
    /// An inventory may be reserved as a whole: `reserved == total`.
    ReserveAll,
    /// Consumers have generations, and a write may leave a consumer with nothing.
    ConsumerGenerations,
    /// Candidates of one provider only: `in_tree`.
    InTree,
    /// Consumers have types, and every write of allocations must name one.
    ConsumerTypes,
}

impl fmt::Display for Feature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::ForbiddenTraits => "forbidden traits",
            Self::ErrorCodes => "error codes",
            Self::ReserveAll => "inventories that are reserved as a whole",
            Self::ConsumerGenerations => "generations of consumers",
            Self::InTree => "candidates of one provider",
            Self::ConsumerTypes => "types of consumers",
        })
    }
}

impl Feature {
    /// The first microversion that gives it.
    pub fn since(self) -> Microversion {
        let minor = match self {
            Self::ForbiddenTraits => 22,
            Self::ErrorCodes => 23,
            Self::ReserveAll => 26,
            Self::ConsumerGenerations => 28,
            Self::InTree => 31,
            Self::ConsumerTypes => 38,
        };
        Microversion::new(1, minor)
    }
}
