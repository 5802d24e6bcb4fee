//! The passes of nova-compute's resource tracker, as the proxies hear them, and a way to make one long.
//!
//! A pass visits one node after the other. In each visit the tracker reads who holds the node's provider, and nobody
//! else in Nova does; a claim of a new server gets its turn between two visits.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use http::Method;
use unprovision_session::Service;
use uuid::Uuid;

use crate::proxy::{Call, Exchange, Interfere, Mark};

/// The node whose turn it is in a pass.
pub fn visited(call: &Call) -> Option<Uuid> {
    let novas = call.agent.starts_with("nova-compute");
    if !novas || call.service != Service::Placement || call.method != Method::GET {
        return None;
    }
    let path = call.path.strip_prefix("/resource_providers/")?;
    path.strip_suffix("/allocations")?.parse().ok()
}

/// Whether the tracker has been at all these nodes, each time from the beginning, since this mark.
pub fn has_passed(log: &[Exchange], nodes: &BTreeSet<Uuid>, since: Mark) -> bool {
    let visits = log.iter().filter(|exchange| exchange.sent > since);
    let seen = visits
        .filter(|exchange| exchange.is_accepted())
        .filter_map(|exchange| visited(&exchange.call))
        .collect::<BTreeSet<_>>();
    nodes.is_subset(&seen)
}

/// Makes a pass long: the tracker's visits to some nodes take their time, as if there were many more of them.
#[derive(Debug)]
pub struct SlowVisits {
    nodes: BTreeSet<Uuid>,
    each: Duration,
    on: AtomicBool,
}

impl SlowVisits {
    /// Visits to these nodes take so long, once it is switched on.
    pub fn new(nodes: impl IntoIterator<Item = Uuid>, each: Duration) -> Self {
        Self {
            nodes: nodes.into_iter().collect(),
            each,
            on: AtomicBool::new(false),
        }
    }

    /// Switches it on or off.
    pub fn set(&self, on: bool) {
        self.on.store(on, Ordering::Relaxed);
    }
}

#[async_trait]
impl Interfere for SlowVisits {
    async fn before(&self, call: &Call) {
        let slow = visited(call).is_some_and(|node| self.nodes.contains(&node));
        if slow && self.on.load(Ordering::Relaxed) {
            tokio::time::sleep(self.each).await;
        }
    }
}
