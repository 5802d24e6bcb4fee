//! The resource tracker: passes over all nodes, the reservation rule, and the cache it believes in.

use http::{Method, StatusCode};
use jiff::Timestamp;
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use uuid::Uuid;

use super::super::Service;
use super::super::call::later;
use super::super::config::NovaRule;
use super::super::ironic::{Node, State};
use super::super::log::Change;
use super::super::placement::Inventory;
use super::super::world::World;
use super::server::Stage;
use super::{Task, class_of};

/// The traits that Nova adds to a node's own.
pub(crate) const OWN_TRAITS: &[&str] = &["COMPUTE_NODE", "COMPUTE_NET_ATTACH_INTERFACE", "OWNER_NOVA"];

/// How often a write is repeated after conflicts.
const RETRIES: u32 = 4;

/// What the tracker believes of a provider.
#[derive(Clone, Debug)]
pub(crate) struct Cached {
    pub(crate) generation: u64,
    pub(crate) inventories: BTreeMap<String, Inventory>,
    pub(crate) traits: BTreeSet<String>,
    pub(crate) read_at: Timestamp,
}

impl World {
    pub(super) fn tracker_pass(&mut self, at: Timestamp) {
        let config = &self.config.nova;
        if config.rule == NovaRule::Off {
            return;
        }
        let (interval, per_node) = (config.pass_interval, config.per_node);
        let nodes: Vec<Uuid> = self.nodes().iter().map(|node| node.uuid).collect();
        self.tracker_forget_gone();
        // The driver lists all nodes once; what changes during the pass is seen by the next one.
        self.nova.seen = self.nodes.clone();
        let mut when = at;
        for node in nodes {
            when = later(when, per_node);
            self.nova_later(when, Task::Visit(node));
        }
        self.nova_later(later(at, interval).max(when), Task::Pass);
    }

    /// Runs one whole pass at once, whatever the rule's timer says.
    pub fn nova_pass(&mut self, now: Timestamp) {
        self.advance(now);
        self.tracker_forget_gone();
        self.nova.seen = self.nodes.clone();
        let nodes: Vec<Uuid> = self.nodes().iter().map(|node| node.uuid).collect();
        for node in nodes {
            self.tracker_visit(node, self.now());
        }
    }

    /// The providers of nodes that are gone from Ironic go too, where nobody holds anything of them.
    fn tracker_forget_gone(&mut self) {
        let gone = |id: &&Uuid| !self.nodes.contains_key(id) && self.placement.providers.contains_key(id);
        let gone: Vec<Uuid> = self.nova.cache.keys().filter(gone).copied().collect();
        for provider in gone {
            let path = format!("/resource_providers/{provider}");
            if self
                .nova_call(Service::Placement, Method::DELETE, &path, None)
                .0
                .is_success()
            {
                self.nova.cache.remove(&provider);
            }
        }
    }

    pub(super) fn tracker_visit(&mut self, node: Uuid, at: Timestamp) {
        let here = self.nova.servers.iter().filter(|(_, server)| {
            server.node == Some(node)
                && !matches!(server.stage, Stage::Deleted | Stage::Error | Stage::Scheduled)
        });
        self.nova.tracked = here.map(|(instance, _)| *instance).collect();
        let Some(seen) = self.nova.seen.get(&node).cloned() else {
            return;
        };
        if !self.tracker_update(&seen, at) {
            self.nova_later(later(at, self.config.nova.conflict_retry), Task::Retry(node, 1));
        }
    }

    pub(super) fn tracker_retry(&mut self, node: Uuid, times: u32, at: Timestamp) {
        let Some(seen) = self.nova.seen.get(&node).cloned() else {
            return;
        };
        if !self.tracker_update(&seen, at) && times < RETRIES {
            self.nova_later(
                later(at, self.config.nova.conflict_retry),
                Task::Retry(node, times + 1),
            );
        }
    }

    /// Brings the provider in line with the node as it was seen; `false` after a conflict.
    pub(super) fn tracker_update(&mut self, seen: &Arc<Node>, at: Timestamp) -> bool {
        let Some(class) = seen.resource_class.as_deref().map(class_of) else {
            return true;
        };
        let provider = seen.uuid;
        self.tracker_ensure(provider, &class, at);
        let Some(cached) = self.nova.cache.get(&provider).cloned() else {
            return true;
        };
        let reserved = u64::from(self.tracker_reserves(seen));
        let wanted = BTreeMap::from([(class, Inventory::of(1, reserved))]);
        let done =
            self.put_inventory_if_new(provider, &cached, &wanted) && self.put_traits_if_new(provider, seen);
        if !done {
            self.nova.cache.remove(&provider);
            let now = self.now();
            self.log.push(now, Change::TrackerConflict { provider });
        }
        done
    }

