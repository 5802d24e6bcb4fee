//! The veto: each bad write is refused, one row each; and its good neighbour passes.

use ironic_client::{Fault, Node, ProvisionState};
use placement_client::{ConsumerGeneration, ConsumerUuid};
use unprovision::core::{Action, Case, Event, Giver, Limits, Observation, Owner, ProviderView, Veto, check};

use crate::build::{
    INSTANCE, ProviderExt, STRANGER, Story, at, class, guard, hand_over, in_use, instance, limits, node,
    one_unit, other_class, provider, reserve, seen, tenant, unprovision,
};

fn case() -> Case {
    Story::tear_down().case()
}

fn torn_down() -> Case {
    Story::tear_down().torn_down().case()
}

fn curing() -> Case {
    let mut story = Story::tear_down();
    if let Event::Opened { limits: set, .. } = &mut story.entries[0].event {
        *set = Limits {
            reclean: 1,
            retry_error: 1,
            ..limits()
        };
    }
    story.torn_down().case()
}

fn reserved_by_us() -> Case {
    Story::tear_down().applied(0, reserve()).torn_down().case()
}

fn beside_nova() -> Case {
    let mut story = Story::tear_down();
    if let Event::Opened { found, .. } = &mut story.entries[0].event {
        found.nova = true;
        found.reserved = 1;
    }
    story.torn_down().case()
}

fn giver(uuid: ConsumerUuid) -> Giver {
    Giver {
        uuid,
        generation: ConsumerGeneration::At(3),
        owner: tenant(),
        rest: Default::default(),
    }
}

fn release(whose: Owner, uuid: ConsumerUuid) -> Action {
    Action::Release {
        whose,
        consumer: giver(uuid),
    }
}

fn lower(view: &ProviderView) -> Action {
    Action::set_reserved(view, &class(), 0).unwrap()
}

fn held(node: Node) -> Observation {
    seen(node, provider().held_by(guard()))
}

fn full() -> ProviderView {
    provider().reserved(1)
}

fn cleaning() -> Node {
    node(ProvisionState::Cleaning)
}

fn free() -> Node {
    node(ProvisionState::Available)
}

fn stranger() -> ConsumerUuid {
    ConsumerUuid(STRANGER)
}

fn of_a_stranger() -> Node {
    Node {
        instance_uuid: Some(STRANGER),
        ..in_use()
    }
}

#[track_caller]
fn assert_vetoed(what: &str, case: &Case, seen: &Observation, action: &Action, why: Veto) {
    assert_eq!(check(case, seen, action), Err(why), "{what}: {action}");
}

#[track_caller]
fn assert_passes(what: &str, case: &Case, seen: &Observation, action: &Action) {
    assert_eq!(check(case, seen, action), Ok(()), "{what}: {action}");
}

#[test]
fn no_other_instance_is_torn_down() {
    let moved = Node {
        provision_updated_at: Some(at(-5)),
        ..in_use()
    };
    let other_state = Node {
        provision_state: ProvisionState::Rescue,
        ..in_use()
    };
    let gone = seen(None, provider().held_by(guard()));
    let empty = Node {
        instance_uuid: None,
        ..in_use()
    };
    assert_passes(
        "the instance itself",
        &case(),
        &held(in_use()),
        &unprovision(&in_use()),
    );
    for (what, seen, action) in [
        (
            "another instance, decided from it",
            held(of_a_stranger()),
            unprovision(&of_a_stranger()),
        ),
        (
            "another instance, decided before",
            held(of_a_stranger()),
            unprovision(&in_use()),
        ),
        ("the node has changed since", held(moved), unprovision(&in_use())),
        (
            "the state has changed since",
            held(other_state),
            unprovision(&in_use()),
        ),
        ("no instance", held(empty.clone()), unprovision(&empty)),
        ("a node that is gone", gone, unprovision(&in_use())),
    ] {
        assert_vetoed(what, &case(), &seen, &action, Veto::OtherInstance);
    }
    let hold = Node {
        provision_state: ProvisionState::DeployHold,
        ..of_a_stranger()
    };
    let abort = Action::Abort {
        since: hold.provision_updated_at,
        from: ProvisionState::DeployHold,
    };
    assert_vetoed(
        "abort of another's",
        &case(),
        &held(hold),
        &abort,
        Veto::OtherInstance,
    );
}

