//! Who works on a case: one process at a time (rule 16).

use std::collections::BTreeSet;
use std::fmt;

use serde::{Deserialize, Serialize};

use super::{Case, CaseState};

/// A process that works on cases, from its start to its end. No two are ever equal.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Process {
    /// The name of its machine or container.
    pub host: String,
    /// Which start of the machine that is.
    pub boot: String,
    /// Where its number counts: containers number their processes anew.
    pub namespace: String,
    /// Its number.
    pub pid: u32,
    /// When it started, in the machine's ticks since its start: numbers are given again.
    pub started: u64,
}

/// Whose a case is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Claim {
    /// This process works on it already.
    Ours,
    /// Nobody does.
    Nobodys,
    /// Somebody else does.
    Theirs(Process),
}

impl Case {
    /// Whose the case is, seen from this process, where those work whose leases have not run out.
    pub fn claim(&self, us: &Process, at_work: &BTreeSet<Process>) -> Claim {
        match &self.taken_by {
            Some(by) if by == us => Claim::Ours,
            Some(by) if at_work.contains(by) => Claim::Theirs(by.clone()),
            _ => Claim::Nobodys,
        }
    }

    /// Whether another process was the last to work on it, or nobody has for a while.
    pub fn was_left(&self, us: &Process) -> bool {
        let by_another = self.taken_by.as_ref().is_some_and(|by| by != us);
        by_another || matches!(self.state, CaseState::Suspended(_))
    }
}

impl fmt::Display for Process {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "process {} on {}", self.pid, self.host)
    }
}
