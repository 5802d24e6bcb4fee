//! The independent veto: what must never be sent, whatever was decided.
//!
//! Written against `docs/safety`, not against the strategies, and sharing nothing with them but the predicate of a
//! free node: a mistake has to be made twice to get out.

use ironic_client::{Fault, Node, ProvisionState};
use placement_client::{ConsumerUuid, Inventories, ProviderTraits, TraitName};

use super::{
    Action, ActionKind, Case, Kind, NovaAnswer, Observation, Owner, ProviderView, Tag, Tie, is_free,
    why_not_free_for_nova,
};

/// Why a write is vetoed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Veto {
    /// Only a caller who asked for the tear-down may change the node.
    #[error("nobody asked to change this node's provision state")]
    NotAsked,
    /// The node carries another instance, or none.
    #[error("the node does not carry the instance that was to be torn down")]
    OtherInstance,
    /// It would offer a node that is not free.
    #[error("the node is not free, and would be offered")]
    NotFree,
    /// It touches a consumer, a class, an inventory or a trait that is not the case's.
    #[error("it would change something that is not ours")]
    NotOurs,
    /// Somebody uses the node, and the guard has nothing to do with it.
    #[error("the node is in use")]
    InUse,
    /// Nova, where it was asked, says that a server lives where it would be ended, or does not where it would be served.
    #[error("Nova says otherwise of the server")]
    Nova,
    /// It would cure what was not asked to be cured, or end a person's maintenance.
    #[error("the cure was not asked for")]
    NoCure,
}

/// Whether the write may be sent.
pub fn check(case: &Case, seen: &Observation, action: &Action) -> Result<(), Veto> {
    veto(is_against_nova(case, seen, action), Veto::Nova)?;
    match action {
        Action::Unprovision { .. } => tear_down(case, asked_for(case, seen)?, action),
        Action::Abort { from, .. } => {
            let node = asked_for(case, seen)?;
            veto(
                !case.is_carried_by(node) || node.provision_state != *from,
                Veto::OtherInstance,
            )
        }
        Action::Manage { .. } | Action::Provide { .. } | Action::ClearMaintenance { .. } => {
            cure(case, asked_for(case, seen)?, action)
        }
        Action::AddNodeTrait { name } | Action::RemoveNodeTrait { name } => {
            asked_for(case, seen).and_then(|node| node_tag(case, seen, node, name, action))
        }
        Action::AddProviderTrait { name, traits } | Action::RemoveProviderTrait { name, traits } => {
            provider_tag(case, seen, name, traits, action)
        }
        Action::SetReserved {
            class,
            to,
            inventories,
        } => reserved(case, seen, class, *to, inventories),
        Action::HandOver { receiver, giver, .. } => {
            let from_instance = giver
                .as_ref()
                .is_none_or(|giver| Some(giver.uuid) == case.instance_consumer());
            veto(*receiver != case.guard() || !from_instance, Veto::NotOurs)?;
            not_in_use(case, seen)
        }
        Action::HandBack { from, to, .. } => {
            veto(
                !is_ours(case, seen, *from) || Some(to.uuid) != case.instance_consumer(),
                Veto::NotOurs,
            )?;
            veto(
                !seen.node.as_ref().is_some_and(|node| case.is_carried_by(node)),
                Veto::OtherInstance,
            )
        }
        Action::Release { whose, consumer } => release(case, seen, *whose, consumer.uuid),
    }
}

fn veto(when: bool, why: Veto) -> Result<(), Veto> {
    if when { Err(why) } else { Ok(()) }
}

/// Rule 10: whoever gets a unit back has to be there, and whoever is there keeps the node from being offered.
fn is_against_nova(case: &Case, seen: &Observation, action: &Action) -> bool {
    let said = seen
        .nova
        .as_ref()
        .filter(|said| Some(said.server) == case.instance());
    let tie = match said.map(|said| &said.answer) {
        Some(NovaAnswer::Server(server)) => Some(server.tie(case.node)),
        Some(NovaAnswer::NoServer) => None,
        None | Some(NovaAnswer::Silent(_) | NovaAnswer::Unreadable) => return false,
    };
    match action {
        Action::HandBack { .. } => matches!(tie, None | Some(Tie::Deleting | Tie::Elsewhere)),
        Action::Release {
            whose: Owner::Guard, ..
        } => tie == Some(Tie::Lives),
        _ => false,
    }
}

