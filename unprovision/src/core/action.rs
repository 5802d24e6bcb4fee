//! The closed list of all writes.

use std::collections::BTreeMap;
use std::fmt;

use ironic_client::ProvisionState;
use jiff::Timestamp;
use placement_client::{
    Consumer, ConsumerGeneration, ConsumerUuid, Inventories, ProviderTraits, ProviderUuid, ResourceClass,
    TraitName, Units,
};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// A write to Ironic or Placement, with everything that it relies on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "action", rename_all = "snake_case")]
pub enum Action {
    /// Ironic: tear the instance down (`deleted`).
    Unprovision {
        /// The instance that the node carried when this was decided. `None` only for a repeated tear-down of a node in
        /// `error`, from which Ironic has taken the instance already.
        carries: Option<Uuid>,
        /// The node's `provision_updated_at` when this was decided.
        since: Option<Timestamp>,
        /// The state it was decided in.
        from: ProvisionState,
    },
    /// Ironic: leave a hold state, from which a tear-down is not legal (`abort`).
    Abort {
        /// The node's `provision_updated_at` when this was decided.
        since: Option<Timestamp>,
        /// The state it was decided in.
        from: ProvisionState,
    },
    /// Ironic: begin to cure a failed cleaning (`manage`).
    Manage {
        /// The node's `provision_updated_at` when this was decided.
        since: Option<Timestamp>,
    },
    /// Ironic: end the maintenance that the failed cleaning has set.
    ClearMaintenance {
        /// The node's `provision_updated_at` when this was decided.
        since: Option<Timestamp>,
    },
    /// Ironic: clean again (`provide`).
    Provide {
        /// The node's `provision_updated_at` when this was decided.
        since: Option<Timestamp>,
    },
    /// Ironic: tag the node. Needs the node's lock.
    AddNodeTrait {
        /// The tag.
        name: TraitName,
    },
    /// Ironic: take the tag from the node. Needs the node's lock.
    RemoveNodeTrait {
        /// The tag.
        name: TraitName,
    },
    /// Placement: tag the provider.
    AddProviderTrait {
        /// The tag.
        name: TraitName,
        /// All traits of the provider, with the tag, and the generation they were read at.
        traits: ProviderTraits,
    },
    /// Placement: take the tag from the provider.
    RemoveProviderTrait {
        /// The tag.
        name: TraitName,
        /// All traits of the provider, without the tag, and the generation they were read at.
        traits: ProviderTraits,
    },
    /// Placement: set the units that are not to be offered.
    SetReserved {
        /// Of this class.
        class: ResourceClass,
        /// To so many.
        to: u32,
        /// All inventories of the provider, with the change, and the generation they were read at.
        inventories: Inventories,
    },
    /// Placement: move the unit to our consumer, in one request.
    HandOver {
        /// Our consumer.
        receiver: ConsumerUuid,
        /// What our consumer must be at.
        generation: ConsumerGeneration,
        /// What moves.
        units: Units,
        /// Who holds it now; `None` where nobody does: then it is claimed.
        giver: Option<Giver>,
    },
    /// Placement: move the unit back to the instance, in one request.
    HandBack {
        /// Our consumer.
        from: ConsumerUuid,
        /// What our consumer must be at.
        generation: ConsumerGeneration,
        /// What moves.
        units: Units,
        /// The instance, with what it holds of other providers.
        to: Giver,
    },
    /// Placement: a consumer gives up this provider.
    Release {
        /// Whose it is.
        whose: Owner,
        /// The consumer, with what it keeps of other providers.
        consumer: Giver,
    },
}

/// Whose allocation is released.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Owner {
    /// Ours.
    Guard,
    /// The instance's that is torn down.
    Instance,
}

/// A consumer beside this provider: who it is, and what it holds elsewhere.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Giver {
    /// The consumer.
    pub uuid: ConsumerUuid,
    /// What it must be at.
    pub generation: ConsumerGeneration,
    /// Whose it is.
    pub owner: Consumer,
    /// What it holds of other providers, which stays as it is.
    pub rest: BTreeMap<ProviderUuid, Units>,
}

/// What kind of write an [`Action`] is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs)] // named as the variants of `Action`
pub enum ActionKind {
    Unprovision,
    Abort,
    Manage,
    ClearMaintenance,
    Provide,
    AddNodeTrait,
    RemoveNodeTrait,
    AddProviderTrait,
    RemoveProviderTrait,
    SetReserved,
    HandOver,
    HandBack,
    Release,
}

