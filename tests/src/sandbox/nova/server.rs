//! Servers: deleting one, creating one, and what Nova sees of them in Ironic.

use http::{Method, StatusCode};
use jiff::Timestamp;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use uuid::Uuid;

use super::super::Service;
use super::super::call::later;
use super::super::config::NovaRule;
use super::super::ironic::State;
use super::super::log::Change;
use super::super::world::World;
use super::{Task, class_of};

/// How many hosts a creation tries.
const ATTEMPTS: usize = 3;

/// Where a server is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Stage {
    /// A host was chosen and its unit claimed.
    Scheduled,
    /// The host builds it.
    Building,
    /// In use.
    Active,
    /// Being deleted.
    Deleting,
    /// Deleted by its owner, who may restore it (deferred delete).
    SoftDeleted,
    /// Gone.
    Deleted,
    /// Failed.
    Error,
}

impl Stage {
    fn name(self) -> &'static str {
        match self {
            Self::Scheduled => "scheduled",
            Self::Building => "building",
            Self::Active => "active",
            Self::Deleting => "deleting",
            Self::SoftDeleted => "soft-deleted",
            Self::Deleted => "deleted",
            Self::Error => "error",
        }
    }
}

/// A server.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Server {
    pub(super) node: Option<Uuid>,
    pub(super) stage: Stage,
    class: String,
    tried: BTreeSet<Uuid>,
}

impl World {
    /// Makes Nova know a server that is there already.
    pub fn nova_adopt(&mut self, instance: Uuid, node: Uuid) {
        let class = self
            .node(node)
            .and_then(|node| node.resource_class.clone())
            .unwrap_or_default();
        let server = Server {
            node: Some(node),
            stage: Stage::Active,
            class,
            tried: BTreeSet::new(),
        };
        self.nova.servers.insert(instance, server);
    }

    /// Makes the tracker know a server as if it had been claimed just now, outside any pass.
    pub fn nova_track(&mut self, instance: Uuid) {
        self.nova.tracked.insert(instance);
    }

    /// Says that a server is at this stage, as somebody at Nova's database could.
    pub fn nova_set(&mut self, instance: Uuid, stage: Stage) {
        self.stage(instance, stage, "");
    }

    /// Says that a server is on another node, or on none, as after an evacuation or a rebuild elsewhere.
    pub fn nova_move(&mut self, instance: Uuid, node: Option<Uuid>) {
        if let Some(server) = self.nova.servers.get_mut(&instance) {
            server.node = node;
        }
    }

    /// The stage of a server that Nova knows.
    pub fn nova_stage(&self, instance: Uuid) -> Option<Stage> {
        self.nova.servers.get(&instance).map(|server| server.stage)
    }

    /// Deletes a server, as a user's request to Nova does.
    pub fn nova_delete(&mut self, instance: Uuid, now: Timestamp) {
        self.advance(now);
        if !self.nova.servers.contains_key(&instance)
            && let Some((node, _)) = self
                .deployed()
                .into_iter()
                .find(|(_, carried)| *carried == instance)
        {
            self.nova_adopt(instance, node);
        }
        self.stage(instance, Stage::Deleting, "");
        self.send_delete(instance, 0, self.now());
    }

    pub(super) fn send_delete(&mut self, instance: Uuid, times: u32, at: Timestamp) {
        use State::*;
        let undeployable = [
            Active,
            DeployFailed,
            DeployWait,
            Error,
            Rescue,
            RescueFailed,
            RescueWait,
            UnrescueFailed,
            ServiceFailed,
            ServiceWait,
        ];
        let node = self
            .nova_node(instance)
            .filter(|(_, state)| undeployable.contains(state));
        let Some((node, _)) = node else {
            // Nothing to undeploy: Nova cleans up its own side.
            return self.nova_later(later(at, self.config.nova.release_delay), Task::Release(instance));
        };
        let path = format!("/v1/nodes/{node}/states/provision");
        let body = json!({"target": "deleted"});
        let (status, answer) = self.nova_call(Service::Ironic, Method::PUT, &path, Some(&body));
        match status {
            StatusCode::ACCEPTED => self.look_at_teardown(instance, 0, at),
            StatusCode::CONFLICT | StatusCode::SERVICE_UNAVAILABLE if times < self.config.nova.polls => {
                self.nova_later(
                    later(at, self.config.nova.poll),
                    Task::Delete(instance, times + 1),
                );
            }
            _ => self.stage(instance, Stage::Error, &answer["error_message"].to_string()),
        }
    }

