//! What a case is, folded from its journal.

use ironic_client::{Node, ProvisionState};
use unprovision::core::{
    Action, ActionKind, Case, CaseId, CaseState, Ending, Event, LastAttempt, Limits, Outcome, Owner,
    RefusalKind,
};

use crate::build::{
    INSTANCE, NODE, ProviderExt, Story, at, class, found, guard, hand_over, in_use, limits, node, provider,
    refusal, reserve, tag_node, tag_provider, unprovision, untag_node, untag_provider,
};

fn ending(held: bool) -> Ending {
    Ending {
        outcome: Outcome::Failed,
        reason: "it broke".to_owned(),
        held,
    }
}

fn release_ours() -> Action {
    Action::release(
        &Story::tear_down().case(),
        &provider().held_by(guard()),
        Owner::Guard,
    )
    .unwrap()
}

#[test]
fn a_journal_that_does_not_begin_with_an_opening_is_no_case() {
    let id = CaseId::tear_down(NODE, INSTANCE);
    assert!(Case::fold(id, []).is_none());
    let story = Story::tear_down().then(1, Event::Freed);
    assert!(Case::fold(id, &story.entries[1..]).is_none());
    assert!(Case::fold(id, &story.entries).is_some());
}

#[test]
fn folding_at_once_is_folding_one_by_one() {
    let story = Story::tear_down()
        .applied(1, hand_over())
        .refused(2, unprovision(&in_use()), RefusalKind::Locked)
        .unknown(3, unprovision(&in_use()))
        .then(4, Event::Suspended { ending: ending(true) })
        .then(5, Event::Resumed { limits: limits() });
    let mut pushed = Case::fold(story.case().id, &story.entries[..1]).unwrap();
    story.entries[1..].iter().for_each(|entry| pushed.push(entry));
    assert_eq!(pushed, story.case());
}

#[test]
fn an_intent_without_an_outcome_is_pending_and_the_next_makes_it_unknown() {
    let story = Story::tear_down().intended(1, hand_over());
    assert_eq!(story.case().pending, Some(hand_over()));
    assert_eq!(story.case().sent(ActionKind::HandOver), 0, "not yet");
    let case = story.intended(2, unprovision(&in_use())).case();
    assert_eq!(case.pending, Some(unprovision(&in_use())));
    assert_eq!(case.attempts[&ActionKind::HandOver].last, LastAttempt::Unknown);
    assert_eq!(case.sent(ActionKind::HandOver), 1, "it may have been applied");
}

#[test]
fn a_write_whose_answer_was_lost_and_its_repetition_count_once() {
    let write = || unprovision(&in_use());
    let twice = Story::tear_down().unknown(1, write()).unknown(7, write());
    assert_eq!(twice.case().sent(ActionKind::Unprovision), 1);
    let accepted = twice.clone().applied(14, write()).case();
    assert_eq!(accepted.sent(ActionKind::Unprovision), 1);
    let refused = twice.refused(14, write(), RefusalKind::Locked).case();
    assert_eq!(
        refused.sent(ActionKind::Unprovision),
        0,
        "it was not applied, as the repetition shows"
    );
    let other = Node {
        provision_updated_at: Some(at(5)),
        ..in_use()
    };
    let different = Story::tear_down()
        .unknown(1, write())
        .applied(7, unprovision(&other))
        .case();
    assert_eq!(
        different.sent(ActionKind::Unprovision),
        2,
        "decided from another world"
    );
}

#[test]
fn a_hold_whose_answer_was_lost_is_not_forgotten_when_its_repetition_conflicts() {
    let story = Story::tear_down().unknown(1, reserve());
    let case = story.refused(7, reserve(), RefusalKind::Conflict).case();
    assert_eq!(case.sent(ActionKind::SetReserved), 1, "the first came in between");
    assert!(case.has_reserved(&provider().reserved(1), &class()));
}

