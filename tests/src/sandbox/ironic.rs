//! Ironic's API 1.1 to 1.115: the routes, and what all answers have in common.

mod change;
mod discovery;
mod life;
mod list;
mod node;
mod state;
pub(crate) mod step;
mod traits;
mod trouble;
mod verbs;
mod view;

pub use node::{Behaviour, CleanFailure, Node, Stuck, Style};
pub use state::State;

use bytes::Bytes;
use http::{Method, Response, StatusCode};
use serde_json::{Value, json};
use uuid::Uuid;

use super::call::{self, Call, set_header};
use super::world::World;

const VERSION: &str = "x-openstack-ironic-api-version";
const LOWEST: &str = "x-openstack-ironic-api-minimum-version";
const HIGHEST: &str = "x-openstack-ironic-api-maximum-version";

/// The conductors' condition.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Conductor {
    /// Since it is frozen or dead, nothing goes on and nothing is accepted.
    pub(crate) condition: Condition,
    /// What was due while it was frozen.
    pub(crate) held: Vec<(Uuid, step::Step)>,
}

/// What the conductor is able to do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Condition {
    /// It works.
    #[default]
    Alive,
    /// It hangs: what it holds stays held, and it may go on later.
    Frozen,
    /// It died: what it was doing is lost.
    Dead,
}

/// A refusal, with the text that goes into `faultstring`.
#[derive(Debug)]
pub(crate) struct Refusal {
    status: StatusCode,
    text: String,
    kind: Kind,
}

/// Which of Ironic's two error shapes a refusal has.
#[derive(Debug, PartialEq, Eq)]
enum Kind {
    /// From the API's own code: `faultstring`.
    Fault,
    /// From the framework below: `code`, `title`, `description`, without version headers.
    Framework,
}

impl Refusal {
    fn new(status: StatusCode, text: impl Into<String>) -> Self {
        Self {
            status,
            text: text.into(),
            kind: Kind::Fault,
        }
    }

    fn bad(text: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, text)
    }

    fn conflict(text: impl Into<String>) -> Self {
        Self::new(StatusCode::CONFLICT, text)
    }

    fn not_acceptable() -> Self {
        Self::new(StatusCode::NOT_ACCEPTABLE, "Request not acceptable.")
    }

    fn framework(status: StatusCode, text: impl Into<String>) -> Self {
        Self {
            status,
            text: text.into(),
            kind: Kind::Framework,
        }
    }

    fn no_node(name: &str) -> Self {
        Self::new(StatusCode::NOT_FOUND, format!("Node {name} could not be found."))
    }

    fn locked(node: &Node, host: &str) -> Self {
        let uuid = node.uuid;
        Self::conflict(format!(
            "Node {uuid} is locked by host {host}, please retry after the current operation is completed."
        ))
    }

    fn forbidden(rule: &str) -> Self {
        let text = format!("Access was denied to the following resource: {rule}");
        Self::new(StatusCode::FORBIDDEN, text)
    }

    fn into_response(self) -> Response<Bytes> {
        let title = self.status.canonical_reason().unwrap_or_default();
        let inner = match self.kind {
            Kind::Fault => {
                let code = if self.status.is_server_error() {
                    "Server"
                } else {
                    "Client"
                };
                json!({"faultcode": code, "faultstring": self.text, "debuginfo": null})
            }
            Kind::Framework => {
                json!({"code": self.status.as_u16(), "title": title, "description": self.text})
            }
        };
        call::json(self.status, &json!({"error_message": inner.to_string()}))
    }
}

type Answer = Result<Response<Bytes>, Refusal>;

