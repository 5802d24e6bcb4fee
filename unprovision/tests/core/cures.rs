//! What follows a failed tear-down or cleaning: the cures that were asked for, as often as asked, and an end with the reason.

use ironic_client::{Fault, Node, ProvisionState};
use unprovision::core::{Action, Decision, Event, Kind, Limits, Outcome, RefusalKind, WaitFor, decide};
use unprovision::strategy::HandOver;

use crate::build::{
    INSTANCE, ProviderExt, Story, at, found, guard, in_use, instance, limits, node, provider, seen,
    unprovision,
};

/// Torn down, with as many repetitions allowed.
fn allowing(retry_error: u32, reclean: u32) -> Story {
    let limits = Limits {
        retry_error,
        reclean,
        ..limits()
    };
    Story::new(Kind::TearDown { instance: INSTANCE }, limits, found()).torn_down()
}

fn broken(state: ProvisionState) -> Node {
    Node {
        last_error: Some("it broke".to_owned()),
        ..node(state)
    }
}

fn in_maintenance(state: ProvisionState, fault: Option<Fault>) -> Node {
    Node {
        maintenance: true,
        maintenance_reason: Some("RMA 7".to_owned()),
        fault,
        ..broken(state)
    }
}

fn decided(story: &Story, node: &Node, now: i64) -> Decision {
    let held = seen(node.clone(), provider().held_by(guard()));
    decide(&HandOver, &story.case(), &held, at(now))
}

fn word(decision: &Decision) -> &'static str {
    match decision {
        Decision::Act(Action::Unprovision { .. }) => "tear down",
        Decision::Act(Action::Manage { .. }) => "manage",
        Decision::Act(Action::ClearMaintenance { .. }) => "end maintenance",
        Decision::Act(Action::Provide { .. }) => "provide",
        Decision::Wait(wait) if matches!(wait.for_what, WaitFor::Maintenance(_)) => "wait for a person",
        Decision::Wait(_) => "wait",
        Decision::End(ending) if ending.outcome == Outcome::Failed && ending.held => "failed",
        _ => "something else",
    }
}

fn manage() -> Action {
    Action::Manage { since: Some(at(0)) }
}

fn provide() -> Action {
    Action::Provide { since: Some(at(0)) }
}

type Row = (&'static str, Story, Node, &'static str);

fn assert_table(rows: impl IntoIterator<Item = Row>) {
    for (what, story, node, expected) in rows {
        let decision = decided(&story, &node, 200);
        assert_eq!(word(&decision), expected, "{what}: {decision:?}");
    }
}

#[test]
fn what_failed_is_tried_again_only_where_that_was_asked_for_and_as_often() {
    let again = Node {
        provision_updated_at: Some(at(0)),
        ..node(ProvisionState::Error)
    };
    let twice = |retry_error| allowing(retry_error, 0).applied(0, unprovision(&again));
    let cured = |reclean| allowing(0, reclean).applied(0, manage()).applied(0, provide());
    let (error, clean_failed) = (
        || broken(ProvisionState::Error),
        || broken(ProvisionState::CleanFailed),
    );
    let stopped = |fault| in_maintenance(ProvisionState::CleanFailed, fault);
    #[rustfmt::skip]
    assert_table([
        ("error", allowing(0, 9), error(), "failed"),
        ("error, once allowed", allowing(1, 0), error(), "tear down"),
        ("error again", twice(1), error(), "failed"),
        ("error again, twice allowed", twice(2), error(), "tear down"),
        ("clean failed", allowing(9, 0), clean_failed(), "failed"),
        ("clean failed, once allowed", allowing(0, 1), clean_failed(), "manage"),
        ("clean failed again", cured(1), clean_failed(), "failed"),
        ("clean failed again, twice allowed", cured(2), clean_failed(), "manage"),
        ("clean failed, in Ironic's maintenance", allowing(0, 1), stopped(Some(Fault::CleanFailure)), "manage"),
        ("clean failed, in a person's maintenance", allowing(0, 1), stopped(None), "failed"),
    ]);
}