/// What counts against `--retry-error` and `--reclean`: not a write in doubt that the node has not seen.
#[test]
fn a_write_in_doubt_is_not_spent_while_the_node_is_as_it_was() {
    let manageable = node(ProvisionState::Manageable);
    let provide = || Action::Provide {
        since: manageable.provision_updated_at,
    };
    let later = Node {
        provision_updated_at: Some(at(50)),
        ..manageable.clone()
    };
    let spent = |story: Story, node: &Node| story.case().spent(ActionKind::Provide, node);
    assert_eq!(spent(Story::tear_down(), &manageable), 0);
    assert_eq!(spent(Story::tear_down().unknown(1, provide()), &manageable), 0);
    assert_eq!(spent(Story::tear_down().unknown(1, provide()), &later), 1);
    assert_eq!(spent(Story::tear_down().applied(1, provide()), &manageable), 1);
    let timeless = Node {
        provision_updated_at: None,
        ..manageable.clone()
    };
    let nowhen = Action::Provide { since: None };
    assert_eq!(
        spent(Story::tear_down().unknown(1, nowhen), &timeless),
        1,
        "nobody can tell"
    );
}

#[test]
fn refusals_in_a_row_are_counted_and_end_with_an_acceptance() {
    let write = || unprovision(&in_use());
    let story = Story::tear_down()
        .refused(1, write(), RefusalKind::Locked)
        .refused(2, write(), RefusalKind::Illegal);
    let case = story.case();
    assert_eq!(case.attempts[&ActionKind::Unprovision].refused_in_row, 2);
    assert_eq!(
        case.refusal(ActionKind::Unprovision),
        Some(&refusal(RefusalKind::Illegal))
    );
    assert_eq!(case.sent(ActionKind::Unprovision), 0);
    let case = story.applied(3, write()).case();
    assert_eq!(case.attempts[&ActionKind::Unprovision].refused_in_row, 0);
    assert_eq!(case.refusal(ActionKind::Unprovision), None);
}

#[test]
fn who_resumes_gives_refused_writes_a_new_chance() {
    let story = Story::tear_down()
        .refused(1, unprovision(&in_use()), RefusalKind::Forbidden)
        .then(2, Event::Suspended { ending: ending(true) });
    let attempts = &story.case().attempts[&ActionKind::Unprovision];
    assert!(attempts.refused_for_good().is_some());
    assert_eq!(story.case().state, CaseState::Suspended(ending(true)));
    let longer = Limits {
        deadline: at(500_000),
        ..limits()
    };
    let case = story.then(3, Event::Resumed { limits: longer }).case();
    assert_eq!(case.state, CaseState::Open);
    assert_eq!(case.limits, longer);
    assert!(
        case.attempts[&ActionKind::Unprovision]
            .refused_for_good()
            .is_none()
    );
}

#[test]
fn a_closed_case_that_is_asked_for_again_starts_afresh() {
    let story = Story::tear_down().applied(1, hand_over()).torn_down().then(
        2,
        Event::Closed {
            ending: ending(false),
        },
    );
    assert_eq!(story.case().state, CaseState::Closed(ending(false)));
    let opened = Story::tear_down().entries.remove(0).event;
    let case = story.then(1000, opened).case();
    let mut fresh = Story::tear_down().case();
    fresh.opened_at = at(1000);
    assert_eq!(case, fresh);
}

/// A journal of a version that did not name the cloud learns it when the tear-down is asked for again.
#[test]
fn the_cloud_is_the_one_that_the_case_was_begun_in() {
    let opened_in = |place: Option<&str>| {
        let mut event = Story::tear_down().entries.remove(0).event;
        if let Event::Opened { cloud, .. } = &mut event {
            *cloud = place.map(str::to_owned);
        }
        event
    };
    let again = |first, second| {
        let mut story = Story::tear_down().then(1, opened_in(second));
        story.entries[0].event = opened_in(first);
        story.case().cloud
    };
    assert_eq!(again(None, Some("b")).as_deref(), Some("b"));
    assert_eq!(again(Some("a"), Some("b")).as_deref(), Some("a"));
    assert_eq!(again(Some("a"), None).as_deref(), Some("a"));
}