#[test]
fn the_guard_never_changes_a_node() {
    let since = Some(at(1));
    let case = Story::guard().case();
    for action in [
        unprovision(&in_use()),
        Action::Abort {
            since,
            from: ProvisionState::DeployHold,
        },
        Action::Manage { since },
        Action::Provide { since },
        Action::ClearMaintenance { since },
    ] {
        assert_vetoed("guard", &case, &held(in_use()), &action, Veto::NotAsked);
    }
    let own = release(Owner::Instance, instance());
    assert_vetoed(
        "Nova's to delete",
        &case,
        &seen(free(), provider()),
        &own,
        Veto::NotOurs,
    );
}

#[test]
fn a_failed_tear_down_is_repeated_only_as_often_as_asked() {
    let failed = node(ProvisionState::Error);
    assert_passes(
        "asked for once",
        &curing(),
        &held(failed.clone()),
        &unprovision(&failed),
    );
    assert_vetoed(
        "not asked for",
        &torn_down(),
        &held(failed.clone()),
        &unprovision(&failed),
        Veto::OtherInstance,
    );
    assert_vetoed(
        "never torn down",
        &case(),
        &held(failed.clone()),
        &unprovision(&failed),
        Veto::OtherInstance,
    );
}

#[test]
fn nothing_is_cured_that_nobody_asked_to_cure() {
    let since = Some(at(1));
    let by_ironic = Node {
        maintenance: true,
        fault: Some(Fault::CleanFailure),
        ..node(ProvisionState::Manageable)
    };
    let by_a_person = Node {
        fault: None,
        ..by_ironic.clone()
    };
    let clean_failed = node(ProvisionState::CleanFailed);
    let manageable = node(ProvisionState::Manageable);
    let manage = Action::Manage { since };
    let unset = Action::ClearMaintenance { since };
    let provide = Action::Provide { since };
    assert_passes("asked for", &curing(), &held(clean_failed.clone()), &manage);
    assert_passes("set by the failure", &curing(), &held(by_ironic.clone()), &unset);
    assert_passes("in order", &curing(), &held(manageable.clone()), &provide);
    for (what, case, node, action) in [
        ("not asked for", torn_down(), clean_failed, &manage),
        ("not failed", curing(), cleaning(), &manage),
        ("a free node", curing(), free(), &manage),
        ("a person's maintenance", curing(), by_a_person.clone(), &unset),
        ("still in maintenance", curing(), by_ironic, &provide),
        ("still in a person's maintenance", curing(), by_a_person, &provide),
        ("not manageable", curing(), free(), &provide),
    ] {
        assert_vetoed(what, &case, &held(node), action, Veto::NoCure);
    }
    let carries = Node {
        instance_uuid: Some(INSTANCE),
        ..manageable
    };
    assert_vetoed(
        "an instance on it",
        &curing(),
        &held(carries),
        &provide,
        Veto::OtherInstance,
    );
}

#[test]
fn no_hold_is_released_before_the_node_is_free() {
    let ours = release(Owner::Guard, guard());
    assert_passes("free", &torn_down(), &held(free()), &ours);
    let maintained = Node {
        maintenance: true,
        ..free()
    };
    let retired = Node {
        retired: true,
        ..free()
    };
    let powerless = Node {
        power_state: None,
        ..free()
    };
    for not_free in [
        cleaning(),
        maintained,
        retired,
        powerless,
        in_use(),
        of_a_stranger(),
    ] {
        assert_vetoed(
            "ours",
            &torn_down(),
            &held(not_free.clone()),
            &ours,
            Veto::NotFree,
        );
        let exposed = seen(not_free, provider().held_by(instance()));
        let own = release(Owner::Instance, instance());
        assert_vetoed("the instance's", &torn_down(), &exposed, &own, Veto::NotFree);
    }
    let gone = seen(None, provider().held_by(guard()));
    assert_vetoed(
        "gone, and not reserved",
        &torn_down(),
        &gone,
        &ours,
        Veto::NotFree,
    );
    assert_passes(
        "gone, and reserved",
        &torn_down(),
        &seen(None, full().held_by(guard())),
        &ours,
    );
    let own = release(Owner::Instance, instance());
    let reserved = seen(cleaning(), full().held_by(instance()));
    assert_passes(
        "the instance's, behind a reservation",
        &torn_down(),
        &reserved,
        &own,
    );
}

