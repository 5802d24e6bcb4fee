//! The nodes and their providers, as far as they tell how this cloud works.

use std::collections::BTreeSet;

use ironic_client::Node;
use placement_client::{ConsumerUuid, ResourceClass, ResourceProvider};
use unprovision::audit::Look;

/// Both lists, and a closer look at some nodes in use.
#[derive(Clone, Debug, Default)]
pub(super) struct Fleet {
    pub(super) nodes: Option<Result<usize, String>>,
    /// How many of the nodes have no resource class.
    pub(super) without_class: usize,
    /// How many carry an instance.
    pub(super) in_use: usize,
    pub(super) providers: Option<Result<usize, String>>,
    /// How many nodes have a provider.
    pub(super) paired: usize,
    /// How many providers are called like a node, by a UUID, and have none.
    pub(super) orphans: usize,
    /// Nodes in use that were looked at closer; or some node, where none is in use.
    pub(super) seen: Vec<Provider>,
    /// Why one of those could not be looked at.
    pub(super) unseen: Option<String>,
    pub(super) cleaning: Cleaning,
    /// How many conductors there are, and how many of them are alive; where Ironic tells.
    pub(super) conductors: Option<(usize, usize)>,
}

/// How nodes are cleaned, as far as Ironic shows it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Cleaning {
    /// How many nodes were asked about it; 0 where Ironic is too old.
    pub(super) asked: usize,
    /// How many of them are cleaned, whatever the conductor's setting is.
    pub(super) on: usize,
    /// How many are not.
    pub(super) off: usize,
}

/// A node's provider.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Provider {
    /// Nova made it.
    pub(super) novas: bool,
    /// All of its units are reserved.
    pub(super) reserved: bool,
    /// The node is `active` with an instance.
    pub(super) in_use: bool,
    /// The node's instance holds it.
    pub(super) held: bool,
}

/// What a Nova does with the nodes, as far as Placement shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Nova {
    /// There is none: no traits of its, no allocations.
    None,
    /// Somebody makes allocations, but not Nova.
    Others,
    /// Nodes in use are reserved: since 26.1.
    Current,
    /// They are not: before, or told not to.
    Old,
    /// Some are, some are not.
    Mixed,
    /// There is one, and no node in use shows how it works.
    Untold,
    /// Nothing could be looked at.
    Unknown,
}

impl Nova {
    /// Whether there is one.
    pub(super) fn is_there(self) -> bool {
        matches!(self, Self::Current | Self::Old | Self::Mixed | Self::Untold)
    }
}

impl Provider {
    /// As a closer look shows it.
    pub(super) fn of(look: &Look) -> Option<Self> {
        let (node, view) = (look.node.as_ref()?, look.view.as_ref()?);
        let class = ResourceClass::of_node_class(node.resource_class.as_deref()?).ok()?;
        let instance = node.instance_uuid.map(ConsumerUuid);
        Some(Self {
            novas: view.is_novas(),
            reserved: view.is_reserved(&class),
            in_use: is_in_use(node),
            held: instance.is_some_and(|instance| view.holders.contains_key(&instance)),
        })
    }
}

fn is_in_use(node: &Node) -> bool {
    node.instance_uuid.is_some() && node.provision_state.as_str() == "active"
}

impl Fleet {
    /// Counts the lists. The nodes come back that are worth a closer look, those in use first.
    pub(super) fn count(&mut self, nodes: &[Node], providers: &[ResourceProvider]) -> Vec<uuid::Uuid> {
        let known = nodes.iter().map(|node| node.uuid.0).collect::<BTreeSet<_>>();
        let provided = providers
            .iter()
            .map(|provider| provider.uuid.0)
            .collect::<BTreeSet<_>>();
        self.without_class = nodes.iter().filter(|node| node.resource_class.is_none()).count();
        self.in_use = nodes.iter().filter(|node| is_in_use(node)).count();
        self.paired = known.intersection(&provided).count();
        let like_a_node = |provider: &&ResourceProvider| {
            provider.parent.is_none() && provider.name == provider.uuid.to_string()
        };
        let orphans = providers.iter().filter(like_a_node);
        self.orphans = orphans
            .filter(|provider| !known.contains(&provider.uuid.0))
            .count();
        let paired = nodes.iter().filter(|node| provided.contains(&node.uuid.0));
        let (used, idle) = paired.partition::<Vec<_>, _>(|node| is_in_use(node));
        used.into_iter().chain(idle).map(|node| node.uuid.0).collect()
    }

    pub(super) fn nova(&self) -> Nova {
        if self.seen.is_empty() {
            return Nova::Unknown;
        }
        let used = self
            .seen
            .iter()
            .filter(|one| one.in_use && one.novas)
            .collect::<Vec<_>>();
        match used.iter().filter(|one| one.reserved).count() {
            _ if !self.seen.iter().any(|one| one.novas) => match self.seen.iter().any(|one| one.held) {
                true => Nova::Others,
                false => Nova::None,
            },
            _ if used.is_empty() => Nova::Untold,
            0 => Nova::Old,
            reserved if reserved == used.len() => Nova::Current,
            _ => Nova::Mixed,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fleet(seen: &[&str]) -> Fleet {
        let seen = seen.iter().map(|letters| Provider {
            novas: letters.contains('n'),
            reserved: letters.contains('r'),
            in_use: letters.contains('u'),
            held: letters.contains('h'),
        });
        Fleet {
            seen: seen.collect(),
            ..Fleet::default()
        }
    }

    #[test]
    fn what_nova_does_shows_at_nodes_in_use() {
        for (seen, nova) in [
            (&[][..], Nova::Unknown),
            (&["u", ""], Nova::None),
            (&["uh", ""], Nova::Others),
            (&["nuhr", "nuhr"], Nova::Current),
            (&["nuh", "nuh", "n"], Nova::Old),
            (&["nuh", "nuhr"], Nova::Mixed),
            (&["n", "nr"], Nova::Untold),
            // What is reserved without being in use says nothing.
            (&["nuh", "nr"], Nova::Old),
        ] {
            assert_eq!(fleet(seen).nova(), nova, "{seen:?}");
        }
    }
}
