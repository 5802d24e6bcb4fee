//! Building a sandbox: how many nodes, in which condition, in what kind of cloud.

use jiff::Timestamp;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;
use uuid::Uuid;

use super::config::{Config, NovaRule};
use super::handle::{Clock, Sandbox, tokio_clock};
use super::ironic::{Node, State, Style};
use super::nova::{OWN_TRAITS, class_of};
use super::placement::{Consumer, Inventory, Provider};
use super::world::{World, named_uuid};

/// A change to each node, told its number.
type Each = Arc<dyn Fn(usize, &mut Node) + Send + Sync>;

/// Says step by step what a sandbox is like.
#[derive(Clone)]
pub struct Builder {
    config: Config,
    nodes: usize,
    deployed: usize,
    class: String,
    reserved_in_use: Option<bool>,
    each: Option<Each>,
    clock: Option<Clock>,
}

impl Default for Builder {
    fn default() -> Self {
        Self {
            config: Config::default(),
            nodes: 0,
            deployed: 0,
            class: "baremetal".into(),
            reserved_in_use: None,
            each: None,
            clock: None,
        }
    }
}

impl std::fmt::Debug for Builder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut debug = f.debug_struct("Builder");
        debug
            .field("nodes", &self.nodes)
            .field("deployed", &self.deployed)
            .finish_non_exhaustive()
    }
}

impl Builder {
    /// So many nodes, named `node-0001` and so on.
    pub fn nodes(mut self, nodes: usize) -> Self {
        self.nodes = nodes;
        self
    }

    /// The first so many of them carry an instance with its allocation; the others are available.
    pub fn deployed(mut self, deployed: usize) -> Self {
        self.deployed = deployed;
        self
    }

    /// Their resource class, in Ironic's spelling.
    pub fn class(mut self, class: &str) -> Self {
        self.class = class.to_owned();
        self
    }

    /// Whether providers in use are reserved; by default they are where Nova's current rule is on.
    pub fn reserved_in_use(mut self, reserved: bool) -> Self {
        self.reserved_in_use = Some(reserved);
        self
    }

    /// How long a node stays in `deleting`.
    pub fn teardown(mut self, teardown: Duration) -> Self {
        self.config.ironic.timing.teardown = teardown;
        self
    }

    /// How long cleaning takes.
    pub fn cleaning(mut self, cleaning: Duration) -> Self {
        self.config.ironic.timing.cleaning = cleaning;
        self
    }

    /// Nodes are cleaned by an agent, unlocked for most of the time.
    pub fn agent(self) -> Self {
        self.each_node(|_, node| node.behaviour.style = Style::Agent)
    }

    /// Nova makes passes by this rule.
    pub fn nova(mut self, rule: NovaRule) -> Self {
        self.config.nova.rule = rule;
        self
    }

    /// Changes anything in the configuration.
    pub fn configure(mut self, change: impl FnOnce(&mut Config)) -> Self {
        change(&mut self.config);
        self
    }

    /// Changes each node before it is planted; several of these add up.
    pub fn each_node(mut self, change: impl Fn(usize, &mut Node) + Send + Sync + 'static) -> Self {
        let before = self.each.take();
        self.each = Some(Arc::new(move |number, node| {
            if let Some(before) = &before {
                before(number, node);
            }
            change(number, node);
        }));
        self
    }

    /// Another clock than tokio's.
    pub fn clock(mut self, clock: Clock) -> Self {
        self.clock = Some(clock);
        self
    }

    /// The sandbox.
    pub fn build(self) -> Sandbox {
        let clock = self.clock.clone().unwrap_or_else(tokio_clock);
        let world = self.world(clock());
        Sandbox::new(world, clock)
    }

    /// Only the world, beginning at `now`.
    pub fn world(self, now: Timestamp) -> World {
        let reserved = self
            .reserved_in_use
            .unwrap_or(self.config.nova.rule == NovaRule::Current);
        let mut world = World::new(self.config, now);
        // Counted here: to look for the next number in a world of thousands takes long.
        let mut providers = 0;
        for number in 1..=self.nodes {
            let name = format!("node-{number:04}");
            let mut node = world.blank(number as u64, &name, &self.class);
            if number <= self.deployed {
                node.provision_state = State::Active;
                node.instance_uuid = Some(named_uuid(&format!("instance/{name}")));
                node.power_state = Some("power on".into());
            }
            if let Some(each) = &self.each {
                each(number, &mut node);
            }
            providers += u64::from(node.resource_class.is_some());
            world.plant_as(node, reserved, providers);
        }
        world
    }
}

impl World {
    /// A node that is available, not yet in this world. Its UUID follows from its name.
    pub fn blank_node(&self, name: &str, class: &str) -> Node {
        self.blank(self.next_node_id(), name, class)
    }

    fn blank(&self, id: u64, name: &str, class: &str) -> Node {
        let mut node = Node::new(id, named_uuid(&format!("node/{name}")), self.now());
        node.name = Some(name.to_owned());
        node.resource_class = Some(class.to_owned());
        node.provision_state = State::Available;
        node.provision_updated_at = Some(self.now());
        node.power_state = Some("power off".into());
        node
    }

    /// Puts a node into Ironic, and its provider, with the allocation of the instance it carries, into
    /// Placement, as Nova would have left them. `reserved` is for a node in use.
    pub fn plant(&mut self, node: Node, reserved: bool) -> Uuid {
        self.plant_as(node, reserved, self.next_provider_id())
    }

    fn plant_as(&mut self, node: Node, reserved: bool, provider_id: u64) -> Uuid {
        let (uuid, instance) = (node.uuid, node.instance_uuid);
        let class = node.resource_class.as_deref().map(class_of);
        let traits: BTreeSet<String> = node
            .traits
            .iter()
            .cloned()
            .chain(OWN_TRAITS.iter().map(|name| (*name).to_owned()))
            .collect();
        let free = node.provision_state == State::Available && instance.is_none();
        self.add_node(node);
        let Some(class) = class else { return uuid };
        let mut provider = Provider::new(provider_id, uuid, uuid.to_string());
        provider.generation = 2;
        provider
            .inventories
            .insert(class.clone(), Inventory::of(1, u64::from(reserved && !free)));
        self.placement
            .traits
            .extend(traits.iter().filter(|name| name.starts_with("CUSTOM_")).cloned());
        self.placement.classes.insert(class.clone());
        provider.traits = traits;
        if let Some(instance) = instance {
            provider.generation += 1;
            provider.holders.insert(instance, BTreeMap::from([(class, 1)]));
            let consumer = Consumer {
                generation: 1,
                project: self.config.nova.project.clone(),
                user: self.config.nova.user.clone(),
                kind: None,
                providers: BTreeSet::from([uuid]),
            };
            self.placement.consumers.insert(instance, consumer);
            self.nova_adopt(instance, uuid);
        }
        self.add_provider(provider);
        uuid
    }

    /// Whether some class of a node's provider has room right now.
    pub fn is_offered(&self, node: Uuid) -> bool {
        self.provider(node)
            .is_some_and(|entry| entry.inventories.keys().any(|class| entry.has_room(class, 1)))
    }
}
