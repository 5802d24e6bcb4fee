//! The common rules, the same for every strategy.

use ironic_client::{Fault, Node, ProvisionState};
use jiff::{SignedDuration, Timestamp};
use placement_client::{ConsumerUuid, ResourceClass};

use super::decision::wait;
use super::free::{NotFree, why_not_free};
use super::{
    Action, ActionKind, Case, Decision, Ending, LastAttempt, Observation, Outcome, Owner, ProviderView, Wait,
    WaitFor, guard, guarded, recover, tear_down,
};

/// An observation past the common rules.
#[derive(Clone, Debug)]
pub struct Seen<'a> {
    /// How far the node is.
    pub stage: Stage,
    /// Who holds the provider.
    pub holder: Holder,
    /// The node.
    pub node: &'a Node,
    /// The provider and its class of the node; `None` where Placement has none: then nothing is offered.
    pub provider: Option<(&'a ProviderView, &'a ResourceClass)>,
    pub(super) on_held: OnHeld,
}

/// How far the node is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// The tear-down is still to be sent (or to be sent again).
    InUse,
    /// On its way, or stuck on it.
    Returning,
    /// Free.
    Ready,
}

/// Who holds the provider.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Holder {
    /// The instance that leaves.
    Instance,
    /// We.
    Guard,
    /// Nobody.
    Nobody,
    /// Somebody else, who is not ours to touch; only once the tear-down is under way.
    Other(ConsumerUuid),
}

/// What follows once the hold is in place on a node that returns.
#[derive(Clone, Debug)]
pub(super) enum OnHeld {
    Wait(WaitFor),
    Act(Action),
    End(Outcome, String),
    /// It failed, and Ironic has not said why yet.
    Text(String),
}

pub(super) enum Verdict<'a> {
    Decided(Decision),
    Pass(Seen<'a>),
}

pub(super) fn common<'a>(case: &'a Case, seen: &'a Observation, now: Timestamp) -> Verdict<'a> {
    let Some(node) = &seen.node else {
        return Verdict::Decided(gone(case, seen.provider.as_ref()));
    };
    let provider = seen
        .provider
        .as_ref()
        .and_then(|view| Some((view, class(case, view)?)))
        // A provider that has come back has no inventory yet: there is nothing to hold, nor to offer.
        .filter(|(view, class)| !case.is_guard() || view.inventories.inventories.contains_key(*class));
    if case.is_guard() {
        if guard::road(node) == guard::Road::InUse {
            return Verdict::Decided(guarded::in_use(case, seen, node, provider, now));
        }
    } else if let Some(other) = node
        .instance_uuid
        .filter(|carried| Some(*carried) != case.instance())
    {
        return Verdict::Decided(taken(case, seen, other));
    }
    let holder = provider.map_or(Holder::Nobody, |(view, class)| holder(case, view, class));
    let (stage, on_held) = match stage(case, seen, node, now) {
        Ok(stage) => stage,
        Err(decision) => return Verdict::Decided(decision),
    };
    if stage == Stage::InUse
        && let Some(reason) = tear_down::refused_for_good(case, node)
    {
        return Verdict::Decided(tear_down::hand_back(case, seen, provider, reason));
    }
    if let (Holder::Other(other), Stage::InUse, 0) = (holder, stage, case.sent(ActionKind::Unprovision)) {
        let reason =
            format!("Placement says that {other} holds the node, not the instance; see who that is first");
        return Verdict::Decided(blocked(case, seen, reason));
    }
    Verdict::Pass(Seen {
        stage,
        holder,
        node,
        provider,
        on_held,
    })
}

/// The class that the case is about: as found at the start, or the only custom one of a provider that came later.
fn class<'a>(case: &'a Case, view: &'a ProviderView) -> Option<&'a ResourceClass> {
    case.found.class.as_ref().or_else(|| {
        let mut custom = view
            .inventories
            .inventories
            .keys()
            .filter(|class| class.as_str().starts_with("CUSTOM_"));
        custom.next().filter(|_| custom.next().is_none())
    })
}

