//! What is decided in a guard's case: tables by state, holder and reservation.

use ironic_client::{Node, ProvisionState};
use jiff::SignedDuration;
use placement_client::ConsumerUuid;
use unprovision::core::{
    Action, Case, Decision, Found, Kind, Limits, Outcome, Owner, ProviderView, RefusalKind, Veto, check,
    decide, guard_consumer_since,
};
use unprovision::strategy::{ALL, by_name};

use crate::build::{
    INSTANCE, NODE, ProviderExt, STRANGER, Story, at, found, guard, hand_over, in_use, instance, limits,
    node, provider, reserve, seen,
};

/// The instance was seen to leave, at the time zero.
pub(crate) fn leaving() -> Story {
    leaving_with(Some(INSTANCE), |_| {})
}

pub(crate) fn leaving_with(instance: Option<uuid::Uuid>, change: impl FnOnce(&mut Found)) -> Story {
    let mut found = Found {
        provision_state: ProvisionState::Deleting,
        provision_updated_at: Some(at(0)),
        ..found()
    };
    change(&mut found);
    let kind = Kind::Guard {
        instance,
        since: Some(at(0)),
    };
    let limits = Limits {
        deadline: jiff::Timestamp::MAX,
        ..limits()
    };
    Story::new(kind, limits, found)
}

pub(crate) fn held(holder: &str, reserved: bool) -> ProviderView {
    let view = match holder {
        "instance" => provider().held_by(instance()),
        "guard" => provider().held_by(guard()),
        "other" => provider().held_by(ConsumerUuid(STRANGER)),
        _ => provider(),
    };
    view.reserved(reserved.into())
}

pub(crate) fn word(decision: &Decision) -> &'static str {
    match decision {
        Decision::Act(action) if action.is_to_ironic() => "touches the node",
        Decision::Act(Action::HandOver { giver: Some(_), .. }) => "hand over",
        Decision::Act(Action::HandOver { giver: None, .. }) => "claim",
        Decision::Act(Action::HandBack { .. }) => "hand back",
        Decision::Act(Action::SetReserved { to: 0, .. }) => "lift",
        Decision::Act(Action::SetReserved { .. }) => "reserve",
        Decision::Act(Action::Release {
            whose: Owner::Guard, ..
        }) => "release",
        Decision::Act(_) => "takes what is not ours",
        Decision::Wait(_) => "wait",
        Decision::End(ending) if ending.held => "lets go of it",
        Decision::End(ending) if ending.outcome == Outcome::Returned => "done",
        Decision::End(ending) if ending.outcome == Outcome::Gone => "gone",
        Decision::End(_) => "closed",
    }
}

pub(crate) fn decided(
    case: &Case,
    node: impl Into<Option<Node>>,
    view: impl Into<Option<ProviderView>>,
) -> Decision {
    decide(by_name(&case.strategy).unwrap(), case, &seen(node, view), at(200))
}

type Row = (&'static str, &'static str, &'static str, &'static str);

fn assert_table(name: &str, rows: &[Row]) {
    for (state, holder, free, reserved) in rows {
        for (is_reserved, expected) in [(false, free), (true, reserved)] {
            let carries = matches!(*state, "deleting" | "active").then_some(INSTANCE);
            let now = Node {
                instance_uuid: carries,
                ..node((*state).into())
            };
            let mut case = leaving().case();
            name.clone_into(&mut case.strategy);
            let decision = decided(&case, now, held(holder, is_reserved));
            let what = format!("{name}: {state}, held by {holder}, reserved: {is_reserved}: {decision:?}");
            assert_eq!(word(&decision), *expected, "{what}");
        }
    }
}

#[test]
fn hand_over_beside_nova() {
    #[rustfmt::skip]
    assert_table("hand-over", &[
        // state          holder      not reserved  reserved, not by us
        ("deleting",     "instance", "hand over",  "wait"),
        ("deleting",     "guard",    "wait",       "wait"),
        ("deleting",     "nobody",   "claim",      "wait"),
        ("deleting",     "other",    "reserve",    "wait"),
        ("cleaning",     "instance", "hand over",  "wait"),
        ("cleaning",     "guard",    "wait",       "wait"),
        ("cleaning",     "nobody",   "claim",      "wait"),
        ("cleaning",     "other",    "reserve",    "wait"),
        ("clean failed", "guard",    "wait",       "wait"),
        ("clean failed", "nobody",   "claim",      "wait"),
        ("error",        "guard",    "wait",       "wait"),
        ("error",        "nobody",   "claim",      "wait"),
        ("manageable",   "guard",    "wait",       "wait"),
        ("manageable",   "nobody",   "claim",      "wait"),
        ("moonwalking",  "guard",    "wait",       "wait"),
        ("available",    "instance", "wait",       "wait"),
        ("available",    "guard",    "release",    "release"),
        ("available",    "nobody",   "done",       "done"),
        ("available",    "other",    "done",       "done"),
        ("active",       "instance", "closed",     "closed"),
        ("active",       "guard",    "hand back",  "hand back"),
        ("active",       "nobody",   "closed",     "closed"),
        ("active",       "other",    "closed",     "closed"),
    ]);
}