/// What was found before the first write is what comes back; only the strategy that set a hold can lift it.
#[test]
fn a_case_that_has_not_ended_and_is_asked_for_again_goes_on() {
    let mut again = Story::tear_down().entries.remove(0).event;
    if let Event::Opened {
        strategy,
        found,
        limits,
        ..
    } = &mut again
    {
        *strategy = "reserve-on-delete".to_owned();
        found.reserved = 1;
        found.owner = None;
        limits.reclean = 7;
    }
    let case = Story::tear_down().applied(1, hand_over()).then(50, again).case();
    assert_eq!((case.opened_at, case.limits.reclean), (at(50), 7));
    assert_eq!(
        (case.strategy.as_str(), case.found.clone()),
        ("hand-over", found())
    );
    assert_eq!(case.sent(ActionKind::HandOver), 1);
}

#[test]
fn what_may_be_held_is_told_by_the_journal_alone() {
    let lifted = Action::set_reserved(&provider().reserved(1), &class(), 0).unwrap();
    for (what, story, expected) in [
        ("nothing yet", Story::tear_down(), false),
        ("handed over", Story::tear_down().applied(1, hand_over()), true),
        (
            "perhaps handed over",
            Story::tear_down().unknown(1, hand_over()),
            true,
        ),
        (
            "refused",
            Story::tear_down().refused(1, hand_over(), RefusalKind::Conflict),
            false,
        ),
        (
            "released",
            Story::tear_down()
                .applied(1, hand_over())
                .applied(2, release_ours()),
            false,
        ),
        (
            "perhaps released",
            Story::tear_down()
                .applied(1, hand_over())
                .unknown(2, release_ours()),
            true,
        ),
        ("reserved", Story::tear_down().applied(1, reserve()), true),
        (
            "lifted",
            Story::tear_down().applied(1, reserve()).applied(2, lifted),
            false,
        ),
    ] {
        assert_eq!(story.case().may_hold(), expected, "{what}");
    }
}

#[test]
fn a_tag_may_be_left_until_both_are_untagged() {
    for (what, story, expected) in [
        ("the node tagged", Story::tagging().applied(1, tag_node()), true),
        (
            "the provider perhaps tagged",
            Story::tagging().unknown(1, tag_provider()),
            true,
        ),
        (
            "untagged, half of it",
            Story::tagging().tagged().applied(2, untag_node()),
            true,
        ),
        (
            "untagged",
            Story::tagging()
                .tagged()
                .applied(2, untag_node())
                .applied(3, untag_provider()),
            false,
        ),
        (
            "untagged, and tagged again",
            Story::tagging()
                .tagged()
                .applied(2, untag_node())
                .applied(3, untag_provider())
                .applied(3, tag_provider()),
            true,
        ),
    ] {
        assert_eq!(story.case().may_hold(), expected, "{what}");
    }
}

#[test]
fn what_is_set_anew_is_held_again_and_so_is_what_a_torn_down_instance_keeps() {
    for (what, story, expected) in [
        (
            "released, and claimed again",
            Story::tear_down()
                .applied(1, hand_over())
                .applied(2, release_ours())
                .applied(2, hand_over()),
            true,
        ),
        (
            "torn down, and the instance's allocation is left",
            Story::tear_down().torn_down(),
            true,
        ),
        (
            "torn down, and the instance's allocation is gone",
            Story::tear_down().torn_down().then(2, Event::Freed),
            false,
        ),
    ] {
        assert_eq!(story.case().may_hold(), expected, "{what}");
    }
}

#[test]
fn the_first_time_that_the_instance_is_off_its_unit_counts() {
    let case = Story::tear_down()
        .applied(5, hand_over())
        .then(9, Event::Freed)
        .case();
    assert_eq!(case.freed_at, Some(at(5)));
    let case = Story::tear_down()
        .refused(5, hand_over(), RefusalKind::Conflict)
        .then(9, Event::Freed)
        .case();
    assert_eq!(case.freed_at, Some(at(9)));
}

#[test]
fn a_state_counts_from_when_it_was_seen_first() {
    let saw = |state: ProvisionState| Event::Saw {
        provision_state: state,
        maintenance: false,
    };
    let case = Story::tear_down()
        .then(3, saw(ProvisionState::Cleaning))
        .then(8, saw(ProvisionState::Cleaning))
        .case();
    assert_eq!(case.seconds_in_state(at(10)), 7);
}
