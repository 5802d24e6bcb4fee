//! The journal's entries: what was found, intended, done and answered.

use std::fmt;
use std::time::Duration;

use ironic_client::{NodeUuid, ProvisionState};
use jiff::Timestamp;
use placement_client::{Consumer, ConsumerUuid, ResourceClass, Units};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::{Action, Ending, Process, Tag};

/// One line of a case's journal.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Entry {
    /// When it happened, by the clock of the process that wrote it.
    pub at: Timestamp,
    /// What happened.
    #[serde(flatten)]
    pub event: Event,
}

/// What happened to a case.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Event {
    /// The case begins; the first entry, and again where a closed case is asked for anew.
    Opened {
        /// The node.
        node: NodeUuid,
        /// Who asked, and for what.
        kind: Kind,
        /// The strategy's name.
        strategy: String,
        /// How long and how often.
        limits: Limits,
        /// What was there before anything was done.
        found: Box<Found>,
        /// The cloud, in words without secrets; `None` where nobody said, as in journals of earlier versions.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cloud: Option<String>,
    },
    /// A process works on the case from here on.
    Taken {
        /// Which.
        by: Process,
    },
    /// The node was seen in another provision state, or in or out of maintenance.
    Saw {
        /// The state.
        provision_state: ProvisionState,
        /// Whether the node is in maintenance.
        maintenance: bool,
    },
    /// The instance was seen not to hold the provider any more.
    Freed,
    /// A write is about to be sent.
    Intended {
        /// The write.
        write: Action,
    },
    /// The write was accepted.
    Applied,
    /// The write was refused; nothing was changed by it.
    Refused {
        /// Why.
        refusal: Refusal,
    },
    /// The write's answer was lost; it may have been applied.
    Unknown {
        /// What is known.
        message: String,
    },
    /// Nobody works on the case for now; what it holds stays held.
    Suspended {
        /// Why.
        ending: Ending,
    },
    /// Somebody works on the case again.
    Resumed {
        /// How long and how often from now on.
        limits: Limits,
    },
    /// The case has ended; nothing of ours is left.
    Closed {
        /// How.
        ending: Ending,
    },
}

/// Who asked, and for what.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Kind {
    /// A caller named node and instance, and asked for the tear-down.
    TearDown {
        /// The instance.
        instance: Uuid,
    },
    /// Somebody else tears down; Placement only is kept right.
    Guard {
        /// The instance that leaves, where anybody knows it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        instance: Option<Uuid>,
        /// Since when the node had been in its state when the case was opened; it tells cases of the same node apart.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        since: Option<Timestamp>,
    },
}

impl Kind {
    /// The instance that leaves the node, where anybody knows it.
    pub fn instance(self) -> Option<Uuid> {
        match self {
            Self::TearDown { instance } => Some(instance),
            Self::Guard { instance, .. } => instance,
        }
    }
}

/// How long and how often, from the entry on that says so.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// When waiting ends.
    pub deadline: Timestamp,
    /// How often a tear-down that ended in `error` is sent again.
    pub retry_error: u32,
    /// How often a cleaning that failed is started again.
    pub reclean: u32,
    /// Whether to lift, at the end, the reservation that Nova leaves until its next pass.
    pub release_nova_reservations: bool,
}

/// What was there before anything was done.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Found {
    /// The node's name.
    pub name: Option<String>,
    /// The node's state.
    pub provision_state: ProvisionState,
    /// Since when.
    pub provision_updated_at: Option<Timestamp>,
    /// Placement's class of the node; `None` without a provider.
    pub class: Option<ResourceClass>,
    /// The reserved units of that class.
    pub reserved: u32,
    /// Whose the instance's allocation is; `None` where it holds nothing.
    pub owner: Option<Consumer>,
    /// What the instance holds of the provider.
    pub units: Units,
    /// Whether Nova made the provider.
    pub nova: bool,
    /// The consumer of ours that held the provider already.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hold: Option<ConsumerUuid>,
    /// The tag, where the strategy tags.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tag: Option<Tag>,
}

/// A write that the service refused.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refusal {
    /// Why.
    pub kind: RefusalKind,
    /// What the service said, with its request id.
    pub message: String,
    /// When it asked to be tried again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after: Option<Duration>,
}

/// Why a write was refused, by what one can do about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RefusalKind {
    /// A conductor holds the node's lock: wait.
    Locked,
    /// The service or its limit of cleanings is full: wait.
    Busy,
    /// No conductor serves the node now: wait.
    NoConductor,
    /// Not reached, or no login now: wait.
    Away,
    /// The world has changed since the decision: look, decide again.
    Conflict,
    /// Placement has no capacity for it: adopt what protects the node, or stop.
    NoCapacity,
    /// Not legal in the node's state: look, then give up.
    Illegal,
    /// Not allowed: give up.
    Forbidden,
    /// The node or provider does not exist.
    NotFound,
    /// Anything else that waiting does not cure.
    Other,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}