#[test]
fn reserve_on_delete_beside_nova() {
    #[rustfmt::skip]
    assert_table("reserve-on-delete", &[
        ("deleting",     "instance", "reserve",    "wait"),
        ("deleting",     "guard",    "reserve",    "wait"),
        ("deleting",     "nobody",   "reserve",    "wait"),
        ("cleaning",     "instance", "reserve",    "wait"),
        ("cleaning",     "other",    "reserve",    "wait"),
        ("cleaning",     "nobody",   "reserve",    "wait"),
        ("clean failed", "nobody",   "reserve",    "wait"),
        ("error",        "nobody",   "reserve",    "wait"),
        ("available",    "instance", "wait",       "wait"),
        ("available",    "nobody",   "done",       "done"),
        ("active",       "instance", "closed",     "closed"),
    ]);
}

/// Whatever ends a tear-down with the node held is waited out by the guard.
#[test]
fn the_guard_lets_go_of_nothing_that_it_holds() {
    let states = ProvisionState::NAMED
        .iter()
        .cloned()
        .chain(["moonwalking".into()]);
    for state in states {
        for carries in [None, Some(INSTANCE), Some(STRANGER)] {
            for retired in [false, true] {
                for strategy in ALL {
                    let now = Node {
                        instance_uuid: carries,
                        retired,
                        ..node(state.clone())
                    };
                    let case = leaving().applied(1, hand_over()).case();
                    let decision = decide(*strategy, &case, &seen(now, held("guard", false)), at(200));
                    let ended = matches!(decision, Decision::End(_));
                    assert!(
                        !ended,
                        "{state} with {carries:?}, {}: {decision:?}",
                        strategy.name()
                    );
                }
            }
        }
    }
}

#[test]
fn a_hold_of_a_node_that_is_used_again_goes_back_to_the_same_instance_only() {
    let case = leaving().applied(1, hand_over()).case();
    let again = |instance_uuid, since| Node {
        instance_uuid,
        provision_updated_at: Some(at(since)),
        ..in_use()
    };
    let of = |node| word(&decided(&case, node, held("guard", false)));
    assert_eq!(of(again(Some(INSTANCE), 100)), "hand back");
    assert_eq!(
        of(again(Some(STRANGER), 100)),
        "wait",
        "somebody went around Placement"
    );
    assert_eq!(of(again(None, 100)), "wait");
    assert_eq!(of(again(Some(INSTANCE), -1000)), "wait", "a replica lags behind");
    let unknown_owner = leaving_with(Some(INSTANCE), |found| found.owner = None).applied(1, hand_over());
    let decision = decided(
        &unknown_owner.case(),
        again(Some(INSTANCE), 100),
        held("guard", false),
    );
    assert_eq!(word(&decision), "wait", "nobody knows whose it was");
}

/// A node that carries the next instance has returned; nothing of ours is there to be lifted.
#[test]
fn the_next_instance_ends_the_case() {
    let next = Node {
        instance_uuid: Some(STRANGER),
        provision_updated_at: Some(at(100)),
        ..in_use()
    };
    assert_eq!(
        word(&decided(&leaving().case(), next, held("other", false))),
        "done"
    );
}

/// An `available` from before the departure decides nothing; one of the same whole second does after a while.
#[test]
fn an_old_available_releases_nothing() {
    let case = leaving().applied(1, hand_over()).case();
    let free = |since| Node {
        provision_updated_at: Some(at(since)),
        ..node(ProvisionState::Available)
    };
    let at_once = |node, now| {
        let seen = seen(node, held("guard", false));
        word(&decide(by_name("hand-over").unwrap(), &case, &seen, at(now)))
    };
    assert_eq!(at_once(free(-1), 200), "wait");
    assert_eq!(at_once(free(0), 1), "wait");
    assert_eq!(at_once(free(0), 10), "release");
    assert_eq!(at_once(free(1), 1), "release");
}

#[test]
fn another_hold_of_ours_counts_as_ours() {
    // A second guard, or one that lost its journal, claims for a consumer of another name.
    let case = leaving_with(None, |_| {}).case();
    assert_eq!(case.guard(), guard_consumer_since(NODE, Some(at(0))));
    let cleaning = node(ProvisionState::Cleaning);
    assert_eq!(word(&decided(&case, cleaning, held("guard", false))), "wait");
    let free = node(ProvisionState::Available);
    assert_eq!(word(&decided(&case, free, held("guard", false))), "release");
}

