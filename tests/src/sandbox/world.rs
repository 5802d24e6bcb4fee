//! The world: all state, and the three ways to move it: a request, the time, and an edit.

use bytes::Bytes;
use http::{Request, Response};
use jiff::Timestamp;
use std::collections::BTreeMap;
use std::sync::Arc;
use uuid::Uuid;

use super::Service;
use super::call::{Call, Caller};
use super::config::Config;
use super::ironic::{Conductor, Node};
use super::keystone::Tokens;
use super::log::{Change, Facts, Log};
use super::nova::Nova;
use super::placement::{Placement, Provider};
use super::timers::{Event, Timers};

/// The cloud as a value: nodes, providers, consumers, tokens, what is due, and the log of it all.
///
/// Cloning is cheap: nodes, providers and the log's older parts are shared. Nothing here reads a clock
/// or draws a random number, so the same calls make the same world.
#[derive(Clone, Debug)]
pub struct World {
    /// What the world is like; may be changed on the way.
    pub config: Config,
    /// What happened.
    pub log: Log,
    /// Placement's state.
    pub placement: Placement,
    pub(crate) nodes: BTreeMap<Uuid, Arc<Node>>,
    pub(crate) conductor: Conductor,
    pub(crate) nova: Nova,
    pub(crate) tokens: Tokens,
    pub(crate) timers: Timers,
    now: Timestamp,
    counter: u64,
}

impl World {
    /// An empty world that begins at `now`.
    pub fn new(config: Config, now: Timestamp) -> Self {
        let mut world = Self {
            config,
            log: Log::default(),
            placement: Placement::default(),
            nodes: BTreeMap::new(),
            conductor: Conductor::default(),
            nova: Nova::default(),
            tokens: Tokens::default(),
            timers: Timers::default(),
            now,
            counter: 0,
        };
        world.nova_start(now);
        world
    }

    /// The time up to which everything due has happened.
    pub fn now(&self) -> Timestamp {
        self.now
    }

    /// When the next thing happens by itself.
    pub fn next_event(&self) -> Option<Timestamp> {
        self.timers.next_time()
    }

    /// Plays all that is due up to `now`, each at its own time. Time never goes back: an earlier `now`
    /// changes nothing.
    pub fn advance(&mut self, now: Timestamp) {
        while let Some((at, event)) = self.timers.pop_due(now) {
            self.now = self.now.max(at);
            let at = self.now;
            match event {
                Event::Ironic(node, step) => self.ironic_step(node, step, at),
                Event::Nova(task) => self.nova_step(task, at),
                Event::Request(service, request) => {
                    self.answer(service, &request);
                }
            }
        }
        self.now = self.now.max(now);
    }

    /// Answers one request to a service, after playing what is due.
    pub fn handle(&mut self, service: Service, request: &Request<Bytes>, now: Timestamp) -> Response<Bytes> {
        self.advance(now);
        self.answer(service, request)
    }

    /// Answers one request at the time that it is.
    pub(crate) fn answer(&mut self, service: Service, request: &Request<Bytes>) -> Response<Bytes> {
        self.counter += 1;
        // A number is enough here: deriving a UUID for each request would be most of a request's cost.
        let request_id = format!("req-{}", Uuid::from_u128(u128::from(self.counter)));
        let mut call = Call::new(request, self.now, request_id);
        let caller = request.extensions().get::<Caller>();
        let entry = match caller {
            Some(caller) => Ok(caller.0.clone()),
            None => self.authenticate(service, &mut call),
        };
        let (who, response) = match (entry, service) {
            (Err(response), _) => (String::new(), *response),
            (Ok(who), Service::Ironic) => (who, self.ironic(&call)),
            (Ok(who), Service::Placement) => (who, self.placement(&call)),
            (Ok(who), Service::Keystone) => (who, self.keystone(&call)),
            (Ok(who), Service::Nova) => (who, self.nova_api(&call)),
        };
        let path = request
            .uri()
            .path_and_query()
            .map_or("/", |path| path.as_str())
            .to_owned();
        let status = response.status();
        let change = Change::Request {
            who,
            service,
            method: request.method().clone(),
            path,
            status,
        };
        self.log.push(self.now, change);
        response
    }

