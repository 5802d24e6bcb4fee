//! From a hold in place to an accepted tear-down.

use ironic_client::{Node, ProvisionState, Verb};
use jiff::Timestamp;
use placement_client::ResourceClass;

use super::decision::wait;
use super::{
    Action, ActionKind, Case, Decision, Kind, Observation, Owner, ProviderView, RefusalKind, Seen, WaitFor,
    rules,
};

/// What a tear-down has to do first in a provision state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// Nothing: Ironic takes the verb `deleted` here.
    Now,
    /// Wait for Ironic; the state passes by itself.
    Wait,
    /// Leave a hold state by the verb `abort`.
    AbortFirst,
    /// Nothing: the instance leaves, or has left, already.
    UnderWay,
    /// A person has to do something first; what, in words.
    Never(&'static str),
}

/// The whole table: what a tear-down does first in each provision state.
pub fn start_of(state: &ProvisionState) -> Start {
    use ProvisionState as P;
    if state.accepts(Verb::Deleted) {
        return Start::Now;
    }
    match state {
        P::Deploying | P::Rescuing | P::Unrescuing | P::Servicing | P::Adopting | P::Rebuild => Start::Wait,
        P::DeployHold | P::ServiceHold => Start::AbortFirst,
        P::Deleting | P::Cleaning | P::CleanWait | P::CleanHold | P::CleanFailed => Start::UnderWay,
        P::Available => Start::Never("it is `available`, there is nothing to tear down"),
        P::AdoptFailed => Start::Never("adopt it anew, or take it to `manageable` first"),
        P::Enroll | P::Verifying | P::Manageable | P::Inspecting | P::InspectWait | P::InspectFailed => {
            Start::Never("it is not deployed")
        }
        _ => Start::Never("this version does not know the state; nothing is done"),
    }
}

/// Why Ironic will never accept the tear-down of the node as it is: protected, refused for good, or in a state in which there is
/// nothing to tear down.
pub(super) fn refused_for_good(case: &Case, node: &Node) -> Option<String> {
    let Kind::TearDown { .. } = case.kind else {
        return None;
    };
    if node.protected {
        let why = "the node is protected; end that with `openstack baremetal node unset NODE --protected`";
        return Some(why.to_owned());
    }
    match start_of(&node.provision_state) {
        Start::Never(why) => Some(format!("the node is `{}`: {why}", node.provision_state)),
        Start::Now => refused(case, node, ActionKind::Unprovision),
        Start::AbortFirst => refused(case, node, ActionKind::Abort),
        Start::Wait | Start::UnderWay => None,
    }
}

fn refused(case: &Case, node: &Node, kind: ActionKind) -> Option<String> {
    let attempts = case.attempts.get(&kind)?;
    if attempts.action.since() != node.provision_updated_at {
        return None;
    }
    let refusal = attempts.refused_for_good()?;
    Some(match refusal.kind {
        RefusalKind::Forbidden => format!("Ironic does not allow it: {refusal}"),
        _ => format!("Ironic refuses it: {refusal}"),
    })
}

/// The hold is in place; the node still carries the instance.
pub(super) fn go_on(case: &Case, seen: &Seen<'_>, now: Timestamp) -> Decision {
    let state = &seen.node.provision_state;
    let since = seen.node.provision_updated_at;
    match (case.kind, start_of(state)) {
        (Kind::TearDown { .. }, Start::Now) => Decision::Act(Action::Unprovision {
            carries: seen.node.instance_uuid,
            since,
            from: state.clone(),
        }),
        (Kind::TearDown { .. }, Start::AbortFirst) => Decision::Act(Action::Abort {
            since,
            from: state.clone(),
        }),
        // The guard never touches the node: whoever deletes the server does that.
        _ => Decision::Wait(wait(WaitFor::Node(state.clone()), now)),
    }
}

/// Nothing was torn down and nothing will be: Placement is put back as it was, then the case ends.
pub(super) fn hand_back(
    case: &Case,
    seen: &Observation,
    provider: Option<(&ProviderView, &ResourceClass)>,
    reason: String,
) -> Decision {
    let blocked = |reason| rules::blocked(case, seen, reason);
    let tagged = seen
        .node
        .as_ref()
        .and_then(|node| Action::untag(case, node, seen.provider.as_ref()));
    if let Some(untag) = tagged {
        return Decision::Act(untag);
    }
    let Some((view, _)) = provider else {
        return blocked(reason);
    };
    if case.holder_of_ours(view).is_some() {
        let back = match case.found.owner {
            Some(_) => Action::hand_back(case, view),
            None => Action::release(case, view, Owner::Guard),
        };
        return back.map_or_else(|| blocked(reason), Decision::Act);
    }
    rules::unreserve(case, view).map_or_else(|| blocked(reason), Decision::Act)
}