    pub(super) fn look_at_teardown(&mut self, instance: Uuid, looks: u32, at: Timestamp) {
        use State::*;
        let done = match self.nova_node(instance) {
            // The instance is off its node, or the node is gone: Nova takes both for done.
            None => true,
            Some((_, state)) => matches!(state, Cleaning | CleanWait | CleanFailed | Available),
        };
        if done {
            self.nova_later(later(at, self.config.nova.release_delay), Task::Release(instance));
        } else if looks + 1 < self.config.nova.polls {
            self.nova_later(later(at, self.config.nova.poll), Task::Look(instance, looks + 1));
        } else {
            self.stage(
                instance,
                Stage::Error,
                "Error destroying the instance on node: timeout reached",
            );
        }
    }

    /// Nova deletes a server's allocation now, whatever the node does.
    pub fn nova_release(&mut self, instance: Uuid, now: Timestamp) {
        self.advance(now);
        self.nova_call(
            Service::Placement,
            Method::DELETE,
            &format!("/allocations/{instance}"),
            None,
        );
    }

    pub(super) fn release_allocation(&mut self, instance: Uuid, at: Timestamp) {
        if !self.reserve_at_delete(instance, at) {
            return self.nova_later(
                later(at, self.config.nova.conflict_retry),
                Task::Release(instance),
            );
        }
        if self.config.nova.deferred_delete {
            let generation = self.consumer(instance).map_or(0, |consumer| consumer.generation);
            let soon = later(at, std::time::Duration::from_millis(50));
            return self.nova_later(soon, Task::DeferredPut(instance, generation));
        }
        self.nova_call(
            Service::Placement,
            Method::DELETE,
            &format!("/allocations/{instance}"),
            None,
        );
        self.stage(instance, Stage::Deleted, "");
    }

    /// What the tracker writes when it hears of a delete: the rule again, with the node as it is now.
    fn reserve_at_delete(&mut self, instance: Uuid, at: Timestamp) -> bool {
        let config = &self.config.nova;
        let tracked = self.nova.tracked.contains(&instance);
        if config.rule == NovaRule::Off || !config.reserve_at_delete || !tracked {
            return true;
        }
        let node = self.nova.servers.get(&instance).and_then(|server| server.node);
        let seen = node.and_then(|node| self.nodes.get(&node)).cloned();
        let done = seen.is_none_or(|seen| self.tracker_update(&seen, at));
        if done {
            self.nova.tracked.remove(&instance);
        }
        done
    }

    pub(super) fn deferred_put(&mut self, instance: Uuid, generation: u64) {
        let config = &self.config.nova;
        let body = json!({
            "allocations": {}, "consumer_generation": generation, "project_id": config.project,
            "user_id": config.user,
        });
        let path = format!("/allocations/{instance}");
        let (status, _) = self.nova_call(Service::Placement, Method::PUT, &path, Some(&body));
        if status.is_success() {
            self.stage(instance, Stage::Deleted, "");
        } else {
            self.stage(instance, Stage::Error, "AllocationDeleteFailed");
        }
    }

    /// Creates a server on any node of a class, or on the node given. What comes of it is in the log.
    pub fn nova_create(&mut self, instance: Uuid, class: &str, node: Option<Uuid>, now: Timestamp) {
        self.advance(now);
        let tried = match node {
            // To be aimed at one node is to have tried all others.
            Some(node) => self
                .nodes
                .keys()
                .copied()
                .filter(|other| *other != node)
                .collect(),
            None => BTreeSet::new(),
        };
        let server = Server {
            node: None,
            stage: Stage::Scheduled,
            class: class.to_owned(),
            tried,
        };
        self.nova.servers.insert(instance, server);
        self.schedule(instance, self.now());
    }

