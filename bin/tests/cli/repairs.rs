//! `unprovision audit --fix`: what is repaired, what is asked, and what is left alone.

use unprovision::audit::FindingKind as Kind;
use unprovision_testkit::sandbox::ironic::State;
use unprovision_testkit::sandbox::{Builder, Fault, Service};
use uuid::Uuid;

use crate::asking::typed;
use crate::audit::{NOW, audit, found, plant};
use crate::support::{Cloud, Ran, quick};

/// Four nodes in use and sixteen free ones.
fn twenty() -> Builder {
    quick(4).nodes(20)
}

fn repairs(ran: &Ran) -> Vec<(String, &'static str)> {
    let rows = ran.rows();
    rows.iter()
        .map(|row| {
            let became = ["done", "left", "failed"]
                .into_iter()
                .find(|word| row["repair"].get(word).is_some());
            (
                row["kind"].as_str().unwrap().to_owned(),
                became.unwrap_or("nothing"),
            )
        })
        .collect()
}

fn holders(cloud: &Cloud, node: Uuid) -> Vec<Uuid> {
    cloud.sandbox().with(|world, _| world.holders(node))
}

const ALL: [&str; 2] = [
    "--fix",
    "offered-not-free,free-not-offered,stale-hold,provider-orphaned,allocation-without-instance",
];

/// C23: what can be repaired is repaired, what cannot is left as it was, and a run afterwards finds only that.
#[tokio::test]
async fn c23_what_is_plainly_wrong_is_repaired_and_stays_so() {
    let cloud = Cloud::with_nova_traits(twenty()).await;
    let planted = plant(&cloud, &Kind::ALL);
    let node = |kind: Kind| planted.iter().find(|(name, _)| *name == kind.name()).unwrap().1;
    let ran = audit(&cloud, &[&ALL[..], &["--yes", "-o", "json"]].concat()).await;
    ran.assert_code(3);
    let expected = Kind::ALL.map(|kind| {
        let became = if kind.is_repairable() { "done" } else { "left" };
        (kind.name().to_owned(), became)
    });
    assert_eq!(repairs(&ran), expected, "{}\n{}", ran.stdout, ran.stderr);
    let left = planted
        .iter()
        .filter(|(name, _)| !name.parse::<Kind>().unwrap().is_repairable());
    let again = audit(&cloud, &["--deep", "-o", "json"]).await;
    assert_eq!(found(&again), left.cloned().collect::<Vec<_>>());
    for kind in [
        Kind::FreeNotOffered,
        Kind::AllocationWithoutInstance,
        Kind::StaleHold,
    ] {
        assert!(
            cloud.sandbox().is_offered(node(kind)) && holders(&cloud, node(kind)).is_empty(),
            "{kind}"
        );
    }
    assert!(
        cloud
            .sandbox()
            .with(|world, _| world.provider(node(Kind::ProviderOrphaned)).is_none())
    );
    let before = cloud.writes();
    let second = audit(&cloud, &[&ALL[..], &["--yes", "-o", "json"]].concat()).await;
    second.assert_code(3);
    assert_eq!(cloud.writes(), before, "nothing is left to repair");
    assert!(
        before.iter().all(|write| !write.contains("ironic")),
        "no node was touched: {before:?}"
    );
}

/// The held node is in the journal, so the guard lets it go once it is free.
#[tokio::test]
async fn what_the_audit_holds_is_released_by_the_guard() {
    let cloud = Cloud::with_nova_traits(twenty()).await;
    let node = plant(&cloud, &[Kind::OfferedNotFree])[0].1;
    let ran = audit(&cloud, &["--fix", "offered-not-free", "--yes", "-o", "json"]).await;
    ran.assert_code(4);
    assert!(!cloud.sandbox().is_offered(node));
    audit(&cloud, &["--deep"]).await.assert_code(0);
    cloud
        .sandbox()
        .with(|world, _| world.edit_node(node, |node| node.provision_state = State::Available));
    cloud.run(&["guard", "--once"]).await.assert_code(0);
    assert!(cloud.sandbox().is_offered(node) && holders(&cloud, node).is_empty());
    audit(&cloud, &["--deep"]).await.assert_code(0);
}

