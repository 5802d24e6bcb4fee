//! The kinds of findings.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// What does not fit between a node and its provider.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FindingKind {
    /// Placement offers a provider whose node is not free: the bug that this program is about.
    OfferedNotFree,
    /// The node is free, and Placement does not offer it.
    FreeNotOffered,
    /// The node has no provider.
    ProviderMissing,
    /// The provider looks like a node's, and Ironic does not know the node.
    ProviderOrphaned,
    /// The provider does not have the class that the node has.
    WrongResourceClass,
    /// The node has no resource class, so it has no name in Placement.
    NoResourceClass,
    /// Somebody holds the provider of a node that carries no instance.
    AllocationWithoutInstance,
    /// The node carries an instance that does not hold its provider.
    InstanceWithoutAllocation,
    /// More than one consumer holds the provider.
    TwoConsumers,
    /// The provider has nothing that could be offered.
    InventoryEmpty,
    /// A consumer of ours holds the provider, or it carries the tag, and the journal has no open case for it.
    StaleHold,
}

impl FindingKind {
    /// All kinds, the most dangerous first.
    pub const ALL: [Self; 11] = [
        Self::OfferedNotFree,
        Self::FreeNotOffered,
        Self::ProviderMissing,
        Self::ProviderOrphaned,
        Self::WrongResourceClass,
        Self::NoResourceClass,
        Self::AllocationWithoutInstance,
        Self::InstanceWithoutAllocation,
        Self::TwoConsumers,
        Self::InventoryEmpty,
        Self::StaleHold,
    ];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::OfferedNotFree => "offered-not-free",
            Self::FreeNotOffered => "free-not-offered",
            Self::ProviderMissing => "provider-missing",
            Self::ProviderOrphaned => "provider-orphaned",
            Self::WrongResourceClass => "wrong-resource-class",
            Self::NoResourceClass => "no-resource-class",
            Self::AllocationWithoutInstance => "allocation-without-instance",
            Self::InstanceWithoutAllocation => "instance-without-allocation",
            Self::TwoConsumers => "two-consumers",
            Self::InventoryEmpty => "inventory-empty",
            Self::StaleHold => "stale-hold",
        }
    }

    /// Whether it takes a request for each provider to see it.
    pub fn is_deep(self) -> bool {
        match self {
            Self::OfferedNotFree | Self::FreeNotOffered | Self::ProviderMissing => false,
            Self::ProviderOrphaned | Self::WrongResourceClass | Self::NoResourceClass => false,
            Self::AllocationWithoutInstance | Self::InstanceWithoutAllocation => true,
            Self::TwoConsumers | Self::InventoryEmpty | Self::StaleHold => true,
        }
    }

    /// Whether some findings of this kind can be repaired by this program. The others are for a person.
    pub fn is_repairable(self) -> bool {
        match self {
            Self::OfferedNotFree | Self::FreeNotOffered | Self::ProviderOrphaned => true,
            Self::AllocationWithoutInstance | Self::StaleHold => true,
            Self::ProviderMissing | Self::WrongResourceClass | Self::NoResourceClass => false,
            Self::InstanceWithoutAllocation | Self::TwoConsumers | Self::InventoryEmpty => false,
        }
    }

    /// Whether its repair deletes an allocation or a provider, or lifts what nobody can explain: then it must be named, and
    /// `all` does not mean it.
    pub fn must_be_named(self) -> bool {
        matches!(
            self,
            Self::ProviderOrphaned | Self::AllocationWithoutInstance | Self::StaleHold
        )
    }

    /// Why it matters.
    pub fn why_it_matters(self) -> &'static str {
        match self {
            Self::OfferedNotFree => "a server that is scheduled to it fails, or lands on a dirty node",
            Self::FreeNotOffered => "nobody can have it",
            Self::ProviderMissing => "Placement cannot offer the node",
            Self::ProviderOrphaned => "servers may be scheduled to a node that is not there",
            Self::WrongResourceClass => {
                "flavors ask for the node's class and do not find it; under the other one it is not kept"
            }
            Self::NoResourceClass => {
                "nothing of the node can be offered or held; nova-compute stumbles over it"
            }
            Self::AllocationWithoutInstance => "the unit is lost, to a consumer that no node carries",
            Self::InstanceWithoutAllocation => {
                "only a reservation, if any, keeps the node from being given away a second time"
            }
            Self::TwoConsumers => "the node was given away twice",
            Self::InventoryEmpty => "Placement cannot offer the node",
            Self::StaleHold => "nobody is going to lift it",
        }
    }
}

impl fmt::Display for FindingKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The text is no kind of finding.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no kind of finding `{0}`")]
pub struct UnknownKind(String);

impl FromStr for FindingKind {
    type Err = UnknownKind;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut all = Self::ALL.into_iter();
        all.find(|kind| kind.name() == text)
            .ok_or_else(|| UnknownKind(text.to_owned()))
    }
}
