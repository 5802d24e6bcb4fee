//! What a node looks like from outside over time: looks at both services go in, windows come out. Pure.
//!
//! The rule of this crate can be seen without taking part: a node is offered, or not, and it is free, or not. Of the four,
//! two are wrong: [`Phase::Exposed`] is the bug, and [`Phase::IdleWhileFree`] is capacity that nobody can use.

use std::collections::BTreeMap;

use ironic_client::{Node, NodeUuid, ProvisionState};
use jiff::{SignedDuration, Timestamp};
use serde::Serialize;

use crate::core::{NotFree, why_not_free};

/// What one look showed of one node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Look {
    /// The node's state; `None` where Ironic does not know the node, or does not show it.
    pub provision_state: Option<ProvisionState>,
    /// What keeps it from being free, where Ironic knows it.
    pub not_free: Option<NotFree>,
    /// Whether Placement offers it.
    pub offered: bool,
}

/// What a node is to those who might get it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// Offered, although it is not free.
    Exposed,
    /// Neither free nor offered.
    Held,
    /// Free, and not offered.
    IdleWhileFree,
    /// Free, and offered.
    Offered,
}

/// All watched nodes at one time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sample {
    /// When the look had ended.
    pub at: Timestamp,
    /// What it showed; `None` where it failed: then nobody knows.
    pub looks: Option<BTreeMap<NodeUuid, Look>>,
}

/// A time over which looks showed the same.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Span<K> {
    /// What they showed.
    pub what: K,
    /// The first look that showed it.
    pub from: Timestamp,
    /// The first look that showed something else, or else the last one that showed it.
    pub to: Timestamp,
    /// Whether its end was seen; not where the watch ended, or a look failed.
    pub ended: bool,
    /// How far both ends may be off: the longest time between two looks, those beside the span included.
    #[serde(skip)]
    pub resolution: SignedDuration,
}

impl Look {
    /// A look at a node, where Ironic knows it, and at what Placement offers.
    pub fn new(node: Option<&Node>, offered: bool) -> Self {
        Self {
            provision_state: node.map(|node| node.provision_state.clone()),
            not_free: node.and_then(why_not_free),
            offered,
        }
    }

    /// Whether the node is really free.
    pub fn is_free(&self) -> bool {
        self.provision_state.is_some() && self.not_free.is_none()
    }

    /// What the node is to those who might get it.
    pub fn phase(&self) -> Phase {
        match (self.offered, self.is_free()) {
            (true, false) => Phase::Exposed,
            (false, false) => Phase::Held,
            (false, true) => Phase::IdleWhileFree,
            (true, true) => Phase::Offered,
        }
    }
}

impl Sample {
    fn look(&self, node: NodeUuid) -> Option<&Look> {
        self.looks.as_ref()?.get(&node)
    }
}

impl<K> Span<K> {
    /// How long it lasted, as far as it was seen.
    pub fn duration(&self) -> SignedDuration {
        self.to.duration_since(self.from)
    }
}

/// The spans of one node, in order of time, by whatever of a look is of interest. A look that failed is a gap: it ends a
/// span, and nothing is said about the time beside it.
pub fn spans<K: PartialEq>(samples: &[Sample], node: NodeUuid, key: impl Fn(&Look) -> K) -> Vec<Span<K>> {
    let mut spans: Vec<Span<K>> = Vec::new();
    let mut before: Option<Timestamp> = None;
    for sample in samples {
        let at = sample.at;
        let Some(what) = sample.look(node).map(&key) else {
            before = None;
            continue;
        };
        // The look before was a good one, so the last span reaches up to here.
        let gap = before.map(|before| at.duration_since(before));
        let last = spans.last_mut().filter(|_| gap.is_some());
        let gap = gap.unwrap_or_default();
        match last {
            Some(last) if last.what == what => {
                last.to = at;
                last.resolution = last.resolution.max(gap);
            }
            last => {
                if let Some(last) = last {
                    (last.to, last.ended) = (at, true);
                    last.resolution = last.resolution.max(gap);
                }
                spans.push(Span {
                    what,
                    from: at,
                    to: at,
                    ended: false,
                    resolution: gap,
                });
            }
        }
        before = Some(at);
    }
    spans
}

/// The longest time between two looks of which none failed.
pub fn resolution(samples: &[Sample]) -> SignedDuration {
    let pairs = samples.windows(2).filter_map(|pair| match pair {
        [one, next] if one.looks.is_some() && next.looks.is_some() => Some(next.at.duration_since(one.at)),
        _ => None,
    });
    pairs.max().unwrap_or_default()
}

/// Whether the node was seen away, and is now back: free and offered.
pub fn is_back(samples: &[Sample], node: NodeUuid) -> bool {
    let looks = || samples.iter().filter_map(|sample| sample.look(node));
    looks().any(|look| !look.is_free())
        && looks()
            .next_back()
            .is_some_and(|look| look.phase() == Phase::Offered)
}
