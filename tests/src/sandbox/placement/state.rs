//! What Placement stores, and the one way to change a provider.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use uuid::Uuid;

use super::super::log::{Change, Log};
use super::super::world::World;
use jiff::Timestamp;

/// All of Placement's state.
#[derive(Clone, Debug, Default)]
pub struct Placement {
    pub(crate) providers: BTreeMap<Uuid, Arc<Provider>>,
    pub(crate) consumers: BTreeMap<Uuid, Consumer>,
    pub(crate) traits: BTreeSet<String>,
    pub(crate) classes: BTreeSet<String>,
}

/// A resource provider.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Provider {
    /// Its number in the order of creation, by which lists are sorted.
    pub id: u64,
    /// Its UUID; a node's provider carries the node's.
    pub uuid: Uuid,
    /// Its name.
    pub name: String,
    /// Moves with each write that concerns it.
    pub generation: u64,
    /// What it has, by resource class.
    pub inventories: BTreeMap<String, Inventory>,
    /// Its traits.
    pub traits: BTreeSet<String>,
    /// Its aggregates.
    pub aggregates: BTreeSet<Uuid>,
    /// Who holds how much of which class.
    pub holders: BTreeMap<Uuid, BTreeMap<String, u64>>,
}

/// What a provider has of one class.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Inventory {
    /// All there is.
    pub total: u64,
    /// Of that, what is not given out.
    pub reserved: u64,
    /// The least that one allocation takes.
    pub min_unit: u64,
    /// The most.
    pub max_unit: u64,
    /// In steps of.
    pub step_size: u64,
    /// The overcommitment in thousandths.
    pub ratio_milli: u64,
}

/// A consumer; its allocations are at the providers.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Consumer {
    /// Moves with each write of its allocations.
    pub generation: u64,
    /// Its project.
    pub project: String,
    /// Its user.
    pub user: String,
    /// Its type, where a version above 1.37 wrote it.
    pub kind: Option<String>,
    /// The providers it holds something of.
    pub providers: BTreeSet<Uuid>,
}

impl Inventory {
    /// Units of which each allocation takes one or more, all at once if need be.
    pub fn of(total: u64, reserved: u64) -> Self {
        Self {
            total,
            reserved,
            min_unit: 1,
            max_unit: total.max(1),
            step_size: 1,
            ratio_milli: 1000,
        }
    }

    /// What may be given out.
    pub fn capacity(&self) -> u64 {
        self.total.saturating_sub(self.reserved) * self.ratio_milli / 1000
    }
}

impl Provider {
    /// An empty provider.
    pub fn new(id: u64, uuid: Uuid, name: impl Into<String>) -> Self {
        Self {
            id,
            uuid,
            name: name.into(),
            generation: 0,
            inventories: BTreeMap::new(),
            traits: BTreeSet::new(),
            aggregates: BTreeSet::new(),
            holders: BTreeMap::new(),
        }
    }

    /// How much of a class is held.
    pub fn used(&self, class: &str) -> u64 {
        self.holders.values().filter_map(|held| held.get(class)).sum()
    }

    /// Whether a query for `amount` of a class may return this provider.
    pub fn has_room(&self, class: &str, amount: u64) -> bool {
        self.inventories.get(class).is_some_and(|inventory| {
            self.used(class) + amount <= inventory.capacity()
                && (inventory.min_unit..=inventory.max_unit).contains(&amount)
                && amount.is_multiple_of(inventory.step_size.max(1))
        })
    }
}

impl World {
    /// Changes a provider as nobody asked for and logs what came of it; the generation moves only if the
    /// edit moves it. `false` when there is no such provider.
    pub fn edit_provider(&mut self, provider: Uuid, edit: impl FnOnce(&mut Provider)) -> bool {
        let Some(entry) = self.placement.providers.get_mut(&provider) else {
            return false;
        };
        let before = entry.clone();
        edit(Arc::make_mut(entry));
        let after = entry.clone();
        let now = self.now();
        log_difference(&mut self.log, now, Some(&before), Some(&after));
        true
    }

    /// Puts a provider into Placement.
    pub fn add_provider(&mut self, provider: Provider) {
        let now = self.now();
        self.log.push(
            now,
            Change::Provider {
                provider: provider.uuid,
                exists: true,
            },
        );
        log_difference(&mut self.log, now, None, Some(&provider));
        self.placement.providers.insert(provider.uuid, Arc::new(provider));
    }