fn release(case: &Case, seen: &Observation, whose: Owner, consumer: ConsumerUuid) -> Result<(), Veto> {
    match whose {
        Owner::Guard => {
            veto(!is_ours(case, seen, consumer), Veto::NotOurs)?;
            veto(!may_be_offered(case, seen, whose), Veto::NotFree)
        }
        Owner::Instance => {
            let its = Some(consumer) == case.instance_consumer();
            veto(!its || !matches!(case.kind, Kind::TearDown { .. }), Veto::NotOurs)?;
            let hidden = hidden_otherwise(case, seen, whose) || hidden_by_tag(case, seen);
            veto(!may_be_offered(case, seen, whose) && !hidden, Veto::NotFree)
        }
    }
}

fn asked_for<'a>(case: &Case, seen: &'a Observation) -> Result<&'a Node, Veto> {
    veto(!matches!(case.kind, Kind::TearDown { .. }), Veto::NotAsked)?;
    seen.node.as_ref().ok_or(Veto::OtherInstance)
}

fn tear_down(case: &Case, node: &Node, action: &Action) -> Result<(), Veto> {
    let decided_from = Action::Unprovision {
        carries: node.instance_uuid,
        since: node.provision_updated_at,
        from: node.provision_state.clone(),
    };
    veto(*action != decided_from, Veto::OtherInstance)?;
    veto(
        !case.is_carried_by(node) && !failed_on_its_way_out(case, node),
        Veto::OtherInstance,
    )
}

/// The case's own consumer; for the guard, any that carries our project and type.
fn is_ours(case: &Case, seen: &Observation, consumer: ConsumerUuid) -> bool {
    let marked = || {
        let view = seen.provider.as_ref();
        view.and_then(|view| view.holders.get(&consumer))
            .is_some_and(|held| held.ours)
    };
    consumer == case.guard() || (case.is_guard() && marked())
}

/// Rule 2: what the guard sees on a node in use is no reason to take anything from it.
fn not_in_use(case: &Case, seen: &Observation) -> Result<(), Veto> {
    use ProvisionState as P;
    let in_use = |node: &Node| match &node.provision_state {
        P::Deleting | P::Cleaning | P::CleanWait | P::CleanHold | P::CleanFailed | P::Error => false,
        _ if node.instance_uuid.is_some() => true,
        P::Available | P::Manageable | P::Enroll | P::Verifying => false,
        P::Inspecting | P::InspectWait | P::InspectFailed | P::Other(_) => false,
        _ => true,
    };
    veto(
        case.is_guard() && seen.node.as_ref().is_some_and(in_use),
        Veto::InUse,
    )
}

/// The one tear-down without an instance: of a node that our own tear-down has left in `error`, where Ironic has
/// taken the instance already, and only as often as the caller allowed.
fn failed_on_its_way_out(case: &Case, node: &Node) -> bool {
    let sent = case.spent(ActionKind::Unprovision, node);
    node.instance_uuid.is_none()
        && node.provision_state == ProvisionState::Error
        && (1..=case.limits.retry_error).contains(&sent)
}

fn cure(case: &Case, node: &Node, action: &Action) -> Result<(), Veto> {
    veto(node.instance_uuid.is_some(), Veto::OtherInstance)?;
    veto(
        case.spent(ActionKind::Provide, node) >= case.limits.reclean,
        Veto::NoCure,
    )?;
    let fits = match action {
        Action::Manage { .. } => node.provision_state == ProvisionState::CleanFailed,
        Action::ClearMaintenance { .. } => node.fault == Some(Fault::CleanFailure),
        _ => node.provision_state == ProvisionState::Manageable && !node.maintenance,
    };
    veto(!fits, Veto::NoCure)
}

