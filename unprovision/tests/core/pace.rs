//! How soon a write follows an earlier one of its kind.

use std::collections::BTreeSet;
use std::time::Duration;

use ironic_client::Node;
use jiff::{SignedDuration, Timestamp};
use placement_client::ConsumerGeneration;
use unprovision::core::{
    Action, Case, CaseId, Decision, Event, Outcome, Refusal, RefusalKind, WaitFor, decide,
};
use unprovision::strategy::HandOver;
use uuid::Uuid;

use crate::build::{
    NODE, ProviderExt, Story, at, guard, hand_over, in_use, instance, provider, refusal, secs, seen,
    unprovision,
};

/// The node in use and held by us: the next write is the tear-down.
fn next(case: &Case, now: Timestamp) -> Decision {
    decide(&HandOver, case, &seen(in_use(), provider().held_by(guard())), now)
}

/// How long after `from` the tear-down may be sent.
fn sent_after(case: &Case, from: Timestamp) -> SignedDuration {
    match next(case, from) {
        Decision::Act(_) => SignedDuration::ZERO,
        Decision::Wait(wait) => {
            let just_before = wait.until - SignedDuration::from_nanos(1);
            assert!(matches!(next(case, just_before), Decision::Wait(_)), "not before");
            assert!(
                matches!(next(case, wait.until), Decision::Act(Action::Unprovision { .. })),
                "then"
            );
            wait.until.duration_since(from)
        }
        Decision::End(ending) => panic!("{ending:?}"),
    }
}

/// So many refusals in a row, the last at 0.
fn refused(times: u32, kind: RefusalKind) -> Story {
    let mut story = Story::tear_down();
    for _ in 0..times {
        story = story.refused(0, unprovision(&in_use()), kind);
    }
    story
}

#[test]
fn a_locked_node_is_tried_less_and_less_often_up_to_a_limit() {
    let pauses = (1..=12)
        .map(|times| sent_after(&refused(times, RefusalKind::Locked).case(), at(0)))
        .collect::<Vec<_>>();
    for (pause, base) in pauses.iter().zip([2, 4, 8, 16, 20, 20, 20, 20, 20, 20, 20, 20]) {
        let (least, most) = (secs(base) / 2, secs(base) * 3 / 2);
        assert!((least..=most).contains(pause), "{pause} around {base} s");
    }
    let spread = pauses[4..].iter().collect::<BTreeSet<_>>();
    assert!(spread.len() > 4, "the pauses of one case differ, too: {pauses:?}");
}

#[test]
fn many_locked_nodes_do_not_come_back_in_step() {
    let pauses = (0..100_u128).map(|n| {
        let mut case = refused(5, RefusalKind::Locked).case();
        case.id = CaseId::tear_down(NODE, Uuid::from_u128(n));
        sent_after(&case, at(0)).as_millis() / 100
    });
    let mut pauses = pauses.collect::<Vec<_>>();
    pauses.sort_unstable();
    let most = pauses.chunk_by(|a, b| a == b).map(<[_]>::len).max().unwrap();
    assert!(most <= 6, "{most} of 100 in the same tenth of a second");
}

#[test]
fn what_the_server_asks_for_is_never_undercut() {
    for (asked, at_least) in [(0, 0), (1, 1), (600, 600)] {
        let refusal = Refusal {
            retry_after: Some(Duration::from_secs(asked)),
            ..refusal(RefusalKind::Busy)
        };
        let case = Story::tear_down()
            .intended(0, unprovision(&in_use()))
            .then(0, Event::Refused { refusal })
            .case();
        let pause = sent_after(&case, at(0));
        assert!(pause >= secs(at_least), "{pause}, asked for {asked} s");
        assert!(pause <= secs(at_least.max(8)), "{pause}, asked for {asked} s");
    }
}

#[test]
fn every_passing_refusal_is_waited_out() {
    use RefusalKind::{Away, Busy, Locked, NoConductor};
    for kind in [Locked, Away, Busy, NoConductor] {
        for times in [1, 20, 1000] {
            let pause = sent_after(&refused(times, kind).case(), at(0));
            assert!((secs(1)..=secs(90)).contains(&pause), "{kind:?} {times}: {pause}");
        }
    }
}

