//! The gate before the tear-downs: first everything is held, then no more nodes are sent than Ironic takes.

use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{Notify, Semaphore, SemaphorePermit, watch};

use crate::cloud::Clock;

/// A node that cannot be held for so long does not keep the others waiting.
const HOLDS_WITHIN: Duration = Duration::from_secs(120);
/// How many tear-downs are in the air at once. Ironic refuses above its limit and does not say what that is: this bounds
/// how many find out together.
const IN_THE_AIR: usize = 8;
/// After a refusal, how soon one node more than then is tried.
const PROBE_AFTER: Duration = Duration::from_secs(20);

/// The gate of one run.
#[derive(Debug)]
pub(crate) struct Gate {
    unheld: watch::Sender<usize>,
    slots: Mutex<Slots>,
    freed: Notify,
    air: Semaphore,
    clock: Arc<dyn Clock>,
}

#[derive(Debug)]
struct Slots {
    taken: usize,
    limit: usize,
    most: usize,
    probe_at: Duration,
}

/// A place among the nodes that are deleting or cleaning; given back when dropped.
#[derive(Debug)]
pub(super) struct Pass<'a> {
    gate: &'a Gate,
}

/// A node that is not held yet; counts as held when dropped.
#[derive(Debug)]
pub(super) struct Unheld<'a> {
    gate: &'a Gate,
}

impl Gate {
    pub(crate) fn new(nodes: usize, most: Option<NonZeroUsize>, clock: Arc<dyn Clock>) -> Self {
        let most = most.map_or(usize::MAX, NonZeroUsize::get);
        Self {
            unheld: watch::Sender::new(nodes),
            slots: Mutex::new(Slots {
                taken: 0,
                limit: most,
                most,
                probe_at: Duration::ZERO,
            }),
            freed: Notify::new(),
            air: Semaphore::new(IN_THE_AIR),
            clock,
        }
    }

    /// One of the run's nodes, which is not held yet. Called once for each.
    pub(super) fn unheld(&self) -> Unheld<'_> {
        Unheld { gate: self }
    }

    /// Waits until all nodes of the run are held and there is a place.
    pub(super) async fn pass(&self) -> Pass<'_> {
        let mut unheld = self.unheld.subscribe();
        tokio::select! {
            _ = unheld.wait_for(|left| *left == 0) => {}
            () = self.clock.sleep(HOLDS_WITHIN) => {}
        }
        loop {
            let freed = self.freed.notified();
            let Some(wait) = self.take() else {
                return Pass { gate: self };
            };
            tokio::select! {
                () = freed => {}
                () = self.clock.sleep(wait) => {}
            }
        }
    }

    /// Waits for a place in the air, for one request. `None` cannot happen, since the semaphore is never closed.
    pub(super) async fn air(&self) -> Option<SemaphorePermit<'_>> {
        self.air.acquire().await.ok()
    }

    /// Takes a place, or says how long to wait for one.
    fn take(&self) -> Option<Duration> {
        let now = self.clock.elapsed();
        let mut slots = self.slots();
        if slots.taken >= slots.limit && now >= slots.probe_at && slots.limit < slots.most {
            slots.limit = slots.taken + 1;
            slots.probe_at = now + PROBE_AFTER;
        }
        if slots.taken < slots.limit {
            slots.taken += 1;
            return None;
        }
        Some(slots.probe_at.saturating_sub(now).max(Duration::from_millis(100)))
    }

    fn slots(&self) -> MutexGuard<'_, Slots> {
        // No code that holds the lock can panic half-way through a change.
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Pass<'_> {
    /// Ironic was full: the others that are under way are all that it takes for now.
    pub(super) fn refused(self) {
        let mut slots = self.gate.slots();
        slots.limit = (slots.taken - 1).clamp(1, slots.most);
        slots.probe_at = self.gate.clock.elapsed() + PROBE_AFTER;
    }
}

impl Drop for Pass<'_> {
    fn drop(&mut self) {
        self.gate.slots().taken -= 1;
        self.gate.freed.notify_one();
    }
}

impl Drop for Unheld<'_> {
    fn drop(&mut self) {
        self.gate
            .unheld
            .send_modify(|left| *left = left.saturating_sub(1));
    }
}
