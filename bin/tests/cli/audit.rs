//! `unprovision audit`: what it finds, how it shows it, and how it ends.

use std::path::Path;
use std::time::Duration;

use serde_json::Value;
use unprovision::audit::FindingKind;
use unprovision_testkit::sandbox::drift::needs_an_instance;
use unprovision_testkit::sandbox::ironic::Node;
use unprovision_testkit::sandbox::{Builder, Fault, Service};
use uuid::Uuid;

use crate::support::{Cloud, Ran, quick, slow};

/// All that is there counts as old.
pub(crate) const NOW: [&str; 3] = ["audit", "--grace", "1ms"];

/// Four nodes in use and ten free ones of Nova's; nobody knows since when.
fn fourteen() -> Builder {
    quick(4)
        .nodes(14)
        .each_node(|_, node| node.provision_updated_at = None)
}

pub(crate) async fn audit(cloud: &Cloud, more: &[&str]) -> Ran {
    cloud.run(&[&NOW, more].concat()).await
}

/// Plants each of these on a node of its own, and says on which.
pub(crate) fn plant(cloud: &Cloud, kinds: &[FindingKind]) -> Vec<(String, Uuid)> {
    let mut carrying = cloud
        .deployed()
        .into_iter()
        .map(|one| one.node)
        .collect::<Vec<_>>();
    let mut free = cloud.sandbox().nodes();
    free.retain(|node| !carrying.contains(node));
    let mut planted = Vec::new();
    for kind in kinds {
        let pool = if needs_an_instance(*kind) {
            &mut carrying
        } else {
            &mut free
        };
        let node = pool.remove(0);
        cloud.sandbox().with(|world, _| world.plant_drift(*kind, node));
        planted.push((kind.to_string(), node));
    }
    planted
}

pub(crate) fn found(ran: &Ran) -> Vec<(String, Uuid)> {
    let text = |row: &Value, key: &str| row[key].as_str().unwrap().to_owned();
    let rows = ran.rows();
    rows.iter()
        .map(|row| (text(row, "kind"), text(row, "node").parse().unwrap()))
        .collect()
}

#[tokio::test]
async fn a_cloud_that_fits_is_clean_and_untouched() {
    let cloud = Cloud::with_nova_traits(fourteen()).await;
    for more in [&[][..], &["--deep"], &["--grace", "1h"]] {
        let ran = cloud.run(&[&["audit"], more].concat()).await;
        ran.assert_code(0);
        assert!(
            ran.stdout
                .starts_with("14 nodes, 14 providers: nothing that does not fit"),
            "{}",
            ran.stdout
        );
    }
    audit(&cloud, &["-o", "json"]).await.assert_code(0);
    assert_eq!(cloud.writes(), [""; 0]);
    assert!(
        !cloud.home().join("journal.sqlite").exists(),
        "who only looks makes no journal"
    );
}

/// C23: every kind, each on a node of its own.
#[tokio::test]
async fn c23_every_kind_is_found() {
    let cloud = Cloud::with_nova_traits(fourteen()).await;
    let planted = plant(&cloud, &FindingKind::ALL);
    let ran = audit(&cloud, &["--deep", "-o", "json"]).await;
    ran.assert_code(3);
    assert_eq!(found(&ran), planted);
    for row in ran.rows() {
        let commands = row["commands"].as_array().unwrap();
        assert!(!commands.is_empty(), "{row}");
        for key in ["what", "why", "advice"] {
            assert!(!row[key].as_str().unwrap().is_empty(), "{row}");
        }
    }
    assert_eq!(
        found(&audit(&cloud, &["--deep", "-o", "json"]).await),
        planted,
        "two runs are equal"
    );
    let shallow = audit(&cloud, &["-o", "json"]).await;
    assert!(
        found(&shallow)
            .iter()
            .all(|(kind, _)| !kind.parse::<FindingKind>().unwrap().is_deep())
    );
    assert_eq!(cloud.writes(), [""; 0]);
}

/// What the three forms look like to the letter. To write them anew: `UNPROVISION_GOLDEN=write`.
#[tokio::test]
async fn the_three_forms_are_as_they_were() {
    use FindingKind as K;
    let cloud = Cloud::with_nova_traits(fourteen()).await;
    plant(
        &cloud,
        &[
            K::OfferedNotFree,
            K::FreeNotOffered,
            K::ProviderOrphaned,
            K::InstanceWithoutAllocation,
        ],
    );
    for form in ["table", "json", "csv"] {
        let ran = audit(&cloud, &["--deep", "-o", form]).await;
        ran.assert_code(3);
        let path = format!("{}/tests/cli/golden/audit.{form}", env!("CARGO_MANIFEST_DIR"));
        if std::env::var_os("UNPROVISION_GOLDEN").is_some() {
            std::fs::create_dir_all(Path::new(&path).parent().unwrap()).unwrap();
            std::fs::write(&path, &ran.stdout).unwrap();
        }
        let golden = std::fs::read_to_string(&path).unwrap();
        assert_eq!(ran.stdout, golden, "{path}");
    }
}

