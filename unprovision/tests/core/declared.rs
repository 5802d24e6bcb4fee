//! What is declared and told: promises and windows of the strategies, and the words for writes and outcomes.

use std::collections::BTreeSet;

use ironic_client::ProvisionState;
use unprovision::core::{Action, Outcome, Owner};
use unprovision::strategy::ALL;

use crate::build::{
    ProviderExt, Story, at, class, guard, hand_over, in_use, instance, provider, reserve, tag_node,
    tag_provider, unprovision, untag_node, untag_provider,
};

/// Which these are is found by the checker (`tests/check`); here is that they are said.
#[test]
fn every_strategy_declares_what_it_promises_and_where_it_leaves_a_window() {
    let declared = ALL.iter().map(|strategy| {
        let gaps = strategy.gaps().iter().map(|gap| gap.name());
        assert!(
            strategy.promise().contains("never offered"),
            "{}",
            strategy.promise()
        );
        (strategy.name(), gaps.collect::<Vec<_>>())
    });
    let expected = [
        ("hand-over", vec!["adopted-reservation", "frozen-writer"]),
        ("reserve-on-delete", vec!["old-tracker", "frozen-writer"]),
        ("wait-for-available", vec!["nova-deletes"]),
        ("trait-tagging", vec!["plain-queries", "tracker", "frozen-writer"]),
    ];
    assert_eq!(declared.collect::<Vec<_>>(), expected);
    let words = [
        "Placement is older than 14.0.0",
        "a Nova from before 26.1",
        "drops the instance's allocation",
        "do not forbid the tag",
    ];
    for (strategy, words) in ALL.iter().zip(words) {
        assert!(strategy.window().contains(words), "{}", strategy.window());
    }
}

/// An operator reads them in the log, in the order in which they are sent.
#[test]
fn no_two_writes_are_told_alike() {
    let since = Some(at(0));
    let repeat = Action::Unprovision {
        carries: None,
        since,
        from: ProvisionState::Error,
    };
    let case = Story::tear_down().case();
    let held = provider().held_by(instance()).held_by(guard());
    let from = ProvisionState::DeployHold;
    let claim = Action::hand_over(&case, &provider(), &class()).unwrap();
    let ours = Action::release(&case, &held, Owner::Guard).unwrap();
    let theirs = Action::release(&case, &held, Owner::Instance).unwrap();
    let back = Action::hand_back(&case, &held).unwrap();
    let writes = [
        unprovision(&in_use()),
        repeat,
        Action::Abort { since, from },
        Action::Manage { since },
        Action::ClearMaintenance { since },
        Action::Provide { since },
        tag_node(),
        untag_node(),
        tag_provider(),
        untag_provider(),
        reserve(),
        hand_over(),
        claim,
        back,
        ours,
        theirs,
    ];
    let told = writes.each_ref().map(ToString::to_string);
    assert!(told.iter().all(|words| !words.is_empty()), "{told:?}");
    assert_eq!(BTreeSet::from(told.clone()).len(), writes.len(), "{told:?}");
}

/// Reports and journals use the same word.
#[test]
fn an_outcome_is_told_as_it_is_recorded() {
    for outcome in [
        Outcome::Returned,
        Outcome::Blocked,
        Outcome::Failed,
        Outcome::TimedOut,
        Outcome::Gone,
    ] {
        assert_eq!(serde_json::to_value(outcome).unwrap(), outcome.to_string());
    }
}
