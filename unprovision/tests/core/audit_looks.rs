//! The audit after a closer look: each deep kind, what a look takes back, what may be repaired, and near misses.

use ironic_client::{Node, ProvisionState};
use jiff::Timestamp;
use placement_client::{ConsumerUuid, ProviderAllocations, ResourceClass, TraitName, UnitsOf};
use unprovision::audit::{Finding, FindingKind, Look, Remedy, Rules, Subject, findings, is_plainly_right};
use unprovision::core::{DEFAULT_TAG, ProviderView};

use crate::audit::{listed, rules};
use crate::build::{
    INSTANCE, LEAVING, NODE, ProviderExt, STRANGER, at, class, guard, in_use, instance, node, other_class,
    provider,
};

fn subject(node: Option<Node>) -> Subject {
    Subject {
        uuid: NODE.0,
        node,
        provider: Some(listed(NODE.0, &NODE.to_string())),
        namesake: None,
        offered: [class()].into(),
        tagged: false,
        look: None,
    }
}

fn deep() -> Rules {
    Rules {
        deep: true,
        ..rules()
    }
}

fn looked(node: Option<Node>, view: ProviderView, newest: Timestamp) -> Subject {
    let newest = (!view.holders.is_empty()).then_some(newest);
    subject(node.clone()).seen(Look {
        node,
        view: Some(view),
        newest_allocation: newest,
    })
}

fn found(node: Node, view: ProviderView, rules: &Rules) -> Vec<Finding> {
    findings(&looked(Some(node), view, at(0)), rules)
}

fn one(node: Node, view: ProviderView, rules: &Rules) -> Option<(FindingKind, Remedy)> {
    let all = found(node, view, rules);
    assert!(all.len() < 2, "{all:#?}");
    all.first().map(|finding| (finding.kind, finding.remedy))
}

fn stranger() -> ConsumerUuid {
    ConsumerUuid(STRANGER)
}

fn free() -> Node {
    node(ProvisionState::Available)
}

fn without_inventory() -> ProviderView {
    let mut view = provider();
    view.inventories.inventories.clear();
    view
}

fn under_another_class() -> ProviderView {
    let mut view = without_inventory();
    let inventory = provider().inventories.inventories[&class()].clone();
    view.inventories.inventories.insert(other_class(), inventory);
    view
}

/// A free node that is not offered: the lists tell only that, a closer look tells why, and what may be done.
#[test]
fn a_closer_look_tells_what_hides_a_free_node() {
    use FindingKind as K;
    let drop = Remedy::DropAllocation { consumer: stranger() };
    let nova = || provider().with_traits(&["OWNER_NOVA"]).reserved(1);
    for (name, view, kind, remedy) in [
        ("reserved by Nova", nova(), K::FreeNotOffered, Remedy::Guard),
        (
            "reserved by nobody knows whom",
            provider().reserved(1),
            K::FreeNotOffered,
            Remedy::LiftReservation,
        ),
        (
            "held by us",
            provider().held_by(guard()),
            K::StaleHold,
            Remedy::Release,
        ),
        (
            "held by a stranger",
            provider().held_by(stranger()),
            K::AllocationWithoutInstance,
            drop,
        ),
        (
            "held twice",
            provider().held_by(stranger()).held_by(guard()),
            K::TwoConsumers,
            Remedy::ByHand,
        ),
        ("empty", without_inventory(), K::InventoryEmpty, Remedy::ByHand),
        (
            "of another class",
            under_another_class(),
            K::WrongResourceClass,
            Remedy::ByHand,
        ),
    ] {
        let hidden = |rules: &Rules| {
            let mut all = found(free(), view.clone(), rules);
            assert_eq!(all.len(), 1, "{name}: {all:#?}");
            all.remove(0)
        };
        let (shallow, thorough) = (hidden(&rules()), hidden(&deep()));
        assert_eq!((thorough.kind, thorough.remedy), (kind, remedy), "{name}");
        let expected = if kind.is_deep() { K::FreeNotOffered } else { kind };
        assert_eq!((shallow.kind, shallow.remedy), (expected, remedy), "{name}");
        // Whatever the finding is called, what deletes must be named as what it deletes.
        assert_eq!(
            shallow.remedy.needs(shallow.kind),
            thorough.remedy.needs(thorough.kind),
            "{name}"
        );
    }
}

