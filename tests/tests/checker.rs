//! The exhaustive checker in worlds with little disturbance; `tests/check` searches further.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "helpers of tests are tests"
)]

use unprovision::strategy;
use unprovision_testkit::checker::{Budget, Scope, Verdict, examine};
use unprovision_testkit::model::AsIs;

fn searched(strategy: &str, worlds: &[Scope], states: usize) -> Verdict {
    let verdict = examine(&AsIs, strategy::by_name(strategy).unwrap(), worlds, |_| ());
    let shown = || serde_json::to_string_pretty(&verdict).unwrap();
    assert_eq!(verdict.violations, 0, "{}", shown());
    assert!(verdict.states > states, "{}", shown());
    verdict
}

/// Every world without disturbance.
fn worlds() -> Vec<Scope> {
    Scope::all(0)
}

#[test]
fn hand_over_keeps_its_promise_in_every_small_world() {
    // The world with everything at once is left to `tests/check`.
    searched("hand-over", &worlds()[..5], 3_000);
}

#[test]
fn reserve_on_delete_leaves_exactly_the_window_that_it_declares() {
    let window = searched("reserve-on-delete", &worlds(), 15_000).window.unwrap();
    assert_eq!(window.beside, "old-tracker");
    assert!(window.trace.last().unwrap().contains("OFFERED"), "{window:?}");
}

#[test]
fn wait_for_available_is_undone_by_novas_own_delete_and_by_nothing_else() {
    assert!(searched("wait-for-available", &worlds(), 1_000).window.is_none());
    let deletes = Budget {
        all: 1,
        deletes: 1,
        ..Budget::default()
    };
    let beside_nova = worlds().into_iter().filter(|scope| scope.nova.is_some());
    let worlds: Vec<_> = beside_nova
        .take(1)
        .map(|scope| Scope {
            budget: deletes,
            ..scope
        })
        .collect();
    let window = searched("wait-for-available", &worlds, 500).window.unwrap();
    assert_eq!(window.beside, "nova-deletes");
}

#[test]
fn trait_tagging_protects_only_queries_that_forbid_the_tag() {
    let without_nova = worlds().into_iter().filter(|scope| scope.nova.is_none());
    let window = searched("trait-tagging", &without_nova.collect::<Vec<_>>(), 300).window;
    assert_eq!(window.unwrap().beside, "plain-queries");
}
