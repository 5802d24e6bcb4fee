//! Undoing what a case has set, by an operator's signed word: exactly what was ours, whatever the node is.

use super::{Action, Case, Observation, Owner, by_hand, rules};

/// The next write that undoes something of the case's; `None` where nothing of ours is left.
///
/// This is the one way past the veto that keeps a node hidden until it is free: only
/// [`Orchestrator::abandon`](crate::orchestrator::Orchestrator::abandon) asks for it, and only for an operator who has seen
/// what it does.
pub fn undo(case: &Case, seen: &Observation) -> Option<Action> {
    let view = seen.provider.as_ref();
    if let Some(view) = view.filter(|view| view.holders.contains_key(&case.guard())) {
        let carried = seen.node.as_ref().is_some_and(|node| case.is_carried_by(node));
        let back = carried.then(|| Action::hand_back(case, view)).flatten();
        return back.or_else(|| Action::release(case, view, Owner::Guard));
    }
    let lifted = view.and_then(|view| rules::unreserve(case, view));
    lifted.or_else(|| Action::untag(case, seen.node.as_ref()?, view))
}

impl Case {
    /// What of ours is left, as the commands that lift it. What others hold is not ours to name.
    pub fn left_behind(&self, seen: &Observation) -> Vec<String> {
        let view = seen.provider.as_ref();
        let hold = Some(self.guard()).filter(|hold| view.is_some_and(|view| view.holders.contains_key(hold)));
        let reserved = view.zip(self.found.class.as_ref());
        let reserved = reserved.filter(|(view, class)| self.has_reserved(view, class));
        let mut left = by_hand(
            self.node,
            hold,
            reserved.map(|(_, class)| (class, self.found.reserved)),
        );
        let tag = self.found.tag.as_ref().filter(|_| self.is_tagged(seen));
        left.extend(
            tag.map(|tag| format!("openstack baremetal node remove trait {} {}", self.node, tag.name)),
        );
        left
    }
}
