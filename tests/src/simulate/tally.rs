//! What is counted.

use std::collections::BTreeMap;

use jiff::Timestamp;

use crate::model::Breach;

/// What a world, or all of them, came to.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    /// Cases.
    pub cases: u64,
    /// Hours that went by in the worlds.
    pub simulated_hours: u64,
    /// Steps of anybody.
    pub steps: u64,
    /// What went wrong on purpose, by kind.
    pub faults: BTreeMap<&'static str, u64>,
    /// How cases ended, by outcome; one that is taken up again ends again.
    pub ended: BTreeMap<String, u64>,
    /// Windows that a strategy declares.
    pub windows: u64,
    /// A sum over all that happened: equal runs have equal sums.
    pub digest: u64,
    /// What must not happen.
    pub violations: Vec<Violation>,
}

/// What must not happen, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The world's number.
    pub world: u64,
    /// The node's number in it.
    pub node: usize,
    /// When.
    pub at: Timestamp,
    /// What.
    pub breach: Breach,
}

impl Tally {
    /// One more of these.
    pub fn fault(&mut self, kind: &'static str) {
        *self.faults.entry(kind).or_insert(0) += 1;
    }

    /// Both together; the order makes no difference but for the violations.
    pub fn add(&mut self, other: Self) {
        self.cases += other.cases;
        self.simulated_hours += other.simulated_hours;
        self.steps += other.steps;
        self.windows += other.windows;
        self.digest = self.digest.wrapping_add(other.digest);
        self.violations.extend(other.violations);
        for (kind, count) in other.faults {
            *self.faults.entry(kind).or_insert(0) += count;
        }
        for (outcome, count) in other.ended {
            *self.ended.entry(outcome).or_insert(0) += count;
        }
    }
}
