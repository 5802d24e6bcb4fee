//! C23: the audit on the sandbox: all planted drift is found, nothing else is, and few questions are asked.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test fails by panicking, also in its helpers"
)]

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

use ironic_client::IronicClient;
use jiff::SignedDuration;
use placement_client::PlacementClient;
use unprovision::NodeUuid;
use unprovision::audit::{FindingKind, Remedy, Rules};
use unprovision::cloud::{Asked, Clock, LOOKS, OpenStack, Survey, SystemClock};
use unprovision::core::DEFAULT_TAG;
use unprovision::scope::Scopes;
use unprovision_testkit::rig::SandboxClock;
use unprovision_testkit::sandbox::drift::needs_an_instance;
use unprovision_testkit::sandbox::ironic::State;
use unprovision_testkit::sandbox::placement::Provider;
use unprovision_testkit::sandbox::{Fault, Sandbox, Service, World};
use uuid::Uuid;

const GRACE: Duration = Duration::from_secs(300);

fn openstack(sandbox: &Sandbox) -> OpenStack {
    let to = |service| sandbox.transport(service, "audit");
    OpenStack::new(
        Arc::new(IronicClient::new(to(Service::Ironic))),
        Arc::new(PlacementClient::new(to(Service::Placement))),
        Arc::new(SandboxClock(sandbox.clone())),
    )
}

fn asked(sandbox: &Sandbox, deep: bool) -> Asked {
    Asked {
        rules: Rules {
            now: SandboxClock(sandbox.clone()).now(),
            grace: SignedDuration::try_from(GRACE).unwrap(),
            open: BTreeMap::new(),
            deep,
            tag: Some(DEFAULT_TAG.parse().unwrap()),
        },
        concurrency: NonZeroUsize::new(8).unwrap(),
        scopes: Scopes::default(),
        only: None,
    }
}

async fn audit(sandbox: &Sandbox, deep: bool) -> Survey {
    openstack(sandbox).audit(&asked(sandbox, deep)).await.unwrap()
}

fn found(survey: &Survey) -> BTreeSet<(FindingKind, Uuid)> {
    survey
        .findings
        .iter()
        .map(|finding| (finding.kind, finding.node))
        .collect()
}

/// So many nodes, the half of them in use, all settled.
async fn settled(nodes: usize) -> Sandbox {
    let sandbox = Sandbox::builder().nodes(nodes).deployed(nodes / 2).build();
    tokio::time::sleep(2 * GRACE).await;
    sandbox
}

/// Each kind, this often, on nodes of its own.
fn plant(sandbox: &Sandbox, times: usize) -> BTreeSet<(FindingKind, Uuid)> {
    let mut used = sandbox.deployed().into_iter().map(|(node, _)| node);
    let carrying = used.by_ref().collect::<BTreeSet<_>>();
    let mut free = sandbox
        .nodes()
        .into_iter()
        .filter(|node| !carrying.contains(node));
    let mut carrying = carrying.iter().copied();
    let mut planted = BTreeSet::new();
    for kind in FindingKind::ALL {
        for _ in 0..times {
            let node = if needs_an_instance(kind) {
                carrying.next()
            } else {
                free.next()
            };
            let node = node.unwrap();
            sandbox.with(|world, _| world.plant_drift(kind, node));
            planted.insert((kind, node));
        }
    }
    planted
}

/// Beside them, what only looks like drift: ordinary computes, a claim, a node on its way, one that is being set up.
fn plant_near_misses(sandbox: &Sandbox) {
    let free = sandbox.nodes().into_iter().rev().take(4).collect::<Vec<_>>();
    sandbox.with(|world: &mut World, _| {
        world.add_provider(Provider::new(
            100_001,
            Uuid::from_u128(1),
            "compute-1.example.org",
        ));
        world.add_provider(Provider::new(
            100_002,
            Uuid::from_u128(2),
            "compute-1:Open vSwitch agent:br",
        ));
        world.allocate(free[0], Uuid::from_u128(3), "a claim", None);
        world.edit_node(free[1], |node| node.provision_state = State::Cleaning);
        world.reserve(free[1], 1);
        world.edit_node(free[2], |node| {
            node.provision_state = State::Enroll;
            node.resource_class = None;
        });
        world.remove_provider(free[2]);
        world.edit_node(free[3], |node| node.maintenance = true);
        world.reserve(free[3], 1);
    });
}

