//! What the sandbox's own record says of a run: what was touched, whether the node was exposed, and what is left.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use jiff::Timestamp;
use unprovision::NodeUuid;
use unprovision::core::{DEFAULT_TAG, guard_consumer};
use unprovision_testkit::sandbox::judge::Query;
use unprovision_testkit::sandbox::log::{Change, Facts, Log, RequestLine};
use unprovision_testkit::sandbox::placement::Inventory;
use unprovision_testkit::sandbox::{Builder, Service};
use uuid::Uuid;

use crate::support::{Cloud, Deployed};

/// A trait that is nobody's business.
pub(crate) const FOREIGN: &str = "CUSTOM_RACK_7";
/// The class of all nodes.
const CLASS: &str = "CUSTOM_BAREMETAL";

/// Beside the node in question there is one with another instance, and one that is free; all have a trait of somebody's.
pub(crate) fn among_others(builder: Builder) -> Builder {
    builder.nodes(3).deployed(2).each_node(|_, node| {
        node.traits.insert(FOREIGN.to_owned());
    })
}

/// Every state lasts so long that it is seen.
pub(crate) fn seen(builder: Builder) -> Builder {
    let (teardown, cleaning) = (Duration::from_millis(800), Duration::from_millis(1500));
    builder.teardown(teardown).cleaning(cleaning)
}

/// Gives the provider, too, what is not ours.
pub(crate) fn add_foreign_things(cloud: &Cloud, node: Uuid) {
    cloud.sandbox().with(|world, _| {
        world.edit_provider(node, |provider| {
            provider.traits.insert(FOREIGN.to_owned());
            provider.aggregates.insert(Uuid::from_u128(7));
            provider
                .inventories
                .insert("VCPU".to_owned(), Inventory::of(4, 4));
        })
    });
}

/// All that a run can change of a node and its provider, but generations, times and the lock.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Left {
    facts: Facts,
    node_traits: BTreeSet<String>,
    inventories: BTreeMap<String, Inventory>,
    traits: BTreeSet<String>,
    aggregates: BTreeSet<Uuid>,
    holders: BTreeMap<Uuid, BTreeMap<String, u64>>,
}

/// What there is of all nodes, now.
pub(crate) fn all(cloud: &Cloud) -> Vec<Left> {
    let world = cloud.sandbox().world();
    let left = world.nodes().into_iter().map(|node| {
        let provider = world.provider(node.uuid).unwrap().clone();
        let mut facts = Facts::of(node);
        facts.locked = false;
        Left {
            facts,
            node_traits: node.traits.clone(),
            inventories: provider.inventories,
            traits: provider.traits,
            aggregates: provider.aggregates,
            holders: provider.holders,
        }
    });
    left.collect()
}

/// The cloud before anything was done to the node.
pub(crate) struct Before {
    node: Uuid,
    instance: Uuid,
    hold: Uuid,
    entries: usize,
    node_traits: BTreeSet<String>,
    traits: BTreeSet<String>,
    reserved: bool,
}

impl Before {
    pub(crate) fn of(cloud: &Cloud, one: &Deployed) -> Self {
        let world = cloud.sandbox().world();
        let provider = world.provider(one.node).unwrap();
        let instance = one.instance.parse().unwrap();
        Self {
            node: one.node,
            instance,
            hold: guard_consumer(NodeUuid(one.node), instance).0,
            entries: world.log.len(),
            node_traits: world.node(one.node).unwrap().traits.clone(),
            traits: provider.traits.clone(),
            reserved: provider.inventories[CLASS].reserved > 0,
        }
    }

    /// What was changed or asked for that is none of ours to touch.
    pub(crate) fn touched(&self, log: &Log) -> Vec<Change> {
        let since = log.iter().skip(self.entries).map(|entry| &entry.change);
        since.filter(|change| !self.may_be(change)).cloned().collect()
    }

    fn may_be(&self, change: &Change) -> bool {
        match change {
            Change::Node { node, .. } => *node == self.node,
            Change::NodeTraits { node, traits } => {
                *node == self.node && is_only_tagged(&self.node_traits, traits)
            }
            Change::Traits { provider, traits } => {
                *provider == self.node && is_only_tagged(&self.traits, traits)
            }
            Change::Offer { provider, class, .. } | Change::Reserved { provider, class, .. } => {
                *provider == self.node && class == CLASS
            }
            Change::Allocation {
                provider,
                consumer,
                class,
                ..
            } => *provider == self.node && class == CLASS && [self.instance, self.hold].contains(consumer),
            Change::Server { instance, .. } => *instance == self.instance,
            Change::Provider { .. } => false,
            Change::TrackerConflict { provider } => *provider == self.node,
            Change::Request {
                who,
                service,
                method,
                path,
                ..
            } => {
                method.is_safe()
                    || who == "nova"
                    || *service == Service::Keystone
                    || path == "/allocations"
                    || path.ends_with(&format!("/traits/{DEFAULT_TAG}"))
                    || [self.node, self.instance, self.hold]
                        .iter()
                        .any(|ours| path.contains(&ours.to_string()))
            }
        }
    }

    /// When it was offered without being free, after it was held first.
    pub(crate) fn exposed(&self, query: Query<'_>, log: &Log) -> Vec<(Timestamp, Timestamp)> {
        let mut windows = query.exposure(log, self.node).windows;
        let held = log
            .iter()
            .skip(self.entries)
            .find(|entry| self.is_hold(&entry.change));
        let held = held.map(|entry| entry.at).filter(|_| !self.reserved);
        windows.retain(|(from, _)| held.is_none_or(|held| *from >= held));
        windows
    }

    fn is_hold(&self, change: &Change) -> bool {
        match change {
            Change::Allocation {
                provider,
                consumer,
                after,
                ..
            } => *provider == self.node && *consumer == self.hold && *after > 0,
            Change::Reserved { provider, after, .. } => {
                *provider == self.node && after.is_some_and(|now| now > 0)
            }
            _ => false,
        }
    }
}

fn is_only_tagged(before: &BTreeSet<String>, traits: &[String]) -> bool {
    let others = traits.iter().filter(|name| *name != DEFAULT_TAG);
    others.eq(before.iter())
}

/// The writes of all but Nova, logins aside.
pub(crate) fn ours(log: &Log) -> Vec<String> {
    let ours = writes(log).filter(|line| line.who != "nova");
    ours.map(|line| format!("{} {} {}", line.service, line.method, line.path))
        .collect()
}

/// How many writes of Nova's there were.
pub(crate) fn novas(log: &Log) -> usize {
    writes(log).filter(|line| line.who == "nova").count()
}

fn writes(log: &Log) -> impl Iterator<Item = RequestLine<'_>> {
    log.requests()
        .filter(|line| line.service != Service::Keystone && !line.method.is_safe())
}
