//! What is a finding, and what is none.

use std::collections::BTreeMap;

use ironic_client::{Node, NodeUuid, ProvisionState};
use jiff::{SignedDuration, Timestamp};
use placement_client::{ConsumerUuid, ProviderAllocations, ResourceClass, TraitName};

use super::words::Told;
use super::{Finding, FindingKind, Remedy, Subject};
use crate::core::{ProviderView, Road, is_free, road};

/// What a subject is judged by.
#[derive(Clone, Debug)]
pub struct Rules {
    /// What time it is.
    pub now: Timestamp,
    /// What is younger may be a change under way.
    pub grace: SignedDuration,
    /// The nodes with an open case in the journal, and its strategy.
    pub open: BTreeMap<NodeUuid, String>,
    /// Whether to look for the kinds that take a request for each provider.
    pub deep: bool,
    /// The trait that marks a node as not to be used yet, where one is looked for.
    pub tag: Option<TraitName>,
}

impl Rules {
    fn is_young(&self, since: Option<Timestamp>) -> bool {
        since.is_some_and(|since| self.now.duration_since(since) < self.grace)
    }
}

/// What is wrong with the subject.
///
/// That Placement offers a node that is not free is wrong from its first moment. All else must have lasted longer than the
/// grace time and is left to the case where one is open.
pub fn findings(subject: &Subject, rules: &Rules) -> Vec<Finding> {
    let told = match &subject.node {
        Some(node) => of_node(subject, node, rules),
        None => orphan(subject).into_iter().collect(),
    };
    told.into_iter()
        .map(|told| told.finding(subject, rules))
        .collect()
}

/// Whether who holds the provider is just who should: then it takes no closer look.
pub fn is_plainly_right(subject: &Subject, holders: &ProviderAllocations) -> bool {
    let (Some(node), Some(class)) = (&subject.node, subject.class()) else {
        return false;
    };
    let only = |uuid| holders.allocations.len() == 1 && holders.allocations.contains_key(&ConsumerUuid(uuid));
    let of_class = || {
        holders
            .allocations
            .values()
            .all(|held| held.units.contains_key(&class))
    };
    match node.instance_uuid {
        Some(instance) => only(instance) && of_class(),
        None => holders.allocations.is_empty() && is_free(node) && subject.offered.contains(&class),
    }
}

fn of_node(subject: &Subject, node: &Node, rules: &Rules) -> Vec<Told> {
    let mut told = Vec::new();
    let case = rules.open.get(&node.uuid).map(String::as_str);
    let by_tag = case == Some("trait-tagging");
    if !subject.offered.is_empty() && !is_free(node) && !by_tag {
        told.push(offered(node, case.is_some()));
    }
    if case.is_some() || rules.is_young(node.provision_updated_at) {
        return told;
    }
    let Some(class) = subject.class() else {
        told.extend((!is_set_up(node)).then(|| Told::by_hand(FindingKind::NoResourceClass)));
        return told;
    };
    if subject.provider.is_none() {
        told.extend((!is_set_up(node)).then(|| Told::by_hand(FindingKind::ProviderMissing)));
        return told;
    }
    if has_other_class(subject, &class) {
        told.push(Told::by_hand(FindingKind::WrongResourceClass));
    } else if is_free(node) && subject.offered.is_empty() {
        told.extend(hidden(subject, &class, rules));
    } else if rules.deep {
        told.extend(deep(subject, node, &class, rules));
    }
    told.extend(tagged(subject, node, rules));
    told
}

/// A tag that no case explains: as long as it stays, nobody who forbids it gets the node (rule 7). It goes only from a free one.
fn tagged(subject: &Subject, node: &Node, rules: &Rules) -> Option<Told> {
    let tag = rules.tag.as_ref()?;
    let on_provider = match subject.view().and_then(|view| view.traits.as_ref()) {
        Some(read) => read.traits.contains(tag),
        None => subject.tagged,
    };
    let on_node = node.traits.contains(tag.as_str());
    (on_provider || on_node).then_some(Told {
        kind: FindingKind::StaleHold,
        remedy: if is_free(node) {
            Remedy::Untag
        } else {
            Remedy::ByHand
        },
        is_about_tag: true,
    })
}

/// The bug. What is in use is not ours to correct (rule 2), and what has a case is the case's.
fn offered(node: &Node, has_case: bool) -> Told {
    let remedy = match road(node) {
        Road::InUse => Remedy::ByHand,
        _ if has_case => Remedy::ByHand,
        Road::Leaving | Road::NotFree(_) | Road::Free => Remedy::Guard,
    };
    Told::with(FindingKind::OfferedNotFree, remedy)
}

