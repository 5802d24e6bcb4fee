//! The sweep: all nodes, and all that is offered, in pages and one request for each resource class.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use futures::future::try_join_all;
use ironic_client::{Node, NodeUuid};
use placement_client::ResourceClass;
use unprovision_session::in_full;

use super::assign::Assigned;
use super::looks::is_same;
use super::{Attention, Guard, Notice};
use crate::cloud::{CloudError, classes};
use crate::core::{Road, road};
use crate::orchestrator::Waits;

/// How soon a sweep that failed is tried again.
const AGAIN: Duration = Duration::from_secs(5);

const FAILED: &str = "the last sweep failed; the next complete one ends this";

/// All nodes, and which of them Placement offers.
struct Swept {
    nodes: BTreeMap<NodeUuid, Node>,
    offered: BTreeSet<NodeUuid>,
}

impl Guard {
    pub(super) async fn sweep_often(&self, attention: &Attention) {
        let mut good = true;
        loop {
            let pause = if good {
                self.settings.sweep
            } else {
                AGAIN.min(self.settings.sweep)
            };
            tokio::select! {
                () = self.parts.clock.sleep(pause) => {}
                () = self.sweep_when_missed(attention) => {}
            }
            good = self.sweep(attention).await;
            if good {
                self.brakes.settle();
            }
        }
    }

    /// Sweeps between those of the clock, whenever something may have been missed. It never ends.
    async fn sweep_when_missed(&self, attention: &Attention) {
        loop {
            self.hearing.missed().await;
            if !self.sweep(attention).await {
                // The next one is soon, and looks at everything too.
                self.hearing.misses();
            }
            // A connection that comes and goes is no reason to sweep all the time.
            self.parts.clock.sleep(AGAIN.min(self.settings.sweep)).await;
        }
    }

    /// Whether it was complete.
    pub(super) async fn sweep(&self, attention: &Attention) -> bool {
        match self.try_sweep(attention).await {
            Ok(()) => true,
            Err(error) => {
                self.blind("sweep", &error);
                self.brakes.distrust_after(FAILED, &in_full(&error, ": "));
                false
            }
        }
    }

    pub(super) async fn try_sweep(&self, attention: &Attention) -> Result<(), CloudError> {
        let nodes = self.fleet.all_nodes(&self.settings.scopes.reads()).await?;
        let classes = classes(nodes.iter().filter(|node| self.is_looked_at(node)));
        let offered = self.offered(classes.iter()).await?;
        if nodes.is_empty() && self.memory.nodes() != Some(0) {
            self.notice(&Notice::SeesNothing);
        }
        let trusted = self.is_plausible(nodes.len());
        if trusted {
            let is_free = |node: &Node| road(node) == Road::Free;
            self.memory.swept(&nodes, is_free, self.parts.clock.now());
            let layout = self.layout(&nodes);
            self.say_scopes(&layout);
            self.brakes.trust(layout);
        }
        let nodes = nodes.into_iter().map(|node| (node.uuid, node)).collect();
        let swept = Swept { nodes, offered };
        if self.watcher.wake_where(|waits| swept.tells(waits, trusted)) {
            self.saw_a_change();
        }
        // Whose case could not be worked on is nobody's until it is asked for again, wherever its node is by now.
        for node in self.memory.nodes_with_cases() {
            self.attend(node, attention);
        }
        for node in swept.nodes.values() {
            self.tell_left(node);
            let offered = swept.offered.contains(&node.uuid);
            match self.assigned(node) {
                Assigned::Guarded(..) => self.judge(node, offered, attention),
                Assigned::AuditOnly(_) => self.only_look(node, offered, attention),
                Assigned::Outside => {}
            }
        }
        Ok(())
    }

    /// How many nodes there are, and the guarded ones that nobody uses and Placement does not offer.
    pub(super) async fn hidden(&self) -> Result<(usize, Vec<NodeUuid>), CloudError> {
        let nodes = self.fleet.all_nodes(&self.settings.scopes.reads()).await?;
        let ours = nodes.iter().filter(|node| self.is_guarded(node));
        let offered = self.offered(classes(ours.clone()).iter()).await?;
        let hidden = ours.filter(|node| road(node) != Road::InUse && !offered.contains(&node.uuid));
        Ok((nodes.len(), hidden.map(|node| node.uuid).collect()))
    }

    /// Only what Placement offers, of the classes that the last sweep saw.
    pub(super) async fn look_at_offers(&self) -> Result<(), CloudError> {
        let offered = self.offered(self.brakes.classes().iter()).await?;
        self.watcher.wake_where(|waits| offered.contains(&waits.node));
        Ok(())
    }

    async fn offered(
        &self,
        classes: impl Iterator<Item = &ResourceClass>,
    ) -> Result<BTreeSet<NodeUuid>, CloudError> {
        let lists = try_join_all(classes.map(|class| self.fleet.offered(class))).await?;
        Ok(lists.into_iter().flatten().collect())
    }

    /// What is decided about a node that nobody works on: nothing, before it was looked at for itself.
    fn judge(&self, node: &Node, offered: bool, attention: &Attention) {
        match (road(node), offered) {
            (Road::InUse | Road::NotFree(_), false) | (Road::Free, true) => {}
            (Road::InUse | Road::NotFree(_), true) | (Road::Leaving, _) | (Road::Free, false) => {
                self.attend_if_new(node, attention);
            }
        }
    }

    /// The same in a scope that is only looked at. What is on its way is not looked at by itself, unless it is offered.
    fn only_look(&self, node: &Node, offered: bool, attention: &Attention) {
        match (road(node), offered) {
            (Road::InUse | Road::NotFree(_) | Road::Leaving, true) => self.attend(node.uuid, attention),
            (Road::Free, false) => self.attend_if_new(node, attention),
            (Road::InUse | Road::NotFree(_) | Road::Leaving, false) | (Road::Free, true) => {
                if self.memory.case_of(node.uuid).is_none() {
                    self.memory.finds_nothing(node.uuid);
                }
            }
        }
    }

    /// Rule 13: a list that is suddenly much shorter says more about the list than about the nodes.
    fn is_plausible(&self, now: usize) -> bool {
        let before = self.memory.nodes().unwrap_or_else(|| self.memory.open_cases());
        #[allow(clippy::cast_precision_loss, reason = "there are not that many nodes")]
        let share = if before == 0 {
            1.0
        } else {
            now as f64 / before as f64
        };
        // It is a word on this sweep: if nobody needs it, it does not lie in wait for a later one.
        let any_number = self.brakes.takes_any_number();
        let plausible = any_number || share >= self.settings.min_nodes_share;
        if !plausible {
            self.brakes.distrust(&format!(
                "Ironic shows {now} nodes, and {before} before; if that is right, `kill -USR2` lets the guard go on"
            ));
        }
        plausible
    }
}

impl Swept {
    /// Whether it tells something new to somebody who waits.
    fn tells(&self, waits: &Waits<'_>, trusted: bool) -> bool {
        let Some(now) = self.nodes.get(&waits.node) else {
            return trusted && waits.seen.is_some();
        };
        let Some(seen) = waits.seen else { return true };
        let changed = !is_same(seen, now)
            || seen.power_state != now.power_state
            || seen.retired != now.retired
            || seen.resource_class != now.resource_class;
        changed || (self.offered.contains(&waits.node) && road(now) != Road::Free)
    }
}
