//! What became of a case.

use ironic_client::{NodeUuid, ProvisionState};
use jiff::Timestamp;
use serde::{Serialize, Serializer};
use uuid::Uuid;

use crate::core::{Case, Outcome};

/// What became of a case in this run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CaseReport {
    /// The node.
    pub node: NodeUuid,
    /// Its name, where it has one.
    pub name: Option<String>,
    /// The instance that leaves, where anybody knows it.
    pub instance: Option<Uuid>,
    /// The strategy's name.
    pub strategy: String,
    /// How it ended, or how far it is.
    pub outcome: Progress,
    /// The node's state when it was seen last.
    pub provision_state: Option<ProvisionState>,
    /// Why, and what to do next.
    pub reason: String,
    /// Whether something of ours still holds the provider.
    pub held: bool,
    /// Seconds from the start of the case to the release of the instance's allocation.
    pub freed_after_s: Option<f64>,
    /// Seconds from the start of the case to its end, where the node has returned.
    pub returned_after_s: Option<f64>,
}

/// How a case ended, or how far it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// It has ended, for good or for now.
    Ended(Outcome),
    /// Ironic has accepted the tear-down, and nobody waits.
    Accepted,
    /// The waiting was stopped.
    Stopped,
    /// There is nothing to do now but to wait.
    Waits,
    /// Another process looks after it, and nothing was done here.
    Elsewhere,
}

impl Serialize for Progress {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Ended(outcome) => outcome.serialize(serializer),
            Self::Accepted => serializer.serialize_str("accepted"),
            Self::Stopped => serializer.serialize_str("stopped"),
            Self::Waits => serializer.serialize_str("waits"),
            Self::Elsewhere => serializer.serialize_str("elsewhere"),
        }
    }
}

impl std::fmt::Display for Progress {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Ended(outcome) => outcome.fmt(f),
            Self::Accepted => f.write_str("accepted"),
            Self::Stopped => f.write_str("stopped"),
            Self::Waits => f.write_str("waits"),
            Self::Elsewhere => f.write_str("elsewhere"),
        }
    }
}

impl CaseReport {
    pub(crate) fn new(case: &Case, outcome: Progress, reason: String, held: bool, now: Timestamp) -> Self {
        let since_start = |at: Timestamp| at.duration_since(case.opened_at).as_secs_f64();
        let returned = outcome == Progress::Ended(Outcome::Returned);
        Self {
            node: case.node,
            name: case.found.name.clone(),
            instance: case.instance(),
            strategy: case.strategy.clone(),
            outcome,
            provision_state: case.seen.as_ref().map(|(state, _)| state.clone()),
            reason,
            held,
            freed_after_s: case.freed_at.map(since_start),
            returned_after_s: returned.then(|| since_start(now)),
        }
    }
}
