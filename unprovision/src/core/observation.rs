//! What was seen of one node and its provider.

use std::collections::BTreeMap;

use super::NovaSays;
use ironic_client::Node;
use jiff::Timestamp;
use placement_client::{
    ConsumerAllocations, ConsumerUuid, Inventories, ProviderTraits, ResourceClass, TraitName, Units,
};

/// One look at both services. Placement is read first and Ironic last, so that a release rests on the newest state
/// of the node.
#[derive(Clone, Debug, PartialEq)]
pub struct Observation {
    /// When the look ended.
    pub at: Timestamp,
    /// The node; `None` where Ironic does not know it, confirmed by a second look.
    pub node: Option<Node>,
    /// The provider; `None` where Placement does not know it: then nothing is offered.
    pub provider: Option<ProviderView>,
    /// What Nova has just said of a server; `None` where nobody has asked.
    pub nova: Option<NovaSays>,
}

/// A resource provider, with all that decisions need of it.
#[derive(Clone, Debug, PartialEq)]
pub struct ProviderView {
    /// What it has.
    pub inventories: Inventories,
    /// Its traits; `None` where nobody asked for them.
    pub traits: Option<ProviderTraits>,
    /// Who holds units of it.
    pub holders: BTreeMap<ConsumerUuid, HeldBy>,
}

/// What a consumer holds.
#[derive(Clone, Debug, PartialEq)]
pub struct HeldBy {
    /// Of this provider.
    pub units: Units,
    /// Of all providers, with owner and generation.
    pub all: ConsumerAllocations,
    /// Whether it is one of ours, by its project and type.
    pub ours: bool,
}

impl ProviderView {
    /// Whether Placement would offer at least one unit of the class.
    pub fn offers(&self, class: &ResourceClass) -> bool {
        let Some(inventory) = self.inventories.inventories.get(class) else {
            return false;
        };
        let free = f64::from(inventory.total.saturating_sub(inventory.reserved)) * inventory.allocation_ratio;
        f64::from(self.used(class)) + f64::from(inventory.min_unit.max(1)) <= free
    }

    /// Whether the reservation alone keeps Placement from offering the class.
    pub fn is_reserved(&self, class: &ResourceClass) -> bool {
        self.inventories
            .inventories
            .get(class)
            .is_some_and(|inventory| inventory.reserved >= inventory.total)
    }

    /// Units of the class that somebody holds.
    pub fn used(&self, class: &ResourceClass) -> u32 {
        self.holders
            .values()
            .filter_map(|held| held.units.get(class))
            .sum()
    }

    /// A consumer of ours that holds units of it, whichever case it belongs to.
    pub fn our_hold(&self) -> Option<ConsumerUuid> {
        let mut ours = self.holders.iter().filter(|(_, held)| held.ours);
        ours.next().map(|(consumer, _)| *consumer)
    }

    /// Whether Nova made the provider: it carries traits that only nova-compute sets.
    pub fn is_novas(&self) -> bool {
        let novas = |name: &TraitName| name.as_str() == "OWNER_NOVA" || name.as_str().starts_with("COMPUTE_");
        self.traits
            .as_ref()
            .is_some_and(|read| read.traits.iter().any(novas))
    }
}