fn holder(case: &Case, view: &ProviderView, class: &ResourceClass) -> Holder {
    if case.holder_of_ours(view).is_some() {
        return Holder::Guard;
    }
    if case
        .instance_consumer()
        .is_some_and(|instance| view.holders.contains_key(&instance))
    {
        return Holder::Instance;
    }
    let other = view
        .holders
        .iter()
        .find(|(_, held)| held.units.contains_key(class));
    other.map_or(Holder::Nobody, |(consumer, _)| Holder::Other(*consumer))
}

/// How far the node is, and what follows once it is held there.
fn stage(case: &Case, seen: &Observation, node: &Node, now: Timestamp) -> Result<(Stage, OnHeld), Decision> {
    use ProvisionState as P;
    let on_its_way = OnHeld::Wait(WaitFor::Node(node.provision_state.clone()));
    Ok(match &node.provision_state {
        P::Available if is_old_news(case, node, now) => return Err(look_again(now)),
        P::Available | P::Manageable if node.retired => {
            let words = "the node is retired; it is not offered again unless somebody ends that";
            (Stage::Returning, OnHeld::End(Outcome::Blocked, words.to_owned()))
        }
        P::Available => match why_not_free(node) {
            None => (Stage::Ready, on_its_way),
            Some(NotFree::Maintenance) => (Stage::Returning, OnHeld::Wait(maintenance(node))),
            Some(why) => (Stage::Returning, OnHeld::Wait(WaitFor::Person(why.to_string()))),
        },
        P::Deleting | P::Cleaning | P::CleanWait | P::CleanHold if node.maintenance => {
            (Stage::Returning, OnHeld::Wait(maintenance(node)))
        }
        P::CleanHold => {
            let words = "cleaning is on hold; `openstack baremetal node unhold` lets it go on";
            (Stage::Returning, OnHeld::Wait(WaitFor::Person(words.to_owned())))
        }
        P::Deleting | P::Cleaning | P::CleanWait => (Stage::Returning, on_its_way),
        P::Error | P::CleanFailed if case.has_moved_on(node, now) => (Stage::Returning, on_its_way),
        P::Error if case.sent(ActionKind::Unprovision) > 0 && is_news(case, node) => {
            recover::tear_down_failed(case, node)
        }
        P::Error if case.is_guard() => (Stage::Returning, recover::left_in_error(node)),
        P::CleanFailed => (Stage::Returning, recover::cleaning_failed(case, node)),
        P::Manageable => (Stage::Returning, recover::manageable(case, node)),
        P::Enroll | P::Verifying | P::Inspecting | P::InspectWait | P::InspectFailed => {
            let words = format!("the node is `{}`: somebody works on it", node.provision_state);
            (Stage::Returning, OnHeld::Wait(WaitFor::Person(words)))
        }
        P::Other(word) => {
            let words = format!("the node is in a state that this version does not know: `{word}`");
            (Stage::Returning, OnHeld::Wait(WaitFor::Person(words)))
        }
        _ if node.instance_uuid.is_some() => (Stage::InUse, on_its_way),
        state => return Err(without_instance(case, seen, state, now)),
    })
}

/// The read is from before the tear-down: nothing is decided from it.
fn look_again(now: Timestamp) -> Decision {
    let for_what = WaitFor::Other("a reply of Ironic that is not from before the tear-down".to_owned());
    Decision::Wait(Wait {
        for_what,
        until: now + SignedDuration::from_secs(1),
    })
}

fn maintenance(node: &Node) -> WaitFor {
    let reason = node
        .maintenance_reason
        .clone()
        .filter(|reason| !reason.is_empty());
    let fault = node.fault.clone().map(|fault: Fault| String::from(fault));
    WaitFor::Maintenance(reason.or(fault).unwrap_or_else(|| "no reason given".to_owned()))
}

