//! Nodes as JSON: which fields a version shows, and how they look.

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::super::call::iso;
use super::super::config::IronicConfig;
use super::{Node, State};

/// Fields, the minor version that brought each, and what it reads when nobody set it.
const FIELDS: &[(&str, u16, Unset)] = &[
    ("uuid", 1, Unset::Null),
    ("created_at", 1, Unset::Null),
    ("updated_at", 1, Unset::Null),
    ("console_enabled", 1, Unset::False),
    ("driver", 1, Unset::Text("fake-hardware")),
    ("driver_info", 1, Unset::Object),
    ("extra", 1, Unset::Object),
    ("instance_info", 1, Unset::Object),
    ("instance_uuid", 1, Unset::Null),
    ("last_error", 1, Unset::Null),
    ("maintenance", 1, Unset::Null),
    ("maintenance_reason", 1, Unset::Null),
    ("power_state", 1, Unset::Null),
    ("properties", 1, Unset::Object),
    ("provision_state", 1, Unset::Null),
    ("provision_updated_at", 1, Unset::Null),
    ("reservation", 1, Unset::Null),
    ("target_power_state", 1, Unset::Null),
    ("target_provision_state", 1, Unset::Null),
    ("chassis_uuid", 1, Unset::Null),
    ("driver_internal_info", 3, Unset::Object),
    ("name", 5, Unset::Null),
    ("inspection_finished_at", 6, Unset::Null),
    ("inspection_started_at", 6, Unset::Null),
    ("clean_step", 7, Unset::Object),
    ("raid_config", 12, Unset::Object),
    ("target_raid_config", 12, Unset::Object),
    ("network_interface", 20, Unset::Text("noop")),
    ("resource_class", 21, Unset::Null),
    ("boot_interface", 31, Unset::Text("fake")),
    ("console_interface", 31, Unset::Text("fake")),
    ("deploy_interface", 31, Unset::Text("fake")),
    ("inspect_interface", 31, Unset::Text("fake")),
    ("management_interface", 31, Unset::Text("fake")),
    ("power_interface", 31, Unset::Text("fake")),
    ("raid_interface", 31, Unset::Text("fake")),
    ("vendor_interface", 31, Unset::Text("fake")),
    ("storage_interface", 33, Unset::Text("noop")),
    ("traits", 37, Unset::Null),
    ("rescue_interface", 38, Unset::Text("fake")),
    ("bios_interface", 40, Unset::Text("fake")),
    ("fault", 42, Unset::Null),
    ("deploy_step", 44, Unset::Object),
    ("conductor_group", 46, Unset::Null),
    ("automated_clean", 47, Unset::Null),
    ("protected", 48, Unset::Null),
    ("protected_reason", 48, Unset::Null),
    ("conductor", 49, Unset::Null),
    ("owner", 50, Unset::Null),
    ("description", 51, Unset::Null),
    ("allocation_uuid", 52, Unset::Null),
    ("retired", 61, Unset::Null),
    ("retired_reason", 61, Unset::Null),
    ("lessee", 65, Unset::Null),
    ("network_data", 66, Unset::Object),
    ("boot_mode", 75, Unset::Null),
    ("secure_boot", 75, Unset::Null),
    ("shard", 82, Unset::Null),
    ("parent_node", 83, Unset::Null),
    ("firmware_interface", 86, Unset::Text("fake")),
    ("service_step", 87, Unset::Object),
    ("disable_power_off", 95, Unset::False),
    ("instance_name", 104, Unset::Null),
    ("health", 109, Unset::Null),
];

/// What a field reads when nobody set it.
#[derive(Clone, Copy)]
enum Unset {
    Null,
    False,
    Object,
    Text(&'static str),
}

/// The fields of a list that names none.
pub(super) const SHORT: &[&str] = &[
    "uuid",
    "name",
    "instance_uuid",
    "maintenance",
    "power_state",
    "provision_state",
];

/// The minor version that brought a field; `None` when there is no such field.
pub(super) fn since(field: &str) -> Option<u16> {
    match field {
        "links" => Some(1),
        _ => FIELDS
            .iter()
            .find(|(name, ..)| *name == field)
            .map(|(_, minor, _)| *minor),
    }
}

/// A node with the fields asked for, or with all that the version knows.
pub(super) fn node(config: &IronicConfig, node: &Node, minor: u16, fields: Option<&[String]>) -> Value {
    let mut object = Map::new();
    for (name, since, unset) in FIELDS {
        let wanted = fields.is_none_or(|fields| fields.iter().any(|field| field == name));
        if wanted && *since <= minor {
            object.insert((*name).to_owned(), field(config, node, minor, name, *unset));
        }
    }
    object.insert("links".into(), links(config, &format!("nodes/{}", node.uuid)));
    if fields.is_none() {
        for (name, since) in [("ports", 1), ("states", 14), ("portgroups", 24), ("volume", 32)] {
            if since <= minor {
                object.insert(name.into(), links(config, &format!("nodes/{}/{name}", node.uuid)));
            }
        }
    }
    Value::Object(object)
}

fn field(config: &IronicConfig, node: &Node, minor: u16, name: &str, unset: Unset) -> Value {
    let time = |at: Option<Timestamp>| at.map(|at| iso(cut(config, at)));
    match name {
        "uuid" => json!(node.uuid),
        "created_at" => json!(time(Some(node.created_at))),
        "updated_at" => json!(time(node.updated_at)),
        "name" => json!(node.name),
        "instance_uuid" => json!(node.instance_uuid),
        "last_error" => json!(node.last_error),
        "maintenance" => json!(node.maintenance),
        "maintenance_reason" => json!(node.maintenance_reason),
        "fault" => json!(node.fault),
        "power_state" => json!(node.power_state),
        "provision_state" => state(node.provision_state, minor),
        "target_provision_state" => json!(node.target_provision_state.map(|target| state(target, minor))),
        "provision_updated_at" => json!(time(node.provision_updated_at)),
        "reservation" => json!(node.reservation),
        "resource_class" => json!(node.resource_class),
        "traits" => json!(node.traits),
        "conductor_group" => json!(node.conductor_group),
        "automated_clean" => json!(node.automated_clean),
        "protected" => json!(node.protected),
        "conductor" => json!(config.conductor),
        "owner" => json!(node.owner),
        // A patch may leave it without a value.
        "retired" => json!((node.retired || !node.rest.contains_key(name)).then_some(node.retired)),
        "lessee" => json!(node.lessee),
        "shard" => json!(node.shard),
        _ => node.rest.get(name).cloned().unwrap_or_else(|| match unset {
            Unset::Null => Value::Null,
            Unset::False => Value::Bool(false),
            Unset::Object => json!({}),
            Unset::Text(text) => json!(text),
        }),
    }
}

/// A state as a version shows it: `available` has no name below 1.2.
fn state(state: State, minor: u16) -> Value {
    if state == State::Available && minor < 2 {
        Value::Null
    } else {
        json!(state.as_str())
    }
}

fn cut(config: &IronicConfig, at: Timestamp) -> Timestamp {
    if config.whole_seconds {
        Timestamp::from_second(at.as_second()).unwrap_or(at)
    } else {
        at
    }
}

/// The two links of a thing.
pub(super) fn links(config: &IronicConfig, path: &str) -> Value {
    let base = &config.base_url;
    json!([
        {"href": format!("{base}/v1/{path}"), "rel": "self"},
        {"href": format!("{base}/{path}"), "rel": "bookmark"},
    ])
}
