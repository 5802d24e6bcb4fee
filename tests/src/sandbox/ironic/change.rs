//! Creating, patching and deleting nodes.

use http::StatusCode;
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;
use uuid::Uuid;

use super::super::call::{self, Call, set_header};
use super::super::world::World;
use super::{Answer, Node, Refusal, State, is_name, object, view};

/// What PATCH may change.
const PATCHABLE: &[&str] = &[
    "automated_clean",
    "bios_interface",
    "boot_interface",
    "chassis_uuid",
    "conductor_group",
    "console_interface",
    "deploy_interface",
    "description",
    "disable_power_off",
    "driver",
    "driver_info",
    "extra",
    "inspect_interface",
    "instance_info",
    "instance_name",
    "instance_uuid",
    "lessee",
    "maintenance",
    "management_interface",
    "name",
    "network_data",
    "network_interface",
    "owner",
    "power_interface",
    "properties",
    "protected",
    "protected_reason",
    "raid_interface",
    "rescue_interface",
    "resource_class",
    "retired",
    "retired_reason",
    "shard",
    "storage_interface",
    "vendor_interface",
    "parent_node",
    "firmware_interface",
];

/// What Ironic stores for every node, without a default for a patch that removes it.
const NEVER_NULL: &str = "maintenance";

impl World {
    pub(super) fn create_node(&mut self, call: &Call<'_>, minor: u16) -> Answer {
        let body = object(call)?;
        let Value::Object(body) = body else {
            return Err(Refusal::bad("Expected a JSON object"));
        };
        if !body.contains_key("driver") {
            return Err(Refusal::bad(
                "Schema error for node: 'driver' is a required property",
            ));
        }
        let uuid = match body.get("uuid") {
            None | Some(Value::Null) => self.new_uuid("node"),
            Some(Value::String(text)) => {
                Uuid::parse_str(text).map_err(|_| Refusal::bad(format!("Expected UUID for node: {text}")))?
            }
            Some(_) => return Err(Refusal::bad("Expected UUID for node")),
        };
        if self.nodes.contains_key(&uuid) {
            return Err(Refusal::conflict(format!(
                "A node with UUID {uuid} already exists."
            )));
        }
        let mut node = Node::new(self.next_node_id(), uuid, call.now);
        if minor < 11 {
            node.provision_state = State::Available;
        }
        for (field, value) in &body {
            let known = field == "uuid" || PATCHABLE.contains(&field.as_str());
            match view::since(field) {
                Some(since) if known && since <= minor => set(&mut node, field, value.clone())?,
                Some(_) if known => return Err(Refusal::not_acceptable()),
                _ => {
                    return Err(Refusal::bad(format!(
                        "Schema error for node: '{field}' was unexpected"
                    )));
                }
            }
        }
        self.check_name(&node)?;
        let shown = view::node(&self.config.ironic, &node, minor, None);
        self.add_node(node);
        let mut response = call::json(StatusCode::CREATED, &shown);
        let location = format!("{}/v1/nodes/{uuid}", self.config.ironic.base_url);
        set_header(&mut response, "location", &location);
        Ok(response)
    }

    pub(crate) fn next_node_id(&self) -> u64 {
        self.nodes.values().map(|node| node.id).max().unwrap_or(0) + 1
    }

    fn check_name(&self, node: &Node) -> Result<(), Refusal> {
        let Some(name) = &node.name else { return Ok(()) };
        if !is_name(name) || Uuid::parse_str(name).is_ok() {
            return Err(Refusal::bad(format!(
                "Cannot create node with invalid name '{name}'"
            )));
        }
        let taken = self
            .nodes
            .values()
            .any(|other| other.uuid != node.uuid && other.name == node.name);
        if taken {
            Err(Refusal::conflict(format!(
                "A node with name {name} already exists."
            )))
        } else {
            Ok(())
        }
    }

    pub(super) fn patch_node(&mut self, call: &Call<'_>, minor: u16, uuid: Uuid) -> Answer {
        let patch = operations(call)?;
        let before = self.have(uuid)?.clone();
        check_moving(&before, &patch)?;
        let mut node = patched(&before, &patch)?;
        self.take_lock(uuid)?;
        self.check_patch(&before, &node)?;
        self.check_name(&node)?;
        node.updated_at = Some(call.now);
        if !node.maintenance {
            node.fault = None;
            node.maintenance_reason = None;
        }
        let host = self.config.ironic.conductor.clone();
        self.edit_node(uuid, |entry| *entry = node);
        // The conductor answers while it still holds its own lock, and the answer shows it.
        let mut shown = self.have(uuid)?.clone();
        shown.reservation = Some(host);
        Ok(call::json(
            StatusCode::OK,
            &view::node(&self.config.ironic, &shown, minor, None),
        ))
    }

