//! The judge: reads the log and says when a node was offered although it was not free.
//!
//! Its idea of a free node is its own, so that it cannot share a mistake with what it judges. A
//! provider belongs to the node with the same UUID, as Nova makes it.

use jiff::Timestamp;
use std::collections::BTreeSet;
use std::time::Duration;
use uuid::Uuid;

use super::ironic::State;
use super::log::{Change, Entry, Facts, Log};

/// How long a node was offered although it was not free.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Exposure {
    /// All windows together.
    pub total: Duration,
    /// From and to of each window. A window without length is kept: the order of two writes at the same
    /// instant was wrong. A window still open ends at the log's last entry.
    pub windows: Vec<(Timestamp, Timestamp)>,
}

impl Exposure {
    /// Whether there was none at all.
    pub fn is_none(&self) -> bool {
        self.windows.is_empty()
    }

    /// Only what lies between two times, such as the first hold and the first `available`.
    pub fn between(&self, from: Timestamp, to: Timestamp) -> Self {
        let clipped = self
            .windows
            .iter()
            .map(|(start, end)| (*start.max(&from), *end.min(&to)));
        Self::of(clipped.filter(|(start, end)| start <= end).collect())
    }

    fn of(windows: Vec<(Timestamp, Timestamp)>) -> Self {
        let total = windows
            .iter()
            .map(|(from, to)| to.duration_since(*from).unsigned_abs())
            .sum();
        Self { total, windows }
    }
}

/// Whether a node is free for the next instance, by what Ironic says of it.
pub fn is_free(facts: &Facts) -> bool {
    let powered = matches!(&facts.power, Some(power) if power != "error");
    facts.state == State::Available
        && facts.instance.is_none()
        && !facts.maintenance
        && powered
        && !facts.retired
}

/// A query for a node's class.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Query<'a> {
    /// The trait that it forbids.
    pub forbids: Option<&'a str>,
}

impl Query<'_> {
    /// When `node` was offered to such queries although it was not free.
    pub fn exposure(self, log: &Log, node: Uuid) -> Exposure {
        let end = log.iter().last().map(|entry| entry.at);
        let mut windows = Vec::new();
        let mut open = None;
        for (at, track) in Track::over(log, node, self.forbids) {
            match (open, track.offered() && !track.free) {
                (None, true) => open = Some(at),
                (Some(from), false) => {
                    windows.push((from, at));
                    open = None;
                }
                _ => {}
            }
        }
        windows.extend(open.zip(end));
        Exposure::of(windows)
    }

    /// When `node` was offered to such queries first, being free, at or after `since`.
    pub fn offered_at(self, log: &Log, node: Uuid, since: Timestamp) -> Option<Timestamp> {
        let fits = |track: &Track| track.free && track.offered();
        Track::over(log, node, self.forbids)
            .into_iter()
            .find(|(at, track)| *at >= since && fits(track))
            .map(|(at, _)| at)
    }

    /// How long it took after `since` from the moment the node was free to the moment it was offered to such queries.
    pub fn offered_again_after(self, log: &Log, node: Uuid, since: Timestamp) -> Option<Duration> {
        let freed = freed_at(log, node, since)?;
        let offered = self.offered_at(log, node, freed)?;
        Some(offered.duration_since(freed).unsigned_abs())
    }

    /// Whether such queries are offered the node at the end of the log.
    pub fn is_offered(self, log: &Log, node: Uuid) -> bool {
        Track::over(log, node, self.forbids)
            .last()
            .is_some_and(|(_, track)| track.offered())
    }
}

/// When `node` was offered although it was not free, to any query for its class.
pub fn exposure(log: &Log, node: Uuid) -> Exposure {
    Query::default().exposure(log, node)
}

/// The same for queries that forbid the trait `forbidden`.
pub fn exposure_forbidding(log: &Log, node: Uuid, forbidden: &str) -> Exposure {
    let query = Query {
        forbids: Some(forbidden),
    };
    query.exposure(log, node)
}

/// When `node` became free first at or after `since`: from then on it may be offered.
pub fn freed_at(log: &Log, node: Uuid, since: Timestamp) -> Option<Timestamp> {
    Track::over(log, node, None)
        .into_iter()
        .find(|(at, track)| *at >= since && track.free)
        .map(|(at, _)| at)
}

/// When `node` was offered first, being free, at or after `since`.
pub fn offered_at(log: &Log, node: Uuid, since: Timestamp) -> Option<Timestamp> {
    Query::default().offered_at(log, node, since)
}

/// How long it took after `since` from the moment the node was free to the moment it was offered.
pub fn offered_again_after(log: &Log, node: Uuid, since: Timestamp) -> Option<Duration> {
    Query::default().offered_again_after(log, node, since)
}

/// Whether the node is offered at the end of the log.
pub fn is_offered(log: &Log, node: Uuid) -> bool {
    Query::default().is_offered(log, node)
}

/// What the log says of one node up to some entry.
#[derive(Clone, Debug, Default)]
struct Track {
    free: bool,
    classes: BTreeSet<String>,
    hidden: bool,
}

impl Track {
    /// The track after each entry that concerns the node.
    fn over(log: &Log, node: Uuid, forbidden: Option<&str>) -> Vec<(Timestamp, Self)> {
        let mut track = Self::default();
        let step = |entry: &Entry| {
            track
                .note(&entry.change, node, forbidden)
                .then(|| (entry.at, track.clone()))
        };
        log.iter().filter_map(step).collect()
    }

    fn offered(&self) -> bool {
        !self.classes.is_empty() && !self.hidden
    }

    fn note(&mut self, change: &Change, node: Uuid, forbidden: Option<&str>) -> bool {
        match change {
            Change::Node { node: id, after, .. } if *id == node => {
                self.free = after.as_ref().is_some_and(is_free);
            }
            Change::Offer {
                provider,
                class,
                offered,
            } if *provider == node => {
                if *offered {
                    self.classes.insert(class.clone());
                } else {
                    self.classes.remove(class);
                }
            }
            Change::Traits { provider, traits } if *provider == node => {
                self.hidden = forbidden.is_some_and(|name| traits.iter().any(|t| t == name));
            }
            _ => return false,
        }
        true
    }
}
