//! The audit by the lists alone: how nodes and providers are joined, each cheap kind, and what only looks like one.

use std::collections::{BTreeMap, BTreeSet};

use ironic_client::{Node, NodeUuid, ProvisionState};
use placement_client::{Generation, ProviderUuid, ResourceClass, ResourceProvider};
use unprovision::audit::{FindingKind, Lists, Remedy, Rules, Subject, findings, join};
use uuid::Uuid;

use crate::build::{INSTANCE, NODE, at, class, every_state, in_use, node, other_class, secs};

/// Everything happened long ago, and nothing is open.
pub(crate) fn rules() -> Rules {
    Rules {
        now: at(10_000),
        grace: secs(300),
        open: BTreeMap::new(),
        deep: false,
        tag: None,
    }
}

pub(crate) fn listed(uuid: Uuid, name: &str) -> ResourceProvider {
    ResourceProvider {
        uuid: ProviderUuid(uuid),
        name: name.to_owned(),
        generation: Generation(7),
        parent: None,
    }
}

fn own() -> ResourceProvider {
    listed(NODE.0, &NODE.to_string())
}

fn lists(nodes: &[Node], providers: &[ResourceProvider], offered: &[(ResourceClass, Uuid)]) -> Lists {
    let mut by_class: BTreeMap<ResourceClass, BTreeSet<ProviderUuid>> = BTreeMap::new();
    for (class, uuid) in offered {
        by_class
            .entry(class.clone())
            .or_default()
            .insert(ProviderUuid(*uuid));
    }
    Lists {
        nodes: nodes.to_vec(),
        providers: providers.to_vec(),
        offered: by_class,
        tagged: BTreeSet::new(),
    }
}

/// The kinds that are found in these lists, with what they need to be repaired.
fn kinds(lists: Lists, rules: &Rules) -> Vec<FindingKind> {
    let subjects = join(lists);
    let found = subjects.iter().flat_map(|subject| findings(subject, rules));
    found.map(|finding| finding.kind).collect()
}

/// The kinds that are found for the one node with its provider.
fn of(node: Node, offered: bool) -> Vec<FindingKind> {
    let offers = offered.then_some((class(), NODE.0));
    kinds(lists(&[node], &[own()], offers.as_slice()), &rules())
}

fn free() -> Node {
    node(ProvisionState::Available)
}

#[test]
fn what_is_offered_is_free_and_the_other_way_round() {
    use FindingKind::{FreeNotOffered, OfferedNotFree};
    let maintained = Node {
        maintenance: true,
        ..free()
    };
    let retired = Node {
        retired: true,
        ..free()
    };
    let carrying = Node {
        instance_uuid: Some(INSTANCE),
        ..free()
    };
    for (name, node, when_offered, when_hidden) in [
        ("free", free(), vec![], vec![FreeNotOffered]),
        ("in use", in_use(), vec![OfferedNotFree], vec![]),
        (
            "cleaning",
            node(ProvisionState::Cleaning),
            vec![OfferedNotFree],
            vec![],
        ),
        (
            "manageable",
            node(ProvisionState::Manageable),
            vec![OfferedNotFree],
            vec![],
        ),
        (
            "failed",
            node(ProvisionState::CleanFailed),
            vec![OfferedNotFree],
            vec![],
        ),
        (
            "unheard of",
            node("moonwalking".into()),
            vec![OfferedNotFree],
            vec![],
        ),
        ("in maintenance", maintained, vec![OfferedNotFree], vec![]),
        ("retired", retired, vec![OfferedNotFree], vec![]),
        ("with an instance", carrying, vec![OfferedNotFree], vec![]),
        (
            "without power",
            Node {
                power_state: None,
                ..free()
            },
            vec![OfferedNotFree],
            vec![],
        ),
    ] {
        assert_eq!(of(node.clone(), true), when_offered, "{name}, offered");
        assert_eq!(of(node, false), when_hidden, "{name}, hidden");
    }
}

/// What may be a change under way is no finding, but that a node is offered although it is not free is wrong at once.
#[test]
fn what_is_young_or_has_a_case_is_left_to_those_who_work_on_it() {
    let lately = |state| Node {
        provision_updated_at: Some(at(9_800)),
        ..node(state)
    };
    assert_eq!(of(lately(ProvisionState::Available), false), []);
    assert_eq!(
        of(lately(ProvisionState::Cleaning), true),
        [FindingKind::OfferedNotFree]
    );
    let open = |strategy: &str| Rules {
        open: [(NODE, strategy.to_owned())].into(),
        ..rules()
    };
    let hidden = || lists(&[free()], &[own()], &[]);
    assert_eq!(kinds(hidden(), &open("hand-over")), []);
    let offered = || lists(&[node(ProvisionState::Cleaning)], &[own()], &[(class(), NODE.0)]);
    assert_eq!(
        kinds(offered(), &open("hand-over")),
        [FindingKind::OfferedNotFree]
    );
    // It protects queries that forbid the tag, and says so.
    assert_eq!(kinds(offered(), &open("trait-tagging")), []);
    let young = Rules {
        grace: secs(20_000),
        ..rules()
    };
    assert_eq!(kinds(hidden(), &young), []);
}

#[test]
fn a_node_needs_a_provider_and_a_class_once_it_is_set_up() {
    let nameless = |state| Node {
        resource_class: None,
        ..node(state)
    };
    let being_set_up = [
        "enroll",
        "verifying",
        "manageable",
        "inspecting",
        "inspect wait",
        "inspect failed",
        "adopting",
        "adopt failed",
    ];
    for state in every_state() {
        let word = state.as_str().to_owned();
        let expected = |kind| {
            if being_set_up.contains(&word.as_str()) {
                vec![]
            } else {
                vec![kind]
            }
        };
        let missing = kinds(lists(&[node(state.clone())], &[], &[]), &rules());
        assert_eq!(missing, expected(FindingKind::ProviderMissing), "{word}");
        let without = kinds(lists(&[nameless(state)], &[own()], &[]), &rules());
        assert_eq!(without, expected(FindingKind::NoResourceClass), "{word}");
    }
}