impl Action {
    /// The node's `provision_updated_at` that a write to the node's state was decided from.
    pub fn since(&self) -> Option<Timestamp> {
        match self {
            Self::Unprovision { since, .. }
            | Self::Abort { since, .. }
            | Self::Manage { since }
            | Self::ClearMaintenance { since }
            | Self::Provide { since } => *since,
            Self::AddNodeTrait { .. }
            | Self::RemoveNodeTrait { .. }
            | Self::AddProviderTrait { .. }
            | Self::RemoveProviderTrait { .. }
            | Self::SetReserved { .. }
            | Self::HandOver { .. }
            | Self::HandBack { .. }
            | Self::Release { .. } => None,
        }
    }

    /// Whether it drives the node on its way: it changes the provision state or the maintenance, not just a mark.
    pub fn drives_the_node(&self) -> bool {
        match self.kind() {
            ActionKind::Unprovision
            | ActionKind::Abort
            | ActionKind::Manage
            | ActionKind::ClearMaintenance
            | ActionKind::Provide => true,
            ActionKind::AddNodeTrait
            | ActionKind::RemoveNodeTrait
            | ActionKind::AddProviderTrait
            | ActionKind::RemoveProviderTrait
            | ActionKind::SetReserved
            | ActionKind::HandOver
            | ActionKind::HandBack
            | ActionKind::Release => false,
        }
    }

    /// Whether it goes to Ironic, not to Placement.
    pub fn is_to_ironic(&self) -> bool {
        let marks = matches!(
            self.kind(),
            ActionKind::AddNodeTrait | ActionKind::RemoveNodeTrait
        );
        marks || self.drives_the_node()
    }

    /// What kind of write it is.
    pub fn kind(&self) -> ActionKind {
        match self {
            Self::Unprovision { .. } => ActionKind::Unprovision,
            Self::Abort { .. } => ActionKind::Abort,
            Self::Manage { .. } => ActionKind::Manage,
            Self::ClearMaintenance { .. } => ActionKind::ClearMaintenance,
            Self::Provide { .. } => ActionKind::Provide,
            Self::AddNodeTrait { .. } => ActionKind::AddNodeTrait,
            Self::RemoveNodeTrait { .. } => ActionKind::RemoveNodeTrait,
            Self::AddProviderTrait { .. } => ActionKind::AddProviderTrait,
            Self::RemoveProviderTrait { .. } => ActionKind::RemoveProviderTrait,
            Self::SetReserved { .. } => ActionKind::SetReserved,
            Self::HandOver { .. } => ActionKind::HandOver,
            Self::HandBack { .. } => ActionKind::HandBack,
            Self::Release { .. } => ActionKind::Release,
        }
    }
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unprovision {
                carries: Some(instance),
                ..
            } => write!(f, "tear down instance {instance}"),
            Self::Unprovision { carries: None, .. } => f.write_str("repeat the failed tear-down"),
            Self::Abort { from, .. } => write!(f, "abort the `{from}`"),
            Self::Manage { .. } => f.write_str("take the node out of `clean failed` (manage)"),
            Self::ClearMaintenance { .. } => {
                f.write_str("end the maintenance that the failed cleaning has set")
            }
            Self::Provide { .. } => f.write_str("clean again (provide)"),
            Self::AddNodeTrait { name } => write!(f, "tag the node with {name}"),
            Self::RemoveNodeTrait { name } => write!(f, "take the tag {name} from the node"),
            Self::AddProviderTrait { name, .. } => write!(f, "tag the provider with {name}"),
            Self::RemoveProviderTrait { name, .. } => write!(f, "take the tag {name} from the provider"),
            Self::SetReserved { class, to, .. } => write!(f, "set reserved = {to} of {class}"),
            Self::HandOver {
                receiver,
                giver: Some(giver),
                ..
            } => {
                write!(f, "hand the unit over from {} to {receiver}", giver.uuid)
            }
            Self::HandOver {
                receiver,
                giver: None,
                ..
            } => write!(f, "claim the unit for {receiver}"),
            Self::HandBack { to, .. } => write!(f, "hand the unit back to instance {}", to.uuid),
            Self::Release {
                whose: Owner::Guard,
                consumer,
            } => write!(f, "release our hold {}", consumer.uuid),
            Self::Release {
                whose: Owner::Instance,
                consumer,
            } => {
                write!(f, "release the allocation of instance {}", consumer.uuid)
            }
        }
    }
}
