//! What happened to each node of a world, read from the ordered log of its state changes.

use std::collections::BTreeSet;
use std::time::Duration;

use jiff::Timestamp;
use serde::Serialize;
use unprovision_testkit::sandbox::judge::{self, Exposure, Query};
use unprovision_testkit::sandbox::log::{Change, Log};
use uuid::Uuid;

use super::play::Played;

/// The figures of one strategy, as they are printed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Figures {
    /// Its name; `nova-unfixed` is the baseline.
    pub(super) strategy: &'static str,
    /// How many nodes were torn down.
    pub(super) nodes: usize,
    /// How often Placement was asked what it offers.
    pub(super) samples: u64,
    /// How many answers offered a node that was not free, to the queries that the strategy protects.
    pub(super) exposed_samples: u64,
    /// How many did to queries that do not forbid the strategy's tag.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) exposed_samples_plain: Option<u64>,
    /// For how long some node was offered although it was not free, from the log; rounded up, so that 0 means never.
    pub(super) exposed_ms: u64,
    /// From the request to the release of the instance's allocation; the median over the nodes.
    pub(super) freed_after_ms: Option<u64>,
    /// From `available` to being offered again; the median over the nodes.
    pub(super) offered_again_after_ms: Option<u64>,
}

/// One node's way, as far as the drawing needs it.
#[derive(Debug)]
pub(super) struct Story {
    /// The strategy's name.
    pub(super) strategy: &'static str,
    /// The node's name.
    pub(super) node: String,
    /// When the world began.
    pub(super) began: Timestamp,
    /// When the tear-down was asked for.
    pub(super) asked: Timestamp,
    /// When the log ended.
    pub(super) ended: Timestamp,
    /// When the instance's allocation was released.
    pub(super) freed: Option<Timestamp>,
    /// When the node was free.
    pub(super) available: Option<Timestamp>,
    /// When it was offered again.
    pub(super) offered_again: Option<Timestamp>,
    /// When it was offered although it was not free.
    pub(super) exposure: Exposure,
    /// What could be seen of it, each from its time on.
    pub(super) views: Vec<(Timestamp, View)>,
}

/// What can be seen of a node at one time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct View {
    /// Its provision state.
    pub(super) state: &'static str,
    /// Who keeps its unit in Placement.
    pub(super) kept_by: &'static str,
    /// Whether it is free.
    pub(super) free: bool,
    /// Whether Placement offers it.
    pub(super) offered: bool,
}

/// The figures of a world, and the story of its first node.
pub(super) fn read(played: &Played) -> (Figures, Option<Story>) {
    let log = played.stage.sandbox.log();
    let pairs = &played.stage.pairs;
    let query = played.stage.query();
    let windows = pairs
        .iter()
        .flat_map(|(node, _)| query.exposure(&log, *node).windows)
        .collect();
    let freed = pairs.iter().map(|(node, instance)| {
        let freed = freed_at(&log, *node, *instance)?;
        Some(freed.duration_since(played.asked).unsigned_abs())
    });
    let again = pairs
        .iter()
        .map(|(node, _)| query.offered_again_after(&log, *node, played.asked));
    let figures = Figures {
        strategy: played.stage.name,
        nodes: pairs.len(),
        samples: played.samples.taken,
        exposed_samples: played.samples.exposed,
        exposed_samples_plain: played
            .stage
            .forbids
            .as_ref()
            .map(|_| played.samples.exposed_plain),
        exposed_ms: length_in_ms(windows),
        freed_after_ms: median_in_ms(freed.collect()),
        offered_again_after_ms: median_in_ms(again.collect()),
    };
    (figures, pairs.first().map(|pair| story(played, &log, *pair)))
}

fn story(played: &Played, log: &Log, (node, instance): (Uuid, Uuid)) -> Story {
    let stage = &played.stage;
    let name = stage
        .sandbox
        .with(|world, _| world.node(node).and_then(|node| node.name.clone()));
    let available = judge::freed_at(log, node, played.asked);
    Story {
        strategy: stage.name,
        node: name.unwrap_or_else(|| node.to_string()),
        began: stage.began,
        asked: played.asked,
        ended: log.iter().last().map_or(played.asked, |entry| entry.at),
        freed: freed_at(log, node, instance),
        available,
        offered_again: available.and_then(|since| stage.query().offered_at(log, node, since)),
        exposure: stage.query().exposure(log, node),
        views: views(log, node, instance, stage.query()),
    }
}

