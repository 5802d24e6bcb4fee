//! Nova beside us: a tracker that rewrites what Placement knows, and deletes and creations of servers.
//!
//! It writes through the same API as everybody; its reads go to the world directly and are not logged.

mod api;
mod server;
mod tracker;

pub use server::Stage;
pub(crate) use tracker::OWN_TRAITS;

use http::{Method, Request, StatusCode};
use jiff::Timestamp;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use uuid::Uuid;

use super::Service;
use super::call::{Caller, later};
use super::config::NovaRule;
use super::ironic::Node;
use super::timers::Event;
use super::world::World;

/// Nova's state.
#[derive(Clone, Debug, Default)]
pub(crate) struct Nova {
    pub(crate) servers: BTreeMap<Uuid, server::Server>,
    /// The instances that the tracker knows. Each visit to a node forgets all but that node's: this is the
    /// hole through which claims made during a pass fall.
    pub(crate) tracked: BTreeSet<Uuid>,
    pub(crate) cache: BTreeMap<Uuid, tracker::Cached>,
    /// The nodes as they were when the running pass began.
    pub(crate) seen: BTreeMap<Uuid, Arc<Node>>,
}

/// Something that Nova does later.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Task {
    /// A pass begins.
    Pass,
    /// The pass comes to a node.
    Visit(Uuid),
    /// A write is repeated after a conflict, for the so-manieth time.
    Retry(Uuid, u32),
    /// A delete is sent to Ironic, for the so-manieth time.
    Delete(Uuid, u32),
    /// A look at a node being torn down, the so-manieth.
    Look(Uuid, u32),
    /// The allocation of a deleted server goes.
    Release(Uuid),
    /// A deferred delete writes the consumer whose generation it read before.
    DeferredPut(Uuid, u64),
    /// A compute host begins to build a server that was scheduled to it.
    Build(Uuid),
    /// A look at a node being deployed.
    DeployLook(Uuid),
}

/// The resource class that Nova makes of a node's.
pub fn class_of(name: &str) -> String {
    let mut class = String::from("CUSTOM_");
    let mut in_run = false;
    for c in name.chars() {
        if c.is_ascii_alphanumeric() {
            class.push(c.to_ascii_uppercase());
        } else if !in_run {
            class.push('_');
        }
        in_run = !c.is_ascii_alphanumeric();
    }
    class
}

impl World {
    /// Starts the passes, if Nova makes any; call it again after switching the rule on.
    pub fn nova_start(&mut self, now: Timestamp) {
        self.timers
            .cancel(|event| matches!(event, Event::Nova(Task::Pass)));
        if self.config.nova.rule != NovaRule::Off {
            let first = later(now, self.config.nova.first_pass);
            self.nova_later(first, Task::Pass);
        }
    }

    /// Plays one of Nova's tasks at its time.
    pub(crate) fn nova_step(&mut self, task: Task, at: Timestamp) {
        match task {
            Task::Pass => self.tracker_pass(at),
            Task::Visit(node) => self.tracker_visit(node, at),
            Task::Retry(node, times) => self.tracker_retry(node, times, at),
            Task::Delete(instance, times) => self.send_delete(instance, times, at),
            Task::Look(instance, looks) => self.look_at_teardown(instance, looks, at),
            Task::Release(instance) => self.release_allocation(instance, at),
            Task::DeferredPut(instance, generation) => self.deferred_put(instance, generation),
            Task::Build(instance) => self.build_server(instance, at),
            Task::DeployLook(instance) => self.look_at_deploy(instance, at),
        }
    }

    fn nova_later(&mut self, at: Timestamp, task: Task) {
        self.timers.add(at, Event::Nova(task));
    }

    /// Sends a request as Nova does.
    fn nova_call(
        &mut self,
        service: Service,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> (StatusCode, Value) {
        let bytes = body.map(Value::to_string).unwrap_or_default();
        let mut request = Request::new(bytes::Bytes::from(bytes));
        *request.method_mut() = method;
        let Ok(uri) = path.parse() else {
            return (StatusCode::BAD_REQUEST, Value::Null);
        };
        *request.uri_mut() = uri;
        let (name, version) = match service {
            Service::Ironic => ("x-openstack-ironic-api-version", "1.46"),
            _ => ("openstack-api-version", "placement 1.36"),
        };
        request
            .headers_mut()
            .insert(name, http::HeaderValue::from_static(version));
        request.extensions_mut().insert(Caller("nova".into()));
        let response = self.answer(service, &request);
        (
            response.status(),
            serde_json::from_slice(response.body()).unwrap_or(Value::Null),
        )
    }
}
