//! A node: what Ironic stores, and how it is going to behave.

use jiff::Timestamp;
use serde_json::{Map, Value};
use std::collections::BTreeSet;
use std::time::Duration;
use uuid::Uuid;

use super::State;

/// A node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// Its number in the order of creation, by which lists are sorted.
    pub id: u64,
    /// Its UUID.
    pub uuid: Uuid,
    /// Its name.
    pub name: Option<String>,
    /// When it was created.
    pub created_at: Timestamp,
    /// When a field was changed last by request.
    pub updated_at: Option<Timestamp>,
    /// Where it is in its life.
    pub provision_state: State,
    /// Where it is going.
    pub target_provision_state: Option<State>,
    /// When the state changed last.
    pub provision_updated_at: Option<Timestamp>,
    /// The instance it carries.
    pub instance_uuid: Option<Uuid>,
    /// Whether it is in maintenance.
    pub maintenance: bool,
    /// Why.
    pub maintenance_reason: Option<String>,
    /// What Ironic itself found wrong.
    pub fault: Option<String>,
    /// What went wrong last.
    pub last_error: Option<String>,
    /// The conductor that holds the lock.
    pub reservation: Option<String>,
    /// Its power state.
    pub power_state: Option<String>,
    /// Its resource class.
    pub resource_class: Option<String>,
    /// Its conductor group.
    pub conductor_group: String,
    /// Its owner.
    pub owner: Option<String>,
    /// Its lessee.
    pub lessee: Option<String>,
    /// Its shard.
    pub shard: Option<String>,
    /// Its traits.
    pub traits: BTreeSet<String>,
    /// Whether it is cleaned; `None` leaves it to the service.
    pub automated_clean: Option<bool>,
    /// Whether it may not be undeployed.
    pub protected: bool,
    /// Whether it is going out of use.
    pub retired: bool,
    /// All other fields that can be patched, as on the wire.
    pub rest: Map<String, Value>,
    /// How it is going to behave.
    pub behaviour: Behaviour,
    /// What the conductor waits for in `clean wait` while maintenance lets no heartbeat through.
    pub(crate) paused: Option<super::step::Step>,
}

/// How a node is going to behave. The counters go down as they are used up.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Behaviour {
    /// How the node is cleaned.
    pub style: Style,
    /// Another length of `deleting` than the world's.
    pub teardown: Option<Duration>,
    /// Another length of cleaning than the world's.
    pub cleaning: Option<Duration>,
    /// How many tear-downs fail.
    pub teardown_failures: u32,
    /// How many cleanings fail.
    pub clean_failures: u32,
    /// In what way.
    pub clean_failure: CleanFailure,
    /// How many deployments fail.
    pub deploy_failures: u32,
    /// How long after a failure `last_error` appears.
    pub late_error: Option<Duration>,
    /// Where the node gets stuck, with its lock held.
    pub stuck: Option<Stuck>,
    /// Whether the next cleaning stops in `clean hold`.
    pub hold: bool,
}

/// How a node is cleaned.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Style {
    /// As the fake driver: in `cleaning`, and locked, all the time.
    #[default]
    Fake,
    /// By an agent: unlocked in `clean wait` for most of the time.
    Agent,
}

/// The way in which a cleaning fails.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum CleanFailure {
    /// A step fails: maintenance and fault are set.
    #[default]
    Step,
    /// The agent is not heard of in time: neither is set.
    Timeout,
}

/// Where a node gets stuck.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Stuck {
    /// In which state.
    pub state: State,
    /// After how long a conductor finds it and fails it; `None`: never.
    pub flip_after: Option<Duration>,
}

impl Node {
    /// A node as it is after its creation by request: in `enroll`, everything else unset.
    pub fn new(id: u64, uuid: Uuid, now: Timestamp) -> Self {
        Self {
            id,
            uuid,
            name: None,
            created_at: now,
            updated_at: None,
            provision_state: State::Enroll,
            target_provision_state: None,
            provision_updated_at: None,
            instance_uuid: None,
            maintenance: false,
            maintenance_reason: None,
            fault: None,
            last_error: None,
            reservation: None,
            power_state: None,
            resource_class: None,
            conductor_group: String::new(),
            owner: None,
            lessee: None,
            shard: None,
            traits: BTreeSet::new(),
            automated_clean: None,
            protected: false,
            retired: false,
            rest: Map::new(),
            behaviour: Behaviour::default(),
            paused: None,
        }
    }
}