/// In use, but without the instance: a lagging reply, or somebody deploys anew.
fn without_instance(case: &Case, seen: &Observation, state: &ProvisionState, now: Timestamp) -> Decision {
    if case.sent(ActionKind::Unprovision) > 0 {
        return Decision::Wait(wait(WaitFor::Node(state.clone()), now));
    }
    let instance = case.instance().unwrap_or_default();
    let reason = format!("the node is `{state}` and does not carry instance {instance} any more");
    blocked(case, seen, reason)
}

/// Whether the node's state is newer than what was there when the case was opened.
pub(super) fn is_news(case: &Case, node: &Node) -> bool {
    match (node.provision_updated_at, case.found.provision_updated_at) {
        (Some(seen), Some(found)) => seen > found,
        _ => true,
    }
}

/// Whether an `available` is from before the tear-down: a read from a lagging replica. Some databases keep whole
/// seconds, so an equal time counts as news once the tear-down was accepted a while ago.
fn is_old_news(case: &Case, node: &Node, now: Timestamp) -> bool {
    if case.found.provision_state == ProvisionState::Available || is_news(case, node) {
        return false;
    }
    let settled = |at: Timestamp| now.duration_since(at) > SignedDuration::from_secs(2);
    let accepted = case.attempts.get(&ActionKind::Unprovision);
    let equal = node.provision_updated_at == case.found.provision_updated_at;
    let after = accepted.is_some_and(|sent| sent.last == LastAttempt::Applied && settled(sent.at))
        || guarded::equal_is_news(case, now);
    !(equal && after)
}

/// Rule 11: nobody may be sent to a node that is gone, and Nova must be able to delete its provider. Credentials that do not
/// show the node look the same, so the case stays open as long as there is a provider: the node may come back.
fn gone(case: &Case, provider: Option<&ProviderView>) -> Decision {
    let unheard_of = "Ironic does not know the node any more, or does not show it to these credentials";
    if !case.may_hold() && case.sent(ActionKind::Unprovision) == 0 {
        return end_gone(format!("{unheard_of}; nothing was changed"), false);
    }
    let Some((view, class)) = provider.and_then(|view| Some((view, class(case, view)?))) else {
        return match case.holds_the_unit() {
            true => elsewhere(),
            false => end_gone(
                format!("{unheard_of}, nor does Placement know its provider"),
                false,
            ),
        };
    };
    if !view.is_reserved(class)
        && let Some(action) = Action::reserve_all(view, class)
    {
        return Decision::Act(action);
    }
    // The tear-down was sent, so the instance has no use for its allocation either, and Nova may have lost it from sight.
    let sent = case.sent(ActionKind::Unprovision) > 0;
    let instances = || Action::release(case, view, Owner::Instance).filter(|_| sent);
    match Action::release(case, view, Owner::Guard).or_else(instances) {
        Some(action) => Decision::Act(action),
        None => {
            let next = "its provider stays reserved. If the node is gone for good, delete the provider; if it comes back, \
                        `unprovision resume` goes on";
            end_gone(format!("{unheard_of}; {next}"), true)
        }
    }
}

fn end_gone(reason: String, held: bool) -> Decision {
    Decision::End(Ending {
        outcome: Outcome::Gone,
        reason,
        held,
    })
}

/// We hold a unit of a provider that Placement does not know: it is not the cloud that the case was begun in.
fn elsewhere() -> Decision {
    let reason = "Placement does not know a provider of which we hold a unit: this is another cloud, region or endpoint than \
                  the one that the tear-down was begun in; use that one's settings and `unprovision resume`";
    Decision::End(Ending {
        outcome: Outcome::Blocked,
        reason: reason.to_owned(),
        held: true,
    })
}

