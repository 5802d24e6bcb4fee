//! What the guard remembers between looks. All of it may be lost: it only saves requests, and names leaving instances.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use ironic_client::{Node, NodeUuid};
use jiff::Timestamp;
use uuid::Uuid;

use super::brakes::BrakesStatus;
use super::notice::Status;
use crate::core::CaseId;

/// How long a node that was looked at for itself, without anything to do, is not looked at again while it does not change.
const SETTLED: Duration = Duration::from_secs(300);
/// The pauses after failures of one node's case, in seconds: doubled up to the last.
const PAUSES: [u64; 6] = [1, 2, 4, 8, 16, 30];

#[derive(Debug, Default)]
pub(super) struct Memory {
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    open: BTreeMap<NodeUuid, CaseId>,
    instances: BTreeMap<NodeUuid, Uuid>,
    settled: BTreeMap<NodeUuid, (Node, Duration)>,
    failures: BTreeMap<NodeUuid, (usize, Duration)>,
    findings: BTreeMap<NodeUuid, String>,
    nodes: Option<usize>,
    /// Which scopes had nodes.
    scopes: Option<Vec<bool>>,
    last_look: Option<Timestamp>,
    last_sweep: Option<Timestamp>,
}

impl Memory {
    pub(super) fn case_of(&self, node: NodeUuid) -> Option<CaseId> {
        self.inner().open.get(&node).copied()
    }

    pub(super) fn opened(&self, node: NodeUuid, case: CaseId) {
        let mut inner = self.inner();
        inner.open.insert(node, case);
        inner.settled.remove(&node);
        inner.findings.remove(&node);
    }

    pub(super) fn ended(&self, node: NodeUuid) {
        let mut inner = self.inner();
        inner.open.remove(&node);
        inner.findings.remove(&node);
        inner.failures.remove(&node);
    }

    pub(super) fn nodes_with_cases(&self) -> Vec<NodeUuid> {
        self.inner().open.keys().copied().collect()
    }

    pub(super) fn open_cases(&self) -> usize {
        self.inner().open.len()
    }

    pub(super) fn instance_of(&self, node: NodeUuid) -> Option<Uuid> {
        self.inner().instances.get(&node).copied()
    }

    /// All nodes, as a sweep saw them. One that has no instance any more keeps its last one until it is free again.
    pub(super) fn swept(&self, nodes: &[Node], is_free: impl Fn(&Node) -> bool, at: Timestamp) {
        let mut inner = self.inner();
        let before = std::mem::take(&mut inner.instances);
        inner.instances = nodes
            .iter()
            .filter(|node| !is_free(node))
            .filter_map(|node| {
                let last = || before.get(&node.uuid).copied();
                Some((node.uuid, node.instance_uuid.or_else(last)?))
            })
            .collect();
        let there = nodes
            .iter()
            .map(|node| node.uuid)
            .collect::<std::collections::BTreeSet<_>>();
        inner.settled.retain(|node, _| there.contains(node));
        inner.findings.retain(|node, _| there.contains(node));
        inner.nodes = Some(nodes.len());
        inner.last_sweep = Some(at);
    }

    /// How many nodes the last good sweep saw.
    pub(super) fn nodes(&self) -> Option<usize> {
        self.inner().nodes
    }

    /// Whether another scope is empty than the last time.
    pub(super) fn counts_are_news(&self, counts: &[usize]) -> bool {
        let filled = counts.iter().map(|count| *count > 0).collect::<Vec<_>>();
        let before = self.inner().scopes.replace(filled.clone());
        before.as_ref() != Some(&filled)
    }

    /// Whether there are scopes, and the last good sweep saw no node of any.
    pub(super) fn no_scope_has_nodes(&self) -> bool {
        let inner = self.inner();
        inner
            .scopes
            .as_ref()
            .is_some_and(|filled| filled.iter().all(|filled| !filled))
    }

    pub(super) fn looked(&self, at: Timestamp) {
        self.inner().last_look = Some(at);
    }

    /// There is nothing to do for the node as it is.
    pub(super) fn settles(&self, node: Node, now: Duration) {
        self.inner().settled.insert(node.uuid, (node, now));
    }

    /// Whether the node was looked at for itself lately, and has not changed since.
    pub(super) fn is_settled(&self, node: &Node, now: Duration, same: impl Fn(&Node, &Node) -> bool) -> bool {
        let inner = self.inner();
        let known = inner.settled.get(&node.uuid);
        known.is_some_and(|(was, at)| same(was, node) && now.saturating_sub(*at) < SETTLED)
    }

    /// The node needs nobody any more.
    pub(super) fn finds_nothing(&self, node: NodeUuid) {
        self.inner().findings.remove(&node);
    }

    /// Whether this is news.
    pub(super) fn finds(&self, node: NodeUuid, what: &str) -> bool {
        let before = self.inner().findings.insert(node, what.to_owned());
        before.as_deref() != Some(what)
    }

    pub(super) fn findings(&self) -> Vec<(NodeUuid, String)> {
        let inner = self.inner();
        inner
            .findings
            .iter()
            .map(|(node, what)| (*node, what.clone()))
            .collect()
    }

    /// The node's case could not be worked on; it is left alone for a while.
    pub(super) fn failed(&self, node: NodeUuid, now: Duration) {
        let mut inner = self.inner();
        let times = inner.failures.get(&node).map_or(0, |(times, _)| times + 1);
        let pause = PAUSES[times.min(PAUSES.len() - 1)];
        inner
            .failures
            .insert(node, (times, now + Duration::from_secs(pause)));
    }

    pub(super) fn is_left_alone(&self, node: NodeUuid, now: Duration) -> bool {
        self.inner()
            .failures
            .get(&node)
            .is_some_and(|(_, until)| now < *until)
    }

    pub(super) fn status(&self, brakes: BrakesStatus) -> Status {
        let inner = self.inner();
        Status {
            nodes: inner.nodes.unwrap_or_default(),
            open: inner.open.len(),
            held: brakes.held,
            last_look: inner.last_look,
            last_sweep: inner.last_sweep,
            stopped: brakes.stopped,
            distrust: brakes.distrust,
            events: None,
        }
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        // No code that holds the lock can panic half-way through a change.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