#[tokio::test]
async fn an_audit_that_is_not_complete_says_nothing() {
    let cloud = Cloud::with_nova_traits(fourteen()).await;
    let broken = Fault::on(Service::Placement).path("/resource_providers");
    cloud
        .sandbox()
        .fault(broken.status(http::StatusCode::FORBIDDEN, "{}").times(u32::MAX));
    let ran = audit(&cloud, &[]).await;
    ran.assert_code(1)
        .assert_says(&["the audit is not complete", "list providers"]);
    assert_eq!(ran.stdout, "");

    let cloud = Cloud::with_nova_traits(fourteen()).await;
    for node in cloud.sandbox().nodes() {
        cloud.sandbox().with(|world, _| world.remove_node(node));
    }
    let ran = audit(&cloud, &[]).await;
    ran.assert_code(1).assert_says(&["system scope"]);
    assert_eq!(ran.stdout, "");
}

#[tokio::test]
async fn what_a_case_of_ours_holds_is_no_drift() {
    let cloud = Cloud::with_nova_traits(slow(1).nodes(2)).await;
    let one = cloud.only();
    let delete = [
        "delete",
        "node-0001",
        "--instance",
        &one.instance,
        "--yes",
        "--no-wait",
        "--nova-record-remains",
    ];
    cloud.run(&delete).await.assert_code(0);
    audit(&cloud, &["--deep"]).await.assert_code(0);
    // Without the journal it is a hold that nobody is going to lift. What has just moved is no drift, so let it come to rest.
    tokio::time::sleep(Duration::from_secs(1)).await;
    std::fs::remove_file(cloud.home().join("journal.sqlite")).unwrap();
    let ran = audit(&cloud, &["--deep", "-o", "json"]).await;
    ran.assert_code(3);
    assert_eq!(found(&ran), [("stale-hold".to_owned(), one.node)]);
}

#[tokio::test]
async fn bad_usage_of_the_audit_is_refused() {
    let cloud = Cloud::with_nova_traits(quick(1)).await;
    for (args, says) in [
        (vec!["audit", "--grace", "soon"], "is not a duration"),
        (vec!["audit", "-o", "yaml"], "csv"),
        (vec!["audit", "node-0001"], "unexpected argument"),
    ] {
        cloud.run(&args).await.assert_code(2).assert_says(&[says]);
    }
}

/// The first scope that fits a node counts, and what no scope guards is not repaired.
#[tokio::test]
async fn an_audit_may_be_of_one_scope_and_repairs_what_is_guarded() {
    let in_group = |number, node: &mut Node| node.conductor_group = format!("g{}", number % 3);
    let cloud = Cloud::with_nova_traits(fourteen().each_node(in_group)).await;
    let file = cloud.home().join("unprovision.toml");
    let scope = |group: &str, more: &str| {
        format!("[[scope]]\nname = '{group}'\nconductor_group = '{group}'\n{more}\n")
    };
    let text = scope("g0", "") + &scope("g1", "strategy = 'audit-only'");
    std::fs::write(file, text).unwrap();
    let kind = FindingKind::FreeNotOffered;
    let planted = plant(&cloud, &[kind; 9]);
    let group = |node: &Uuid| {
        cloud
            .sandbox()
            .with(|world, _| world.node(*node).unwrap().conductor_group.clone())
    };
    let of = |wanted: &str| planted.iter().filter(|(_, node)| group(node) == wanted).count();
    for (name, count) in [("g0", of("g0")), ("g1", of("g1"))] {
        let ran = audit(&cloud, &["--scope", name, "-o", "json"]).await;
        assert_eq!(found(&ran).len(), count, "{name} {ran:?}");
        assert!(found(&ran).iter().all(|(_, node)| group(node) == name));
    }
    let fixed = audit(&cloud, &["--fix", "free-not-offered", "--yes", "-o", "json"]).await;
    assert_eq!(found(&fixed).len(), 9);
    for row in fixed.rows() {
        let node = row["node"].as_str().unwrap().parse().unwrap();
        let repaired = row["repair"].get("done").is_some();
        assert_eq!(repaired, group(&node) == "g0", "{row}");
    }
    let unknown = cloud.run(&["audit", "--scope", "g9"]).await;
    unknown
        .assert_code(2)
        .assert_says(&["there is no such scope; there are: g0, g1"]);
}