    fn check_patch(&self, before: &Node, after: &Node) -> Result<(), Refusal> {
        let uuid = before.uuid;
        if let (Some(old), Some(new)) = (before.instance_uuid, after.instance_uuid)
            && old != new
        {
            return Err(Refusal::conflict(format!(
                "Node {uuid} is associated with instance {old}."
            )));
        }
        if before.instance_uuid.is_none()
            && let Some(new) = after.instance_uuid
            && self.nodes.values().any(|other| other.instance_uuid == Some(new))
        {
            return Err(Refusal::conflict(format!(
                "Instance {new} is already associated with a node, it cannot be associated with this other \
                 node {uuid}"
            )));
        }
        if after.protected
            && !before.protected
            && !matches!(before.provision_state, State::Active | State::Rescue)
        {
            let text = format!(
                "Node {uuid} can not be protected in state \"{}\"",
                before.provision_state
            );
            return Err(Refusal::conflict(text));
        }
        if after.retired && !before.retired && before.provision_state == State::Available {
            let text = format!(
                "Node {uuid} is in 'available' state and cannot be retired: use 'manage' to move it to \
                 'manageable' first"
            );
            return Err(Refusal::conflict(text));
        }
        Ok(())
    }

    pub(super) fn delete_node(&mut self, uuid: Uuid) -> Answer {
        self.take_lock(uuid)?;
        let node = self.have(uuid)?;
        if let Some(instance) = node.instance_uuid.filter(|_| !node.maintenance) {
            return Err(Refusal::conflict(format!(
                "Node {uuid} is associated with instance {instance}."
            )));
        }
        if node.protected {
            return Err(protected(uuid));
        }
        let allowed = [
            State::Manageable,
            State::Enroll,
            State::AdoptFailed,
            State::Available,
        ];
        if !node.maintenance && !allowed.contains(&node.provision_state) {
            return Err(Refusal::conflict(format!(
                "Can not delete node \"{uuid}\" while it is in provision state \"{}\". Valid provision states \
                 to perform deletion are: \"('manageable', 'enroll', 'adopt failed', 'available')\", or set \
                 the node into maintenance mode",
                node.provision_state
            )));
        }
        self.remove_node(uuid);
        Ok(call::empty(StatusCode::NO_CONTENT))
    }
}

pub(super) fn protected(uuid: Uuid) -> Refusal {
    let text = format!("Node {uuid} is protected and cannot be undeployed, rebuilt or deleted");
    Refusal::new(StatusCode::FORBIDDEN, text)
}

fn operations(call: &Call<'_>) -> Result<Vec<Value>, Refusal> {
    match call.json() {
        Ok(Value::Array(patch)) => Ok(patch),
        _ => Err(Refusal::bad("Expected a list of patch operations")),
    }
}

/// An operation's name, its path, the path's field and what is behind that.
fn parts(operation: &Value) -> (&str, &str, &str, Option<&str>) {
    let op = operation["op"].as_str().unwrap_or_default();
    let path = operation["path"].as_str().unwrap_or_default();
    let mut parts = path.strip_prefix('/').unwrap_or(path).splitn(2, '/');
    (op, path, parts.next().unwrap_or_default(), parts.next())
}

/// What is wrong with a patch whatever node it is for; told before the node is looked for.
pub(super) fn check_form(call: &Call<'_>, minor: u16) -> Result<(), Refusal> {
    let patch = operations(call)?;
    for operation in &patch {
        let (_, path, field, _) = parts(operation);
        if !PATCHABLE.contains(&field) {
            let list = PATCHABLE.join(", ");
            return Err(Refusal::bad(format!(
                "Cannot patch {path}. Only the following can be updated: {list}"
            )));
        }
    }
    // Only a new value for the whole field needs the version that brought it.
    let too_new = |operation: &Value| {
        let (op, _, field, inner) = parts(operation);
        op != "remove" && inner.is_none() && view::since(field).is_some_and(|since| since > minor)
    };
    if patch.iter().any(too_new) {
        return Err(Refusal::not_acceptable());
    }
    // Ironic 39.0.0 looks for the value of a removal that has none.
    match patch.iter().any(|operation| {
        let (op, _, field, _) = parts(operation);
        op == "remove" && field == "automated_clean"
    }) {
        true => Err(Refusal::new(StatusCode::INTERNAL_SERVER_ERROR, "'value'")),
        false => Ok(()),
    }
}

fn check_moving(before: &Node, patch: &[Value]) -> Result<(), Refusal> {
    let only_drops_instance =
        matches!(patch, [one] if one["op"] == "remove" && one["path"] == "/instance_uuid");
    let moving = before.target_provision_state.is_some() && !before.provision_state.may_be_patched();
    if moving && !(before.maintenance && only_drops_instance) {
        let uuid = before.uuid;
        let text = format!("Node {uuid} can not be updated while a state transition is in progress.");
        return Err(Refusal::conflict(text));
    }
    Ok(())
}

