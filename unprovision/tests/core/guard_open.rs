//! Which nodes the guard takes under its care: every state, with and without an instance, offered and hidden.

use ironic_client::{Node, PowerState, ProvisionState};
use placement_client::ConsumerUuid;
use unprovision::core::{
    Case, CaseId, Event, GuardPolicy, Kind, NotGuarded, Observation, ProviderView, guard_consumer,
    guard_consumer_since, open_guard,
};
use uuid::Uuid;

use crate::build::{
    INSTANCE, LEAVING, NODE, ProviderExt, STRANGER, at, class, every_state, guard, instance, node, provider,
    seen, tenant,
};

const POLICY: GuardPolicy<'_> = GuardPolicy {
    strategy: "hand-over",
    release_nova_reservations: true,
};

fn opened(seen: &Observation, remembered: Option<Uuid>) -> Result<Case, NotGuarded> {
    let (id, entry) = open_guard(seen, remembered, &POLICY, at(0))?;
    Ok(Case::fold(id, [&entry]).unwrap())
}

fn novas(view: ProviderView) -> ProviderView {
    view.with_traits(&["OWNER_NOVA"])
}

fn with_instance(state: ProvisionState) -> Node {
    Node {
        instance_uuid: Some(INSTANCE),
        ..node(state)
    }
}

#[test]
fn every_state_is_on_its_way_or_in_use_or_neither() {
    let idle = [
        "enroll",
        "verifying",
        "manageable",
        "inspecting",
        "inspect wait",
        "inspect failed",
        "moonwalking",
    ];
    for state in every_state() {
        let word = state.as_str().to_owned();
        let opens = |node: Node, view: ProviderView| opened(&seen(node, view), None).is_ok();
        let (bare, carrying) = (node(state.clone()), with_instance(state));
        let hidden = provider().reserved(1);
        let expected = [
            LEAVING.contains(&word.as_str()),
            LEAVING.contains(&word.as_str()) || idle.contains(&word.as_str()),
            LEAVING.contains(&word.as_str()),
            LEAVING.contains(&word.as_str()),
        ];
        let found = [
            opens(bare.clone(), hidden.clone()),
            opens(bare, provider()),
            opens(carrying.clone(), hidden),
            opens(carrying, provider()),
        ];
        assert_eq!(
            found, expected,
            "{word}: bare hidden, bare offered, with an instance hidden and offered"
        );
    }
}

#[test]
fn an_available_node_that_is_not_free_is_taken_only_if_it_is_offered() {
    let spoil: [fn(&mut Node); 4] = [
        |node| node.maintenance = true,
        |node| node.power_state = None,
        |node| node.power_state = Some(PowerState::Error),
        |node| node.retired = true,
    ];
    for change in spoil {
        let mut spoiled = node(ProvisionState::Available);
        change(&mut spoiled);
        assert!(
            opened(&seen(spoiled.clone(), provider()), None).is_ok(),
            "{spoiled:?}"
        );
        let hidden = [provider().reserved(1), provider().held_by(ConsumerUuid(STRANGER))];
        for view in hidden {
            assert!(matches!(
                opened(&seen(spoiled.clone(), view), None),
                Err(NotGuarded::NotOffered(_))
            ));
        }
    }
}

#[test]
fn a_free_node_is_taken_only_to_lift_what_is_ours_or_novas() {
    let free = || node(ProvisionState::Available);
    let rows = [
        ("offered", provider(), false),
        ("reserved by nobody knows whom", provider().reserved(1), false),
        ("reserved by Nova", novas(provider().reserved(1)), true),
        (
            "reserved by Nova for somebody who claims it",
            novas(provider().reserved(1).held_by(instance())),
            false,
        ),
        ("held by us", provider().held_by(guard()), true),
        (
            "held by somebody",
            provider().held_by(ConsumerUuid(STRANGER)),
            false,
        ),
    ];
    for (what, view, opens) in rows {
        assert_eq!(opened(&seen(free(), view), None).is_ok(), opens, "{what}");
    }
    let policy = GuardPolicy {
        release_nova_reservations: false,
        ..POLICY
    };
    let reserved = seen(free(), novas(provider().reserved(1)));
    assert_eq!(open_guard(&reserved, None, &policy, at(0)), Err(NotGuarded::Free));
    assert_eq!(opened(&seen(free(), None), None), Err(NotGuarded::Free));
}

