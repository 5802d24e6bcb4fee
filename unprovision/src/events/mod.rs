//! Who tells the guard that something has happened, before it looks for itself.
//!
//! What a source says only *wakes*: the node is read before anything is decided. So a message may be late, doubled, lost or
//! a lie; the guard's own looks and sweeps find everything as well, only later.

mod channel;
mod heard;
#[cfg(feature = "rabbitmq")]
mod rabbitmq;

use std::fmt;

use futures::stream::BoxStream;
use ironic_client::NodeUuid;
use jiff::Timestamp;

pub use channel::{Channel, Sender, channel};
pub use heard::{Contact, Heard};
#[cfg(feature = "rabbitmq")]
pub use rabbitmq::{BadBroker, BrokerUrl, RabbitMq, RabbitMqSettings};

/// A reason to look at a node. Nothing is decided from it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hint {
    /// The node.
    pub node: NodeUuid,
    /// What was said, for the log.
    pub reason: String,
    /// When it was said, where that is known.
    pub said_at: Option<Timestamp>,
}

/// What a source says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Said {
    /// Something has happened to a node.
    Hint(Hint),
    /// Something was said that is about no node.
    Other,
    /// Something was said that nobody can read. It is set aside, and why.
    Unreadable(String),
    /// From here on it listens. Whatever happened before may have been missed: everything is to be looked at.
    Listens,
    /// It hears nothing, and why; it goes on trying.
    Deaf(String),
}

/// Says when something has happened to a node.
pub trait EventSource: fmt::Debug + Send + Sync {
    /// Which one it is, without secrets.
    fn name(&self) -> String;

    /// All that it says from now on. The stream does not end while there is any hope; each item counts as handled once the
    /// next one is asked for. Dropping the stream ends the listening.
    fn listen(&self) -> BoxStream<'_, Said>;
}