/// The node as the patch makes it. What was removed is not there for the operations that follow, and in the end one
/// field must be there.
fn patched(before: &Node, patch: &[Value]) -> Result<Node, Refusal> {
    let (mut node, mut gone) = (before.clone(), BTreeSet::new());
    for (index, operation) in patch.iter().enumerate() {
        let (op, path, field, inner) = parts(operation);
        if gone.contains(field) && (op != "add" || inner.is_some()) {
            return Err(Refusal::bad(format!(
                "Couldn't apply patch '{operation}'. Reason: can't {op} a non-existent object '{path}'"
            )));
        }
        // Only the last value of a field is looked at.
        let last = !patch[index + 1..]
            .iter()
            .any(|later| (parts(later).2, parts(later).3) == (field, None));
        if last || inner.is_some() {
            apply(&mut node, operation)?;
        }
        match (op, inner) {
            ("remove", None) => gone.insert(field),
            _ => gone.remove(field),
        };
    }
    if gone.contains(NEVER_NULL) {
        // Ironic 39.0.0 stumbles over it.
        let text = format!("Field `{NEVER_NULL}' cannot be None");
        return Err(Refusal::new(StatusCode::INTERNAL_SERVER_ERROR, text));
    }
    Ok(node)
}

/// Applies one operation of a patch.
fn apply(node: &mut Node, operation: &Value) -> Result<(), Refusal> {
    let (op, path, field, inner) = parts(operation);
    let value = operation.get("value").cloned();
    match (op, inner, value) {
        ("add" | "replace", None, Some(value)) => set(node, field, value),
        ("remove", None, _) => set(node, field, Value::Null),
        ("replace", Some(key), Some(_))
            if !inner_object(node, field).is_some_and(|object| object.contains_key(key)) =>
        {
            Err(Refusal::bad(format!(
                "Couldn't apply patch '{operation}'. Reason: can't replace a non-existent object '{key}'"
            )))
        }
        ("add" | "replace", Some(key), Some(value)) => {
            inner_object(node, field).map(|object| object.insert(key.to_owned(), value));
            Ok(())
        }
        ("remove", Some(key), _) => match inner_object(node, field).and_then(|object| object.remove(key)) {
            Some(_) => Ok(()),
            None => Err(Refusal::bad(format!(
                "Couldn't apply patch '{{'op': 'remove', 'path': '{path}'}}'. Reason: can't remove a \
                 non-existent object '{key}'"
            ))),
        },
        _ => Err(Refusal::bad(format!("Couldn't apply patch '{operation}'"))),
    }
}

/// The object in a field, made if there is none.
fn inner_object<'a>(node: &'a mut Node, field: &str) -> Option<&'a mut Map<String, Value>> {
    if !node.rest.get(field).is_some_and(Value::is_object) {
        node.rest.insert(field.to_owned(), json!({}));
    }
    node.rest.get_mut(field).and_then(Value::as_object_mut)
}

/// Sets a field from JSON; null unsets it.
fn set(node: &mut Node, field: &str, value: Value) -> Result<(), Refusal> {
    let wrong = || {
        Refusal::bad(format!(
            "Schema error for node: '{field}' has a value of a wrong kind"
        ))
    };
    let text = |value: Value| match value {
        Value::Null => Ok(None),
        Value::String(text) => Ok(Some(text)),
        _ => Err(wrong()),
    };
    let flag = |value: Value| match value {
        Value::Null => Ok(None),
        Value::Bool(flag) => Ok(Some(flag)),
        Value::String(text) => Ok(Some(super::list::is_true(&text))),
        _ => Err(wrong()),
    };
    match field {
        "uuid" => {}
        "name" => node.name = text(value)?,
        "resource_class" => node.resource_class = text(value)?,
        "conductor_group" => node.conductor_group = text(value)?.unwrap_or_default().to_lowercase(),
        "owner" => node.owner = text(value)?,
        "lessee" => node.lessee = text(value)?,
        "shard" => node.shard = text(value)?,
        "maintenance" => node.maintenance = flag(value)?.unwrap_or(false),
        "automated_clean" => node.automated_clean = flag(value)?,
        "protected" => node.protected = flag(value)?.unwrap_or(false),
        "retired" => {
            let flag = flag(value)?;
            node.retired = flag.unwrap_or(false);
            match flag {
                Some(_) => node.rest.remove(field),
                None => node.rest.insert(field.to_owned(), Value::Null),
            };
        }
        "instance_uuid" => {
            let uuid = text(value)?;
            let parsed = uuid.as_deref().map(Uuid::parse_str).transpose();
            node.instance_uuid = parsed.map_err(|_| Refusal::bad("Expected a UUID for instance_uuid"))?;
        }
        _ if value.is_null() => {
            node.rest.remove(field);
        }
        _ => {
            node.rest.insert(field.to_owned(), value);
        }
    }
    Ok(())
}
