//! What is different while somebody else tears down: the guard never changes the node, and never lets go of one that it holds.

use ironic_client::Node;
use jiff::{SignedDuration, Timestamp};
use placement_client::ResourceClass;

use super::decision::wait;
use super::{
    Case, Decision, Ending, Observation, Outcome, ProviderView, Seen, Stage, Wait, WaitFor, rules, tear_down,
};

/// How soon a node is looked at for itself while nothing is seen to change. One watcher looks at all of them much more often.
pub(super) const SELDOM: SignedDuration = SignedDuration::from_mins(10);
/// How long Nova may take to delete the allocation of an instance whose node is free already.
const NOVA_RELEASES: SignedDuration = SignedDuration::from_secs(120);

/// The node is in use: by the instance that was leaving, or by the next one (rule 10).
pub(super) fn in_use(
    case: &Case,
    seen: &Observation,
    node: &Node,
    provider: Option<(&ProviderView, &ResourceClass)>,
    now: Timestamp,
) -> Decision {
    let held = rules::something_is_held(case, seen);
    if !rules::is_news(case, node) && now.duration_since(case.opened_at) < SELDOM {
        let words = "a reply of Ironic that is not from before the departure";
        return Decision::Wait(wait(WaitFor::Other(words.to_owned()), now));
    }
    let state = &node.provision_state;
    let back = case.is_carried_by(node);
    if !held {
        let (outcome, reason) = match node.instance_uuid {
            Some(other) if !back => (
                Outcome::Returned,
                format!("the node carries instance {other} already"),
            ),
            _ => (Outcome::Blocked, format!("the node is `{state}`: in use again")),
        };
        return Decision::End(Ending {
            outcome,
            reason,
            held: false,
        });
    }
    let ours = provider.is_some_and(|(view, _)| case.holder_of_ours(view).is_some());
    if back && (case.found.owner.is_some() || !ours) {
        let reason = format!("the node is `{state}` again, with the same instance");
        return tear_down::hand_back(case, seen, provider, reason);
    }
    // The next tenant came before we reserved again: its allocation hides the node, and Nova sets only what it reserves itself.
    if let Some((view, _)) = provider
        && case.next_one_holds(node, view)
        && let Some(action) = rules::unreserve(case, view)
    {
        return Decision::Act(action);
    }
    let by = node.instance_uuid.map_or_else(
        || "without an instance".to_owned(),
        |other| format!("with instance {other}"),
    );
    stuck(
        format!("the node is `{state}` {by}, and we still hold its provider: somebody went around Placement"),
        now,
    )
}

/// The instance's allocation is its owner's to release: Nova does that soon after the node has left the instance.
pub(super) fn leave_the_instances(case: &Case, seen: &Seen<'_>, now: Timestamp) -> Decision {
    let words = || WaitFor::Other("Nova has not deleted the instance's allocation yet".to_owned());
    match seen.stage {
        Stage::Ready if case.seconds_in_state(now) > NOVA_RELEASES.as_secs() => rules::finish(case, seen),
        Stage::Ready => Decision::Wait(Wait {
            for_what: words(),
            until: now + SignedDuration::from_secs(1),
        }),
        Stage::InUse | Stage::Returning => Decision::Wait(Wait {
            for_what: WaitFor::Node(seen.node.provision_state.clone()),
            until: now + SELDOM,
        }),
    }
}

/// What would end a tear-down for now, with the node held, is waited out: somebody else works on the node.
pub(super) fn never_lets_go(case: &Case, decision: Decision, now: Timestamp) -> Decision {
    match decision {
        Decision::End(ending) if case.is_guard() && ending.held => stuck(ending.reason, now),
        other => other,
    }
}

/// A wait for a person.
pub(super) fn stuck(reason: String, now: Timestamp) -> Decision {
    Decision::Wait(Wait {
        for_what: WaitFor::Person(reason),
        until: now + SELDOM,
    })
}

/// Whether an `available` with the very time that was found is from after it. Some databases keep whole seconds; an older one
/// would have an older time, since the node was deployed in between.
pub(super) fn equal_is_news(case: &Case, now: Timestamp) -> bool {
    case.is_guard() && now.duration_since(case.opened_at) > SignedDuration::from_secs(2)
}
