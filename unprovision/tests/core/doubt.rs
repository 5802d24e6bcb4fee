//! A case is closed over none of its own holds: not over one that may still arrive, nor over one that a look is too old to show.

use ironic_client::{Node, ProvisionState};
use placement_client::{Generation, ProviderTraits};
use unprovision::core::{Action, Decision, Outcome, Owner, ProviderView, RefusalKind, decide};
use unprovision::strategy::{HandOver, ReserveOnDelete, Strategy, TraitTagging};

use crate::build::{
    ProviderExt, Story, at, guard, hand_over, in_use, instance, node, provider, reserve, seen, tag_provider,
    unprovision, untag_node, untag_provider,
};

/// Whether the case of a node that is free, and seems to be held by nobody, is closed at 200.
fn closes(strategy: &dyn Strategy, story: &Story, view: ProviderView) -> bool {
    let free = seen(node(ProvisionState::Available), view);
    match decide(strategy, &story.case(), &free, at(200)) {
        Decision::End(ending) => {
            assert_eq!((ending.outcome, ending.held), (Outcome::Returned, false));
            true
        }
        Decision::Wait(wait) => {
            assert!(wait.until > at(200) && wait.until <= at(205), "{wait:?}");
            false
        }
        Decision::Act(action) => panic!("{action}"),
    }
}

fn torn_down() -> Story {
    Story::tear_down().applied(0, unprovision(&in_use()))
}

fn release(whose: Owner) -> Action {
    let held = provider().held_by(instance()).held_by(guard());
    Action::release(&Story::tear_down().case(), &held, whose).unwrap()
}

fn hand_back() -> Action {
    Action::hand_back(&Story::tear_down().case(), &provider().held_by(guard())).unwrap()
}

#[test]
fn a_unit_that_we_took_lately_and_that_a_look_does_not_show_is_waited_for() {
    let taken = || torn_down().applied(195, hand_over());
    #[rustfmt::skip]
    let rows = [
        ("taken", taken(), false),
        ("taken a minute ago", torn_down().applied(140, hand_over()), true),
        ("taken nearly a minute ago", torn_down().applied(141, hand_over()), false),
        ("released", taken().applied(195, release(Owner::Guard)), true),
        ("released, then taken", torn_down().applied(194, release(Owner::Guard)).applied(195, hand_over()), false),
        ("perhaps released", taken().unknown(196, release(Owner::Guard)), false),
        ("not released", taken().refused(196, release(Owner::Guard), RefusalKind::Conflict), false),
        ("the instance's released", taken().applied(196, release(Owner::Instance)), false),
        ("handed back", taken().applied(196, hand_back()), true),
        ("handed back, then taken", torn_down().applied(194, hand_back()).applied(195, hand_over()), false),
        ("refused", torn_down().refused(195, hand_over(), RefusalKind::Conflict), true),
        ("perhaps taken", torn_down().unknown(141, hand_over()), false),
        ("perhaps taken a minute ago", torn_down().unknown(140, hand_over()), true),
    ];
    for (what, story, expected) in rows {
        assert_eq!(closes(&HandOver, &story, provider()), expected, "{what}");
    }
}

/// What has a generation tells whether a look is newer.
#[test]
fn a_reservation_is_waited_for_as_long_as_a_look_may_be_older() {
    let lift = || Action::set_reserved(&provider().reserved(1), &crate::build::class(), 0).unwrap();
    let reserved = || torn_down().applied(195, reserve());
    let read = |generation| {
        let mut view = provider();
        view.inventories.generation = Generation(generation);
        view
    };
    #[rustfmt::skip]
    let rows = [
        ("as it was before", reserved(), 7, false),
        ("as it was long before", reserved(), 6, false),
        ("as it is now", reserved(), 8, true),
        ("set a minute ago", torn_down().applied(140, reserve()), 7, true),
        ("set back", reserved().applied(196, lift()), 7, true),
        ("refused", torn_down().refused(195, reserve(), RefusalKind::Conflict), 7, true),
        ("perhaps set", torn_down().unknown(195, reserve()), 7, false),
        ("perhaps set, and something surely since", torn_down().unknown(195, reserve()), 8, true),
        ("perhaps about to be set", torn_down().unknown(196, reserve()), 8, false),
    ];
    for (what, story, generation, expected) in rows {
        assert_eq!(
            closes(&ReserveOnDelete, &story, read(generation)),
            expected,
            "{what}"
        );
    }
}

#[test]
fn a_tag_on_the_provider_is_waited_for_as_long_as_a_look_may_be_older() {
    let untagged = || Story::tagging().torn_down().applied(1, untag_node());
    let tagged = || untagged().applied(195, tag_provider());
    let read = |generation| {
        let mut view = provider();
        view.traits = Some(ProviderTraits {
            generation: Generation(generation),
            traits: ["CUSTOM_RACK_7".parse().unwrap()].into(),
        });
        view
    };
    #[rustfmt::skip]
    let rows = [
        ("as it was before", tagged(), 8, false),
        ("as it is now", tagged(), 9, true),
        ("tagged a minute ago", untagged().applied(140, tag_provider()), 8, true),
        ("untagged", tagged().applied(196, untag_provider()), 8, true),
        ("refused", untagged().refused(195, tag_provider(), RefusalKind::Conflict), 8, true),
    ];
    for (what, story, generation, expected) in rows {
        assert_eq!(
            closes(&TraitTagging, &story, read(generation)),
            expected,
            "{what}"
        );
    }
}

/// The unit went back to the instance meanwhile, and everything is as it was before: then the first one fits again.
#[test]
fn a_hold_whose_answer_was_lost_may_arrive_after_a_later_one_was_undone() {
    let lost = |seconds| Story::tear_down().unknown(seconds, hand_over());
    let protected = || Node {
        protected: true,
        ..in_use()
    };
    let seen = seen(protected(), provider().held_by(instance()));
    for (lost_at, expected) in [(195, true), (196, false)] {
        let story = lost(lost_at).applied(197, hand_over()).applied(198, hand_back());
        let decision = decide(&HandOver, &story.case(), &seen, at(200));
        match decision {
            Decision::End(ending) => assert!(expected && !ending.held, "{lost_at}: {ending:?}"),
            Decision::Wait(wait) => assert!(!expected && wait.until == at(201), "{lost_at}: {wait:?}"),
            Decision::Act(action) => panic!("{lost_at}: {action}"),
        }
    }
    let accepted = Story::tear_down()
        .applied(197, hand_over())
        .applied(198, hand_back());
    let decision = decide(&HandOver, &accepted.case(), &seen, at(200));
    assert!(matches!(decision, Decision::End(_)), "{decision:?}");
}

/// A process may stand still between its look and its decision.
#[test]
fn what_counts_is_when_the_look_was() {
    let story = torn_down().unknown(197, reserve());
    let free = seen(node(ProvisionState::Available), provider());
    match decide(&ReserveOnDelete, &story.case(), &free, at(900)) {
        Decision::Wait(wait) => assert_eq!(wait.until, at(900), "another look, at once"),
        other => panic!("{other:?}"),
    }
}
