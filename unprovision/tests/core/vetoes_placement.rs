//! The veto, for writes to Placement: each bad write is refused, one row each; and its good neighbour passes.

use ironic_client::Node;
use placement_client::{ConsumerGeneration, ConsumerUuid, Inventories};
use unprovision::core::{Action, Case, Event, Owner, ProviderView, Veto};

use crate::build::{
    ProviderExt, STRANGER, Story, class, guard, hand_over, in_use, instance, one_unit, other_class, provider,
    reserve, seen,
};
use crate::vetoes::{
    assert_passes, assert_vetoed, case, cleaning, free, giver, held, of_a_stranger, release, torn_down,
};

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

fn lower(view: &ProviderView) -> Action {
    Action::set_reserved(view, &class(), 0).unwrap()
}

fn full() -> ProviderView {
    provider().reserved(1)
}

fn stranger() -> ConsumerUuid {
    ConsumerUuid(STRANGER)
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
}

#[test]
fn a_unit_moves_only_between_the_instance_and_us() {
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
    let (ours, novas) = (reserved_by_us(), beside_nova());
    let raised = seen(in_use(), provider());
    assert_passes("raised at any time", &case(), &raised, &reserve());
    let as_it_is = Action::set_reserved(&full(), &class(), 1).unwrap();
    assert_passes(
        "left as it is",
        &torn_down(),
        &seen(cleaning(), full()),
        &as_it_is,
    );
    let lowered = lower(&full());
    for (what, case, node) in [
        ("ours, free", &ours, free()),
        ("ours, still in use", &ours, in_use()),
        ("Nova's, free", &novas, free()),
    ] {
        assert_passes(what, case, &seen(node, full()), &lowered);
    }
    for (what, case, node, why) in [
        ("ours, not free", &ours, Some(cleaning()), Veto::NotFree),
        ("ours, gone", &ours, None, Veto::NotFree),
        ("ours, of another's", &ours, Some(of_a_stranger()), Veto::NotFree),
        ("not ours", &torn_down(), Some(free()), Veto::NotOurs),
        ("Nova's, not free", &novas, Some(cleaning()), Veto::NotOurs),
    ] {
        assert_vetoed(what, case, &seen(node, full()), &lowered, why);
    }
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

    type Spoil = fn(&mut Inventories);
    let spoiled: [(&str, Spoil); 4] = [
        ("the total", |all| {
            all.inventories.get_mut(&class()).unwrap().total = 2
        }),
        ("a class gone", |all| {
            all.inventories.retain(|name, _| *name == class())
        }),
        ("an old generation", |all| all.generation.0 -= 1),
        ("another's reservation", |all| {
            all.inventories.get_mut(&other_class()).unwrap().reserved = 1;
        }),
    ];
    for (what, spoil) in spoiled {
        let mut view = view.clone();
        spoil(&mut view.inventories);
        let action = Action::reserve_all(&view, &class()).unwrap();
        assert_vetoed(what, &case(), &now, &action, Veto::NotOurs);
    }
    assert_vetoed(
        "no provider",
        &case(),
        &seen(in_use(), None),
        &right,
        Veto::NotOurs,
    );
}