/// Rule 6: a reservation that nobody explains is lifted only on Nova's nodes, or where an operator names it.
#[tokio::test]
async fn a_reservation_of_nobody_knows_whom_must_be_named() {
    let cloud = Cloud::start(twenty()).await;
    let node = plant(&cloud, &[Kind::FreeNotOffered])[0].1;
    for fix in [&["--fix", "free-not-offered"][..], &["--fix-all"]] {
        let ran = audit(&cloud, &[fix, &["--yes"]].concat()).await;
        ran.assert_code(3);
        assert!(
            ran.stdout.contains("left: only with --fix stale-hold"),
            "{}",
            ran.stdout
        );
    }
    assert_eq!(cloud.writes(), [""; 0]);
    audit(&cloud, &["--fix", "stale-hold", "--yes"])
        .await
        .assert_code(4);
    assert!(cloud.sandbox().is_offered(node));
}

/// Nothing is deleted that was not named, in whatever way it was found.
#[tokio::test]
async fn what_deletes_must_be_named() {
    let cloud = Cloud::with_nova_traits(twenty()).await;
    plant(
        &cloud,
        &[
            Kind::AllocationWithoutInstance,
            Kind::ProviderOrphaned,
            Kind::StaleHold,
        ],
    );
    for more in [
        &["--fix-all"][..],
        &["--fix-all", "--deep"],
        &["--fix", "free-not-offered", "--deep"],
    ] {
        audit(&cloud, &[more, &["--yes"]].concat()).await.assert_code(3);
    }
    assert_eq!(cloud.writes(), [""; 0]);
    let ran = audit(&cloud, &["--fix", "provider-orphaned", "--yes", "-o", "json"]).await;
    assert_eq!(ran.assert_code(3).rows().len(), 3);
    assert_eq!(cloud.writes().len(), 1, "{:?}", cloud.writes());
}

#[tokio::test]
async fn a_dry_run_of_repairs_says_what_and_does_nothing() {
    let cloud = Cloud::with_nova_traits(twenty()).await;
    plant(&cloud, &[Kind::OfferedNotFree, Kind::ProviderOrphaned]);
    let ran = audit(&cloud, &[&ALL[..], &["--dry-run"]].concat()).await;
    ran.assert_code(3);
    for words in [
        "left: dry run; hold it until",
        "left: dry run; if the node is gone for good, delete",
    ] {
        assert!(ran.stdout.contains(words), "{}", ran.stdout);
    }
    assert_eq!(cloud.writes(), [""; 0]);
    assert!(!cloud.home().join("journal.sqlite").exists());
}

#[tokio::test]
async fn a_repair_asks_first() {
    let cloud = Cloud::with_nova_traits(twenty()).await;
    let node = plant(&cloud, &[Kind::OfferedNotFree])[0].1;
    let fix = [&NOW[..], &["--fix", "offered-not-free"]].concat();
    cloud
        .run(&fix)
        .await
        .assert_code(2)
        .assert_says(&["no terminal", "--yes"]);
    assert_eq!(cloud.sandbox().log().requests().count(), 0);
    let no = typed(&cloud, &fix, "n\n").await;
    no.assert_code(2).assert_says(&[
        "offered-not-free node-0005",
        "Repair these? [y/N]",
        "nothing was touched",
    ]);
    assert_eq!(cloud.writes(), [""; 0]);
    typed(&cloud, &fix, "y\n").await.assert_code(4);
    assert!(!cloud.sandbox().is_offered(node));
}