/// The failure is from before what was sent again: a lagging replica shows it for a minute at most.
#[test]
fn a_failure_that_was_answered_already_is_not_answered_again() {
    let error = broken(ProvisionState::Error);
    let clean_failed = broken(ProvisionState::CleanFailed);
    let since = error.provision_updated_at;
    let repeated = allowing(1, 0).applied(150, unprovision(&error));
    let cured = allowing(0, 1).applied(150, Action::Manage { since });
    for (story, node, after) in [(&repeated, &error, "failed"), (&cured, &clean_failed, "manage")] {
        assert_eq!(word(&decided(story, node, 209)), "wait", "{after}");
        assert_eq!(word(&decided(story, node, 210)), after);
    }
}

#[test]
fn a_manageable_node_goes_on_only_in_a_cure_of_ours() {
    let manageable = || broken(ProvisionState::Manageable);
    let stopped = |fault| in_maintenance(ProvisionState::Manageable, fault);
    let curing = || allowing(0, 1).applied(0, manage());
    let cured = allowing(0, 2).applied(0, manage()).applied(0, provide());
    #[rustfmt::skip]
    assert_table([
        ("not by us", allowing(0, 1), manageable(), "wait"),
        ("by us", curing(), manageable(), "provide"),
        ("after our cure", cured, manageable(), "wait"),
        ("in Ironic's maintenance", curing(), stopped(Some(Fault::CleanFailure)), "end maintenance"),
        ("in a person's maintenance", curing(), stopped(None), "wait for a person"),
    ]);
}

/// Who is told to end a maintenance hears whose, and who is told to mend hears what broke.
#[test]
fn a_failure_ends_with_what_ironic_said_and_what_to_do() {
    let stopped = in_maintenance(ProvisionState::CleanFailed, None);
    for (node, words) in [
        (broken(ProvisionState::Error), ["it broke", "--retry-error 1"]),
        (broken(ProvisionState::CleanFailed), ["it broke", "--reclean 1"]),
        (stopped, ["it broke", "RMA 7"]),
    ] {
        match decided(&allowing(0, 0), &node, 200) {
            Decision::End(ending) => {
                let told = words.iter().all(|word| ending.reason.contains(word));
                assert!(told, "{words:?}: {}", ending.reason);
            }
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn a_right_that_is_missing_is_told_from_a_refusal() {
    for (kind, words) in [
        (RefusalKind::Forbidden, "Ironic does not allow it: Forbidden"),
        (RefusalKind::Illegal, "Ironic refuses it: Illegal"),
    ] {
        let mut story = Story::tear_down();
        for second in 1..=3 {
            story = story.refused(second, unprovision(&in_use()), kind);
        }
        let handed_back = seen(in_use(), provider().held_by(instance()));
        match decide(&HandOver, &story.case(), &handed_back, at(200)) {
            Decision::End(ending) => assert_eq!((ending.outcome, &*ending.reason), (Outcome::Blocked, words)),
            other => panic!("{other:?}"),
        }
    }
}

/// Ironic writes the text of a failure some time after the state.
#[test]
fn a_failure_without_a_text_is_looked_at_for_five_seconds_more() {
    for text in [None, Some(String::new())] {
        let silent = Node {
            last_error: text,
            ..node(ProvisionState::CleanFailed)
        };
        let saw = Event::Saw {
            provision_state: ProvisionState::CleanFailed,
            maintenance: false,
        };
        let story = allowing(0, 0).then(100, saw);
        match decided(&story, &silent, 104) {
            Decision::Wait(wait) => assert_eq!(wait.until, at(105)),
            other => panic!("{other:?}"),
        }
        let late = decided(&story, &silent, 105);
        assert_eq!(word(&late), "failed", "{late:?}");
    }
}
