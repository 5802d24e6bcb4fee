//! What a source of events says: it only makes the guard look, sooner than it would by itself.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::StreamExt;
use ironic_client::{Node, NodeUuid};
use jiff::SignedDuration;
use tokio::sync::Notify;

use super::{Attention, Guard, Notice};
use crate::core::{Road, road};
use crate::events::{Contact, EventSource, Heard, Hint, Said};

/// Of more nodes than that nothing is remembered until they are looked at: everything is looked at instead.
const MOST: usize = 10_000;
/// The pauses while Ironic does not answer.
const PAUSE: Duration = Duration::from_millis(500);
const LONGEST_PAUSE: Duration = Duration::from_secs(10);
/// What is said within so long after a look is looked after together. The first of it never waits.
const GATHER: Duration = Duration::from_millis(100);
/// How often it is asked whether the silence is a sign.
const LISTENS_AGAIN: Duration = Duration::from_secs(10);

/// What one guard has heard, and has still to look after.
#[derive(Debug, Default)]
pub(super) struct Hearing {
    source: Option<Arc<dyn EventSource>>,
    heard: Mutex<Heard>,
    /// Nodes that something was said of, each once, however often it was said.
    wanted: Mutex<BTreeSet<NodeUuid>>,
    some: Notify,
    missed: Notify,
}

impl Hearing {
    pub(super) fn of(source: Option<Arc<dyn EventSource>>) -> Self {
        let heard = Heard {
            source: source.as_ref().map(|source| source.name()).unwrap_or_default(),
            ..Heard::default()
        };
        Self {
            source,
            heard: Mutex::new(heard),
            ..Self::default()
        }
    }

    pub(super) fn heard(&self) -> Option<Heard> {
        self.source.is_some().then(|| self.book().clone())
    }

    /// Something may have been missed: everything is to be looked at.
    pub(super) fn misses(&self) {
        self.missed.notify_one();
    }

    /// Returns when something may have been missed.
    pub(super) async fn missed(&self) {
        self.missed.notified().await;
    }

    fn want(&self, nodes: impl IntoIterator<Item = NodeUuid>) {
        let mut wanted = self.wanted.lock().unwrap_or_else(PoisonError::into_inner);
        wanted.extend(nodes);
        if wanted.len() > MOST {
            self.book().dropped += wanted.len() as u64;
            wanted.clear();
            self.misses();
        }
        drop(wanted);
        self.some.notify_one();
    }

    async fn wanted(&self) -> Vec<NodeUuid> {
        loop {
            let wanted = std::mem::take(&mut *self.wanted.lock().unwrap_or_else(PoisonError::into_inner));
            if !wanted.is_empty() {
                return wanted.into_iter().collect();
            }
            self.some.notified().await;
        }
    }

    fn book(&self) -> MutexGuard<'_, Heard> {
        // No code that holds the lock can panic half-way through a change.
        self.heard.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Guard {
    /// Something may have happened to the node: it is looked at as soon as the guard runs. Nothing is decided from it.
    pub fn hint(&self, hint: Hint) {
        let Hint { node, reason, .. } = hint;
        tracing::debug!(%node, reason, "somebody wants a node to be looked at");
        self.hearing.want([node]);
    }

    /// Listens for ever: to the source of events, if there is one, and to whoever wants a node to be looked at.
    pub(super) async fn listen(&self, attention: &Attention) {
        let listens = async {
            if let Some(source) = &self.hearing.source {
                tokio::join!(self.hear(&**source, attention), self.heed_the_silence());
            }
        };
        tokio::join!(listens, self.look_after_hints(attention));
    }

    /// A change that was seen by looking.
    pub(super) fn saw_a_change(&self) {
        self.hearing.book().saw_a_change(self.parts.clock.now());
    }

    async fn hear(&self, source: &dyn EventSource, attention: &Attention) {
        let mut said = source.listen();
        while let Some(said) = said.next().await {
            let now = self.parts.clock.now();
            match said {
                Said::Hint(hint) => self.take(hint, attention),
                Said::Other => self.hearing.book().message(None, now),
                Said::Unreadable(why) => {
                    let mut book = self.hearing.book();
                    book.message(None, now);
                    book.unreadable += 1;
                    let so_far = book.unreadable;
                    drop(book);
                    // The first of them, and then ever fewer: whoever floods a queue should not flood the log.
                    if so_far.is_power_of_two() {
                        self.notice(&Notice::Unreadable { why, so_far });
                    }
                }
                Said::Listens => {
                    self.hearing.book().contact = Contact::Since(now);
                    self.hearing.misses();
                    self.notice(&Notice::Listens(source.name()));
                }
                Said::Deaf(why) => {
                    let lost = Contact::Lost(why.clone());
                    let before = std::mem::replace(&mut self.hearing.book().contact, lost.clone());
                    if before != lost {
                        let source = source.name();
                        self.notice(&Notice::Deaf { source, why });
                    }
                }
            }
        }
    }

    /// Who works on the node looks at once; if nobody does, it is looked at together with all others that something was said of.
    fn take(&self, hint: Hint, attention: &Attention) {
        let Hint {
            node,
            reason,
            said_at,
        } = hint;
        tracing::debug!(%node, reason, "something was said of a node");
        let mut book = self.hearing.book();
        book.message(said_at, self.parts.clock.now());
        book.hints += 1;
        drop(book);
        match self.memory.case_of(node) {
            Some(_) => self.look_again(node, attention),
            None => self.hearing.want([node]),
        }
    }

    fn look_again(&self, node: NodeUuid, attention: &Attention) {
        self.watcher.hint(node);
        self.attend(node, attention);
    }

    /// One look at a time, at all nodes of which something was said meanwhile: a storm of messages costs no storm of looks.
    async fn look_after_hints(&self, attention: &Attention) {
        let mut pause = PAUSE;
        loop {
            let nodes = self.hearing.wanted().await;
            match self.parts.cloud.nodes(&nodes).await {
                Ok(found) => {
                    pause = PAUSE;
                    found.values().for_each(|node| self.judge_hinted(node, attention));
                    self.parts.clock.sleep(GATHER).await;
                }
                Err(error) => {
                    self.blind("look at what was said", &error);
                    self.hearing.want(nodes);
                    self.parts.clock.sleep(pause).await;
                    pause = (pause * 2).min(LONGEST_PAUSE);
                }
            }
        }
    }

    /// What is decided about a node that something was said of: nothing, before it was looked at for itself.
    fn judge_hinted(&self, node: &Node, attention: &Attention) {
        if self.memory.case_of(node.uuid).is_some() {
            self.look_again(node.uuid, attention);
            return;
        }
        match road(node) {
            // Nothing of it is ours to correct; what is wrong with it is found by sweeps.
            Road::InUse => {}
            Road::Leaving | Road::NotFree(_) | Road::Free => {
                if self.is_guarded(node) && !self.is_settled(node) {
                    self.look_again(node.uuid, attention);
                }
            }
        }
    }

    /// A quiet cloud is no sign; nodes that change while nothing is said are one.
    async fn heed_the_silence(&self) {
        let patience = SignedDuration::try_from(self.settings.silence).unwrap_or(SignedDuration::MAX);
        loop {
            self.parts.clock.sleep(LISTENS_AGAIN).await;
            let turns = self.hearing.book().turns(patience, self.parts.clock.now());
            if let Some(silent) = turns {
                self.notice(&Notice::Silent(silent));
            }
        }
    }
}