#[tokio::test(start_paused = true)]
async fn c23_all_that_was_planted_is_found_and_nothing_else() {
    let sandbox = settled(200).await;
    assert_eq!(found(&audit(&sandbox, true).await), BTreeSet::new());
    let planted = plant(&sandbox, 5);
    tokio::time::sleep(2 * GRACE).await;
    plant_near_misses(&sandbox);
    let first = audit(&sandbox, true).await;
    assert_eq!(found(&first), planted);
    assert_eq!(audit(&sandbox, true).await, first, "two runs are equal");
    let writes = sandbox
        .log()
        .requests()
        .filter(|line| !line.method.is_safe())
        .count();
    assert_eq!(writes, 0);
    // By the lists: what hides a free node is only told as that, and what concerns holders of nodes in use is not seen.
    let by_the_lists = |(kind, node): &(FindingKind, Uuid)| match kind {
        kind if !kind.is_deep() => Some((*kind, *node)),
        kind if needs_an_instance(*kind) => None,
        _ => Some((FindingKind::FreeNotOffered, *node)),
    };
    let expected = planted.iter().filter_map(by_the_lists).collect::<BTreeSet<_>>();
    assert_eq!(found(&audit(&sandbox, false).await), expected);
}

/// What heals by itself within the grace time is not reported, and what lasts is.
#[tokio::test(start_paused = true)]
async fn c23_what_is_younger_than_the_grace_time_is_no_drift() {
    let sandbox = settled(4).await;
    let (in_use, _) = sandbox.deployed().remove(0);
    let free = sandbox.nodes()[3];
    sandbox.with(|world, now| {
        let lately =
            |node: &mut unprovision_testkit::sandbox::ironic::Node| node.provision_updated_at = Some(now);
        world.plant_drift(FindingKind::InstanceWithoutAllocation, in_use);
        world.edit_node(in_use, lately);
        // A claim changes nothing of the node.
        world.plant_drift(FindingKind::AllocationWithoutInstance, free);
    });
    tokio::time::sleep(GRACE / 2).await;
    assert_eq!(found(&audit(&sandbox, true).await), BTreeSet::new());
    assert_eq!(found(&audit(&sandbox, false).await), BTreeSet::new());
    tokio::time::sleep(GRACE).await;
    let expected = [
        (FindingKind::AllocationWithoutInstance, free),
        (FindingKind::InstanceWithoutAllocation, in_use),
    ];
    assert_eq!(found(&audit(&sandbox, true).await), expected.into());
    let mut open = asked(&sandbox, true);
    open.rules.open = [in_use, free]
        .map(|node| (NodeUuid(node), "hand-over".to_owned()))
        .into();
    let survey = openstack(&sandbox).audit(&open).await.unwrap();
    assert_eq!(
        found(&survey),
        BTreeSet::new(),
        "what has an open case is the case's"
    );
}

/// A tag without a case is seen by one list, on free nodes and on others; while a case is open it is the case's.
#[tokio::test(start_paused = true)]
async fn c23_tags_without_a_case_are_found_by_one_list() {
    let sandbox = settled(1_500).await;
    let nodes = sandbox.nodes();
    let tagged = [nodes[0], nodes[1_400], nodes[1_499]];
    for node in tagged {
        sandbox.with(|world, _| world.tag(node, DEFAULT_TAG, true));
    }
    let expected = tagged.map(|node| (FindingKind::StaleHold, node));
    let survey = audit(&sandbox, false).await;
    assert_eq!(found(&survey), expected.into());
    let by_hand = |node| {
        let finding = survey
            .findings
            .iter()
            .find(|finding| finding.node == node)
            .unwrap();
        finding.remedy == Remedy::ByHand
    };
    assert_eq!(
        tagged.map(by_hand),
        [true, false, false],
        "it goes only from a free node"
    );
    assert_eq!(found(&audit(&sandbox, true).await), expected.into());
    let mut open = asked(&sandbox, false);
    open.rules.open = tagged
        .map(|node| (NodeUuid(node), "trait-tagging".to_owned()))
        .into();
    let survey = openstack(&sandbox).audit(&open).await.unwrap();
    assert_eq!(found(&survey), BTreeSet::new());
}