/// A reservation may be raised at any time; lowered only on a free node, and back to what was found on one that still carries the
/// instance, or that the next one holds already.
fn reserved(
    case: &Case,
    seen: &Observation,
    class: &placement_client::ResourceClass,
    to: u32,
    new: &Inventories,
) -> Result<(), Veto> {
    let view = seen.provider.as_ref().ok_or(Veto::NotOurs)?;
    let mut expected = view.inventories.clone();
    let now = expected.inventories.get_mut(class).ok_or(Veto::NotOurs)?;
    let lowered = to < now.reserved;
    now.reserved = to;
    veto(
        expected != *new || case.found.class.as_ref().is_some_and(|found| found != class),
        Veto::NotOurs,
    )?;
    if !lowered {
        return not_in_use(case, seen);
    }
    let node = seen.node.as_ref().ok_or(Veto::NotFree)?;
    let still_in_use = case.is_carried_by(node) && to >= case.found.reserved;
    let ours = case.sent(ActionKind::SetReserved) > 0 && to >= case.found.reserved;
    let novas =
        case.is_novas(view) && case.limits.release_nova_reservations && why_not_free_for_nova(node).is_none();
    veto(!ours && !novas, Veto::NotOurs)?;
    let in_use_again = ours && case.next_one_holds(node, view);
    veto(!is_free(node) && !still_in_use && !in_use_again, Veto::NotFree)
}

/// The tag that is on record for this case; no other trait is ever touched.
fn own_tag<'a>(case: &'a Case, name: &TraitName) -> Result<&'a Tag, Veto> {
    let tag = case.found.tag.as_ref().filter(|tag| tag.name == *name);
    tag.filter(|tag| tag.name.is_custom()).ok_or(Veto::NotOurs)
}

fn node_tag(
    case: &Case,
    seen: &Observation,
    node: &Node,
    name: &TraitName,
    action: &Action,
) -> Result<(), Veto> {
    let tag = own_tag(case, name)?;
    if matches!(action, Action::AddNodeTrait { .. }) {
        let others = node.instance_uuid.is_some() && !case.is_carried_by(node);
        return veto(others, Veto::OtherInstance);
    }
    let ours = !tag.on_node && case.sent(ActionKind::AddNodeTrait) > 0;
    veto(!ours, Veto::NotOurs)?;
    veto(!tag_may_go(case, seen), Veto::NotFree)
}

/// The provider's traits as they were read, with the tag or without it.
fn provider_tag(
    case: &Case,
    seen: &Observation,
    name: &TraitName,
    new: &ProviderTraits,
    action: &Action,
) -> Result<(), Veto> {
    let tag = own_tag(case, name)?;
    let read = seen.provider.as_ref().and_then(|view| view.traits.as_ref());
    let mut expected = read.ok_or(Veto::NotOurs)?.clone();
    if matches!(action, Action::AddProviderTrait { .. }) {
        expected.traits.insert(name.clone());
        return veto(expected != *new, Veto::NotOurs);
    }
    expected.traits.remove(name);
    // Nova copies a node's traits to its provider.
    let copied = !tag.on_node && case.sent(ActionKind::AddNodeTrait) > 0;
    let ours = !tag.on_provider && (copied || case.sent(ActionKind::AddProviderTrait) > 0);
    veto(!ours || expected != *new, Veto::NotOurs)?;
    veto(!tag_may_go(case, seen), Veto::NotFree)
}

/// A tag is taken from a free node, from one that somebody's allocation hides, and from one that still carries the instance where
/// that never held anything.
fn tag_may_go(case: &Case, seen: &Observation) -> bool {
    let Some(node) = &seen.node else { return false };
    let used = |view: &ProviderView| case.is_used(view);
    let hidden = node.instance_uuid.is_some() && seen.provider.as_ref().is_none_or(used);
    let as_found = case.is_carried_by(node) && case.found.units.is_empty();
    is_free(node) || hidden || as_found
}

/// Whether queries that forbid the tag are not offered the provider. That is all that a strategy that tags promises.
fn hidden_by_tag(case: &Case, seen: &Observation) -> bool {
    let tag = case.found.tag.as_ref();
    let read = seen.provider.as_ref().and_then(|view| view.traits.as_ref());
    tag.zip(read)
        .is_some_and(|(tag, read)| read.traits.contains(&tag.name))
}

/// Free, or gone for good and hidden all the same.
fn may_be_offered(case: &Case, seen: &Observation, released: Owner) -> bool {
    match &seen.node {
        Some(node) => is_free(node),
        None => hidden_otherwise(case, seen, released),
    }
}

/// Whether a reservation, or our hold, keeps the provider from being offered once this allocation is gone.
fn hidden_otherwise(case: &Case, seen: &Observation, released: Owner) -> bool {
    let Some(view) = &seen.provider else { return true };
    let Some(class) = &case.found.class else {
        return false;
    };
    let held = released != Owner::Guard && case.holder_of_ours(view).is_some();
    view.is_reserved(class) || held
}