impl World {
    /// Answers a request to Ironic.
    pub(crate) fn ironic(&mut self, call: &Call<'_>) -> Response<Bytes> {
        let mut response = match self.ironic_version(call) {
            Ok(minor) => {
                let answer = match &call.refused {
                    Some(rule) => Err(self.denied(call, minor, rule)),
                    None => self.ironic_route(call, minor),
                };
                let mut response = match answer {
                    Ok(response) => response,
                    Err(refusal) if refusal.kind == Kind::Framework => {
                        return self.ironic_finish(call, refusal.into_response());
                    }
                    Err(refusal) => refusal.into_response(),
                };
                set_header(&mut response, VERSION, &format!("1.{minor}"));
                self.ironic_range(&mut response);
                response
            }
            Err(response) => *response,
        };
        set_header(&mut response, "server", "ironic_api");
        self.ironic_finish(call, response)
    }

    fn ironic_finish(&self, call: &Call<'_>, mut response: Response<Bytes>) -> Response<Bytes> {
        set_header(&mut response, "x-openstack-request-id", &call.request_id);
        set_header(&mut response, "openstack-request-id", &call.request_id);
        response
    }

    fn ironic_range(&self, response: &mut Response<Bytes>) {
        set_header(response, LOWEST, &format!("1.{}", self.config.ironic.min_minor));
        set_header(response, HIGHEST, &format!("1.{}", self.config.ironic.max_minor));
    }

    /// The minor version that a request asks for, or the answer to one that cannot be served.
    fn ironic_version(&self, call: &Call<'_>) -> Result<u16, Box<Response<Bytes>>> {
        let config = &self.config.ironic;
        let asked = call.header(VERSION).filter(|_| !config.version_header_stripped);
        let Some(asked) = asked else {
            return Ok(config.min_minor);
        };
        if asked.eq_ignore_ascii_case("latest") {
            return Ok(config.max_minor);
        }
        let parsed = asked
            .split_once('.')
            .and_then(|(major, minor)| Some((major.parse::<u16>().ok()?, minor.parse::<u16>().ok()?)));
        match parsed {
            None => {
                let text = "Invalid value for X-OpenStack-Ironic-API-Version header";
                Err(Box::new(
                    Refusal::framework(StatusCode::NOT_ACCEPTABLE, text).into_response(),
                ))
            }
            Some((1, minor)) if (config.min_minor..=config.max_minor).contains(&minor) => Ok(minor),
            Some((major, minor)) => {
                let part = if major == 1 { "minor" } else { "major" };
                let text = format!(
                    "Version {major}.{minor} was requested but the {part} version is not supported by this \
                     service. The supported version range is: [1.{}, 1.{}].",
                    config.min_minor, config.max_minor
                );
                let mut response = Refusal::framework(StatusCode::NOT_ACCEPTABLE, text).into_response();
                self.ironic_range(&mut response);
                Err(Box::new(response))
            }
        }
    }

    fn ironic_route(&mut self, call: &Call<'_>, minor: u16) -> Answer {
        let parts = call.parts();
        match (call.method.as_str(), parts.as_slice()) {
            ("GET", []) => Ok(self.ironic_root()),
            ("GET", ["v1"]) => Ok(self.ironic_v1(minor)),
            ("GET", ["v1", "nodes"]) => self.list_nodes(call, minor, false),
            ("GET", ["v1", "nodes", "detail"]) => self.list_nodes(call, minor, true),
            ("POST", ["v1", "nodes"]) => self.create_node(call, minor),
            ("GET", ["v1", "conductors", ..]) => self.list_conductors(minor),
            ("GET", ["v1", "drivers", ..]) => Ok(self.list_drivers()),
            (_, ["v1", "nodes", name, rest @ ..]) => self.node_route(call, minor, name, rest),
            _ => Err(not_found(call)),
        }
    }

    /// Of a node that is not there, or not seen, nothing is said but that.
    fn denied(&self, call: &Call<'_>, minor: u16, rule: &str) -> Refusal {
        match call.parts().as_slice() {
            ["v1", "nodes", name, ..] => self.find_node(call, name, minor).err(),
            _ => None,
        }
        .unwrap_or_else(|| Refusal::forbidden(rule))
    }