#[test]
fn nobody_elses_allocation_is_touched() {
    let seen_free = seen(free(), provider().held_by(stranger()));
    for whose in [Owner::Guard, Owner::Instance] {
        let action = release(whose, stranger());
        assert_vetoed("a stranger's", &torn_down(), &seen_free, &action, Veto::NotOurs);
    }
    assert_vetoed(
        "swapped",
        &torn_down(),
        &seen_free,
        &release(Owner::Guard, instance()),
        Veto::NotOurs,
    );
    assert_vetoed(
        "swapped",
        &torn_down(),
        &seen_free,
        &release(Owner::Instance, guard()),
        Veto::NotOurs,
    );

    let hand = |receiver, from| Action::HandOver {
        receiver,
        generation: ConsumerGeneration::New,
        units: one_unit(),
        giver: Some(giver(from)),
    };
    let now = seen(in_use(), provider().held_by(instance()));
    assert_passes("to us", &case(), &now, &hand_over());
    assert_vetoed(
        "to a stranger",
        &case(),
        &now,
        &hand(stranger(), instance()),
        Veto::NotOurs,
    );
    assert_vetoed(
        "from a stranger",
        &case(),
        &now,
        &hand(guard(), stranger()),
        Veto::NotOurs,
    );

    let back = |from, to| Action::HandBack {
        from,
        generation: ConsumerGeneration::At(1),
        units: one_unit(),
        to: giver(to),
    };
    assert_passes("back", &case(), &held(in_use()), &back(guard(), instance()));
    assert_vetoed(
        "from a stranger",
        &case(),
        &held(in_use()),
        &back(stranger(), instance()),
        Veto::NotOurs,
    );
    assert_vetoed(
        "to a stranger",
        &case(),
        &held(in_use()),
        &back(guard(), stranger()),
        Veto::NotOurs,
    );
    for left in [cleaning(), free(), of_a_stranger()] {
        let action = back(guard(), instance());
        assert_vetoed("it has left", &case(), &held(left), &action, Veto::OtherInstance);
    }
}

#[test]
fn a_reservation_is_lowered_only_on_a_free_node_and_only_ours() {
    let view = full();
    assert_passes(
        "raised at any time",
        &case(),
        &seen(in_use(), provider()),
        &reserve(),
    );
    assert_passes(
        "ours, free",
        &reserved_by_us(),
        &seen(free(), full()),
        &lower(&view),
    );
    assert_passes(
        "ours, still in use",
        &reserved_by_us(),
        &seen(in_use(), full()),
        &lower(&view),
    );
    assert_passes(
        "Nova's, free",
        &beside_nova(),
        &seen(free(), full()),
        &lower(&view),
    );
    assert_vetoed(
        "not free",
        &reserved_by_us(),
        &seen(cleaning(), full()),
        &lower(&view),
        Veto::NotFree,
    );
    assert_vetoed(
        "gone",
        &reserved_by_us(),
        &seen(None, full()),
        &lower(&view),
        Veto::NotFree,
    );
    assert_vetoed(
        "not ours",
        &torn_down(),
        &seen(free(), full()),
        &lower(&view),
        Veto::NotOurs,
    );
    let unexplained = seen(cleaning(), full());
    assert_vetoed(
        "Nova's, not free",
        &beside_nova(),
        &unexplained,
        &lower(&view),
        Veto::NotOurs,
    );
    let strangers = seen(of_a_stranger(), full());
    assert_vetoed(
        "another's",
        &reserved_by_us(),
        &strangers,
        &lower(&view),
        Veto::NotFree,
    );
}

#[test]
fn nothing_else_of_the_inventory_is_changed() {
    let mut view = provider();
    let more = view.inventories.inventories[&class()].clone();
    view.inventories.inventories.insert(other_class(), more);
    let now = seen(in_use(), view.clone());
    let right = Action::reserve_all(&view, &class()).unwrap();
    assert_passes("the class of the case", &case(), &now, &right);
    let wrong = Action::reserve_all(&view, &other_class()).unwrap();
    assert_vetoed("another class", &case(), &now, &wrong, Veto::NotOurs);

    let spoil = |change: fn(&mut ProviderView)| {
        let mut spoiled = view.clone();
        change(&mut spoiled);
        Action::reserve_all(&spoiled, &class()).unwrap()
    };
    let spoiled: [(&str, fn(&mut ProviderView)); 4] = [
        ("the total", |view| {
            view.inventories.inventories.get_mut(&class()).unwrap().total = 2
        }),
        ("a class gone", |view| {
            drop(view.inventories.inventories.remove(&other_class()))
        }),
        ("an old generation", |view| view.inventories.generation.0 -= 1),
        ("another's reservation", |view| {
            view.inventories
                .inventories
                .get_mut(&other_class())
                .unwrap()
                .reserved = 1;
        }),
    ];
    for (what, change) in spoiled {
        assert_vetoed(what, &case(), &now, &spoil(change), Veto::NotOurs);
    }
    assert_vetoed(
        "no provider",
        &case(),
        &seen(in_use(), None),
        &right,
        Veto::NotOurs,
    );
}