    /// Lets a request arrive later, whoever still waits for its answer.
    pub fn arrives_later(&mut self, service: Service, request: Request<Bytes>, at: Timestamp) {
        self.timers.add(at, Event::Request(service, Box::new(request)));
    }

    /// A UUID of its own for each call, the same ones in every run.
    pub fn new_uuid(&mut self, kind: &str) -> Uuid {
        self.counter += 1;
        named_uuid(&format!("{kind}/{}", self.counter))
    }

    /// A node, by UUID.
    pub fn node(&self, node: Uuid) -> Option<&Node> {
        self.nodes.get(&node).map(Arc::as_ref)
    }

    /// All nodes in the order of their creation.
    pub fn nodes(&self) -> Vec<&Node> {
        let mut nodes: Vec<&Node> = self.nodes.values().map(Arc::as_ref).collect();
        nodes.sort_by_key(|node| node.id);
        nodes
    }

    /// The nodes that carry an instance, with it, in the order of their creation.
    pub fn deployed(&self) -> Vec<(Uuid, Uuid)> {
        self.nodes()
            .into_iter()
            .filter_map(|node| Some((node.uuid, node.instance_uuid?)))
            .collect()
    }

    /// A provider, by UUID.
    pub fn provider(&self, provider: Uuid) -> Option<&Provider> {
        self.placement.providers.get(&provider).map(Arc::as_ref)
    }

    /// Changes a node as nobody asked for and logs what came of it. `false` when there is no such node.
    pub fn edit_node(&mut self, node: Uuid, edit: impl FnOnce(&mut Node)) -> bool {
        let Some(entry) = self.nodes.get_mut(&node) else {
            return false;
        };
        let before = Facts::of(entry);
        let traits = entry.traits.clone();
        let entry = Arc::make_mut(entry);
        edit(entry);
        let after = Facts::of(entry);
        if traits != entry.traits {
            let traits = entry.traits.iter().cloned().collect();
            self.log.push(self.now, Change::NodeTraits { node, traits });
        }
        let lifted = before.maintenance && !after.maintenance;
        if before.state != after.state {
            // What was due in the old state has lost its meaning.
            self.ironic_forget_steps(node);
        }
        if before != after {
            self.log.push(
                self.now,
                Change::Node {
                    node,
                    before: Some(before),
                    after: Some(after),
                },
            );
        }
        if lifted {
            self.ironic_maintenance_lifted(node);
        }
        true
    }

    /// Puts a node into Ironic.
    pub fn add_node(&mut self, node: Node) {
        let uuid = node.uuid;
        let after = Facts::of(&node);
        let traits: Vec<String> = node.traits.iter().cloned().collect();
        self.nodes.insert(uuid, Arc::new(node));
        self.log.push(
            self.now,
            Change::Node {
                node: uuid,
                before: None,
                after: Some(after),
            },
        );
        if !traits.is_empty() {
            self.log.push(self.now, Change::NodeTraits { node: uuid, traits });
        }
    }

    /// Takes a node out of Ironic.
    pub fn remove_node(&mut self, node: Uuid) -> bool {
        let Some(gone) = self.nodes.remove(&node) else {
            return false;
        };
        self.timers
            .cancel(|event| matches!(event, Event::Ironic(id, _) if *id == node));
        self.log.push(
            self.now,
            Change::Node {
                node,
                before: Some(Facts::of(&gone)),
                after: None,
            },
        );
        true
    }
}

impl Facts {
    /// The facts of a node.
    pub fn of(node: &Node) -> Self {
        Self {
            state: node.provision_state,
            instance: node.instance_uuid,
            maintenance: node.maintenance,
            power: node.power_state.clone(),
            retired: node.retired,
            locked: node.reservation.is_some(),
        }
    }
}

/// The UUID that belongs to a name, always the same.
pub fn named_uuid(name: &str) -> Uuid {
    Uuid::new_v5(&Uuid::NAMESPACE_URL, format!("sandbox:{name}").as_bytes())
}
