//! Nova's tracker: what it thinks a provider should look like.

use std::collections::BTreeSet;

use ironic_client::ProvisionState;
use placement_client::TraitName;

use super::bay::{Author, Bay, Machine, Maintenance};

/// The tracker's rule for the reservation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Rule {
    /// Before 26.1: unavailable and without an instance.
    Old,
    /// Since 26.1: unavailable, or with an instance.
    Current,
}

/// What a pass of the tracker means to write, from the node as it was when the pass began.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Wanted {
    reserved: bool,
    traits: BTreeSet<TraitName>,
}

impl Wanted {
    /// By the rule, for the node as it is now.
    pub fn of(node: &Machine, rule: Rule) -> Self {
        let unavailable =
            node.maintenance != Maintenance::No || !node.powered || node.state != ProvisionState::Available;
        let used = node.instance.is_some();
        Self {
            reserved: match rule {
                Rule::Old => !used && unavailable,
                Rule::Current => unavailable || used,
            },
            traits: node.traits.iter().filter_map(|name| name.parse().ok()).collect(),
        }
    }

    /// Whether the provider looks otherwise.
    pub fn differs(&self, bay: &Bay) -> bool {
        (bay.provider.reserved > 0) != self.reserved || bay.provider.traits != self.traits
    }

    /// Writes it.
    pub fn write(&self, bay: &mut Bay) {
        if (bay.provider.reserved > 0) != self.reserved {
            bay.provider.reserve(u32::from(self.reserved), Author::Nova);
        }
        if bay.provider.traits != self.traits {
            bay.provider.traits = self.traits.clone();
            bay.provider.touch();
        }
    }
}
