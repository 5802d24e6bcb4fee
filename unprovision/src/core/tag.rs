//! The trait that marks a node as not to be used yet: which one, where it was before, and whether it is ours.

use ironic_client::Node;
use placement_client::{InvalidName, TraitName};
use serde::{Deserialize, Serialize};

use super::{ActionKind, Case, LastAttempt, Observation, ProviderView};

/// The tag, unless configured otherwise.
pub const DEFAULT_TAG: &str = "CUSTOM_IRONIC_NEEDS_CLEANING";
/// So many traits a node may have in Ironic.
const MOST_TRAITS: usize = 50;

/// The tag of a case, and where it was before anything was done: there it is not ours, and stays.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tag {
    /// The trait.
    pub name: TraitName,
    /// Whether the node carried it.
    pub on_node: bool,
    /// Whether the provider carried it.
    pub on_provider: bool,
}

/// Why a trait cannot be the tag.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotATag {
    /// Not a trait's name at all.
    #[error(transparent)]
    Name(#[from] InvalidName),
    /// Nova's own.
    #[error(
        "`{0}` is Nova's own: it removes it while the compute service is enabled, and an operator may have set it; use a \
         trait that begins with CUSTOM_"
    )]
    Novas(TraitName),
    /// A standard trait, which says something else of the node.
    #[error("`{0}` is a standard trait; use one that begins with CUSTOM_")]
    Standard(TraitName),
}

/// The tag of this name; only a custom trait can be one (rule 7).
pub fn tag_name(text: &str) -> Result<TraitName, NotATag> {
    let name: TraitName = text.parse()?;
    match name.as_str() {
        "COMPUTE_STATUS_DISABLED" => Err(NotATag::Novas(name)),
        _ if name.is_custom() => Ok(name),
        _ => Err(NotATag::Standard(name)),
    }
}

impl Tag {
    /// The tag, as it is found before anything is done. `None` where the provider's traits were not read.
    pub(super) fn find(name: TraitName, node: &Node, view: &ProviderView) -> Option<Self> {
        let traits = &view.traits.as_ref()?.traits;
        Some(Self {
            on_node: node.traits.contains(name.as_str()),
            on_provider: traits.contains(&name),
            name,
        })
    }

    /// Whether the node can take it.
    pub(super) fn fits(&self, node: &Node) -> bool {
        self.on_node || node.traits.len() < MOST_TRAITS
    }
}

impl Case {
    /// Whether this provider carries the case's tag.
    pub fn tag_is_on(&self, view: &ProviderView) -> bool {
        let tag = self.found.tag.as_ref().zip(view.traits.as_ref());
        tag.is_some_and(|(tag, read)| read.traits.contains(&tag.name))
    }

    /// Whether a tag on the node would be ours, as far as the journal tells.
    pub(super) fn may_have_tagged_node(&self) -> bool {
        let found = self.found.tag.as_ref().is_some_and(|tag| tag.on_node);
        !found && self.sent(ActionKind::AddNodeTrait) > 0
    }

    /// Whether a tag of ours was set on the node, and not taken away since. A lagging replica need not show it.
    pub(super) fn owes_the_node_an_untag(&self) -> bool {
        self.may_have_tagged_node() && !self.was_applied(ActionKind::RemoveNodeTrait)
    }

    fn was_applied(&self, kind: ActionKind) -> bool {
        let attempts = self.attempts.get(&kind);
        attempts.is_some_and(|attempts| attempts.last == LastAttempt::Applied)
    }

    /// Whether a tag on the provider would be ours, as far as the journal tells: also where Nova copied it from the node.
    pub(super) fn may_have_tagged_provider(&self) -> bool {
        let found = self.found.tag.as_ref().is_some_and(|tag| tag.on_provider);
        let copied = self.may_have_tagged_node();
        !found && (copied || self.sent(ActionKind::AddProviderTrait) > 0)
    }

    /// Whether a tag of ours may be somewhere, as far as the journal tells.
    pub(super) fn may_be_tagged(&self) -> bool {
        let set = self.sent(ActionKind::AddProviderTrait) > 0 && self.may_have_tagged_provider();
        self.owes_the_node_an_untag() || set && !self.was_applied(ActionKind::RemoveProviderTrait)
    }

    /// Whether a tag of ours was seen.
    pub(super) fn is_tagged(&self, seen: &Observation) -> bool {
        let Some(tag) = &self.found.tag else { return false };
        let on_node = seen
            .node
            .as_ref()
            .is_some_and(|node| node.traits.contains(tag.name.as_str()));
        let on_provider = seen.provider.as_ref().is_some_and(|view| self.tag_is_on(view));
        on_node && self.may_have_tagged_node() || on_provider && self.may_have_tagged_provider()
    }
}