    fn schedule(&mut self, instance: Uuid, at: Timestamp) {
        let Some(server) = self.nova.servers.get(&instance).cloned() else {
            return;
        };
        let class = class_of(&server.class);
        let forbidden: String = self
            .config
            .nova
            .forbidden_traits
            .iter()
            .map(|name| format!("!{name},"))
            .collect();
        let required = if forbidden.is_empty() {
            String::new()
        } else {
            format!("&required={}", forbidden.trim_end_matches(','))
        };
        let path = format!("/allocation_candidates?resources={class}:1&limit=1000{required}");
        let (_, answer) = self.nova_call(Service::Placement, Method::GET, &path, None);
        let empty = Vec::new();
        let requests = answer["allocation_requests"].as_array().unwrap_or(&empty);
        let offers = requests
            .iter()
            .filter_map(|request| request["allocations"].as_object()?.keys().next());
        let mut nodes = offers.filter_map(|uuid| Uuid::parse_str(uuid).ok());
        let Some(node) = nodes.find(|node| !server.tried.contains(node)) else {
            return self.stage(instance, Stage::Error, "No valid host was found");
        };
        let body = json!({
            "allocations": {node.to_string(): {"resources": {class: 1}}},
            "consumer_generation": Value::Null,
            "project_id": self.config.nova.project,
            "user_id": self.config.nova.user,
        });
        let path = format!("/allocations/{instance}");
        let (status, _) = self.nova_call(Service::Placement, Method::PUT, &path, Some(&body));
        if let Some(server) = self.nova.servers.get_mut(&instance) {
            server.tried.insert(node);
            server.node = Some(node);
        }
        if status.is_success() {
            self.stage(instance, Stage::Scheduled, &node.to_string());
            self.nova_later(later(at, self.config.nova.claim_delay), Task::Build(instance));
        } else {
            self.stage(
                instance,
                Stage::Error,
                "No valid host was found: the claim failed",
            );
        }
    }

    pub(super) fn build_server(&mut self, instance: Uuid, at: Timestamp) {
        let Some(node) = self.nova.servers.get(&instance).and_then(|server| server.node) else {
            return;
        };
        self.nova.tracked.insert(instance);
        self.stage(instance, Stage::Building, "");
        let free = self.node(node).is_some_and(|node| {
            node.provision_state == State::Available && node.instance_uuid.is_none() && !node.maintenance
        });
        let patch = json!([{"op": "add", "path": "/instance_uuid", "value": instance}]);
        let path = format!("/v1/nodes/{node}");
        let ok = free
            && self
                .nova_call(Service::Ironic, Method::PATCH, &path, Some(&patch))
                .0
                == StatusCode::OK;
        let body = json!({"target": "active"});
        let path = format!("/v1/nodes/{node}/states/provision");
        if ok && self.nova_call(Service::Ironic, Method::PUT, &path, Some(&body)).0 == StatusCode::ACCEPTED {
            return self.nova_later(later(at, self.config.nova.poll), Task::DeployLook(instance));
        }
        self.reschedule(instance, node, at);
    }

    /// The chosen node will not do: its unit goes back and another one is looked for.
    fn reschedule(&mut self, instance: Uuid, node: Uuid, at: Timestamp) {
        self.nova.tracked.remove(&instance);
        self.nova_call(
            Service::Placement,
            Method::DELETE,
            &format!("/allocations/{instance}"),
            None,
        );
        if self.config.nova.rule != NovaRule::Off
            && let Some(seen) = self.nodes.get(&node).cloned()
        {
            self.tracker_update(&seen, at);
        }
        let tried = self
            .nova
            .servers
            .get(&instance)
            .map_or(0, |server| server.tried.len());
        if tried >= ATTEMPTS {
            return self.stage(
                instance,
                Stage::Error,
                "MaxRetriesExceeded: the chosen node is not available",
            );
        }
        self.schedule(instance, at);
    }

    pub(super) fn look_at_deploy(&mut self, instance: Uuid, at: Timestamp) {
        match self.nova_node(instance) {
            Some((_, State::Active)) => self.stage(instance, Stage::Active, ""),
            Some((_, State::Deploying | State::DeployWait | State::DeployHold)) => {
                self.nova_later(later(at, self.config.nova.poll), Task::DeployLook(instance));
            }
            _ => self.stage(instance, Stage::Error, "the deployment failed"),
        }
    }

    /// The node that carries an instance, with its state.
    fn nova_node(&self, instance: Uuid) -> Option<(Uuid, State)> {
        let node = self.nova.servers.get(&instance)?.node?;
        let node = self
            .node(node)
            .filter(|node| node.instance_uuid == Some(instance))?;
        Some((node.uuid, node.provision_state))
    }

    fn stage(&mut self, instance: Uuid, stage: Stage, note: &str) {
        if let Some(server) = self.nova.servers.get_mut(&instance) {
            server.stage = stage;
        }
        let now = self.now();
        self.log.push(
            now,
            Change::Server {
                instance,
                stage: stage.name(),
                note: note.to_owned(),
            },
        );
    }
}
