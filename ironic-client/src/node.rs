//! A node, as far as this workspace looks at it.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use uuid::Uuid;

use crate::ProvisionState;

mod field;
pub use field::NodeField;

/// A node's UUID. Nova names a node's resource provider by the same UUID.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct NodeUuid(pub Uuid);

impl fmt::Display for NodeUuid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for NodeUuid {
    type Err = uuid::Error;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        text.parse().map(Self)
    }
}

/// What Ironic last knew of the power. A node whose power is unknown is not offered by Nova.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub enum PowerState {
    /// `power on`
    On,
    /// `power off`
    Off,
    /// `error`: the power could not be read or set.
    Error,
    /// Any other word, such as `rebooting`; the server's own.
    Other(String),
}

impl From<String> for PowerState {
    fn from(word: String) -> Self {
        match word.as_str() {
            "power on" => Self::On,
            "power off" => Self::Off,
            "error" => Self::Error,
            _ => Self::Other(word),
        }
    }
}

impl From<PowerState> for String {
    fn from(state: PowerState) -> Self {
        match state {
            PowerState::On => "power on".into(),
            PowerState::Off => "power off".into(),
            PowerState::Error => "error".into(),
            PowerState::Other(word) => word,
        }
    }
}

/// Why Ironic itself put a node into maintenance. A person's maintenance carries no fault.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub enum Fault {
    /// `clean failure`: set by a failing clean step; recovery may clear the maintenance.
    CleanFailure,
    /// Any other word, such as `power failure`; the server's own.
    Other(String),
}

impl From<String> for Fault {
    fn from(word: String) -> Self {
        if word == "clean failure" {
            Self::CleanFailure
        } else {
            Self::Other(word)
        }
    }
}

impl From<Fault> for String {
    fn from(fault: Fault) -> Self {
        match fault {
            Fault::CleanFailure => "clean failure".into(),
            Fault::Other(word) => word,
        }
    }
}

/// A bare-metal node.
///
/// Fields that were not asked for, or that the negotiated microversion does not know, are at their
/// default: `None`, `false`, empty.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Node {
    /// The node's UUID.
    pub uuid: NodeUuid,
    /// The node's name, where it has one.
    #[serde(default)]
    pub name: Option<String>,
    /// Where the node is in its life.
    #[serde(deserialize_with = "lenient::or_null")]
    pub provision_state: ProvisionState,
    /// Where it is going.
    #[serde(default)]
    pub target_provision_state: Option<ProvisionState>,
    /// When the provision state last changed; a whole second on some databases. `None` also where the text cannot be
    /// read.
    #[serde(default, deserialize_with = "lenient::timestamp")]
    pub provision_updated_at: Option<Timestamp>,
    /// The instance that the node carries.
    #[serde(default)]
    pub instance_uuid: Option<Uuid>,
    /// What is known of the power; `None` where Ironic does not know it.
    #[serde(default)]
    pub power_state: Option<PowerState>,
    /// Whether the node is in maintenance.
    #[serde(default, deserialize_with = "lenient::or_default")]
    pub maintenance: bool,
    /// Why, in somebody's words.
    #[serde(default)]
    pub maintenance_reason: Option<String>,
    /// Why Ironic itself set the maintenance; `None` for a person's.
    #[serde(default)]
    pub fault: Option<Fault>,
    /// The last error, which need not be a failure of what goes on now.
    #[serde(default)]
    pub last_error: Option<String>,
    /// The conductor that holds the node's lock.
    #[serde(default)]
    pub reservation: Option<String>,
    /// The node's resource class, in Ironic's spelling (`baremetal.small`).
    #[serde(default)]
    pub resource_class: Option<String>,
    /// Traits of the node.
    #[serde(default, deserialize_with = "lenient::or_default")]
    pub traits: BTreeSet<String>,
    /// Whether the node is retired: it will not become available again (API 1.61).
    #[serde(default, deserialize_with = "lenient::or_default")]
    pub retired: bool,
    /// Whether the node is protected: Ironic refuses to tear it down (API 1.48).
    #[serde(default, deserialize_with = "lenient::or_default")]
    pub protected: bool,
    /// The conductor group (API 1.46).
    #[serde(default)]
    pub conductor_group: Option<String>,
    /// The owner's project (API 1.50).
    #[serde(default)]
    pub owner: Option<String>,
    /// The shard (API 1.82).
    #[serde(default)]
    pub shard: Option<String>,
}

/// Reads a node of which these fields were asked for; the error names the node.
///
/// Those whose absence would make a node look free must be there.
pub(crate) fn read(value: Value, fields: &str) -> Result<Node, String> {
    let deciding = [
        NodeField::InstanceUuid,
        NodeField::Maintenance,
        NodeField::Retired,
    ]
    .map(NodeField::as_str);
    let asked = |key: &str| fields.split(',').any(|field| field == key);
    let missing = deciding
        .into_iter()
        .find(|key| asked(key) && value.get(key).is_none());
    let uuid = value["uuid"].as_str().unwrap_or("without a UUID").to_owned();
    match missing {
        Some(key) => Err(format!("node {uuid}: missing field `{key}`")),
        None => serde_json::from_value(value).map_err(|error| format!("node {uuid}: {error}")),
    }
}