#[test]
fn who_holds_the_lock_is_told() {
    let node = Node {
        reservation: Some("conductor-1".to_owned()),
        ..in_use()
    };
    let case = refused(1, RefusalKind::Locked).case();
    let decision = decide(&HandOver, &case, &seen(node, provider().held_by(guard())), at(0));
    let Decision::Wait(wait) = decision else {
        panic!("{decision:?}")
    };
    assert_eq!(wait.for_what, WaitFor::Lock("conductor-1".to_owned()));
}

#[test]
fn an_accepted_tear_down_is_repeated_only_after_a_minute_of_the_same_reads() {
    let case = Story::tear_down().applied(0, unprovision(&in_use())).case();
    assert_eq!(sent_after(&case, at(0)), secs(60));
    let newer = Node {
        provision_updated_at: Some(at(1)),
        ..in_use()
    };
    let held = provider().held_by(guard());
    let decision = decide(&HandOver, &case, &seen(newer.clone(), held), at(2));
    assert_eq!(
        decision,
        Decision::Act(unprovision(&newer)),
        "a newer state is news"
    );
}

#[test]
fn a_tear_down_whose_answer_was_lost_is_repeated_after_five_seconds_of_the_same_reads() {
    let case = Story::tear_down().unknown(0, unprovision(&in_use())).case();
    assert_eq!(sent_after(&case, at(0)), secs(5));
}

#[test]
fn what_is_refused_for_good_is_not_sent_again() {
    for (kind, times) in [
        (RefusalKind::Forbidden, 1),
        (RefusalKind::Illegal, 3),
        (RefusalKind::Other, 3),
    ] {
        let held = seen(in_use(), provider().held_by(guard()));
        let case = refused(times, kind).case();
        let decision = decide(&HandOver, &case, &held, at(1000));
        assert!(
            matches!(decision, Decision::Act(Action::HandBack { .. })),
            "{kind:?}: {decision:?}"
        );
        if times > 1 {
            let case = refused(times - 1, kind).case();
            let decision = decide(&HandOver, &case, &held, at(1000));
            assert_eq!(decision, Decision::Act(unprovision(&in_use())), "{kind:?}");
        }
    }
}

#[test]
fn a_hold_that_is_refused_for_good_ends_the_case_before_anything_was_done() {
    let case = Story::tear_down()
        .refused(0, hand_over(), RefusalKind::Forbidden)
        .case();
    let decision = decide(
        &HandOver,
        &case,
        &seen(in_use(), provider().held_by(instance())),
        at(1000),
    );
    let Decision::End(ending) = decision else {
        panic!("{decision:?}")
    };
    assert_eq!((ending.outcome, ending.held), (Outcome::Blocked, false));
    assert!(ending.reason.contains("Forbidden"), "{}", ending.reason);
}

/// A conflict on a consumer that should be new: it may be there without allocations, at generation 0.
#[test]
fn a_conflict_without_a_change_is_tried_with_generation_0_then_waited_out() {
    let held = seen(in_use(), provider().held_by(instance()));
    let case = Story::tear_down()
        .refused(0, hand_over(), RefusalKind::Conflict)
        .case();
    let decision = decide(&HandOver, &case, &held, at(0));
    let Decision::Act(second) = decision else {
        panic!("{decision:?}")
    };
    let Action::HandOver { generation, .. } = &second else {
        panic!("{second}")
    };
    assert_eq!(*generation, ConsumerGeneration::At(0));

    let case = Story::tear_down()
        .refused(0, hand_over(), RefusalKind::Conflict)
        .refused(0, second.clone(), RefusalKind::Conflict)
        .case();
    let decision = decide(&HandOver, &case, &held, at(0));
    assert_ne!(decision, Decision::Act(second), "only once");
}

/// A look before the tear-down that took too long, for one: the same again after a while, not never.
#[test]
fn a_tear_down_that_was_dropped_although_nothing_changed_is_sent_again_soon() {
    for times in [1, 2, 10] {
        let pause = sent_after(&refused(times, RefusalKind::Conflict).case(), at(0));
        assert!((secs(1)..=secs(45)).contains(&pause), "{times}: {pause}");
    }
}
