//! A strategy that decides what must never be sent: the veto stops it, and says so.

use ironic_client::ProvisionState;
use unprovision::core::{Action, Case, Decision, Outcome, Owner, Seen, Step, WaitFor, decide};
use unprovision::strategy::Strategy;

use crate::build::{ProviderExt, Story, at, guard, hand_over, node, provider, seen};

/// Releases our hold as soon as it is there, and meddles with the node where there is none.
#[derive(Debug)]
struct Rash;

impl Strategy for Rash {
    fn name(&self) -> &'static str {
        "rash"
    }

    fn promise(&self) -> &'static str {
        "nothing"
    }

    fn window(&self) -> &'static str {
        "always"
    }

    fn decide(&self, case: &Case, seen: &Seen<'_>) -> Step {
        let release = seen
            .provider
            .and_then(|(view, _)| Action::release(case, view, Owner::Guard));
        Step::Act(release.unwrap_or(Action::Manage { since: None }))
    }
}

#[test]
fn what_is_vetoed_ends_a_tear_down_with_the_node_held_and_keeps_the_guard_waiting() {
    let cleaning = || seen(node(ProvisionState::Cleaning), provider().held_by(guard()));
    let decided = |story: Story| decide(&Rash, &story.applied(1, hand_over()).case(), &cleaning(), at(200));
    let words = format!(
        "refused to release our hold {}: the node is not free, and would be offered",
        guard()
    );
    match decided(Story::tear_down().torn_down()) {
        Decision::End(ending) => assert_eq!(
            (ending.outcome, ending.held, &ending.reason),
            (Outcome::Blocked, true, &words)
        ),
        other => panic!("{other:?}"),
    }
    match decided(Story::guard()) {
        Decision::Wait(wait) => assert_eq!(wait.for_what, WaitFor::Person(words)),
        other => panic!("{other:?}"),
    }
}

/// Somebody else's node, of which we hold nothing: even then the guard keeps its case, for a person to see.
#[test]
fn a_guard_whose_decision_is_vetoed_does_not_close_its_case() {
    let unheld = seen(node(ProvisionState::Cleaning), provider());
    match decide(&Rash, &Story::guard().case(), &unheld, at(200)) {
        Decision::Wait(wait) => assert!(wait.for_what.to_string().contains("nobody asked to change")),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_strategy_declares_no_window_no_tag_and_no_refusal_unless_it_says_so() {
    assert!(Rash.gaps().is_empty() && !Rash.uses_tag() && Rash.guards().is_ok());
    assert!(Rash.may_begin(&Story::tear_down().case().found).is_ok());
}
