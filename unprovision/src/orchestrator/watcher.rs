//! One look at all nodes that are waited for, instead of one loop per node.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use ironic_client::{Node, NodeUuid};
use tokio::sync::Notify;

use super::Parts;

/// The longest pause between two looks while Ironic does not answer.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// Wakes those who wait for a node when it changes.
#[derive(Debug, Default)]
pub(super) struct Watcher {
    waiting: Mutex<BTreeMap<NodeUuid, Waiting>>,
    somebody: Notify,
}

#[derive(Debug)]
struct Waiting {
    seen: Option<Node>,
    wake: Arc<Notify>,
}

impl Watcher {
    pub(super) fn new() -> Self {
        Self::default()
    }

    /// Returns when the node differs from what was seen; a lock that comes and goes is no difference.
    pub(super) async fn changed(&self, uuid: NodeUuid, seen: Option<&Node>) {
        let wake = Arc::new(Notify::new());
        let waiting = Waiting {
            seen: seen.map(without_lock),
            wake: Arc::clone(&wake),
        };
        self.waiting().insert(uuid, waiting);
        // Whatever ends the waiting, also a dropped future, takes the node off the list.
        let _guard = Off { watcher: self, uuid };
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

    fn compare(&self, looked_at: &[NodeUuid], found: &BTreeMap<NodeUuid, Node>) {
        let waiting = self.waiting();
        for uuid in looked_at {
            let Some(waits) = waiting.get(uuid) else { continue };
            if waits.seen != found.get(uuid).map(without_lock) {
                waits.wake.notify_one();
            }
        }
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
