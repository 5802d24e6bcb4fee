//! How soon a case is looked at again: the whole table.

use ironic_client::{Node, ProvisionState};
use unprovision::core::{Case, Decision, Event, Observation, decide};
use unprovision::strategy::by_name;

use crate::build::{
    INSTANCE, ProviderExt, STRANGER, Story, at, guard, hand_over, in_use, instance, node, provider, reserve,
    seen,
};

const NOW: i64 = 200;

fn until(case: &Case, strategy: &str, seen: &Observation, now: i64) -> i64 {
    match decide(by_name(strategy).unwrap(), case, seen, at(now)) {
        Decision::Wait(wait) => wait.until.duration_since(at(now)).as_secs(),
        other => panic!("{other:?}"),
    }
}

fn carrying(state: ProvisionState, instance: uuid::Uuid, since: i64) -> Node {
    Node {
        instance_uuid: Some(instance),
        provision_updated_at: Some(at(since)),
        ..node(state)
    }
}

#[test]
fn what_nobody_takes_away_is_looked_at_seldom_and_what_somebody_may_often() {
    let torn_down = Story::tear_down().torn_down().case();
    let reserved = Story::tear_down().applied(0, reserve()).torn_down().case();
    let cleaning = || node(ProvisionState::Cleaning);
    let ours = || provider().held_by(guard());
    let old = Node {
        provision_updated_at: Some(at(-2000)),
        ..node(ProvisionState::Available)
    };
    let without = Node {
        instance_uuid: None,
        ..in_use()
    };
    let begun = Story::tear_down().case();
    let deploying = carrying(ProvisionState::Deploying, INSTANCE, 1);
    let theirs = provider().held_by(instance());
    let covered = provider().reserved(1);
    #[rustfmt::skip]
    let rows = [
        ("held by us", &torn_down, "hand-over", seen(cleaning(), ours()), 60),
        ("held by the instance", &torn_down, "wait-for-available", seen(cleaning(), theirs), 60),
        ("reserved", &reserved, "reserve-on-delete", seen(cleaning(), covered), 5),
        ("no provider yet", &torn_down, "hand-over", seen(cleaning(), None), 5),
        ("before the tear-down", &begun, "hand-over", seen(deploying, ours()), 5),
        ("an old `available`", &torn_down, "hand-over", seen(old, ours()), 1),
        ("without its instance", &torn_down, "hand-over", seen(without, ours()), 5),
    ];
    for (what, case, strategy, seen, expected) in rows {
        assert_eq!(until(case, strategy, &seen, NOW), expected, "{what}");
    }
}

/// One watcher looks at all of the guard's nodes anyway.
#[test]
fn the_guards_cases_are_looked_at_seldom() {
    let case = Story::guard().applied(1, hand_over()).case();
    let ours = || provider().held_by(guard());
    let theirs = || provider().held_by(instance());
    let cleaning = || node(ProvisionState::Cleaning);
    let adopted = theirs().reserved(1);
    for (what, seen, expected) in [
        ("held", seen(cleaning(), ours()), 600),
        ("Nova's reservation is adopted", seen(cleaning(), adopted), 600),
        (
            "the next instance is there, and we still hold it",
            seen(carrying(ProvisionState::Active, STRANGER, 1), ours()),
            600,
        ),
        (
            "perhaps not gone yet",
            seen(carrying(ProvisionState::Active, INSTANCE, -2000), ours()),
            5,
        ),
        (
            "free, and Nova deletes the allocation",
            seen(node(ProvisionState::Available), theirs()),
            1,
        ),
    ] {
        assert_eq!(until(&case, "hand-over", &seen, NOW), expected, "{what}");
    }
}

/// Nova has two minutes to delete the allocation of an instance whose node is free.
#[test]
fn novas_own_delete_has_two_minutes() {
    let saw = Event::Saw {
        provision_state: ProvisionState::Available,
        maintenance: false,
    };
    let case = Story::guard().then(100, saw).case();
    let seen = seen(node(ProvisionState::Available), provider().held_by(instance()));
    assert_eq!(until(&case, "hand-over", &seen, 220), 1);
    let late = decide(by_name("hand-over").unwrap(), &case, &seen, at(221));
    assert!(matches!(late, Decision::End(_)), "{late:?}");
}

#[test]
fn what_keeps_a_node_from_coming_back_is_told() {
    let case = Story::tear_down().torn_down().case();
    let told = |node: Node| {
        let seen = seen(node, provider().held_by(guard()));
        match decide(by_name("hand-over").unwrap(), &case, &seen, at(NOW)) {
            Decision::Wait(wait) => wait.for_what.to_string(),
            other => panic!("{other:?}"),
        }
    };
    let stopped = |reason: Option<&str>, fault: Option<&str>| Node {
        maintenance: true,
        maintenance_reason: reason.map(str::to_owned),
        fault: fault.map(|fault| fault.to_owned().into()),
        ..node(ProvisionState::CleanWait)
    };
    let powerless = Node {
        power_state: None,
        ..node(ProvisionState::Available)
    };
    #[rustfmt::skip]
    let rows = [
        (node(ProvisionState::CleanWait), "the node is `clean wait`"),
        (node(ProvisionState::CleanHold), "openstack baremetal node unhold"),
        (node(ProvisionState::Manageable), "openstack baremetal node provide"),
        (node(ProvisionState::Verifying), "`verifying`: somebody works on it"),
        (node(ProvisionState::InspectWait), "`inspect wait`: somebody works on it"),
        (node("moonwalking".into()), "does not know: `moonwalking`"),
        (powerless, "power is unknown"),
        (stopped(Some("RMA 7"), Some("power failure")), "(RMA 7)"),
        (stopped(Some(""), Some("power failure")), "(power failure)"),
        (stopped(None, None), "(no reason given)"),
    ];
    for (node, words) in rows {
        let told = told(node);
        assert!(told.contains(words), "{words}: {told}");
    }
}