/// Reading of values that may be missing or odd without any harm. What decides whether a node is free (its state, its
/// instance) is never read this way.
mod lenient {
    use jiff::{Timestamp, civil, tz::TimeZone};
    use serde::{Deserialize, Deserializer};
    use serde_json::Value;

    /// `null` is the default.
    pub(super) fn or_default<'de, D: Deserializer<'de>, T: Deserialize<'de> + Default>(
        from: D,
    ) -> Result<T, D::Error> {
        Ok(Option::deserialize(from)?.unwrap_or_default())
    }

    /// `null` is a value of its own, a missing one is an error (serde would take both for the same).
    pub(super) fn or_null<'de, D: Deserializer<'de>, T: Deserialize<'de>>(from: D) -> Result<T, D::Error> {
        T::deserialize(from)
    }

    /// A time with an offset, or without one in UTC; anything else is no time.
    pub(super) fn timestamp<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Timestamp>, D::Error> {
        let value = Value::deserialize(from)?;
        Ok(value.as_str().and_then(parse))
    }

    fn parse(text: &str) -> Option<Timestamp> {
        let in_utc = |text: &str| {
            TimeZone::UTC
                .to_timestamp(text.parse::<civil::DateTime>().ok()?)
                .ok()
        };
        text.parse().ok().or_else(|| in_utc(text))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const UUID: &str = "126b5922-7723-40d2-bb13-cb1c6beb2ade";

    fn node(changes: Value) -> Result<Node, serde_json::Error> {
        let mut node = json!({ "uuid": UUID, "provision_state": "available", "links": [] });
        for (key, value) in changes.as_object().unwrap() {
            node[key] = value.clone();
        }
        serde_json::from_value(node)
    }

    #[test]
    fn nulls_and_unknown_words_are_read() {
        let node = node(json!({
            "maintenance": null, "retired": null, "protected": null, "traits": null, "name": null,
            "power_state": "soft rebooting", "fault": "moon phase", "provision_state": "moonwalking",
            "instance_uuid": null, "conductor_group": "", "some_new_field": { "a": 1 },
        }))
        .unwrap();
        assert!(!node.maintenance && !node.retired && !node.protected && node.traits.is_empty());
        assert_eq!(node.power_state, Some(PowerState::Other("soft rebooting".into())));
        assert_eq!(node.fault, Some(Fault::Other("moon phase".into())));
        assert_eq!(node.provision_state, ProvisionState::Other("moonwalking".into()));
        assert_eq!(node.conductor_group.as_deref(), Some(""));
    }

    #[test]
    fn times_are_read_with_and_without_fraction_and_offset() {
        let time = |text: Value| {
            node(json!({ "provision_updated_at": text }))
                .unwrap()
                .provision_updated_at
        };
        let whole = Some("2026-11-30T03:05:17Z".parse().unwrap());
        for text in [
            "2026-11-30T03:05:17+00:00",
            "2026-11-30T03:05:17Z",
            "2026-11-30T03:05:17",
            "2026-11-30T04:05:17+01:00",
        ] {
            assert_eq!(time(text.into()), whole, "{text}");
        }
        let exact = Some("2026-11-30T03:05:17.572443Z".parse().unwrap());
        assert_eq!(time("2026-11-30T03:05:17.572443+00:00".into()), exact);
        assert_eq!(time("2026-11-30 03:05:17.572443".into()), exact);
        for odd in [json!("yesterday"), json!(""), json!(17), json!(null)] {
            assert_eq!(time(odd), None);
        }
    }

    #[test]
    fn what_decides_about_free_is_never_guessed() {
        assert!(node(json!({ "instance_uuid": "i-7" })).is_err());
        assert!(node(json!({ "provision_state": 7 })).is_err());
        assert!(serde_json::from_value::<Node>(json!({ "uuid": UUID })).is_err());
        assert!(serde_json::from_value::<Node>(json!({ "provision_state": "available" })).is_err());
        assert_eq!(
            node(json!({ "provision_state": null }))
                .unwrap()
                .provision_state
                .to_string(),
            "null"
        );
    }

    #[test]
    fn a_node_reads_back_as_it_was_written() {
        let node =
            node(json!({ "power_state": "power on", "fault": "clean failure", "provision_state": null }))
                .unwrap();
        let text = serde_json::to_string(&node).unwrap();
        assert_eq!(serde_json::from_str::<Node>(&text).unwrap(), node);
    }

    #[test]
    fn every_field_is_named_as_in_a_node() {
        let full = serde_json::to_value(node(json!({})).unwrap()).unwrap();
        let names: BTreeSet<_> = full
            .as_object()
            .unwrap()
            .keys()
            .map(String::as_str)
            .filter(|k| *k != "uuid")
            .collect();
        assert_eq!(
            NodeField::ALL
                .map(NodeField::as_str)
                .into_iter()
                .collect::<BTreeSet<_>>(),
            names
        );
    }
}
