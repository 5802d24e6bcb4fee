//! Putting the lists together.

use std::collections::{BTreeMap, BTreeSet};

use ironic_client::{Node, NodeUuid};
use jiff::Timestamp;
use placement_client::{ProviderUuid, ResourceClass, ResourceProvider};
use uuid::Uuid;

use crate::core::ProviderView;

/// What both services list. All of it must be complete.
#[derive(Clone, Debug, Default)]
pub struct Lists {
    /// Ironic's nodes.
    pub nodes: Vec<Node>,
    /// Placement's providers, those of ordinary computes as well.
    pub providers: Vec<ResourceProvider>,
    /// The providers with a free unit, by class; for each class that some node has.
    pub offered: BTreeMap<ResourceClass, BTreeSet<ProviderUuid>>,
    /// The providers that carry the tag, where one is looked for.
    pub tagged: BTreeSet<ProviderUuid>,
}

/// A node and its provider, as far as there are both.
#[derive(Clone, Debug)]
pub struct Subject {
    /// The UUID of both.
    pub uuid: Uuid,
    /// The node; `None` where Ironic does not know it.
    pub node: Option<Node>,
    /// The provider; `None` where Placement does not know it.
    pub provider: Option<ResourceProvider>,
    /// A provider that is called like the node and has another UUID: it stands in the way of the right one.
    pub namesake: Option<ProviderUuid>,
    /// The classes of nodes of which Placement offers a unit.
    pub offered: BTreeSet<ResourceClass>,
    /// Whether the provider carries the tag.
    pub tagged: bool,
    /// What a closer look showed; all above is from that look then.
    pub look: Option<Look>,
}

/// A closer look at one node and its provider.
#[derive(Clone, Debug, PartialEq)]
pub struct Look {
    /// The node, read by itself.
    pub node: Option<Node>,
    /// The provider.
    pub view: Option<ProviderView>,
    /// When the newest of its allocations was made.
    pub newest_allocation: Option<Timestamp>,
}

/// The nodes, and the providers that look like a node's, each with its counterpart; ordered by UUID.
///
/// A provider without a node looks like one if it stands for itself (is no part of another), and either is called like a
/// node, by a UUID, as Nova does it, or has a free unit of a class that nodes have. Ordinary computes are called by their
/// host names.
pub fn join(lists: Lists) -> Vec<Subject> {
    let Lists {
        nodes,
        providers,
        offered,
        tagged,
    } = lists;
    let mut classes: BTreeMap<ProviderUuid, BTreeSet<ResourceClass>> = BTreeMap::new();
    for (class, offering) in offered {
        for provider in offering {
            classes.entry(provider).or_default().insert(class.clone());
        }
    }
    let known = nodes.iter().map(|node| node.uuid).collect::<BTreeSet<_>>();
    let mut namesakes = BTreeMap::new();
    let mut by_uuid = BTreeMap::new();
    for provider in providers {
        let called = provider.name.parse::<NodeUuid>().ok();
        if let Some(called) = called.filter(|called| called.0 != provider.uuid.0 && known.contains(called)) {
            namesakes.insert(called, provider.uuid);
        }
        let like_a_node = called.is_some() || classes.contains_key(&provider.uuid);
        if known.contains(&NodeUuid(provider.uuid.0)) || (provider.parent.is_none() && like_a_node) {
            by_uuid.insert(provider.uuid.0, provider);
        }
    }
    let mut subjects = Vec::with_capacity(nodes.len());
    for node in nodes {
        subjects.push(Subject {
            uuid: node.uuid.0,
            provider: by_uuid.remove(&node.uuid.0),
            namesake: namesakes.get(&node.uuid).copied(),
            offered: classes.remove(&ProviderUuid(node.uuid.0)).unwrap_or_default(),
            tagged: tagged.contains(&ProviderUuid(node.uuid.0)),
            node: Some(node),
            look: None,
        });
    }
    subjects.extend(by_uuid.into_iter().map(|(uuid, provider)| Subject {
        uuid,
        node: None,
        offered: classes.remove(&provider.uuid).unwrap_or_default(),
        tagged: tagged.contains(&provider.uuid),
        provider: Some(provider),
        namesake: None,
        look: None,
    }));
    subjects.sort_by_key(|subject| subject.uuid);
    subjects
}

impl Subject {
    /// What a look shows by itself, without any list.
    pub fn of(uuid: Uuid, look: Look) -> Self {
        let provider = look.view.as_ref().map(|view| ResourceProvider {
            uuid: ProviderUuid(uuid),
            name: uuid.to_string(),
            generation: view.inventories.generation,
            parent: None,
        });
        let bare = Self {
            uuid,
            node: None,
            provider,
            namesake: None,
            offered: BTreeSet::new(),
            tagged: false,
            look: None,
        };
        bare.seen(look)
    }

    /// What is known once it was looked at closer.
    #[must_use]
    pub fn seen(mut self, look: Look) -> Self {
        self.node.clone_from(&look.node);
        // Of what else it has, nobody asks for a node.
        let mut asked_for = std::mem::take(&mut self.offered);
        asked_for.extend(self.class());
        if let Some(view) = &look.view {
            asked_for.retain(|class| view.offers(class));
            self.offered = asked_for;
        }
        if look.view.is_none() {
            self.provider = None;
        }
        self.look = Some(look);
        self
    }

    /// The node's class, as Placement should call it.
    pub fn class(&self) -> Option<ResourceClass> {
        let named = self.node.as_ref()?.resource_class.as_deref()?;
        ResourceClass::of_node_class(named).ok()
    }

    pub(super) fn view(&self) -> Option<&ProviderView> {
        self.look.as_ref()?.view.as_ref()
    }
}
