//! What happened in the world, in order, each with its own time.
//!
//! Entries are written where the state changes (see `World::edit_node` and `World::edit_provider`),
//! never by those who asked for the change, so nothing can be forgotten.

use http::{Method, StatusCode};
use jiff::Timestamp;
use std::sync::Arc;
use uuid::Uuid;

use super::Service;
use super::ironic::State;

/// How many entries a sealed part of the log holds; cloning a log copies at most so many.
const PART: usize = 256;

/// One thing that happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// When: the event's own time, which may be earlier than the call that played it.
    pub at: Timestamp,
    /// What.
    pub change: Change,
}

/// The facts of a node that others judge it by.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Facts {
    /// Its provision state.
    pub state: State,
    /// The instance it carries.
    pub instance: Option<Uuid>,
    /// Whether it is in maintenance.
    pub maintenance: bool,
    /// Its power state as Ironic knows it.
    pub power: Option<String>,
    /// Whether it is retired.
    pub retired: bool,
    /// Whether a conductor holds its lock.
    pub locked: bool,
}

/// Kinds of change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// A node appeared, changed or vanished.
    Node {
        /// The node.
        node: Uuid,
        /// Before; `None` when it was not there.
        before: Option<Facts>,
        /// After; `None` when it is gone.
        after: Option<Facts>,
    },
    /// Ironic's traits of a node changed.
    NodeTraits {
        /// The node.
        node: Uuid,
        /// All its traits from now on.
        traits: Vec<String>,
    },
    /// A provider appeared or vanished.
    Provider {
        /// The provider.
        provider: Uuid,
        /// Whether it exists from now on.
        exists: bool,
    },
    /// A provider's class has free capacity from now on (`offered`), or no longer.
    Offer {
        /// The provider.
        provider: Uuid,
        /// The resource class.
        class: String,
        /// Whether a query for one unit may return it.
        offered: bool,
    },
    /// A provider's reserved amount changed.
    Reserved {
        /// The provider.
        provider: Uuid,
        /// The resource class.
        class: String,
        /// Before; `None` when there was no such inventory.
        before: Option<u64>,
        /// After; `None` when there is no such inventory any more.
        after: Option<u64>,
    },
    /// A consumer's allocation at a provider changed.
    Allocation {
        /// The provider.
        provider: Uuid,
        /// The consumer.
        consumer: Uuid,
        /// The resource class.
        class: String,
        /// Units before.
        before: u64,
        /// Units from now on.
        after: u64,
    },
    /// Placement's traits of a provider changed.
    Traits {
        /// The provider.
        provider: Uuid,
        /// All its traits from now on.
        traits: Vec<String>,
    },
    /// A server of Nova's went from one stage to the next.
    Server {
        /// The instance.
        instance: Uuid,
        /// Where it is now, in Nova's words: `building`, `active`, `deleting`, `deleted`, `error`.
        stage: &'static str,
        /// What else there is to say.
        note: String,
    },
    /// Nova's tracker met a conflict, refreshed its cache and will repeat its write.
    TrackerConflict {
        /// The provider.
        provider: Uuid,
    },
    /// A request was answered.
    Request {
        /// Who sent it.
        who: String,
        /// To which service.
        service: Service,
        /// The method.
        method: Method,
        /// Path and query.
        path: String,
        /// What it was answered.
        status: StatusCode,
    },
}

/// The ordered log. Cloning shares all but its last part.
#[derive(Clone, Debug, Default)]
pub struct Log {
    sealed: Vec<Arc<[Entry]>>,
    open: Vec<Entry>,
}

impl Log {
    pub(crate) fn push(&mut self, at: Timestamp, change: Change) {
        self.open.push(Entry { at, change });
        if self.open.len() >= PART {
            self.sealed.push(std::mem::take(&mut self.open).into());
        }
    }

    /// All entries in order.
    pub fn iter(&self) -> impl Iterator<Item = &Entry> {
        self.sealed.iter().flat_map(|part| part.iter()).chain(&self.open)
    }

    /// All entries, the newest first.
    pub fn newest(&self) -> impl Iterator<Item = &Entry> {
        let sealed = self.sealed.iter().rev().flat_map(|part| part.iter().rev());
        self.open.iter().rev().chain(sealed)
    }

    /// How many entries there are.
    pub fn len(&self) -> usize {
        self.sealed.len() * PART + self.open.len()
    }

    /// Whether nothing happened yet.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The requests answered so far, as `METHOD path` with the status, in order.
    pub fn requests(&self) -> impl Iterator<Item = RequestLine<'_>> {
        self.iter().filter_map(|entry| match &entry.change {
            Change::Request {
                who,
                service,
                method,
                path,
                status,
            } => Some(RequestLine {
                at: entry.at,
                who,
                service: *service,
                method,
                path,
                status: *status,
            }),
            _ => None,
        })
    }

    /// The provision states of a node with the times it entered them, in order.
    pub fn states(&self, node: Uuid) -> Vec<(Timestamp, State)> {
        let mut states: Vec<(Timestamp, State)> = Vec::new();
        for entry in self.iter() {
            if let Change::Node {
                node: id,
                after: Some(facts),
                ..
            } = &entry.change
                && *id == node
                && states.last().is_none_or(|(_, last)| *last != facts.state)
            {
                states.push((entry.at, facts.state));
            }
        }
        states
    }
}

/// One request of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestLine<'a> {
    /// When it was answered.
    pub at: Timestamp,
    /// Who sent it.
    pub who: &'a str,
    /// To which service.
    pub service: Service,
    /// The method.
    pub method: &'a Method,
    /// Path and query.
    pub path: &'a str,
    /// What it was answered.
    pub status: StatusCode,
}