/// When the instance gave the node's unit up.
fn freed_at(log: &Log, node: Uuid, instance: Uuid) -> Option<Timestamp> {
    let is_it = |change: &Change| {
        matches!(change, Change::Allocation { provider, consumer, after: 0, .. }
            if *provider == node && *consumer == instance)
    };
    log.iter()
        .find(|entry| is_it(&entry.change))
        .map(|entry| entry.at)
}

fn views(log: &Log, node: Uuid, instance: Uuid, query: Query<'_>) -> Vec<(Timestamp, View)> {
    let mut views: Vec<(Timestamp, View)> = Vec::new();
    let mut view = View::default();
    let mut holders = BTreeSet::new();
    let (mut reserved, mut tagged, mut open) = (false, false, false);
    for entry in log.iter() {
        match &entry.change {
            Change::Node {
                node: id,
                after: Some(facts),
                ..
            } if *id == node => {
                view.state = facts.state.as_str();
                view.free = judge::is_free(facts);
            }
            Change::Offer {
                provider, offered, ..
            } if *provider == node => open = *offered,
            Change::Traits { provider, traits } if *provider == node => {
                let is_tag = |name: &String| query.forbids == Some(name.as_str());
                tagged = traits.iter().any(is_tag);
            }
            Change::Reserved { provider, after, .. } if *provider == node => {
                reserved = after.is_some_and(|units| units > 0)
            }
            Change::Allocation {
                provider,
                consumer,
                after: 0,
                ..
            } if *provider == node => {
                holders.remove(consumer);
            }
            Change::Allocation {
                provider, consumer, ..
            } if *provider == node => {
                holders.insert(*consumer);
            }
            _ => continue,
        }
        view.offered = open && !tagged;
        view.kept_by = match (holders.contains(&instance), holders.is_empty(), reserved) {
            (true, ..) => "instance",
            (false, false, _) => "unprovision",
            (false, true, true) => "reserved",
            (false, true, false) if tagged => "tag",
            (false, true, false) => "nobody",
        };
        if views.last().is_none_or(|(_, last)| *last != view) {
            views.push((entry.at, view.clone()));
        }
    }
    views
}

/// How long some of these windows was open. A window without length counts as a millisecond: the order of two writes
/// was wrong.
fn length_in_ms(mut windows: Vec<(Timestamp, Timestamp)>) -> u64 {
    windows.sort();
    let mut total = Duration::ZERO;
    let mut reached = Timestamp::MIN;
    for (from, to) in &windows {
        let from = (*from).max(reached);
        if *to > from {
            total += to.duration_since(from).unsigned_abs();
            reached = *to;
        }
    }
    let ms = u64::try_from(total.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX);
    ms.max(u64::from(!windows.is_empty()))
}

/// The median; `None` where it never came to that for some node.
fn median_in_ms(durations: Vec<Option<Duration>>) -> Option<u64> {
    let mut durations = durations.into_iter().collect::<Option<Vec<_>>>()?;
    durations.sort();
    let median = durations.get(durations.len() / 2)?;
    u64::try_from(median.as_millis()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: i64) -> Timestamp {
        Timestamp::from_millisecond(ms).unwrap()
    }

    #[test]
    fn windows_that_overlap_count_once() {
        assert_eq!(length_in_ms(vec![]), 0);
        assert_eq!(
            length_in_ms(vec![(at(10), at(30)), (at(0), at(20)), (at(40), at(50))]),
            40
        );
    }

    #[test]
    fn no_exposure_is_rounded_away() {
        assert_eq!(length_in_ms(vec![(at(5), at(5))]), 1);
        let later = at(5) + Duration::from_micros(1);
        assert_eq!(length_in_ms(vec![(at(5), later)]), 1);
    }

    #[test]
    fn a_node_that_never_came_back_leaves_no_median() {
        let ms = |ms| Some(Duration::from_millis(ms));
        assert_eq!(median_in_ms(vec![ms(3), ms(1), ms(2)]), Some(2));
        assert_eq!(median_in_ms(vec![ms(3), None]), None);
        assert_eq!(median_in_ms(vec![]), None);
    }
}
