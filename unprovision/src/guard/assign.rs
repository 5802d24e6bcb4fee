//! Which nodes are this guard's, and how it treats them. What it looks at beyond the list of all nodes, and what it begins,
//! follows from here; a case that is open already goes on wherever its node is by now.

use std::collections::BTreeMap;

use ironic_client::{Node, NodeUuid};
use placement_client::ResourceClass;

use super::{Guard, Notice};
use crate::cloud::class_of;
use crate::core::{GuardPolicy, Observation, Road, open_guard, road};
use crate::scope::Scope;
use crate::strategy::{HandOver, Strategy};

/// How the guard treats a node.
#[derive(Clone, Copy, Debug)]
pub(super) enum Assigned<'a> {
    /// It guards it; the number of the scope, where there are scopes.
    Guarded(Option<usize>, GuardPolicy<'a>),
    /// It tells what does not fit in this scope, and writes nothing.
    AuditOnly(&'a str),
    /// It leaves it alone.
    Outside,
}

/// Where the nodes belong, and how many there are of each class in each scope.
#[derive(Debug, Default)]
pub(super) struct Layout {
    /// The number of the scope that guards the node; none for those that nothing is begun for. Empty without scopes.
    pub(super) of: BTreeMap<NodeUuid, Option<usize>>,
    pub(super) sizes: BTreeMap<(Option<usize>, ResourceClass), usize>,
    /// How many nodes there are in each scope.
    counts: Vec<usize>,
    outside: usize,
}

impl Guard {
    pub(super) fn assigned(&self, node: &Node) -> Assigned<'_> {
        let scopes = &self.settings.scopes;
        if scopes.is_empty() {
            return Assigned::Guarded(None, self.policy());
        }
        match scopes.of(node) {
            None => Assigned::Outside,
            Some((_, Scope { care: None, name, .. })) => Assigned::AuditOnly(name),
            Some((number, Scope { care: Some(care), .. })) => Assigned::Guarded(
                Some(number),
                GuardPolicy {
                    strategy: &care.strategy,
                    release_nova_reservations: care.release_nova_reservations,
                },
            ),
        }
    }

    pub(super) fn is_guarded(&self, node: &Node) -> bool {
        matches!(self.assigned(node), Assigned::Guarded(..))
    }

    /// Whether more than its line in the list is looked at.
    pub(super) fn is_looked_at(&self, node: &Node) -> bool {
        !matches!(self.assigned(node), Assigned::Outside) || self.memory.case_of(node.uuid).is_some()
    }

    pub(super) fn layout(&self, nodes: &[Node]) -> Layout {
        let scopes = &self.settings.scopes;
        let mut layout = Layout {
            counts: vec![0; scopes.iter().count()],
            ..Layout::default()
        };
        for node in nodes {
            let place = scopes.of(node);
            match place {
                Some((number, _)) => layout.counts[number] += 1,
                None => layout.outside += 1,
            }
            let number = match self.assigned(node) {
                Assigned::Guarded(number, _) => {
                    if let Some(class) = class_of(node) {
                        *layout.sizes.entry((number, class)).or_default() += 1;
                    }
                    number
                }
                Assigned::AuditOnly(_) | Assigned::Outside => None,
            };
            if !scopes.is_empty() {
                layout.of.insert(node.uuid, number);
            }
        }
        layout
    }

    /// Says how many nodes each scope has: at first, and whenever one is empty that was not, or the other way round.
    pub(super) fn say_scopes(&self, layout: &Layout) {
        let scopes = &self.settings.scopes;
        if scopes.is_empty() || !self.memory.counts_are_news(&layout.counts) {
            return;
        }
        for (scope, nodes) in scopes.iter().zip(&layout.counts) {
            self.notice(&Notice::Scope {
                name: scope.name.clone(),
                nodes: *nodes,
                strategy: scope.care.as_ref().map(|care| care.strategy.clone()),
            });
        }
        self.notice(&Notice::Outside(layout.outside));
    }

    /// A node of ours that is in no scope any more, or in one that is only looked at: what was begun is carried to its end.
    pub(super) fn tell_left(&self, node: &Node) {
        if self.memory.case_of(node.uuid).is_none() {
            return;
        }
        let left = match self.assigned(node) {
            Assigned::Guarded(..) => return,
            Assigned::AuditOnly(scope) => format!("its scope `{scope}` is audit-only now"),
            Assigned::Outside => "it is in no scope any more".to_owned(),
        };
        self.find(
            node.uuid,
            &format!("{left}; its open case goes on until nothing of ours is left, and nothing new is begun"),
        );
    }

    /// What would be written in a scope that is only looked at, if anything.
    pub(super) fn would_write(&self, seen: &Observation, scope: &str) -> Option<String> {
        let policy = GuardPolicy {
            strategy: HandOver.name(),
            release_nova_reservations: true,
        };
        let node = seen.node.as_ref()?;
        let last = self.memory.instance_of(node.uuid);
        let offered = || {
            let class = class_of(node)?;
            Some(seen.provider.as_ref()?.offers(&class))
        };
        let what = match open_guard(seen, last, &policy, self.parts.clock.now()) {
            Err(why) => return why.is_finding().then(|| why.to_string()),
            Ok(_) if road(node) == Road::Free => {
                "the node is free and hidden without need; it would be released"
            }
            Ok(_) if offered() == Some(true) => {
                "the node is not free and Placement offers it; it would be held"
            }
            Ok(_) => return None,
        };
        let state = &node.provision_state;
        Some(format!(
            "`{state}`: {what}, but its scope `{scope}` is audit-only"
        ))
    }
}
