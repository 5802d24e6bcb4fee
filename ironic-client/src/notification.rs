//! What Ironic says of its nodes over a message queue: parsing only, no IO.
//!
//! A message is a JSON object, or (since oslo.messaging's envelope 2.0) one that carries that object as text. What is
//! unknown is passed over: other fields, versions, kinds of events, states. What is not a notification at all is an error,
//! so that whoever reads a queue can set it aside.

use std::fmt;

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use serde_json::{Map, Value};

use crate::{NodeUuid, ProvisionState};

/// The longest message that is read. A node's own fields may be long, but not so long.
pub const LONGEST: usize = 1 << 20;
/// The longest text that is taken over from a message.
const LONGEST_WORD: usize = 128;

/// One message, as far as it matters here. It may be late, doubled, or out of order: it is a reason to look at the node, and
/// nothing to decide from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notification {
    /// What has happened, such as `baremetal.node.provision_set.start`.
    pub event_type: String,
    /// The node that it is about; `None` where it is about something else.
    pub node: Option<NodeUuid>,
    /// When it was said.
    pub said_at: Option<Timestamp>,
    /// The node's state before, where it changes.
    pub previous_provision_state: Option<ProvisionState>,
    /// The node's state as it was then.
    pub provision_state: Option<ProvisionState>,
}

impl fmt::Display for Notification {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.event_type)?;
        match (&self.previous_provision_state, &self.provision_state) {
            (Some(from), Some(to)) => write!(f, " ({from} -> {to})"),
            (None, Some(state)) => write!(f, " ({state})"),
            _ => Ok(()),
        }
    }
}

/// Why a message is no notification. It says where, and nothing of the content: that may hold secrets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotANotification {
    /// It is longer than [`LONGEST`].
    TooLong(usize),
    /// It is no JSON, or nested too deeply.
    NoJson {
        /// Which layer: the body, or the text within the envelope.
        layer: &'static str,
        /// Where it ends to be JSON.
        line: usize,
        /// Where in the line.
        column: usize,
    },
    /// It is JSON, but something that every notification has is missing.
    Lacks(&'static str),
}

impl fmt::Display for NotANotification {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooLong(bytes) => write!(f, "it has {bytes} bytes, and {LONGEST} are read at most"),
            Self::NoJson { layer, line, column } => {
                write!(
                    f,
                    "{layer} is no JSON at line {line}, column {column}, or nested too deeply"
                )
            }
            Self::Lacks(what) => write!(f, "it has no {what}"),
        }
    }
}

impl std::error::Error for NotANotification {}

impl Notification {
    /// Reads a message's body.
    ///
    /// # Errors
    ///
    /// Where it is no notification.
    pub fn parse(body: &[u8]) -> Result<Self, NotANotification> {
        if body.len() > LONGEST {
            return Err(NotANotification::TooLong(body.len()));
        }
        let outer = object(body, "the body")?;
        match outer.get("oslo.message") {
            Some(Value::String(inner)) => Self::from_object(&object(inner.as_bytes(), "`oslo.message`")?),
            Some(_) => Err(NotANotification::Lacks("text in `oslo.message`")),
            None => Self::from_object(&outer),
        }
    }

    fn from_object(message: &Map<String, Value>) -> Result<Self, NotANotification> {
        let event_type = word(message, "event_type").ok_or(NotANotification::Lacks("`event_type`"))?;
        let payload = message
            .get("payload")
            .and_then(Value::as_object)
            .ok_or(NotANotification::Lacks("`payload`"))?;
        // A versioned object keeps its fields one level down.
        let fields = payload
            .get("ironic_object.data")
            .and_then(Value::as_object)
            .unwrap_or(payload);
        // Ports and the like name their node in another field than their own.
        let uuid = match event_type.starts_with("baremetal.node.") {
            true => "uuid",
            false => "node_uuid",
        };
        Ok(Self {
            node: word(fields, uuid).and_then(|uuid| uuid.parse().ok()),
            said_at: word(message, "timestamp").and_then(|text| time(&text)),
            previous_provision_state: word(fields, "previous_provision_state").map(state),
            provision_state: word(fields, "provision_state").map(state),
            event_type,
        })
    }
}

/// The JSON object in these bytes. `serde_json` goes 128 levels deep and no further.
fn object(bytes: &[u8], layer: &'static str) -> Result<Map<String, Value>, NotANotification> {
    match serde_json::from_slice(bytes) {
        Ok(Value::Object(object)) => Ok(object),
        Ok(_) => Err(NotANotification::Lacks("object")),
        Err(error) => Err(NotANotification::NoJson {
            layer,
            line: error.line(),
            column: error.column(),
        }),
    }
}

/// A field that is a text of a sensible length.
fn word(object: &Map<String, Value>, key: &str) -> Option<String> {
    let text = object.get(key)?.as_str()?;
    (1..=LONGEST_WORD).contains(&text.len()).then(|| text.to_owned())
}

fn state(word: String) -> ProvisionState {
    ProvisionState::from(Some(word))
}

/// oslo.messaging writes UTC without saying so; others may say so.
fn time(text: &str) -> Option<Timestamp> {
    text.parse().ok().or_else(|| {
        let at: DateTime = text.parse().ok()?;
        TimeZone::UTC.to_timestamp(at).ok()
    })
}
