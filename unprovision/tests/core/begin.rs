//! What a tear-down may begin with: each thing that is wrong is told before anything is touched.

use ironic_client::{Node, ProvisionState};
use placement_client::ConsumerUuid;
use unprovision::core::{
    CannotOpen, CaseId, Event, Found, Kind, Observation, ProviderView, TearDownRequest, open,
};

use crate::build::{
    INSTANCE, NODE, ProviderExt, STRANGER, at, class, found, guard, in_use, instance, limits, node,
    other_class, provider, seen,
};

fn request(nova_record_remains: bool) -> TearDownRequest {
    TearDownRequest {
        node: NODE,
        instance: INSTANCE,
        strategy: "hand-over".to_owned(),
        tag: None,
        limits: limits(),
        nova_record_remains,
    }
}

fn begun(seen: &Observation) -> Result<Found, CannotOpen> {
    let entry = open(&request(false), seen, at(7))?;
    assert_eq!(entry.at, at(7));
    match entry.event {
        Event::Opened { found, kind, .. } => {
            assert_eq!(kind, Kind::TearDown { instance: INSTANCE });
            Ok(*found)
        }
        other => panic!("{other:?}"),
    }
}

fn held() -> ProviderView {
    provider().held_by(instance())
}

fn other_class_too() -> ProviderView {
    let mut view = held();
    let inventory = view.inventories.inventories[&class()].clone();
    view.inventories.inventories.insert(other_class(), inventory);
    view
}

/// A stranger holds a unit of that class beside the instance.
fn stranger_holds(class: placement_client::ResourceClass) -> ProviderView {
    let mut view = other_class_too().held_by(ConsumerUuid(STRANGER));
    let stranger = view.holders.get_mut(&ConsumerUuid(STRANGER)).unwrap();
    stranger.units = [(class, 1)].into();
    view
}

fn without_class() -> ProviderView {
    let mut view = held();
    view.inventories.inventories.clear();
    view
}

#[test]
fn what_is_found_before_anything_is_done_is_recorded() {
    let expected = Found {
        reserved: 1,
        ..found()
    };
    assert_eq!(begun(&seen(in_use(), held().reserved(1))), Ok(expected));
    let unheld = Found {
        owner: None,
        units: Default::default(),
        ..found()
    };
    assert_eq!(begun(&seen(in_use(), provider())), Ok(unheld));
    assert_eq!(request(false).case(), CaseId::tear_down(NODE, INSTANCE));
}

#[test]
fn what_is_on_its_way_already_or_odd_but_harmless_begins() {
    let leaving = |state| node(state);
    let ours = provider().held_by(guard());
    let empty = without_class();
    let next = provider().held_by(guard()).held_by(ConsumerUuid(STRANGER));
    for (what, node, view) in [
        ("another class beside", in_use(), other_class_too()),
        (
            "a stranger holds another class",
            in_use(),
            stranger_holds(other_class()),
        ),
        ("the provider has no inventory yet", in_use(), empty),
        (
            "cleaning, and its allocation is left",
            leaving(ProvisionState::Cleaning),
            held(),
        ),
        (
            "cleaning, and held by us",
            leaving(ProvisionState::Cleaning),
            ours.clone(),
        ),
        (
            "available, and held by us",
            leaving(ProvisionState::Available),
            ours,
        ),
        (
            "on its way, and somebody has come already",
            leaving(ProvisionState::Cleaning),
            next,
        ),
    ] {
        let begun = begun(&seen(node, view));
        assert!(begun.is_ok(), "{what}: {begun:?}");
    }
}

#[test]
fn what_is_wrong_is_told_before_anything_is_touched() {
    let but = |change: fn(&mut Node)| {
        let mut node = in_use();
        change(&mut node);
        node
    };
    let others = but(|node| node.instance_uuid = Some(STRANGER));
    let idle = but(|node| node.provision_state = ProvisionState::Manageable);
    let unnamed = but(|node| node.resource_class = None);
    let nameless = but(|node| node.resource_class = Some(String::new()));
    let protected = but(|node| node.protected = true);
    let misnamed = but(|node| node.resource_class = Some("other".to_owned()));
    let cleaning = node(ProvisionState::Cleaning);
    let nobodys = provider().held_by(ConsumerUuid(STRANGER));
    let carries = format!("carries instance {STRANGER}, not {INSTANCE}");
    let holds = format!("{STRANGER} holds node node-1");
    #[rustfmt::skip]
    let rows = [
        ("no node", seen(None, held()), "does not know the node"),
        ("another instance", seen(others, held()), &*carries),
        ("no instance, and nobody knows of it", seen(cleaning, nobodys), "is `cleaning` and does not carry"),
        ("nothing to tear down", seen(idle, held()), "is `manageable`: it is not deployed"),
        ("protected", seen(protected, held()), "is protected"),
        ("no provider", seen(in_use(), None), "no provider for node node-1"),
        ("no class", seen(unnamed, held()), "has no resource class"),
        ("an empty class", seen(nameless, held()), "has no resource class"),
        ("the wrong class", seen(misnamed, held()), "should be CUSTOM_OTHER in Placement, but its provider has CUSTOM_BAREMETAL"),
        ("somebody else holds it", seen(in_use(), stranger_holds(class())), &*holds),
    ];
    for (what, seen, words) in rows {
        let told = begun(&seen).unwrap_err().to_string();
        assert!(told.contains(words), "{what}: {told}");
    }
}

/// Rule 4.
#[test]
fn novas_node_begins_only_with_the_callers_word() {
    let novas = seen(in_use(), held().with_traits(&["OWNER_NOVA"]));
    let refused = open(&request(false), &novas, at(0));
    assert!(
        matches!(refused, Err(CannotOpen::NovaManages { .. })),
        "{refused:?}"
    );
    let entry = open(&request(true), &novas, at(0)).unwrap();
    assert!(matches!(entry.event, Event::Opened { found, .. } if found.nova));
    assert!(open(&request(true), &seen(in_use(), held()), at(0)).is_ok());
}
