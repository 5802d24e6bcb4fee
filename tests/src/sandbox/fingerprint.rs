//! One number for a world: equal for worlds that behave alike from now on, for searches that must not
//! visit the same one twice.

use jiff::Timestamp;
use std::hash::{DefaultHasher, Hash, Hasher};

use super::ironic::Node;
use super::timers::Event;
use super::world::World;

impl World {
    /// A number that two worlds share if the same moves lead to the same answers: times count from now,
    /// and what only tells of the past (the log, counters, dates of creation) does not count.
    pub fn fingerprint(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        let hash = &mut hasher;
        for node in self.nodes.values() {
            hash_node(node, hash);
        }
        self.conductor.condition.hash(hash);
        self.conductor.held.hash(hash);
        for provider in self.placement.providers.values() {
            provider.hash(hash);
        }
        self.placement.consumers.hash(hash);
        self.placement.traits.hash(hash);
        self.placement.classes.hash(hash);
        for (text, token) in &self.tokens {
            (text, token).hash(hash);
        }
        self.nova.servers.hash(hash);
        self.nova.tracked.hash(hash);
        for (provider, cached) in &self.nova.cache {
            (provider, cached.generation, &cached.inventories, &cached.traits).hash(hash);
            self.away(cached.read_at).hash(hash);
        }
        for node in self.nova.seen.values() {
            hash_node(node, hash);
        }
        for (at, event) in self.timers.iter() {
            self.away(at).hash(hash);
            match event {
                Event::Ironic(node, step) => (0, node, step).hash(hash),
                Event::Nova(task) => (1, task).hash(hash),
                Event::Request(service, request) => {
                    (2, service, request.method(), request.uri(), request.body()).hash(hash);
                }
            }
        }
        hasher.finish()
    }

    /// How far a time is from now.
    fn away(&self, at: Timestamp) -> i128 {
        at.as_nanosecond() - self.now().as_nanosecond()
    }
}

fn hash_node(node: &Node, hash: &mut impl Hasher) {
    (
        node.uuid,
        &node.name,
        node.provision_state,
        node.target_provision_state,
        node.instance_uuid,
    )
        .hash(hash);
    (
        node.maintenance,
        &node.fault,
        &node.last_error,
        &node.reservation,
        &node.power_state,
    )
        .hash(hash);
    (
        &node.resource_class,
        &node.owner,
        &node.traits,
        node.automated_clean,
        node.protected,
    )
        .hash(hash);
    (node.retired, &node.behaviour, &node.paused).hash(hash);
}
