//! One look at all nodes that are waited for, instead of one loop per node.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use ironic_client::{Node, NodeUuid};
use tokio::sync::Notify;

use super::Parts;

/// The longest pause between two looks while Ironic does not answer.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// Wakes those who wait for a node when it changes.
#[derive(Debug, Default)]
pub(crate) struct Watcher {
    waiting: Mutex<BTreeMap<NodeUuid, Waiting>>,
    /// Nodes of which something was said while nobody waited: whoever begins to wait was looking elsewhere just then.
    hinted: Mutex<BTreeSet<NodeUuid>>,
    somebody: Notify,
}

#[derive(Debug)]
struct Waiting {
    seen: Option<Node>,
    covered: bool,
    wake: Arc<Notify>,
}

/// Somebody who waits for a node.
#[derive(Debug)]
pub(crate) struct Waits<'a> {
    /// The node.
    pub(crate) node: NodeUuid,
    /// As it was seen last.
    pub(crate) seen: Option<&'a Node>,
    /// Whether a hold of ours keeps it from being offered.
    pub(crate) covered: bool,
}

impl Waiting {
    fn of(&self, node: NodeUuid) -> Waits<'_> {
        Waits {
            node,
            seen: self.seen.as_ref(),
            covered: self.covered,
        }
    }
}

impl Watcher {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// Returns when the node differs from what was seen; a lock that comes and goes is no difference. `covered`: a hold of
    /// ours keeps it from being offered meanwhile.
    pub(super) async fn changed(&self, uuid: NodeUuid, seen: Option<&Node>, covered: bool) {
        let wake = Arc::new(Notify::new());
        let waiting = Waiting {
            seen: seen.map(without_lock),
            covered,
            wake: Arc::clone(&wake),
        };
        self.waiting().insert(uuid, waiting);
        // Whatever ends the waiting, also a dropped future, takes the node off the list.
        let _guard = Off { watcher: self, uuid };
        if self.heeded(uuid) {
            return;
        }
        self.somebody.notify_one();
        wake.notified().await;
    }

    /// Looks for ever, as long as somebody waits.
    pub(super) async fn watch(&self, parts: &Parts) {
        let mut pause = parts.poll;
        loop {
            parts.clock.sleep(pause).await;
            let nodes = self.waiting().keys().copied().collect::<Vec<_>>();
            if nodes.is_empty() {
                self.somebody.notified().await;
                continue;
            }
            match parts.cloud.nodes(&nodes).await {
                Ok(found) => {
                    pause = parts.poll;
                    self.compare(&nodes, &found);
                }
                Err(error) => {
                    pause = (pause * 2).min(LONGEST_PAUSE.max(parts.poll));
                    tracing::warn!(%error, "the nodes could not be looked at");
                }
            }
        }
    }

    /// Whether this is true of anybody who waits.
    pub(crate) fn any(&self, is: impl Fn(&Waits<'_>) -> bool) -> bool {
        self.waiting()
            .iter()
            .any(|(node, waiting)| is(&waiting.of(*node)))
    }

    /// Wakes those of whom this is true; whether there was one.
    pub(crate) fn wake_where(&self, changed: impl Fn(&Waits<'_>) -> bool) -> bool {
        let mut any = false;
        for (node, waiting) in self.waiting().iter() {
            if changed(&waiting.of(*node)) {
                waiting.wake.notify_one();
                any = true;
            }
        }
        any
    }

    /// Something was said of the node. Who waits for it is woken; who is about to wait does not begin to.
    pub(crate) fn hint(&self, node: NodeUuid) {
        self.hinted().insert(node);
        // In this order: whoever begins to wait meanwhile finds one or the other.
        if let Some(waiting) = self.waiting().get(&node) {
            waiting.wake.notify_one();
            self.hinted().remove(&node);
        }
    }

    /// Whether something was said of the node since the last time. Whoever asks looks at it now.
    pub(crate) fn heeded(&self, node: NodeUuid) -> bool {
        self.hinted().remove(&node)
    }

    fn compare(&self, looked_at: &[NodeUuid], found: &BTreeMap<NodeUuid, Node>) {
        self.wake_where(|waits| {
            let now = found.get(&waits.node).map(without_lock);
            // The keys of the map are in order.
            looked_at.binary_search(&waits.node).is_ok() && waits.seen != now.as_ref()
        });
    }

    fn hinted(&self) -> MutexGuard<'_, BTreeSet<NodeUuid>> {
        self.hinted.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn waiting(&self) -> MutexGuard<'_, BTreeMap<NodeUuid, Waiting>> {
        // No code that holds the lock can panic half-way through a change.
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct Off<'a> {
    watcher: &'a Watcher,
    uuid: NodeUuid,
}

impl Drop for Off<'_> {
    fn drop(&mut self) {
        self.watcher.waiting().remove(&self.uuid);
    }
}

fn without_lock(node: &Node) -> Node {
    Node {
        reservation: None,
        ..node.clone()
    }
}
