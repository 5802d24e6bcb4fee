//! A finding, with everything that a person needs to judge and to repair it.

use std::collections::BTreeSet;

use ironic_client::ProvisionState;
use placement_client::{ConsumerUuid, ResourceClass, TraitName};
use serde::Serialize;
use uuid::Uuid;

use super::FindingKind;

/// Something that does not fit.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Finding {
    /// What it is.
    pub kind: FindingKind,
    /// The node, which is the provider's UUID as well.
    pub node: Uuid,
    /// The node's name, or else the provider's.
    pub name: Option<String>,
    /// The node's state; nothing where Ironic does not know it.
    pub provision_state: Option<ProvisionState>,
    /// Whether the node is in maintenance.
    pub maintenance: Option<bool>,
    /// The instance that the node carries.
    pub instance: Option<Uuid>,
    /// The node's class, as Placement should call it; of a provider without a node the one that it has.
    pub resource_class: Option<ResourceClass>,
    /// The units of that class. This and all that follows, down to the traits, is nothing where the provider was not looked
    /// at closer, or does not have it.
    pub total: Option<u32>,
    /// Those that are not to be offered.
    pub reserved: Option<u32>,
    /// Those that somebody holds.
    pub used: Option<u32>,
    /// Who holds something of the provider.
    pub consumers: Option<BTreeSet<ConsumerUuid>>,
    /// The provider's traits.
    pub traits: Option<BTreeSet<TraitName>>,
    /// The tag that is left, where it is about that.
    pub tag: Option<TraitName>,
    /// How long it has been so, at most, in seconds; nothing where nobody knows.
    pub age_s: Option<i64>,
    /// What exactly is wrong.
    pub what: String,
    /// Why it matters.
    pub why: &'static str,
    /// What to do, in words.
    pub advice: String,
    /// What to do, as commands.
    pub commands: Vec<String>,
    /// What this program can do about it.
    #[serde(flatten)]
    pub remedy: Remedy,
}

/// What this program can do about a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "remedy")]
pub enum Remedy {
    /// Nothing: a person has to decide.
    ByHand,
    /// The guard's own rules are applied to this one node: it is held until it is free, or what hides it is lifted.
    Guard,
    /// The hold of ours is released by the guard's rules, or, while the node is not free, taken into its care.
    Release,
    /// Nobody knows who set the reservation; it is lifted all the same.
    LiftReservation,
    /// Nobody knows who set the tag; it is taken from the node and the provider all the same.
    Untag,
    /// The consumer gives up this provider.
    DropAllocation {
        /// The consumer.
        consumer: ConsumerUuid,
    },
    /// The provider is deleted.
    DeleteProvider,
}

impl Remedy {
    /// What would be done.
    pub fn words(self) -> &'static str {
        match self {
            Self::ByHand => "a person has to decide",
            Self::Guard => {
                "hold it until it is free, or lift what hides it without need, by the guard's rules"
            }
            Self::Release => "release it once the node is free, by the guard's rules",
            Self::LiftReservation => "it may be an operator's own: if nobody wants it, lift the reservation",
            Self::Untag => "if no operator set the tag, take it off the node and the provider",
            Self::DropAllocation { .. } => "if no scheduler knows the consumer, drop its allocation",
            Self::DeleteProvider => "if the node is gone for good, delete the provider",
        }
    }

    /// What was done, once it was.
    pub fn done(self) -> String {
        match self {
            Self::ByHand => "nothing was done".to_owned(),
            Self::Guard => "the guard's rules were applied to it".to_owned(),
            Self::Release => "our hold was released, or taken into the guard's care".to_owned(),
            Self::LiftReservation => "the reservation was lifted".to_owned(),
            Self::Untag => "the tag was taken off the node and the provider".to_owned(),
            Self::DropAllocation { consumer } => {
                format!("the allocation of consumer {consumer} was deleted")
            }
            Self::DeleteProvider => "the provider was deleted".to_owned(),
        }
    }

    /// The kind that has to be named before this is done to a finding of this kind; `None` where there is nothing to do.
    pub fn needs(self, kind: FindingKind) -> Option<FindingKind> {
        match self {
            Self::ByHand => None,
            Self::Guard => Some(kind),
            Self::Release | Self::LiftReservation | Self::Untag => Some(FindingKind::StaleHold),
            Self::DropAllocation { .. } => Some(FindingKind::AllocationWithoutInstance),
            Self::DeleteProvider => Some(FindingKind::ProviderOrphaned),
        }
    }
}
