//! How soon a write follows one of its kind that was accepted, lost, or refused: by what it is and by what has changed since.

use ironic_client::{Node, ProvisionState};
use jiff::SignedDuration;
use unprovision::core::{
    Action, Case, Decision, Observation, Outcome, Owner, ProviderView, RefusalKind, WaitFor, decide,
};
use unprovision::strategy::by_name;

use crate::build::{
    ProviderExt, Story, at, class, guard, hand_over, in_use, instance, node, provider, reserve, secs, seen,
    tag_node, unprovision,
};

const NOW: i64 = 200;

/// How long the write that follows is waited for.
fn pause(strategy: &str, case: &Case, seen: &Observation) -> SignedDuration {
    match decide(by_name(strategy).unwrap(), case, seen, at(NOW)) {
        Decision::Act(_) => SignedDuration::ZERO,
        Decision::Wait(wait) => wait.until.duration_since(at(NOW)),
        Decision::End(ending) => panic!("{ending:?}"),
    }
}

fn later(seconds: i64) -> Node {
    Node {
        provision_updated_at: Some(at(seconds)),
        ..in_use()
    }
}

fn bare() -> ProviderView {
    provider().held_by(instance()).with_traits(&["CUSTOM_RACK_7"])
}

/// The provider as a later write has left it.
fn moved() -> ProviderView {
    let mut view = provider();
    view.inventories.generation.0 += 1;
    view
}

#[test]
fn a_write_that_was_accepted_and_is_undone_or_not_seen_yet_is_repeated() {
    let ours = |node| seen(node, provider().held_by(guard()));
    let tear_down = Story::tear_down;
    let write = || unprovision(&in_use());
    let cleaning = || node(ProvisionState::Cleaning);
    #[rustfmt::skip]
    let rows = [
        ("accepted, seen as before", "hand-over", tear_down().applied(NOW, write()), ours(in_use()), 60),
        ("accepted, seen anew", "hand-over", tear_down().applied(NOW, write()), ours(later(NOW)), 0),
        ("lost, seen as before", "hand-over", tear_down().unknown(NOW, write()), ours(in_use()), 5),
        ("lost, seen anew", "hand-over", tear_down().unknown(NOW, write()), ours(later(NOW)), 0),
        ("a node's tag accepted", "trait-tagging", Story::tagging().applied(NOW, tag_node()), seen(in_use(), bare()), 5),
        ("a node's tag lost", "trait-tagging", Story::tagging().unknown(NOW, tag_node()), seen(in_use(), bare()), 5),
        ("reserved, and undone", "reserve-on-delete", tear_down().torn_down().applied(NOW, reserve()), seen(cleaning(), moved()), 0),
        ("reserved, and not seen yet", "reserve-on-delete", tear_down().torn_down().applied(NOW, reserve()), seen(cleaning(), provider()), 0),
        ("perhaps reserved, as before", "reserve-on-delete", tear_down().torn_down().unknown(NOW, reserve()), seen(cleaning(), provider()), 2),
        ("perhaps reserved, and undone", "reserve-on-delete", tear_down().torn_down().unknown(NOW, reserve()), seen(cleaning(), moved()), 0),
    ];
    for (what, strategy, story, seen, expected) in rows {
        assert_eq!(pause(strategy, &story.case(), &seen), secs(expected), "{what}");
    }
}

/// What conflicts was decided from a world that has moved on: three times at once, then less and less often.
#[test]
fn a_conflict_with_a_world_that_has_changed_is_decided_anew_at_once_but_not_for_ever() {
    let held = seen(in_use(), provider().held_by(guard()));
    let millis = SignedDuration::from_millis;
    for (times, around) in [(1, 0), (3, 0), (4, 100), (6, 400), (9, 3200), (20, 5000)] {
        let mut story = Story::tear_down();
        for _ in 0..times {
            story = story.refused(NOW, unprovision(&later(-500)), RefusalKind::Conflict);
        }
        let pause = pause("hand-over", &story.case(), &held);
        let bounds = millis(around / 2)..=millis(around * 3 / 2);
        assert!(bounds.contains(&pause), "{times}: {pause} around {around} ms");
    }
}

/// Generation 0 is tried only where nothing has changed that would explain the conflict.
#[test]
fn a_hand_over_that_conflicts_with_a_change_is_not_sent_for_an_empty_consumer() {
    let mut older = provider().held_by(instance());
    older.holders.get_mut(&instance()).unwrap().all.generation = placement_client::ConsumerGeneration::At(2);
    let before = Action::hand_over(&Story::tear_down().case(), &older, &class()).unwrap();
    let case = Story::tear_down()
        .refused(NOW, before, RefusalKind::Conflict)
        .case();
    let now = seen(in_use(), provider().held_by(instance()));
    let decision = decide(by_name("hand-over").unwrap(), &case, &now, at(NOW));
    assert_eq!(decision, Decision::Act(hand_over()));
}

#[test]
fn what_is_refused_for_good_after_the_tear_down_has_failed_and_stays_held() {
    let ours = provider().held_by(guard());
    let handed = Story::tear_down().applied(0, hand_over()).torn_down();
    let release = Action::release(&handed.case(), &ours, Owner::Guard).unwrap();
    let case = handed.refused(1, release, RefusalKind::Forbidden).case();
    let free = seen(node(ProvisionState::Available), ours);
    match decide(by_name("hand-over").unwrap(), &case, &free, at(NOW)) {
        Decision::End(ending) => assert_eq!((ending.outcome, ending.held), (Outcome::Failed, true)),
        other => panic!("{other:?}"),
    }
}

#[test]
fn only_a_node_that_was_locked_is_said_to_wait_for_its_lock() {
    let locked_by = |holder: Option<&str>| Node {
        reservation: holder.map(str::to_owned),
        ..in_use()
    };
    let conductor = "conductor-1";
    let refused = |kind| Story::tear_down().refused(NOW, unprovision(&in_use()), kind);
    let lost = Story::tear_down().unknown(NOW, unprovision(&in_use()));
    let other = |words: &str| WaitFor::Other(words.to_owned());
    let effect = format!("to see the effect of: {}", unprovision(&in_use()));
    for (story, holder, expected) in [
        (
            refused(RefusalKind::Locked),
            Some(conductor),
            WaitFor::Lock(conductor.to_owned()),
        ),
        (
            refused(RefusalKind::Locked),
            None,
            other("it was refused for now: Locked"),
        ),
        (
            refused(RefusalKind::Busy),
            Some(conductor),
            other("it was refused for now: Busy"),
        ),
        (lost, Some(conductor), other(&effect)),
    ] {
        let held = seen(locked_by(holder), provider().held_by(guard()));
        match decide(by_name("hand-over").unwrap(), &story.case(), &held, at(NOW)) {
            Decision::Wait(wait) => assert_eq!(wait.for_what, expected),
            other => panic!("{other:?}"),
        }
    }
}