/// The node carries another instance. After our release that is the next tenant; before, somebody went around us.
fn taken(case: &Case, seen: &Observation, other: uuid::Uuid) -> Decision {
    // Nothing of ours may outlast the case. Without a tag somebody's allocation hides the node; without a reservation it takes the
    // next tenant's, since the last one's may go at any time.
    if let Some(node) = &seen.node {
        let view = seen.provider.as_ref();
        let untag = || Action::untag(case, node, view).filter(|_| view.is_none_or(|view| case.is_used(view)));
        let unreserve = || unreserve(case, view.filter(|view| case.next_one_holds(node, view))?);
        if let Some(action) = untag().or_else(unreserve) {
            return Decision::Act(action);
        }
    }
    let held = something_is_held(case, seen);
    let (outcome, reason) = if !held && case.sent(ActionKind::Unprovision) > 0 {
        (
            Outcome::Returned,
            format!("the node carries instance {other} already"),
        )
    } else {
        (
            Outcome::Blocked,
            format!("the node carries another instance, {other}; it is not torn down"),
        )
    };
    Decision::End(Ending {
        outcome,
        reason,
        held,
    })
}

/// Sets a reservation of ours back to what was found. `None` where there is none.
pub(super) fn unreserve(case: &Case, view: &ProviderView) -> Option<Action> {
    let class = class(case, view)?;
    case.has_reserved(view, class)
        .then(|| Action::set_reserved(view, class, case.found.reserved))?
}

/// Ends the case, since a person has to do something first.
pub(super) fn blocked(case: &Case, seen: &Observation, reason: String) -> Decision {
    Decision::End(Ending {
        outcome: Outcome::Blocked,
        reason,
        held: something_is_held(case, seen),
    })
}

/// Whether something of ours keeps the provider from being offered, or marks it or the node. So does what a torn-down instance
/// still holds: nobody else releases it.
pub(super) fn something_is_held(case: &Case, seen: &Observation) -> bool {
    if case.is_tagged(seen) {
        return true;
    }
    let Some(view) = &seen.provider else { return false };
    let class = case.found.class.as_ref();
    let reserved = class.is_some_and(|class| case.has_reserved(view, class));
    let instances = case
        .instance_consumer()
        .is_some_and(|consumer| view.holders.contains_key(&consumer));
    let torn_down = !case.is_guard() && case.sent(ActionKind::Unprovision) > 0 && instances;
    reserved || torn_down || case.holder_of_ours(view).is_some()
}

/// Nothing of ours is left on a free node: lift the reservation that Nova leaves, then end.
pub(super) fn finish(case: &Case, seen: &Seen<'_>) -> Decision {
    if let Some((view, class)) = seen.provider
        && case.limits.release_nova_reservations
        && case.is_novas(view)
        && seen.holder == Holder::Nobody
        && view.is_reserved(class)
        && let Some(action) = Action::set_reserved(view, class, 0)
    {
        return Decision::Act(action);
    }
    if seen.provider.is_none() && case.holds_the_unit() {
        return elsewhere();
    }
    // A node that was thought to be gone was reserved, whatever the strategy.
    if let Some(action) = seen.provider.and_then(|(view, _)| unreserve(case, view)) {
        return Decision::Act(action);
    }
    if let (Holder::Instance, Some(instance)) = (seen.holder, case.instance()) {
        return Decision::End(Ending {
            outcome: Outcome::Blocked,
            reason: format!(
                "the node is available, but the allocation of instance {instance} still hides it, and is not ours: once nobody \
                 knows the server any more, `openstack resource provider allocation delete {instance}`"
            ),
            held: false,
        });
    }
    let reason = match (seen.provider, seen.holder) {
        (None, _) => "the node is available; Placement has no provider for it".to_owned(),
        (_, Holder::Other(other)) => format!("the node is available, and {other} holds it already"),
        (Some((view, _)), _) if case.tag_is_on(view) => {
            "the node is available; the tag that was there before is left as it was".to_owned()
        }
        (Some((view, class)), _) if view.is_reserved(class) => {
            "the node is available; the reservation that was there before is left as it was".to_owned()
        }
        _ => "the node is available and offered".to_owned(),
    };
    Decision::End(Ending {
        outcome: Outcome::Returned,
        reason,
        held: false,
    })
}
