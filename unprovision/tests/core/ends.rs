//! How a tear-down ends: returned, gone, taken by another instance; what is still held then, and what is told.

use ironic_client::{Node, ProvisionState};
use placement_client::ConsumerUuid;
use unprovision::core::{Action, Decision, Ending, Found, Kind, Outcome, Owner, ProviderView, decide};
use unprovision::strategy::{HandOver, TraitTagging};

use crate::build::{
    INSTANCE, ProviderExt, STRANGER, Story, at, found, guard, hand_over, in_use, instance, limits, node,
    provider, reserve, seen, tag, tagged,
};

fn decided(story: &Story, node: impl Into<Option<Node>>, view: impl Into<Option<ProviderView>>) -> Decision {
    decide(&HandOver, &story.case(), &seen(node, view), at(200))
}

#[track_caller]
fn ending(decision: Decision) -> Ending {
    match decision {
        Decision::End(ending) => ending,
        other => panic!("no end: {other:?}"),
    }
}

fn word(decision: &Decision) -> &'static str {
    match decision {
        Decision::Act(Action::SetReserved { .. }) => "reserve",
        Decision::Act(Action::Release { whose, .. }) if *whose == Owner::Guard => "release ours",
        Decision::Act(Action::Release { .. }) => "release the instance's",
        Decision::End(ending) => match (ending.outcome, ending.held) {
            (Outcome::Gone, true) => "gone, held",
            (Outcome::Gone, false) => "gone",
            (Outcome::Blocked, true) => "blocked, held",
            (Outcome::Blocked, false) => "blocked",
            (Outcome::Returned, false) => "returned",
            _ => "something else",
        },
        _ => "something else",
    }
}

fn released() -> Story {
    let held = provider().held_by(guard());
    let handed = Story::tear_down().applied(0, hand_over()).torn_down();
    let release = Action::release(&handed.case(), &held, Owner::Guard).unwrap();
    handed.applied(0, release)
}

/// Rule 11: reserved first, then released, and only what is ours or what a tear-down of ours has left.
#[test]
fn a_node_that_is_gone_is_reserved_before_anything_is_released() {
    let begun = Story::tear_down;
    let handed = || begun().applied(0, hand_over());
    let (free, full) = (provider, || provider().reserved(1));
    let (ours, theirs) = (
        |view: ProviderView| Some(view.held_by(guard())),
        |view: ProviderView| Some(view.held_by(instance())),
    );
    #[rustfmt::skip]
    let rows = [
        ("nothing was done", begun(), theirs(free()), "gone"),
        ("nothing was done, no provider", begun(), None, "gone"),
        ("handed over", handed(), ours(free()), "reserve"),
        ("handed over, reserved", handed(), ours(full()), "release ours"),
        ("handed over, no provider", handed(), None, "blocked, held"),
        ("torn down", begun().torn_down(), theirs(free()), "reserve"),
        ("torn down, reserved", begun().torn_down(), theirs(full()), "release the instance's"),
        ("torn down, nobody holds it", begun().torn_down(), Some(full()), "gone, held"),
        ("only reserved", begun().applied(0, reserve()), theirs(full()), "gone, held"),
        ("released, and it has a provider", released(), Some(free()), "reserve"),
        ("released, no provider", released(), None, "gone"),
    ];
    for (what, story, view, expected) in rows {
        let decision = decided(&story, None, view);
        assert_eq!(word(&decision), expected, "{what}: {decision:?}");
    }
}

#[test]
fn a_node_of_another_instance_has_returned_only_if_it_was_torn_down_and_nothing_is_held() {
    let next = || Node {
        instance_uuid: Some(STRANGER),
        ..in_use()
    };
    let stranger = || provider().held_by(ConsumerUuid(STRANGER));
    for (what, story, view, expected) in [
        ("never torn down", Story::tear_down(), stranger(), "blocked"),
        ("released", released(), stranger(), "returned"),
        (
            "still held",
            released(),
            provider().held_by(guard()),
            "blocked, held",
        ),
        (
            "the old instance's is left",
            Story::tear_down().torn_down(),
            provider().held_by(instance()),
            "blocked, held",
        ),
    ] {
        let decision = decided(&story, next(), view);
        assert_eq!(word(&decision), expected, "{what}: {decision:?}");
    }
}

#[test]
fn what_is_left_on_an_available_node_is_told() {
    let free = || node(ProvisionState::Available);
    let stranger = format!("{STRANGER} holds it already");
    for (view, words) in [
        (None, "Placement has no provider for it"),
        (Some(provider()), "available and offered"),
        (
            Some(provider().reserved(1)),
            "the reservation that was there before",
        ),
        (Some(provider().held_by(ConsumerUuid(STRANGER))), &*stranger),
    ] {
        let reason = ending(decided(&released(), free(), view)).reason;
        assert!(reason.contains(words), "{words}: {reason}");
    }
    let there = Found {
        tag: Some(unprovision::core::Tag {
            on_node: true,
            on_provider: true,
            ..tag()
        }),
        ..found()
    };
    let tagging = Story::new(Kind::TearDown { instance: INSTANCE }, limits(), there).torn_down();
    let seen = seen(tagged(free()), provider().tagged());
    let reason = ending(decide(&TraitTagging, &tagging.case(), &seen, at(200))).reason;
    assert!(reason.contains("the tag that was there before"), "{reason}");
}

/// In `error` before our tear-down, and without the instance: that is not ours to repeat.
#[test]
fn only_a_tear_down_of_ours_that_failed_is_a_failure_of_ours() {
    let error = |instance_uuid, since| Node {
        instance_uuid,
        provision_updated_at: Some(at(since)),
        last_error: Some("it broke".to_owned()),
        ..node(ProvisionState::Error)
    };
    let held = || provider().held_by(guard());
    let handed = Story::tear_down().applied(0, hand_over());
    let told = ending(decided(&handed, error(None, 1), held()));
    assert_eq!((told.outcome, told.held), (Outcome::Blocked, true));
    assert!(told.reason.contains("does not carry instance"), "{}", told.reason);
    let carried = decided(&handed, error(Some(INSTANCE), 1), held());
    assert!(
        matches!(carried, Decision::Act(Action::Unprovision { .. })),
        "{carried:?}"
    );
    let old = decided(&handed.clone().torn_down(), error(None, -2000), held());
    assert!(matches!(old, Decision::Wait(_)), "a lagging reply: {old:?}");
    let failed = ending(decided(&handed.torn_down(), error(None, 1), held()));
    assert_eq!((failed.outcome, failed.held), (Outcome::Failed, true));
}

/// Somebody has to end that first, so nobody waits for it.
#[test]
fn a_retired_node_is_blocked_and_stays_held() {
    for state in [ProvisionState::Available, ProvisionState::Manageable] {
        let retired = Node {
            retired: true,
            ..node(state)
        };
        let story = Story::tear_down().applied(0, hand_over()).torn_down();
        let told = ending(decided(&story, retired, provider().held_by(guard())));
        assert_eq!((told.outcome, told.held), (Outcome::Blocked, true));
        assert!(told.reason.contains("retired"), "{}", told.reason);
    }
}