    /// Takes a provider out of Placement, with what is held of it.
    pub fn remove_provider(&mut self, provider: Uuid) -> bool {
        let Some(gone) = self.placement.providers.remove(&provider) else {
            return false;
        };
        for consumer in self.placement.consumers.values_mut() {
            consumer.providers.remove(&provider);
        }
        let now = self.now();
        log_difference(&mut self.log, now, Some(&gone), None);
        self.log.push(
            now,
            Change::Provider {
                provider,
                exists: false,
            },
        );
        true
    }

    /// The consumers and what they hold of a provider.
    pub fn holders(&self, provider: Uuid) -> Vec<Uuid> {
        self.provider(provider)
            .map(|entry| entry.holders.keys().copied().collect())
            .unwrap_or_default()
    }

    /// A consumer, by UUID.
    pub fn consumer(&self, consumer: Uuid) -> Option<&Consumer> {
        self.placement.consumers.get(&consumer)
    }

    /// Moves a consumer's generation, as any write of it does.
    pub fn touch_consumer(&mut self, consumer: Uuid) {
        if let Some(consumer) = self.placement.consumers.get_mut(&consumer) {
            consumer.generation += 1;
        }
    }

    /// Leaves an empty consumer behind, as a service that crashed between two transactions does.
    pub fn leave_empty_consumer(&mut self, consumer: Uuid) {
        let entry = Consumer {
            generation: 0,
            project: String::new(),
            user: String::new(),
            kind: None,
            providers: BTreeSet::new(),
        };
        self.placement.consumers.entry(consumer).or_insert(entry);
    }

    /// Moves a consumer's generation on, as another writer does.
    pub fn placement_bump_consumer(&mut self, consumer: Uuid) {
        if let Some(entry) = self.placement.consumers.get_mut(&consumer) {
            entry.generation += 1;
        }
    }

    /// Creates a trait's name.
    pub fn know_trait(&mut self, name: &str) {
        self.placement.traits.insert(name.to_owned());
    }

    pub(crate) fn next_provider_id(&self) -> u64 {
        self.placement
            .providers
            .values()
            .map(|provider| provider.id)
            .max()
            .unwrap_or(0)
            + 1
    }
}

/// Logs what differs: reservations, holders, traits, and what is offered.
fn log_difference(log: &mut Log, at: Timestamp, before: Option<&Provider>, after: Option<&Provider>) {
    let Some(provider) = before.or(after).map(|entry| entry.uuid) else {
        return;
    };
    let classes: BTreeSet<&String> = before
        .into_iter()
        .chain(after)
        .flat_map(|entry| entry.inventories.keys())
        .collect();
    for class in &classes {
        let reserved = |entry: Option<&Provider>| Some(entry?.inventories.get(*class)?.reserved);
        let (old, new) = (reserved(before), reserved(after));
        if old != new {
            log.push(
                at,
                Change::Reserved {
                    provider,
                    class: (*class).clone(),
                    before: old,
                    after: new,
                },
            );
        }
    }
    log_holders(log, at, before, after);
    let traits = |entry: Option<&Provider>| entry.map(|entry| entry.traits.clone()).unwrap_or_default();
    if traits(before) != traits(after) {
        log.push(
            at,
            Change::Traits {
                provider,
                traits: traits(after).into_iter().collect(),
            },
        );
    }
    for class in classes {
        let offered = |entry: Option<&Provider>| entry.is_some_and(|entry| entry.has_room(class, 1));
        if offered(before) != offered(after) {
            log.push(
                at,
                Change::Offer {
                    provider,
                    class: class.clone(),
                    offered: offered(after),
                },
            );
        }
    }
}

fn log_holders(log: &mut Log, at: Timestamp, before: Option<&Provider>, after: Option<&Provider>) {
    let held: BTreeSet<(Uuid, &String)> = before
        .into_iter()
        .chain(after)
        .flat_map(|entry| &entry.holders)
        .flat_map(|(consumer, held)| held.keys().map(|class| (*consumer, class)))
        .collect();
    for (consumer, class) in held {
        let amount = |entry: Option<&Provider>| {
            entry
                .and_then(|entry| entry.holders.get(&consumer)?.get(class).copied())
                .unwrap_or(0)
        };
        let (old, new) = (amount(before), amount(after));
        if let Some(provider) = before.or(after).map(|entry| entry.uuid).filter(|_| old != new) {
            let class = class.clone();
            log.push(
                at,
                Change::Allocation {
                    provider,
                    consumer,
                    class,
                    before: old,
                    after: new,
                },
            );
        }
    }
}