/// The audit's requests, by kind; those that agree on versions aside.
fn requests(sandbox: &Sandbox, before: usize) -> BTreeMap<&'static str, usize> {
    let mut counts = BTreeMap::new();
    let log = sandbox.log();
    for line in log
        .requests()
        .skip(before)
        .filter(|line| !["/", "/v1", "/v1/"].contains(&line.path))
    {
        let path = line.path.split('?').next().unwrap_or_default();
        let kind = match (line.path.contains("resources="), path) {
            (true, _) => "offers of a class",
            (_, "/v1/nodes") => "page of nodes",
            (_, "/resource_providers") if line.path.contains("required=") => "providers with the tag",
            (_, "/resource_providers") => "all providers",
            (_, path) if path.ends_with("/allocations") => "holders of one",
            _ => "closer look",
        };
        *counts.entry(kind).or_default() += 1;
    }
    counts
}

/// 10,000 nodes of three classes: ten pages, and one more since the tenth is full; and a few lists. With `--deep` one request for each provider besides.
#[tokio::test(start_paused = true)]
async fn what_an_audit_asks_does_not_grow_with_the_cloud_but_by_pages() {
    let sandbox = Sandbox::builder()
        .nodes(10_000)
        .deployed(5_000)
        .each_node(|number, node| node.resource_class = Some(format!("baremetal.{}", number % 3)))
        .build();
    tokio::time::sleep(2 * GRACE).await;
    let lists = BTreeMap::from([
        ("page of nodes", 11),
        ("all providers", 1),
        ("providers with the tag", 1),
        ("offers of a class", 3),
    ]);
    let before = sandbox.log().requests().count();
    let began = SystemClock.elapsed();
    let survey = audit(&sandbox, false).await;
    println!("10,000 nodes on the sandbox: {:?}", SystemClock.elapsed() - began);
    assert_eq!(
        (survey.findings.len(), survey.nodes, survey.providers),
        (0, 10_000, 10_000)
    );
    assert_eq!(requests(&sandbox, before), lists);

    let free = sandbox.nodes().split_off(5_000);
    for node in &free[..LOOKS + 50] {
        sandbox.with(|world, _| world.plant_drift(FindingKind::OfferedNotFree, *node));
    }
    let before = sandbox.log().requests().count();
    let survey = audit(&sandbox, false).await;
    assert_eq!((survey.findings.len(), survey.unconfirmed), (LOOKS + 50, 50));
    let asked = requests(&sandbox, before);
    assert_eq!(asked["holders of one"], LOOKS);
    assert_eq!(
        asked["closer look"],
        3 * LOOKS,
        "inventories, traits, and the node"
    );
}

#[tokio::test(start_paused = true)]
async fn a_deep_audit_asks_once_for_each_provider_that_is_right() {
    let sandbox = settled(1_500).await;
    let before = sandbox.log().requests().count();
    assert_eq!(found(&audit(&sandbox, true).await), BTreeSet::new());
    let expected = [
        ("page of nodes", 2),
        ("all providers", 1),
        ("providers with the tag", 1),
        ("offers of a class", 1),
        ("holders of one", 1_500),
    ];
    assert_eq!(requests(&sandbox, before), expected.into());
}

/// Rule 13: what cannot be read to its end decides nothing; and an Ironic that hides its nodes is not one that has lost them.
#[tokio::test(start_paused = true)]
async fn an_incomplete_list_is_no_audit() {
    let sandbox = settled(1_500).await;
    let broken = |service, path: &str| {
        Fault::on(service)
            .path(path)
            .status(http::StatusCode::INTERNAL_SERVER_ERROR, "{}")
            .times(1)
    };
    for fault in [
        broken(Service::Ironic, "/v1/nodes").nth(2),
        broken(Service::Placement, "/resource_providers"),
        broken(Service::Placement, "/resource_providers/*/allocations").nth(700),
    ] {
        sandbox.fault(fault);
        openstack(&sandbox)
            .audit(&asked(&sandbox, true))
            .await
            .unwrap_err();
    }
    assert_eq!(audit(&sandbox, true).await.hides_nodes(), None);
    for node in sandbox.nodes().split_off(700) {
        sandbox.with(|world, _| world.remove_node(node));
    }
    let survey = audit(&sandbox, false).await;
    let why = survey.hides_nodes().unwrap();
    assert!(
        why.contains("800 of 1500 providers have no node") && why.contains("700 nodes"),
        "{why}"
    );
}