#[test]
fn the_leaving_instance_is_the_one_on_the_node_or_the_one_remembered() {
    let deleting = seen(
        with_instance(ProvisionState::Deleting),
        provider().held_by(instance()),
    );
    let case = opened(&deleting, Some(STRANGER)).unwrap();
    assert_eq!(
        (case.instance(), case.guard()),
        (Some(INSTANCE), guard_consumer(NODE, INSTANCE))
    );
    assert_eq!(case.found.owner, Some(tenant()));
    assert_eq!(case.found.class, Some(class()));

    let cleaning = seen(node(ProvisionState::Cleaning), provider());
    let case = opened(&cleaning, Some(STRANGER)).unwrap();
    assert_eq!(case.guard(), guard_consumer(NODE, STRANGER));
    let case = opened(&cleaning, None).unwrap();
    assert_eq!(case.guard(), guard_consumer_since(NODE, Some(at(1))));
    assert_ne!(case.guard(), guard_consumer_since(NODE, Some(at(2))));
    assert_eq!(
        case.kind,
        Kind::Guard {
            instance: None,
            since: Some(at(1)),
        }
    );
}

#[test]
fn departures_of_a_node_are_different_cases() {
    let since = Some(at(1));
    let ids = [
        CaseId::guard(NODE, Some(INSTANCE), since),
        CaseId::guard(NODE, Some(STRANGER), since),
        CaseId::guard(NODE, None, since),
        CaseId::guard(NODE, None, Some(at(2))),
        CaseId::guard(NODE, None, None),
        CaseId::tear_down(NODE, INSTANCE),
    ];
    for (index, id) in ids.iter().enumerate() {
        assert!(!ids[..index].contains(id), "{index}");
    }
    assert_eq!(
        ids[0],
        CaseId::guard(NODE, Some(INSTANCE), Some(at(9))),
        "an instance leaves once"
    );
}

/// Rule 17: the journal is lost, the hold is not.
#[test]
fn a_hold_of_ours_is_recorded_and_goes_on() {
    let case = opened(
        &seen(node(ProvisionState::Cleaning), provider().held_by(guard())),
        None,
    )
    .unwrap();
    assert_eq!(case.found.hold, Some(guard()));
    assert_eq!(case.guard(), guard());
    assert!(case.may_hold() && case.holds_the_unit());
}

#[test]
fn without_a_provider_the_intent_is_kept() {
    let case = opened(&seen(node(ProvisionState::Cleaning), None), None).unwrap();
    assert_eq!(case.found.class, Some(class()));
    assert!(!case.may_hold());
}

#[test]
fn what_cannot_be_held_is_a_finding_where_it_matters() {
    let nameless = |state| Node {
        resource_class: None,
        ..node(state)
    };
    let other = |state| Node {
        resource_class: Some("other".to_owned()),
        ..node(state)
    };
    let finding = |node: Node| opened(&seen(node, provider()), None).unwrap_err().is_finding();
    assert!(finding(nameless(ProvisionState::Cleaning)) && finding(other(ProvisionState::Cleaning)));
    assert!(!finding(nameless(ProvisionState::Available)) && !finding(other(ProvisionState::Active)));
    let active = with_instance(ProvisionState::Active);
    assert_eq!(
        opened(&seen(active.clone(), provider()), None),
        Err(NotGuarded::InUseAndOffered(ProvisionState::Active))
    );
    assert_eq!(
        opened(&seen(active, provider().held_by(instance())), None),
        Err(NotGuarded::InUse)
    );
    assert_eq!(opened(&seen(None, provider()), None), Err(NotGuarded::NoNode));
}

/// Nova's tracker would take a reservation back that is stricter than its own rule.
#[test]
fn a_retired_node_is_held_by_an_allocation_whatever_the_strategy() {
    let policy = GuardPolicy {
        strategy: "reserve-on-delete",
        ..POLICY
    };
    let strategy_of = |node: Node, view| match open_guard(&seen(node, view), None, &policy, at(0))
        .unwrap()
        .1
        .event
    {
        Event::Opened { strategy, .. } => strategy,
        other => panic!("{other:?}"),
    };
    let retired = Node {
        retired: true,
        ..node(ProvisionState::Available)
    };
    let strategy = |node| strategy_of(node, provider());
    assert_eq!(strategy(retired), "hand-over");
    assert_eq!(strategy(node(ProvisionState::Cleaning)), "reserve-on-delete");
    let free = node(ProvisionState::Available);
    let reserved = novas(provider().reserved(1));
    assert_eq!(strategy_of(free, reserved), "reserve-on-delete");
}

/// Rule 8, whoever calls: a strategy that holds nothing of its own protects only tear-downs that we drive.
#[test]
fn a_strategy_that_cannot_guard_begins_nothing() {
    let cleaning = seen(node(ProvisionState::Cleaning), provider());
    let opens = |strategy| {
        let policy = GuardPolicy { strategy, ..POLICY };
        open_guard(&cleaning, None, &policy, at(0))
    };
    for strategy in ["wait-for-available", "trait-tagging", "no-such"] {
        assert!(
            matches!(opens(strategy), Err(NotGuarded::Strategy(_))),
            "{strategy}"
        );
    }
    assert!(opens("hand-over").is_ok() && opens("reserve-on-delete").is_ok());
}