/// The scheduler claims a node before anything of the node changes.
/// Rule 7: it goes only from a free node, and only where somebody says so; beside a hold of ours it is a finding of its own.
#[test]
fn a_tag_without_a_case_is_a_finding_by_itself() {
    let tag: TraitName = DEFAULT_TAG.parse().unwrap();
    let tagging = || Rules {
        tag: Some(tag.clone()),
        ..deep()
    };
    let tagged = |view: ProviderView| view.with_traits(&[DEFAULT_TAG]);
    let untag = Some((FindingKind::StaleHold, Remedy::Untag));
    assert_eq!(one(free(), tagged(provider()), &tagging()), untag);
    assert_eq!(
        one(free(), tagged(provider()), &deep()),
        None,
        "none is looked for"
    );
    let mut on_node = free();
    on_node.traits.insert(DEFAULT_TAG.to_owned());
    assert_eq!(one(on_node, provider(), &tagging()), untag, "Nova copies it");
    let by_hand = Some((FindingKind::StaleHold, Remedy::ByHand));
    assert_eq!(
        one(in_use(), tagged(provider().held_by(instance())), &tagging()),
        by_hand
    );
    let open = Rules {
        open: [(NODE, "trait-tagging".to_owned())].into(),
        ..tagging()
    };
    assert_eq!(one(free(), tagged(provider()), &open), None);
    let both = found(free(), tagged(provider().held_by(guard())), &tagging());
    let both = both.iter().map(|finding| (finding.remedy, finding.tag.is_some()));
    assert_eq!(
        both.collect::<Vec<_>>(),
        [(Remedy::Release, false), (Remedy::Untag, true)]
    );
}

#[test]
fn a_young_allocation_is_a_claim_and_no_finding() {
    for view in [provider().held_by(stranger()), provider().held_by(guard())] {
        for rules in [rules(), deep()] {
            let claimed = looked(Some(free()), view.clone(), at(9_900));
            assert_eq!(findings(&claimed, &rules), [], "{view:?}");
        }
    }
    let held = provider().held_by(stranger());
    let manageable = looked(Some(node(ProvisionState::Manageable)), held, at(9_900));
    assert_eq!(findings(&manageable, &deep()), []);
}

/// What the lists showed, and a closer look does not, is gone.
#[test]
fn what_a_closer_look_does_not_show_is_no_finding() {
    for (node, view) in [
        (Some(free()), Some(provider())),
        (Some(in_use()), Some(provider().held_by(instance()))),
        (Some(node(ProvisionState::Cleaning)), Some(provider().reserved(1))),
        (None, None),
    ] {
        let look = Look {
            node,
            view,
            newest_allocation: Some(at(0)),
        };
        assert_eq!(
            findings(&subject(Some(in_use())).seen(look.clone()), &deep()),
            [],
            "{look:?}"
        );
    }
}

#[test]
fn who_holds_a_node_in_use() {
    use FindingKind as K;
    let held = |consumer| provider().held_by(consumer);
    let reserved = |view: ProviderView| view.reserved(1);
    for (name, view, expected) in [
        ("its instance", held(instance()), None),
        ("its instance, and reserved", reserved(held(instance())), None),
        ("nobody", reserved(provider()), Some(K::InstanceWithoutAllocation)),
        ("a stranger", held(stranger()), Some(K::InstanceWithoutAllocation)),
        (
            "both",
            held(instance()).held_by(stranger()),
            Some(K::TwoConsumers),
        ),
        ("we", held(guard()), Some(K::StaleHold)),
    ] {
        assert_eq!(one(in_use(), view.clone(), &rules()), None, "{name}, not deep");
        let expected = expected.map(|kind| (kind, Remedy::ByHand));
        assert_eq!(
            one(in_use(), view, &deep()),
            expected,
            "{name}: rule 2, nothing of it is ours to correct"
        );
    }
    let nobody = found(in_use(), provider(), &deep());
    let kinds = nobody.iter().map(|finding| finding.kind).collect::<Vec<_>>();
    assert_eq!(kinds, [K::OfferedNotFree, K::InstanceWithoutAllocation]);
    assert!(
        nobody.iter().all(|finding| finding.remedy == Remedy::ByHand),
        "{nobody:#?}"
    );
    let heal = format!("nova-manage placement heal_allocations --instance {INSTANCE}");
    assert_eq!(nobody[0].commands, [heal]);
    let standalone = Node {
        instance_uuid: None,
        ..in_use()
    };
    assert_eq!(
        one(standalone, held(stranger()), &deep()),
        None,
        "deployed without naming an instance"
    );
}

/// A tear-down may take long, and its instance's allocation goes when its owner likes.
#[test]
fn who_holds_a_node_on_its_way_protects_it() {
    for word in LEAVING {
        let bare = node(word.into());
        let carrying = Node {
            instance_uuid: Some(INSTANCE),
            ..bare.clone()
        };
        for node in [bare, carrying] {
            for view in [
                provider().held_by(instance()),
                provider().held_by(stranger()),
                provider().reserved(1),
            ] {
                assert_eq!(one(node.clone(), view, &deep()), None, "{word}");
            }
            let ours = one(node, provider().held_by(guard()), &deep());
            assert_eq!(ours, Some((FindingKind::StaleHold, Remedy::Release)), "{word}");
        }
    }
}