    /// The reservation rule of the driver.
    fn tracker_reserves(&self, node: &Node) -> bool {
        let bad_power = matches!(node.power_state.as_deref(), None | Some("error"));
        let unavailable = node.maintenance || bad_power || node.provision_state != State::Available;
        let used = node.instance_uuid.is_some();
        match self.config.nova.rule {
            NovaRule::Off | NovaRule::Old => !used && unavailable,
            NovaRule::Current => unavailable || (used && !self.config.nova.skip_reserve_in_use),
        }
    }

    /// Creates what is missing and reads what the cache lacks or has had for too long.
    fn tracker_ensure(&mut self, provider: Uuid, class: &str, at: Timestamp) {
        if self.provider(provider).is_none() {
            let body = json!({"uuid": provider, "name": provider});
            self.nova_call(
                Service::Placement,
                Method::POST,
                "/resource_providers",
                Some(&body),
            );
            self.nova.cache.remove(&provider);
        }
        if !self.placement.knows_class(class) {
            self.nova_call(
                Service::Placement,
                Method::PUT,
                &format!("/resource_classes/{class}"),
                None,
            );
        }
        let age = self.config.nova.cache_age;
        let fresh = |cached: &Cached| later(cached.read_at, age) > at;
        if self.nova.cache.get(&provider).is_some_and(fresh) {
            return;
        }
        if let Some(entry) = self.provider(provider) {
            let cached = Cached {
                generation: entry.generation,
                inventories: entry.inventories.clone(),
                traits: entry.traits.clone(),
                read_at: at,
            };
            self.nova.cache.insert(provider, cached);
        }
    }

    fn put_inventory_if_new(
        &mut self,
        provider: Uuid,
        cached: &Cached,
        wanted: &BTreeMap<String, Inventory>,
    ) -> bool {
        if cached.inventories == *wanted {
            return true;
        }
        let inventories: serde_json::Map<String, serde_json::Value> = wanted
            .iter()
            .map(|(class, inventory)| {
                let fields = json!({
                    "total": inventory.total, "reserved": inventory.reserved, "min_unit": inventory.min_unit,
                    "max_unit": inventory.max_unit, "step_size": inventory.step_size, "allocation_ratio": 1.0,
                });
                (class.clone(), fields)
            })
            .collect();
        let body = json!({"resource_provider_generation": cached.generation, "inventories": inventories});
        let path = format!("/resource_providers/{provider}/inventories");
        let (status, answer) = self.nova_call(Service::Placement, Method::PUT, &path, Some(&body));
        if let Some(cached) = self
            .nova
            .cache
            .get_mut(&provider)
            .filter(|_| status == StatusCode::OK)
        {
            cached.inventories.clone_from(wanted);
            cached.generation = answer["resource_provider_generation"]
                .as_u64()
                .unwrap_or(cached.generation + 1);
        }
        status == StatusCode::OK
    }

    fn put_traits_if_new(&mut self, provider: Uuid, seen: &Node) -> bool {
        let own = OWN_TRAITS.iter().map(|name| (*name).to_owned());
        let wanted: BTreeSet<String> = seen.traits.iter().cloned().chain(own).collect();
        let Some(cached) = self.nova.cache.get(&provider) else {
            return true;
        };
        if cached.traits == wanted {
            return true;
        }
        let generation = cached.generation;
        let missing: Vec<&String> = wanted
            .iter()
            .filter(|name| !self.placement.knows_trait(name))
            .collect();
        for name in missing {
            self.nova_call(Service::Placement, Method::PUT, &format!("/traits/{name}"), None);
        }
        let body = json!({"resource_provider_generation": generation, "traits": wanted});
        let path = format!("/resource_providers/{provider}/traits");
        let (status, answer) = self.nova_call(Service::Placement, Method::PUT, &path, Some(&body));
        if let Some(cached) = self
            .nova
            .cache
            .get_mut(&provider)
            .filter(|_| status == StatusCode::OK)
        {
            cached.traits = wanted;
            cached.generation = answer["resource_provider_generation"]
                .as_u64()
                .unwrap_or(generation + 1);
        }
        status == StatusCode::OK
    }
}