#[test]
fn a_provider_that_is_called_like_the_node_stands_in_its_way() {
    let other = Uuid::from_u128(0xc);
    let subjects = join(lists(&[free()], &[listed(other, &NODE.to_string())], &[]));
    let found = subjects
        .iter()
        .flat_map(|subject| findings(subject, &rules()))
        .collect::<Vec<_>>();
    let missing = found
        .iter()
        .find(|finding| finding.kind == FindingKind::ProviderMissing)
        .unwrap();
    assert!(missing.what.contains(&other.to_string()), "{missing:?}");
    assert_eq!(
        missing.commands,
        [format!("openstack resource provider delete {other}")]
    );
    let orphan = found
        .iter()
        .find(|finding| finding.kind == FindingKind::ProviderOrphaned)
        .unwrap();
    assert_eq!(orphan.node, other);
}

/// A provider under another class: offered, but not to those who ask for the node's.
#[test]
fn a_provider_has_the_class_of_its_node() {
    let found = |offered: &[(ResourceClass, Uuid)]| kinds(lists(&[free()], &[own()], offered), &rules());
    assert_eq!(
        found(&[(other_class(), NODE.0)]),
        [FindingKind::WrongResourceClass]
    );
    assert_eq!(found(&[(class(), NODE.0), (other_class(), NODE.0)]), []);
    let dirty = lists(
        &[node(ProvisionState::Cleaning)],
        &[own()],
        &[(other_class(), NODE.0)],
    );
    let both = [FindingKind::OfferedNotFree, FindingKind::WrongResourceClass];
    assert_eq!(kinds(dirty, &rules()), both);
}

/// Ordinary computes and what belongs to them have no node, and are none of ours.
#[test]
fn only_what_looks_like_a_nodes_provider_can_be_an_orphan() {
    let (gone, compute) = (Uuid::from_u128(0xc), Uuid::from_u128(0xd));
    let part = ResourceProvider {
        parent: Some(ProviderUuid(compute)),
        ..listed(gone, &gone.to_string())
    };
    for (name, provider, offered, expected) in [
        ("of Nova's", listed(gone, &gone.to_string()), false, true),
        ("with its class", listed(gone, "node-7"), true, true),
        (
            "a compute",
            listed(compute, "compute-1.example.org"),
            false,
            false,
        ),
        (
            "an agent",
            listed(compute, "compute-1:Open vSwitch agent:br-ex"),
            false,
            false,
        ),
        ("a part of a compute", part, false, false),
    ] {
        let offers = offered.then_some((class(), provider.uuid.0));
        let all = lists(&[in_use()], &[own(), provider], offers.as_slice());
        let expected = if expected {
            vec![FindingKind::ProviderOrphaned]
        } else {
            vec![]
        };
        assert_eq!(kinds(all, &rules()), expected, "{name}");
    }
}

#[test]
fn every_node_is_joined_once_and_two_runs_are_equal() {
    let uuid = |n: u128| NodeUuid(Uuid::from_u128(n));
    let nodes = (1..=5)
        .rev()
        .map(|n| Node {
            uuid: uuid(n),
            ..free()
        })
        .collect::<Vec<_>>();
    let providers = (3..=8)
        .map(|n| listed(uuid(n).0, &uuid(n).to_string()))
        .collect::<Vec<_>>();
    let shown = |subjects: Vec<Subject>| {
        let all = subjects
            .iter()
            .map(|one| (one.uuid.as_u128(), one.node.is_some(), one.provider.is_some()));
        all.collect::<Vec<_>>()
    };
    let first = shown(join(lists(&nodes, &providers, &[])));
    let expected = [
        (1, true, false),
        (2, true, false),
        (3, true, true),
        (4, true, true),
        (5, true, true),
    ];
    assert_eq!(first[..5], expected);
    assert_eq!(first[5..], [(6, false, true), (7, false, true), (8, false, true)]);
    assert_eq!(first, shown(join(lists(&nodes, &providers, &[]))));
}

/// Nothing is repaired that was not looked at closer: the lists alone tell too little.
#[test]
fn by_the_lists_alone_only_the_guard_has_something_to_do() {
    let everything = lists(
        &[
            node(ProvisionState::Cleaning),
            Node {
                uuid: NodeUuid(Uuid::from_u128(1)),
                ..free()
            },
        ],
        &[
            own(),
            listed(Uuid::from_u128(0xc), &Uuid::from_u128(0xc).to_string()),
        ],
        &[(class(), NODE.0)],
    );
    for subject in join(everything) {
        for finding in findings(&subject, &rules()) {
            let expected = match finding.kind {
                FindingKind::OfferedNotFree => Remedy::Guard,
                _ => Remedy::ByHand,
            };
            assert_eq!(finding.remedy, expected, "{finding:?}");
            assert!(
                !finding.commands.is_empty() && !finding.advice.is_empty(),
                "{finding:?}"
            );
        }
    }
}

#[test]
fn every_kind_has_a_name_of_its_own() {
    for kind in FindingKind::ALL {
        assert_eq!(kind.name().parse(), Ok(kind));
        assert_eq!(serde_json::to_value(kind).unwrap(), kind.name());
        assert!(!kind.must_be_named() || kind.is_repairable());
    }
    assert!("offered".parse::<FindingKind>().is_err());
}