/// Somebody's allocation is never taken; what we reserved on top comes back once the node is free.
#[test]
fn an_unknown_holder_is_covered_not_robbed() {
    let story = leaving_with(None, |_| {});
    let cleaning = || node(ProvisionState::Cleaning);
    assert_eq!(
        word(&decided(&story.case(), cleaning(), held("other", false))),
        "reserve"
    );
    let reserved = story.applied(1, reserve()).case();
    assert_eq!(word(&decided(&reserved, cleaning(), held("other", true))), "wait");
    assert_eq!(
        word(&decided(&reserved, cleaning(), held("nobody", true))),
        "wait"
    );
    assert!(reserved.may_hold());
    let free = node(ProvisionState::Available);
    assert_eq!(word(&decided(&reserved, free, held("nobody", true))), "lift");
}

#[test]
fn novas_reservation_is_adopted_held_again_when_it_falls_and_lifted_at_the_end() {
    let novas = leaving_with(Some(INSTANCE), |found| {
        found.nova = true;
        found.reserved = 1;
    });
    let cleaning = || node(ProvisionState::Cleaning);
    assert_eq!(
        word(&decided(&novas.case(), cleaning(), held("instance", true))),
        "wait"
    );
    assert_eq!(
        word(&decided(&novas.case(), cleaning(), held("nobody", true))),
        "wait"
    );
    assert_eq!(
        word(&decided(&novas.case(), cleaning(), held("nobody", false))),
        "claim"
    );
    let free = node(ProvisionState::Available);
    assert_eq!(
        word(&decided(&novas.case(), free.clone(), held("nobody", true))),
        "lift"
    );
    let mut left = novas.case();
    left.limits.release_nova_reservations = false;
    assert_eq!(word(&decided(&left, free, held("nobody", true))), "done");
}

/// The node is free before Nova has deleted the allocation: the reservation is lifted once it has.
#[test]
fn novas_own_delete_is_waited_for_but_not_for_ever() {
    let free = node(ProvisionState::Available);
    let fresh = leaving().then(
        199,
        unprovision::core::Event::Saw {
            provision_state: ProvisionState::Available,
            maintenance: false,
        },
    );
    assert_eq!(
        word(&decided(&fresh.case(), free.clone(), held("instance", true))),
        "wait"
    );
    let decision = decide(
        by_name("hand-over").unwrap(),
        &fresh.case(),
        &seen(free, held("instance", true)),
        at(199) + SignedDuration::from_mins(5),
    );
    // It is not offered then, and nothing of ours is in the way.
    match decision {
        Decision::End(ending) => {
            assert_eq!((ending.outcome, ending.held), (Outcome::Blocked, false));
            assert!(ending.reason.contains(&INSTANCE.to_string()), "{ending:?}");
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_node_without_a_provider_is_held_once_the_provider_comes() {
    let case = leaving_with(None, |_| {}).case();
    let cleaning = || node(ProvisionState::Cleaning);
    assert_eq!(word(&decided(&case, cleaning(), None)), "wait");
    let mut empty = provider();
    empty.inventories.inventories.clear();
    assert_eq!(word(&decided(&case, cleaning(), empty)), "wait");
    assert_eq!(word(&decided(&case, cleaning(), provider())), "claim");
    assert_eq!(
        word(&decided(&case, node(ProvisionState::Available), None)),
        "done"
    );
}

#[test]
fn a_node_that_is_gone_is_reserved_and_released_and_watched_while_it_has_a_provider() {
    let case = leaving().applied(1, hand_over()).case();
    assert_eq!(word(&decided(&case, None, held("guard", false))), "reserve");
    assert_eq!(word(&decided(&case, None, held("guard", true))), "release");
    let released = Action::release(&case, &held("guard", true), Owner::Guard).unwrap();
    let reserved = leaving()
        .applied(1, hand_over())
        .applied(2, reserve())
        .applied(3, released);
    assert_eq!(
        word(&decided(&reserved.case(), None, held("nobody", true))),
        "wait"
    );
    assert_eq!(word(&decided(&reserved.case(), None, None)), "gone");
    assert_eq!(
        word(&decided(&leaving().case(), None, held("nobody", false))),
        "gone"
    );
}

/// Where the right is missing, the guard asks again: somebody may give it.
#[test]
fn a_hold_that_is_refused_for_good_is_tried_every_minute() {
    let case = leaving().refused(170, hand_over(), RefusalKind::Forbidden).case();
    let cleaning = || node(ProvisionState::Cleaning);
    let soon = decided(&case, cleaning(), held("instance", false));
    assert_eq!(word(&soon), "wait");
    let again = seen(cleaning(), held("instance", false));
    assert_eq!(
        word(&decide(by_name("hand-over").unwrap(), &case, &again, at(231))),
        "hand over"
    );
}

/// Rule 2, whatever was decided.
#[test]
fn nothing_is_taken_from_a_node_in_use() {
    let case = leaving().case();
    for write in [hand_over(), reserve()] {
        let of = |node| check(&case, &seen(node, held("instance", false)), &write);
        assert_eq!(of(in_use()), Err(Veto::InUse), "{write}");
        let deleting = Node {
            instance_uuid: Some(INSTANCE),
            ..node(ProvisionState::Deleting)
        };
        assert_eq!(of(deleting), Ok(()), "{write}");
    }
}