    fn node_route(&mut self, call: &Call<'_>, minor: u16, name: &str, rest: &[&str]) -> Answer {
        match (call.method.as_str(), rest) {
            ("PATCH", []) => change::check_form(call, minor)?,
            ("PUT", ["traits", rest @ ..]) if minor >= 37 => traits::check_form(call, rest)?,
            _ => {}
        }
        let node = self.find_node(call, name, minor)?;
        match (call.method.as_str(), rest) {
            ("GET", []) => self.show_node(call, minor, node),
            ("PATCH", []) => self.patch_node(call, minor, node),
            ("DELETE", []) => self.delete_node(node),
            ("GET", ["states"]) => self.show_states(minor, node),
            ("PUT", ["states", "provision"]) => self.set_provision(call, minor, node),
            ("PUT", ["states", "power"]) => self.set_power(call, node),
            ("PUT", ["maintenance"]) => self.set_maintenance(call, node, true),
            ("DELETE", ["maintenance"]) => self.set_maintenance(call, node, false),
            (method, ["traits", rest @ ..]) => self.node_traits(call, method, minor, node, rest),
            _ => Err(not_found(call)),
        }
    }

    /// A node by UUID, or by name where the version has names.
    fn find_node(&self, call: &Call<'_>, name: &str, minor: u16) -> Result<Uuid, Refusal> {
        let found = match Uuid::parse_str(name) {
            Ok(uuid) => self.node(uuid),
            Err(_) if minor < 5 || !is_name(name) => {
                let text = format!("Expected UUID or name for node: {name}");
                return Err(Refusal::framework(StatusCode::BAD_REQUEST, text));
            }
            Err(_) => self
                .nodes()
                .into_iter()
                .find(|node| node.name.as_deref() == Some(name)),
        };
        let found = found.filter(|node| node.is_seen_by(call));
        found.map(|node| node.uuid).ok_or_else(|| Refusal::no_node(name))
    }

    /// A node that is surely there.
    fn have(&self, node: Uuid) -> Result<&Node, Refusal> {
        self.node(node).ok_or_else(|| Refusal::no_node(&node.to_string()))
    }

    /// Takes the lock for the length of a request: refused while it is held or no conductor serves the node. The
    /// lock is a field of the node, so taking it is a change.
    fn take_lock(&mut self, uuid: Uuid) -> Result<(), Refusal> {
        let node = self.have(uuid)?;
        if let Some(host) = &node.reservation {
            return Err(Refusal::locked(node, host));
        }
        if self.conductor.condition != Condition::Alive {
            let text = format!(
                "No valid host was found. Reason: No conductor service registered which supports driver \
                 fake-hardware for conductor group \"{}\".",
                node.conductor_group
            );
            return Err(Refusal::bad(text));
        }
        let now = self.now();
        self.edit_node(uuid, |node| node.updated_at = Some(now));
        Ok(())
    }
}

impl Node {
    /// A caller confined to its project sees only what it owns, and is not told of the rest.
    fn is_seen_by(&self, call: &Call<'_>) -> bool {
        call.only_of.is_none() || call.only_of == self.owner
    }
}

/// What a host name may be made of: a node's name is one.
fn is_name(name: &str) -> bool {
    !name.is_empty()
        && name
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || "-._~".contains(c))
}

fn not_found(call: &Call<'_>) -> Refusal {
    let status = if call.method == Method::GET {
        StatusCode::NOT_FOUND
    } else {
        StatusCode::METHOD_NOT_ALLOWED
    };
    Refusal::framework(status, "The resource could not be found.")
}

/// A JSON object from a request's body.
fn object(call: &Call<'_>) -> Result<Value, Refusal> {
    let value = call
        .json()
        .map_err(|error| Refusal::bad(format!("Malformed JSON: {error}")))?;
    if value.is_object() {
        Ok(value)
    } else {
        Err(Refusal::bad("Expected a JSON object"))
    }
}