/// Nobody needs these in Placement yet.
fn is_set_up(node: &Node) -> bool {
    use ProvisionState as P;
    let state = matches!(
        node.provision_state,
        P::Enroll | P::Verifying | P::Manageable | P::Inspecting | P::InspectWait | P::InspectFailed
    );
    state || matches!(node.provision_state, P::Adopting | P::AdoptFailed)
}

fn has_other_class(subject: &Subject, class: &ResourceClass) -> bool {
    match subject.view() {
        Some(view) => {
            let has = &view.inventories.inventories;
            !has.is_empty() && !has.contains_key(class)
        }
        None => !subject.offered.is_empty() && !subject.offered.contains(class),
    }
}

pub(super) fn is_empty(view: &ProviderView, class: &ResourceClass) -> bool {
    let has = view.inventories.inventories.get(class);
    has.is_none_or(|inventory| inventory.total == 0)
}

fn allocated_lately(subject: &Subject, rules: &Rules) -> bool {
    let newest = subject.look.as_ref().and_then(|look| look.newest_allocation);
    rules.is_young(newest)
}

/// A free node that is not offered. A young allocation is a claim: the node is about to be deployed.
fn hidden(subject: &Subject, class: &ResourceClass, rules: &Rules) -> Option<Told> {
    let unless_deep = |told: Told| Told {
        kind: if rules.deep {
            told.kind
        } else {
            FindingKind::FreeNotOffered
        },
        ..told
    };
    let Some(view) = subject.view() else {
        return Some(Told::by_hand(FindingKind::FreeNotOffered));
    };
    if is_empty(view, class) {
        return Some(unless_deep(Told::by_hand(FindingKind::InventoryEmpty)));
    }
    if !view.holders.is_empty() {
        let lately = allocated_lately(subject, rules);
        return (!lately).then(|| unless_deep(held_without_instance(view)));
    }
    let remedy = match (view.is_reserved(class), view.is_novas()) {
        (true, true) => Remedy::Guard,
        (true, false) => Remedy::LiftReservation,
        (false, _) => Remedy::ByHand,
    };
    Some(Told::with(FindingKind::FreeNotOffered, remedy))
}

/// Somebody holds the provider of a node without an instance.
fn held_without_instance(view: &ProviderView) -> Told {
    let mut consumers = view.holders.keys();
    match (consumers.next(), consumers.next(), view.our_hold()) {
        (_, Some(_), _) => Told::by_hand(FindingKind::TwoConsumers),
        (_, None, Some(_)) => Told::with(FindingKind::StaleHold, Remedy::Release),
        (Some(consumer), None, None) => Told::with(
            FindingKind::AllocationWithoutInstance,
            Remedy::DropAllocation { consumer: *consumer },
        ),
        (None, None, None) => Told::by_hand(FindingKind::AllocationWithoutInstance),
    }
}

/// What only the holders show, of a node that is not a free and hidden one.
fn deep(subject: &Subject, node: &Node, class: &ResourceClass, rules: &Rules) -> Option<Told> {
    let view = subject.view()?;
    if is_empty(view, class) {
        return (!is_set_up(node)).then(|| Told::by_hand(FindingKind::InventoryEmpty));
    }
    if allocated_lately(subject, rules) {
        return None;
    }
    let road = road(node);
    if view.holders.len() > 1 {
        return Some(Told::by_hand(FindingKind::TwoConsumers));
    }
    if view.our_hold().is_some() {
        let remedy = match road {
            // What is hidden by it and not free is no matter for the guard either.
            Road::InUse | Road::NotFree(_) => Remedy::ByHand,
            Road::Leaving | Road::Free => Remedy::Release,
        };
        return Some(Told::with(FindingKind::StaleHold, remedy));
    }
    match (road, node.instance_uuid) {
        // On its way out of the instance, whose allocation goes at its owner's time, and protects the node until then.
        (Road::Leaving, _) => None,
        (_, Some(instance)) => (!view.holders.contains_key(&ConsumerUuid(instance)))
            .then(|| Told::by_hand(FindingKind::InstanceWithoutAllocation)),
        // Deployed by somebody who does not name an instance: who holds it is their business.
        (Road::InUse, None) => None,
        (Road::NotFree(_) | Road::Free, None) => {
            (!view.holders.is_empty()).then(|| held_without_instance(view))
        }
    }
}

/// A provider whose node Ironic does not know. One that also has what ordinary computes have is none of ours.
fn orphan(subject: &Subject) -> Option<Told> {
    subject.provider.as_ref()?;
    let Some(view) = subject.view() else {
        return Some(Told::by_hand(FindingKind::ProviderOrphaned));
    };
    let mut classes = view.inventories.inventories.keys();
    if classes.any(|class| !class.as_str().starts_with("CUSTOM_")) {
        return None;
    }
    let remedy = match view.holders.is_empty() {
        true => Remedy::DeleteProvider,
        false => Remedy::ByHand,
    };
    Some(Told::with(FindingKind::ProviderOrphaned, remedy))
}
