//! What happens when the time is up.

use ironic_client::{Fault, Node, ProvisionState};
use unprovision::core::{Action, Decision, Ending, Limits, Outcome, Owner, decide};
use unprovision::strategy::{self, HandOver};

use crate::build::{ProviderExt, Story, at, guard, in_use, instance, limits, node, provider, seen};

const LATE: i64 = 100_000;

fn ending(decision: Decision) -> Ending {
    match decision {
        Decision::End(ending) => ending,
        other => panic!("no end: {other:?}"),
    }
}

fn held_in(node: Node) -> unprovision::core::Observation {
    seen(node, provider().held_by(guard()))
}

#[test]
fn a_node_that_is_still_on_its_way_has_timed_out_and_stays_held() {
    let case = Story::tear_down().torn_down().case();
    let cleaning = Node {
        reservation: Some("conductor-1".to_owned()),
        ..node(ProvisionState::Cleaning)
    };
    let ending = ending(decide(&HandOver, &case, &held_in(cleaning), at(LATE)));
    assert_eq!((ending.outcome, ending.held), (Outcome::TimedOut, true));
    assert!(ending.reason.contains("`cleaning`"), "{}", ending.reason);
    assert!(ending.reason.contains("conductor-1"), "{}", ending.reason);
}

#[test]
fn a_node_in_maintenance_is_blocked_and_the_reason_is_told() {
    let case = Story::tear_down().torn_down().case();
    let states = [
        ProvisionState::CleanWait,
        ProvisionState::Cleaning,
        ProvisionState::Available,
    ];
    for state in states {
        let stopped = Node {
            maintenance: true,
            maintenance_reason: Some("RMA 7".to_owned()),
            ..node(state.clone())
        };
        let before = decide(&HandOver, &case, &held_in(stopped.clone()), at(LATE - 1));
        assert!(matches!(before, Decision::Wait(_)), "{state}: {before:?}");
        let ending = ending(decide(&HandOver, &case, &held_in(stopped), at(LATE)));
        assert_eq!((ending.outcome, ending.held), (Outcome::Blocked, true), "{state}");
        assert!(ending.reason.contains("RMA 7"), "{}", ending.reason);
    }
}

#[test]
fn no_wait_goes_beyond_the_deadline() {
    let case = Story::tear_down().torn_down().case();
    let cleaning = held_in(node(ProvisionState::Cleaning));
    for now in [0, LATE - 61, LATE - 60, LATE - 59, LATE - 1] {
        let decision = decide(&HandOver, &case, &cleaning, at(now));
        let Decision::Wait(wait) = decision else {
            panic!("{decision:?}")
        };
        assert!(wait.until > at(now) && wait.until <= at(LATE), "{now}");
    }
}

#[test]
fn nothing_is_sent_to_ironic_after_the_deadline() {
    let curing = Limits {
        retry_error: 3,
        reclean: 3,
        ..limits()
    };
    let mut story = Story::tear_down();
    if let unprovision::core::Event::Opened { limits, .. } = &mut story.entries[0].event {
        *limits = curing;
    }
    let manage = Action::Manage { since: Some(at(0)) };
    let broken = Node {
        maintenance: true,
        fault: Some(Fault::CleanFailure),
        ..node(ProvisionState::Manageable)
    };
    let stories = [
        ("tear down", story.clone(), in_use()),
        (
            "abort",
            story.clone(),
            Node {
                provision_state: ProvisionState::DeployHold,
                ..in_use()
            },
        ),
        ("repeat", story.clone().torn_down(), node(ProvisionState::Error)),
        (
            "manage",
            story.clone().torn_down(),
            node(ProvisionState::CleanFailed),
        ),
        (
            "provide",
            story.clone().torn_down().applied(0, manage.clone()),
            node(ProvisionState::Manageable),
        ),
        ("unset maintenance", story.torn_down().applied(0, manage), broken),
    ];
    for (what, story, node) in stories {
        let before = decide(&HandOver, &story.case(), &held_in(node.clone()), at(LATE - 1));
        assert!(
            matches!(&before, Decision::Act(action) if action.drives_the_node()),
            "{what}: {before:?}"
        );
        let ending = ending(decide(&HandOver, &story.case(), &held_in(node), at(LATE)));
        assert_eq!((ending.outcome, ending.held), (Outcome::TimedOut, true), "{what}");
    }
}

#[test]
fn placement_is_made_right_also_after_the_deadline() {
    let case = Story::tear_down().torn_down().case();
    let free = held_in(node(ProvisionState::Available));
    let decision = decide(&HandOver, &case, &free, at(LATE + 1000));
    assert!(
        matches!(
            decision,
            Decision::Act(Action::Release {
                whose: Owner::Guard,
                ..
            })
        ),
        "{decision:?}"
    );
    let tagging = Story::tagging().torn_down().case();
    let exposed = seen(
        node(ProvisionState::Cleaning),
        provider().with_traits(&["CUSTOM_RACK_7"]),
    );
    for (name, case) in [
        ("hand-over", &case),
        ("reserve-on-delete", &case),
        ("trait-tagging", &tagging),
    ] {
        let strategy = strategy::by_name(name).unwrap();
        let decision = decide(strategy, case, &exposed, at(LATE + 1000));
        assert!(matches!(decision, Decision::Act(_)), "{name}: {decision:?}");
    }
}

#[test]
fn what_was_never_begun_is_not_held_when_the_time_is_up() {
    let waits = Node {
        provision_state: ProvisionState::Deploying,
        ..in_use()
    };
    let view = provider().held_by(instance()).reserved(1);
    let case = Story::tear_down().case();
    let strategy = strategy::by_name("reserve-on-delete").unwrap();
    let ending = ending(decide(strategy, &case, &seen(waits, view), at(LATE)));
    assert_eq!((ending.outcome, ending.held), (Outcome::TimedOut, false));
}
