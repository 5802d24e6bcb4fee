//! The frequent look: only the nodes that are on their way, in a few small lists.

use std::collections::BTreeMap;
use std::time::Duration;

use futures::future::try_join_all;
use ironic_client::{Node, NodeUuid, ProvisionState};
use unprovision_session::in_full;

use super::{Attention, Guard, Notice};
use crate::cloud::CloudError;

/// The states in which a node passes from one hand to the next within seconds. All others are seen by sweeps.
const FAST: [ProvisionState; 3] = [
    ProvisionState::Deleting,
    ProvisionState::Cleaning,
    ProvisionState::CleanWait,
];
/// How often Placement is asked what it offers, while nodes are on their way that no hold of ours covers.
const OFFERS: Duration = Duration::from_secs(5);
/// The longest pause between two looks while Ironic does not answer.
const LONGEST_PAUSE: Duration = Duration::from_secs(10);
/// How often the guard says how it is.
const STATUS: Duration = Duration::from_secs(600);

impl Guard {
    /// All looks, each at its own pace.
    pub(super) async fn look_for_ever(&self, attention: &Attention) {
        tokio::join!(
            self.say_nova(),
            self.look_often(attention),
            self.sweep_often(attention),
            self.watch_offers(),
            self.say_often(),
            self.listen(attention),
            self.follow_peers(attention),
        );
    }

    async fn look_often(&self, attention: &Attention) {
        let mut pause = self.settings.look;
        loop {
            self.parts.clock.sleep(pause).await;
            self.heed_the_pause();
            match self.look(attention).await {
                Ok(()) => {
                    pause = self.settings.look;
                    self.memory.looked(self.parts.clock.now());
                }
                Err(error) => {
                    self.blind("look", &error);
                    pause =
                        (pause * 2).clamp(error.retry_after.unwrap_or_default(), LONGEST_PAUSE.max(pause));
                }
            }
        }
    }

    /// Wakes who waits for something that has been lifted.
    pub(super) fn heed_the_pause(&self) {
        if let Some(file) = &self.settings.pause_file {
            let there = file.exists().then(|| file.display().to_string());
            self.brakes.pause_file(there);
        }
        if self.brakes.was_lifted() {
            self.watcher.wake_where(|_| true);
        }
    }

    async fn look(&self, attention: &Attention) -> Result<(), CloudError> {
        let reads = self.settings.scopes.reads();
        let lists = try_join_all(FAST.iter().map(|state| self.fleet.nodes_in(state, &reads))).await?;
        // A node that changed its state between the lists may be in two of them, or in none: the next look tells.
        let listed = lists
            .into_iter()
            .flatten()
            .map(|node| (node.uuid, node))
            .collect::<BTreeMap<NodeUuid, Node>>();
        let changed = self.watcher.wake_where(|waits| {
            let was_fast = waits
                .seen
                .is_some_and(|seen| FAST.contains(&seen.provision_state));
            match (waits.seen, listed.get(&waits.node)) {
                (Some(seen), Some(now)) => !is_same(seen, now),
                (None, Some(_)) => true,
                (_, None) => was_fast,
            }
        });
        if changed {
            self.saw_a_change();
        }
        for node in listed.values().filter(|node| self.is_guarded(node)) {
            self.attend_if_new(node, attention);
        }
        Ok(())
    }

    /// A node that nobody works on, and that has not been found to need nothing.
    pub(super) fn attend_if_new(&self, node: &Node, attention: &Attention) {
        if !self.is_settled(node) {
            self.attend(node.uuid, attention);
        }
    }

    /// Whether the node has been found to need nothing, as it is.
    pub(super) fn is_settled(&self, node: &Node) -> bool {
        self.memory.is_settled(node, self.parts.clock.elapsed(), is_same)
    }

    /// A node whose case failed a moment ago is left alone for a while; one that is worked on already is not asked for twice.
    pub(super) fn attend(&self, node: NodeUuid, attention: &Attention) {
        if !self.memory.is_left_alone(node, self.parts.clock.elapsed()) {
            // Nobody can be missing at the other end: it is there as long as the guard is.
            let _ = attention.send(node);
        }
    }

    /// Where Nova's reservation is all that hides a node, that it falls must be seen soon (rule 9).
    async fn watch_offers(&self) {
        loop {
            self.parts.clock.sleep(OFFERS).await;
            if self.watcher.any(|waits| !waits.covered)
                && let Err(error) = self.look_at_offers().await
            {
                self.blind("look at what Placement offers", &error);
            }
        }
    }

    async fn say_often(&self) {
        loop {
            self.parts.clock.sleep(STATUS).await;
            self.notice(&Notice::Status(Box::new(self.status())));
        }
    }

    pub(super) fn blind(&self, what: &'static str, error: &CloudError) {
        self.notice(&Notice::Blind {
            what,
            why: in_full(error, ": "),
        });
    }
}

/// Whether a look tells nothing new.
pub(super) fn is_same(before: &Node, now: &Node) -> bool {
    before.provision_state == now.provision_state
        && before.provision_updated_at == now.provision_updated_at
        && before.instance_uuid == now.instance_uuid
        && before.maintenance == now.maintenance
}