/// Before each write is looked once more; what has changed meanwhile is left alone.
#[tokio::test]
async fn what_has_changed_since_it_was_found_is_left_alone() {
    let cloud = Cloud::with_nova_traits(twenty()).await;
    let planted = plant(&cloud, &[Kind::AllocationWithoutInstance, Kind::ProviderOrphaned]);
    let (held, orphan) = (planted[0].1, planted[1].1);
    let stranger = holders(&cloud, held)[0];
    // The second reading of its holders is the one before the write.
    let path = format!("/resource_providers/{held}/allocations");
    let carried = Fault::on(Service::Placement)
        .path(path)
        .nth(2)
        .before(move |world, _| {
            world.edit_node(held, |node| node.instance_uuid = Some(stranger));
        });
    let path = format!("/resource_providers/{orphan}/allocations");
    let claimed = Fault::on(Service::Placement)
        .path(path)
        .nth(2)
        .before(move |world, _| {
            world.allocate(orphan, Uuid::from_u128(7), "somebody", None);
        });
    cloud.sandbox().fault(carried);
    cloud.sandbox().fault(claimed);
    let ran = audit(&cloud, &[&ALL[..], &["--yes", "-o", "json"]].concat()).await;
    ran.assert_code(3);
    assert!(
        repairs(&ran).iter().all(|(_, became)| *became == "left"),
        "{}",
        ran.stdout
    );
    assert_eq!(cloud.writes(), [""; 0]);
}

/// An instance that another node carries exists, wherever its allocation is.
#[tokio::test]
async fn the_allocation_of_an_instance_elsewhere_is_not_dropped() {
    let cloud = Cloud::with_nova_traits(twenty()).await;
    let (instance, free) = (cloud.deployed()[0].instance.clone(), cloud.sandbox().nodes()[10]);
    let consumer = instance.parse().unwrap();
    cloud
        .sandbox()
        .with(|world, _| world.allocate(free, consumer, "tenant", None));
    let ran = audit(&cloud, &["--fix", "allocation-without-instance", "--yes"]).await;
    ran.assert_code(3);
    assert!(
        ran.stdout.contains(&format!("carries instance {instance}")),
        "{}",
        ran.stdout
    );
    assert_eq!(holders(&cloud, free), [consumer]);
}

/// A write that is refused is told, and makes the exit status 1; the other findings are repaired all the same.
#[tokio::test]
async fn a_repair_that_fails_is_told() {
    let cloud = Cloud::with_nova_traits(twenty()).await;
    plant(&cloud, &[Kind::ProviderOrphaned, Kind::AllocationWithoutInstance]);
    let refused = Fault::on(Service::Placement).method(http::Method::DELETE);
    cloud
        .sandbox()
        .fault(refused.status(http::StatusCode::FORBIDDEN, "{}"));
    let ran = audit(&cloud, &[&ALL[..], &["--yes", "-o", "json"]].concat()).await;
    ran.assert_code(1);
    let expected = [
        ("provider-orphaned", "failed"),
        ("allocation-without-instance", "done"),
    ];
    assert_eq!(
        repairs(&ran),
        expected.map(|(kind, became)| (kind.to_owned(), became))
    );
}

#[tokio::test]
async fn repairs_that_cannot_be_are_refused() {
    let cloud = Cloud::with_nova_traits(quick(1)).await;
    for (args, says) in [
        (vec!["--fix", "two-consumers"], "a person has to decide"),
        (vec!["--fix", "everything"], "possible values: offered-not-free"),
        (vec!["--fix", "stale-hold", "--fix-all"], "cannot be used with"),
        (vec!["--yes"], "go with --fix"),
        (vec!["--fix"], "a value is required"),
    ] {
        audit(&cloud, &args).await.assert_code(2).assert_says(&[says]);
    }
    assert_eq!(cloud.sandbox().log().requests().count(), 0);
    plant(&cloud, &[]);
    let mut command = cloud.command(&[&NOW[..], &["--fix-all", "--yes"]].concat());
    let node = cloud.only().node;
    cloud.sandbox().with(|world, _| {
        world.edit_node(node, |node| node.instance_uuid = None);
        world.edit_node(node, |node| node.provision_state = State::Manageable);
        world.deallocate(node);
    });
    command.env("UNPROVISION_JOURNAL", "memory:");
    let ran = crate::support::finish(command.spawn().unwrap()).await;
    ran.assert_code(2).assert_says(&["must outlive this process"]);
}
