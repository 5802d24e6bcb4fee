//! The guard's node is in use again: by whom, since when, and what that does to the hold.

use ironic_client::Node;
use unprovision::core::{Case, Decision, Outcome, ProviderView, WaitFor, decide};
use unprovision::strategy::by_name;
use uuid::Uuid;

use crate::build::{INSTANCE, STRANGER, at, hand_over, in_use, reserve, seen};
use crate::guard_rules::{decided, held, leaving, leaving_with, word};

fn again(instance_uuid: Option<Uuid>) -> Node {
    Node {
        instance_uuid,
        provision_updated_at: Some(at(100)),
        ..in_use()
    }
}

fn words(decision: Decision) -> String {
    match decision {
        Decision::Wait(wait) => match wait.for_what {
            WaitFor::Person(words) | WaitFor::Other(words) => words,
            other => panic!("{other:?}"),
        },
        other => panic!("{other:?}"),
    }
}

/// A replica that lags for ten minutes is not believed in.
#[test]
fn an_old_read_of_a_node_in_use_is_believed_after_ten_minutes() {
    let case = leaving().applied(1, hand_over()).case();
    let old = seen(in_use(), held("guard", false));
    let on = |now| word(&decide(by_name("hand-over").unwrap(), &case, &old, at(now)));
    assert_eq!((on(0), on(599)), ("wait", "wait"));
    assert_eq!((on(600), on(5000)), ("hand back", "hand back"));
}

#[test]
fn who_uses_a_node_that_we_hold_is_told() {
    let known = leaving().applied(1, hand_over()).case();
    let unknown = leaving_with(None, |_| {}).applied(1, hand_over()).case();
    let with_stranger = format!("with instance {STRANGER}");
    for (what, case, carries, expected) in [
        ("another instance", &known, Some(STRANGER), &*with_stranger),
        ("none", &known, None, "without an instance"),
        (
            "none, and nobody knows which left",
            &unknown,
            None,
            "without an instance",
        ),
    ] {
        let told = words(decided(case, again(carries), held("guard", false)));
        assert!(
            told.contains(expected) && told.contains("went around Placement"),
            "{what}: {told}"
        );
    }
}

#[test]
fn what_we_reserved_is_lifted_for_the_same_instance_whoever_owns_it() {
    let reserved = |change: fn(&mut unprovision::core::Found)| {
        leaving_with(Some(INSTANCE), change).applied(1, reserve()).case()
    };
    let of = |case: &Case, carries| word(&decided(case, again(carries), held("instance", true)));
    assert_eq!(of(&reserved(|_| {}), Some(INSTANCE)), "lift");
    assert_eq!(of(&reserved(|found| found.owner = None), Some(INSTANCE)), "lift");
    assert_eq!(of(&reserved(|_| {}), Some(STRANGER)), "wait");
}

/// The node came back with its own instance, and nothing of ours is there: that is no return of the node.
#[test]
fn a_delete_that_did_not_happen_is_no_return() {
    let ended = |carries, view: ProviderView| match decided(&leaving().case(), again(carries), view) {
        Decision::End(ending) => (ending.outcome, ending.held),
        other => panic!("{other:?}"),
    };
    assert_eq!(
        ended(Some(INSTANCE), held("instance", false)),
        (Outcome::Blocked, false)
    );
    assert_eq!(ended(None, held("nobody", false)), (Outcome::Blocked, false));
    assert_eq!(
        ended(Some(STRANGER), held("other", false)),
        (Outcome::Returned, false)
    );
}
