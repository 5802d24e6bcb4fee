//! The veto, for writes to Ironic: each bad write is refused, one row each; and its good neighbour passes.

use ironic_client::{Fault, Node, ProvisionState};
use placement_client::{ConsumerGeneration, ConsumerUuid};
use unprovision::core::{Action, Case, Event, Giver, Limits, Observation, Owner, Veto, check};

use crate::build::{
    INSTANCE, ProviderExt, STRANGER, Story, at, guard, in_use, instance, limits, node, provider, seen,
    tenant, unprovision,
};

pub(crate) fn case() -> Case {
    Story::tear_down().case()
}

pub(crate) fn torn_down() -> Case {
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

pub(crate) fn giver(uuid: ConsumerUuid) -> Giver {
    Giver {
        uuid,
        generation: ConsumerGeneration::At(3),
        owner: tenant(),
        rest: Default::default(),
    }
}

pub(crate) fn release(whose: Owner, uuid: ConsumerUuid) -> Action {
    Action::Release {
        whose,
        consumer: giver(uuid),
    }
}

pub(crate) fn held(node: Node) -> Observation {
    seen(node, provider().held_by(guard()))
}

pub(crate) fn cleaning() -> Node {
    node(ProvisionState::Cleaning)
}

pub(crate) fn free() -> Node {
    node(ProvisionState::Available)
}

pub(crate) fn of_a_stranger() -> Node {
    Node {
        instance_uuid: Some(STRANGER),
        ..in_use()
    }
}

#[track_caller]
pub(crate) fn assert_vetoed(what: &str, case: &Case, seen: &Observation, action: &Action, why: Veto) {
    assert_eq!(check(case, seen, action), Err(why), "{what}: {action}");
}

#[track_caller]
pub(crate) fn assert_passes(what: &str, case: &Case, seen: &Observation, action: &Action) {
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
