//! What must never be done to a tag, from the safety rules alone.

use std::collections::BTreeSet;

use placement_client::{ConsumerUuid, TraitName};
use unprovision::core::{Action, ActionKind, Case, Observation, ProviderView};

use crate::build::{ELSEWHERE, INSTANCE, tag_name};
use crate::property::{is_free, offered_without};

pub(crate) fn traits(view: &ProviderView) -> BTreeSet<TraitName> {
    view.traits
        .as_ref()
        .map(|read| read.traits.clone())
        .unwrap_or_default()
}

/// Why a tag must not be set or taken away, if so.
pub(crate) fn forbidden_tag(case: &Case, seen: &Observation, action: &Action) -> Option<&'static str> {
    let on_node = case.found.tag.as_ref().is_some_and(|tag| tag.on_node);
    let copied = if on_node {
        0
    } else {
        case.sent(ActionKind::AddNodeTrait)
    };
    let (name, removes, found, sent) = match action {
        Action::AddNodeTrait { name } => (name, false, false, 1),
        Action::AddProviderTrait { name, .. } => (name, false, false, 1),
        Action::RemoveNodeTrait { name } => (
            name,
            true,
            case.found.tag.as_ref()?.on_node,
            case.sent(ActionKind::AddNodeTrait),
        ),
        Action::RemoveProviderTrait { name, .. } => (
            name,
            true,
            case.found.tag.as_ref()?.on_provider,
            case.sent(ActionKind::AddProviderTrait) + copied,
        ),
        _ => return None,
    };
    if case.found.tag.is_none() || *name != tag_name() {
        return Some("another trait than the tag is touched");
    }
    if found || sent == 0 {
        return Some("a tag is removed that is not ours");
    }
    if let Action::AddProviderTrait { traits: new, .. } | Action::RemoveProviderTrait { traits: new, .. } =
        action
    {
        let others = |mut all: BTreeSet<TraitName>| {
            all.remove(&tag_name());
            all
        };
        if others(new.traits.clone()) != others(traits(seen.provider.as_ref()?)) {
            return Some("another trait is changed");
        }
    }
    let node = seen.node.as_ref()?;
    let in_use = node.instance_uuid.is_some();
    let exposed = seen
        .provider
        .as_ref()
        .is_some_and(|view| offered_without(view, ConsumerUuid(ELSEWHERE.0), 0));
    let as_found = node.instance_uuid == Some(INSTANCE) && case.found.units.is_empty();
    let hides = !in_use || exposed && !as_found;
    (removes && !is_free(node) && hides).then_some("a tag is removed although the node is not free")
}
