//! Drift between Ironic and Placement, as an audit has to find it: each kind made by hand.

use std::collections::{BTreeMap, BTreeSet};

use unprovision::NodeUuid;
use unprovision::audit::FindingKind;
use unprovision::core::{GUARD_PROJECT, GUARD_USER, guard_consumer};
use uuid::Uuid;

use super::ironic::State;
use super::placement::Consumer;
use super::world::{World, named_uuid};

impl World {
    /// Makes a node that is as it should be one with this finding. A node in use is needed for those kinds that are about
    /// instances ([`needs_an_instance`]), a free one for all others.
    pub fn plant_drift(&mut self, kind: FindingKind, node: Uuid) {
        let class = self.class_of_provider(node);
        let stranger = named_uuid(&format!("stranger/{node}"));
        match kind {
            FindingKind::OfferedNotFree => {
                self.edit_node(node, |node| node.provision_state = State::Manageable);
            }
            FindingKind::FreeNotOffered => self.reserve(node, 1),
            FindingKind::ProviderMissing => {
                self.remove_provider(node);
            }
            FindingKind::ProviderOrphaned => {
                self.remove_node(node);
            }
            FindingKind::WrongResourceClass => {
                self.edit_provider(node, |provider| {
                    let inventory = provider.inventories.remove(&class);
                    provider
                        .inventories
                        .extend(inventory.map(|all| ("CUSTOM_FORMER".to_owned(), all)));
                });
            }
            FindingKind::NoResourceClass => {
                self.edit_node(node, |node| node.resource_class = None);
            }
            FindingKind::AllocationWithoutInstance | FindingKind::TwoConsumers => {
                self.allocate(node, stranger, "somebody", None);
            }
            FindingKind::InstanceWithoutAllocation => {
                self.reserve(node, 1);
                self.deallocate(node);
            }
            FindingKind::InventoryEmpty => {
                self.edit_provider(node, |provider| provider.inventories.clear());
            }
            FindingKind::StaleHold => {
                let ours = guard_consumer(NodeUuid(node), stranger).0;
                self.allocate(node, ours, GUARD_PROJECT, Some("UNPROVISION"));
            }
        }
    }

    /// Sets the reserved units of all that the provider has.
    pub fn reserve(&mut self, provider: Uuid, units: u64) {
        self.edit_provider(provider, |entry| {
            entry
                .inventories
                .values_mut()
                .for_each(|inventory| inventory.reserved = units);
        });
    }

    /// The provider carries the tag from now on, and the node where it shall.
    pub fn tag(&mut self, node: Uuid, tag: &str, on_node: bool) {
        self.placement.traits.insert(tag.to_owned());
        if on_node {
            self.edit_node(node, |node| {
                node.traits.insert(tag.to_owned());
            });
        }
        self.edit_provider(node, |provider| {
            provider.traits.insert(tag.to_owned());
        });
    }

    /// A consumer holds one unit of the provider from now on, whether there is room or not.
    pub fn allocate(&mut self, provider: Uuid, consumer: Uuid, project: &str, kind: Option<&str>) {
        let class = self.class_of_provider(provider);
        let entry = Consumer {
            generation: 1,
            project: project.to_owned(),
            user: GUARD_USER.to_owned(),
            kind: kind.map(str::to_owned),
            providers: BTreeSet::from([provider]),
        };
        self.placement.consumers.insert(consumer, entry);
        self.edit_provider(provider, |entry| {
            entry.holders.insert(consumer, BTreeMap::from([(class, 1)]));
            entry.generation += 1;
        });
    }

    /// Nobody holds anything of the provider any more.
    pub fn deallocate(&mut self, provider: Uuid) {
        for consumer in self.holders(provider) {
            self.placement.consumers.remove(&consumer);
        }
        self.edit_provider(provider, |entry| entry.holders.clear());
    }

    fn class_of_provider(&self, provider: Uuid) -> String {
        let classes = self.provider(provider).map(|entry| &entry.inventories);
        let first = classes.and_then(|classes| classes.keys().next());
        first.cloned().unwrap_or_default()
    }
}

/// Whether the drift is about a node that is in use.
pub fn needs_an_instance(kind: FindingKind) -> bool {
    matches!(
        kind,
        FindingKind::InstanceWithoutAllocation | FindingKind::TwoConsumers
    )
}