#[test]
fn an_idle_node_that_is_held_is_a_finding() {
    for word in ["manageable", "inspect failed", "enroll"] {
        let held = one(node(word.into()), provider().held_by(stranger()), &deep());
        let drop = Remedy::DropAllocation { consumer: stranger() };
        assert_eq!(
            held,
            Some((FindingKind::AllocationWithoutInstance, drop)),
            "{word}"
        );
        assert_eq!(
            one(node(word.into()), without_inventory(), &deep()),
            None,
            "{word}"
        );
    }
}

/// Only a class that the provider lacks is wrong; other units beside it are somebody's business.
#[test]
fn a_class_beside_the_right_one_is_no_finding() {
    let mut view = provider().held_by(instance());
    let more = under_another_class().inventories.inventories;
    view.inventories.inventories.extend(more);
    assert_eq!(one(in_use(), view, &deep()), None);
    let mut wrong = under_another_class().held_by(instance());
    wrong
        .inventories
        .inventories
        .values_mut()
        .for_each(|inventory| inventory.reserved = 1);
    let expected = Some((FindingKind::WrongResourceClass, Remedy::ByHand));
    assert_eq!(one(in_use(), wrong, &deep()), expected);
}

#[test]
fn an_orphan_is_deleted_only_if_nobody_holds_it_and_it_is_no_compute() {
    let orphan = |view| {
        let all = findings(&looked(None, view, at(0)), &deep());
        all.first().map(|finding| (finding.kind, finding.remedy))
    };
    let expected = |remedy| Some((FindingKind::ProviderOrphaned, remedy));
    assert_eq!(orphan(provider()), expected(Remedy::DeleteProvider));
    assert_eq!(orphan(without_inventory()), expected(Remedy::DeleteProvider));
    assert_eq!(orphan(provider().held_by(stranger())), expected(Remedy::ByHand));
    assert_eq!(orphan(provider().held_by(guard())), expected(Remedy::ByHand));
    let mut compute = provider();
    let vcpus = compute.inventories.inventories[&class()].clone();
    compute
        .inventories
        .inventories
        .insert("VCPU".parse().unwrap(), vcpus);
    assert_eq!(orphan(compute), None);
}

/// A healthy cloud costs one request for each provider.
#[test]
fn what_is_plainly_right_takes_no_closer_look() {
    let holders = |consumers: &[ConsumerUuid], class: ResourceClass| ProviderAllocations {
        generation: placement_client::Generation(1),
        newest: None,
        allocations: consumers
            .iter()
            .map(|consumer| {
                let held = UnitsOf {
                    units: [(class.clone(), 1)].into(),
                    generation: Some(1),
                };
                (*consumer, held)
            })
            .collect(),
    };
    let right = |node, consumers: &[ConsumerUuid]| {
        is_plainly_right(&subject(Some(node)), &holders(consumers, class()))
    };
    assert!(right(in_use(), &[instance()]) && right(free(), &[]));
    assert!(
        !right(in_use(), &[])
            && !right(in_use(), &[stranger()])
            && !right(in_use(), &[instance(), stranger()])
    );
    assert!(!right(free(), &[stranger()]) && !right(node(ProvisionState::Cleaning), &[]));
    assert!(!is_plainly_right(
        &subject(Some(in_use())),
        &holders(&[instance()], other_class())
    ));
    assert!(!is_plainly_right(&subject(None), &holders(&[], class())));
}

#[test]
fn a_finding_tells_all_that_is_known() {
    let view = provider().with_traits(&["CUSTOM_GOLD"]).held_by(stranger());
    let finding = found(free(), view, &deep()).remove(0);
    let shown = serde_json::to_value(&finding).unwrap();
    let expected = serde_json::json!({
        "kind": "allocation-without-instance", "node": NODE, "name": "node-1", "provision_state": "available",
        "maintenance": false, "instance": null, "resource_class": "CUSTOM_BAREMETAL", "total": 1, "reserved": 0,
        "used": 1, "consumers": [STRANGER], "traits": ["CUSTOM_GOLD"], "tag": null, "age_s": 9_999,
        "what": format!("{STRANGER} holds the provider, and the node carries no instance"),
        "why": "the unit is lost, to a consumer that no node carries",
        "advice": "if no scheduler knows the consumer, drop its allocation: `unprovision audit --fix allocation-without-instance`",
        "commands": [
            format!("openstack resource provider allocation show {STRANGER}"),
            format!("openstack resource provider allocation delete {STRANGER}"),
        ],
        "remedy": "drop-allocation", "consumer": STRANGER,
    });
    assert_eq!(shown, expected);
}
