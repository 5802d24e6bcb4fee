//! Nodes that return.

use unprovision::strategy;
use unprovision_testkit::rig::protected_by;
use unprovision_testkit::sandbox::Service;
use unprovision_testkit::sandbox::ironic::State;
use unprovision_testkit::sandbox::judge::Query;

use crate::support::{Cloud, quick};

#[tokio::test]
async fn a_node_returns_without_ever_being_offered_too_early() {
    for strategy in strategy::ALL.iter().map(|strategy| strategy.name()) {
        let cloud = Cloud::start(quick(1)).await;
        let one = cloud.only();
        let ran = cloud
            .run(&[
                "delete",
                "node-0001",
                "--instance",
                &one.instance,
                "--strategy",
                strategy,
                "--yes",
                "-o",
                "json",
            ])
            .await;
        ran.assert_code(0);
        let row = ran.row();
        assert_eq!(row["node"], one.node.to_string());
        assert_eq!(row["name"], "node-0001");
        assert_eq!(row["instance"], one.instance);
        assert_eq!(row["strategy"], strategy);
        assert_eq!(row["outcome"], "returned");
        assert_eq!(row["provision_state"], "available");
        assert_eq!(row["held"], false);
        assert!(row["reason"].as_str().unwrap().contains("available"));
        let (freed, returned) = (
            row["freed_after_s"].as_f64().unwrap(),
            row["returned_after_s"].as_f64().unwrap(),
        );
        assert!(0.0 < freed && freed <= returned && returned < 30.0, "{row}");
        cloud.assert_returned_to(protected_by(strategy), one.node);
        assert_eq!(cloud.tear_downs(one.node), 1);
    }
}

/// Whom a tag protects is said before anything is done, and what cannot be one is refused.
#[tokio::test]
async fn a_tag_protects_from_whoever_forbids_it() {
    let cloud = Cloud::start(quick(1)).await;
    let delete = [
        "delete",
        "node-0001",
        "--yes",
        "--strategy",
        "trait-tagging",
        "--tag",
    ];
    let refused = cloud
        .run(&[&delete[..], &["COMPUTE_STATUS_DISABLED"]].concat())
        .await;
    refused.assert_code(2);
    assert!(refused.stderr.contains("Nova's own"), "{}", refused.stderr);
    assert_eq!(cloud.writes(), [""; 0]);
    let node = cloud.only().node;

    let ran = cloud.run(&[&delete[..], &["CUSTOM_DIRTY"]].concat()).await;
    ran.assert_code(0);
    let said = "protects queries that forbid CUSTOM_DIRTY";
    let (said, begins) = (ran.stderr.find(said), ran.stderr.find("begins:"));
    assert!(said.is_some() && said < begins, "{}", ran.stderr);
    let dirty = Query {
        forbids: Some("CUSTOM_DIRTY"),
    };
    cloud.assert_returned_to(dirty, node);
}

#[tokio::test]
async fn standard_error_tells_what_happens_in_order() {
    let cloud = Cloud::start(quick(1)).await;
    let one = cloud.only();
    let ran = cloud
        .run(&["delete", "node-0001", "--instance", &one.instance, "--yes"])
        .await;
    ran.assert_code(0);
    let expected = [
        format!("begins: instance {}, hand-over", one.instance),
        "is active".to_owned(),
        format!("hand the unit over from {}", one.instance),
        format!("tear down instance {}", one.instance),
        "active -> ".to_owned(),
        " -> available".to_owned(),
        "release our hold".to_owned(),
        "returned: ".to_owned(),
    ];
    let mut lines = ran.stderr.lines();
    for part in expected {
        assert!(
            lines.any(|line| line.contains(&part) && line.contains(" node-0001 ")),
            "`{part}` in\n{}",
            ran.stderr
        );
    }
    for part in ["node-0001", "hand-over", "returned", "available", "freed_after_s"] {
        assert!(ran.stdout.contains(part), "`{part}` in\n{}", ran.stdout);
    }
}

#[tokio::test]
async fn lines_may_be_json_or_left_out() {
    let cloud = Cloud::start(quick(2)).await;
    let ran = cloud
        .run(&["delete", "node-0001", "--yes", "--log-format", "json"])
        .await;
    ran.assert_code(0);
    for line in ran.stderr.lines() {
        let line: serde_json::Value = serde_json::from_str(line).unwrap();
        assert_eq!(line["name"], "node-0001");
        assert!(line["message"].is_string() && line["timestamp"].is_string());
    }
    let ran = cloud.run(&["delete", "node-0002", "--yes", "-q"]).await;
    assert_eq!(ran.assert_code(0).stderr, "");
}

#[tokio::test]
async fn several_nodes_return_side_by_side_with_one_login() {
    let cloud = Cloud::start(quick(4)).await;
    let all = cloud.deployed();
    let mut args = vec![
        "delete",
        "node-0003",
        "node-0001",
        "node-0004",
        "--yes",
        "-o",
        "json",
    ];
    for index in [2, 0, 3] {
        args.extend(["--instance", &all[index].instance]);
    }
    let ran = cloud.run(&args).await;
    let rows = ran.assert_code(0).rows();
    let names = rows
        .iter()
        .map(|row| row["name"].as_str().unwrap())
        .collect::<Vec<_>>();
    assert_eq!(names, ["node-0003", "node-0001", "node-0004"]);
    for index in [2, 0, 3] {
        cloud.assert_returned(all[index].node);
    }
    assert_eq!(cloud.state(all[1].node), State::Active);
    let log = cloud.sandbox().log();
    let logins = log
        .requests()
        .filter(|line| line.service == Service::Keystone && line.method == "POST")
        .count();
    assert_eq!(logins, 1);
}

#[tokio::test]
async fn a_node_in_use_is_taken_with_the_instance_that_it_carries() {
    let cloud = Cloud::start(quick(1)).await;
    let one = cloud.only();
    let ran = cloud
        .run(&["delete", &one.node.to_string(), "--yes", "-o", "json"])
        .await;
    assert_eq!(ran.assert_code(0).row()["instance"], one.instance);
    ran.assert_says(&[&format!("begins: instance {}", one.instance)]);
    cloud.assert_returned(one.node);
}

#[tokio::test]
async fn novas_node_is_taken_where_its_record_may_remain() {
    let cloud = Cloud::with_nova_traits(quick(1)).await;
    let one = cloud.only();
    let args = ["delete", "node-0001", "--instance", &one.instance, "--yes"];
    cloud
        .run(&args)
        .await
        .assert_code(2)
        .assert_says(&["Nova manages node node-0001", "--nova-record-remains"]);
    assert_eq!(cloud.writes(), [""; 0]);
    cloud
        .run(&[&args[..], &["--nova-record-remains"]].concat())
        .await
        .assert_code(0);
    cloud.assert_returned(one.node);
}

#[tokio::test]
async fn a_cloud_may_come_from_clouds_yaml_and_be_told_apart_by_service() {
    let cloud = Cloud::start(quick(2)).await;
    std::fs::write(
        cloud.home().join("clouds.yaml"),
        cloud.served().clouds_yaml("lab"),
    )
    .unwrap();
    let without = |args: &[&str]| {
        let mut command = cloud.command(args);
        for (name, _) in cloud.served().environment() {
            command.env_remove(name);
        }
        command
    };
    let child = without(&["--os-cloud", "lab", "delete", "node-0001", "--yes"])
        .spawn()
        .unwrap();
    crate::support::finish(child).await.assert_code(0);
    let mut apart = without(&["delete", "node-0002", "--yes", "--os-cloud", "nowhere"]);
    apart
        .env("UNPROVISION_IRONIC__CLOUD", "lab")
        .env("UNPROVISION_PLACEMENT__CLOUD", "lab");
    crate::support::finish(apart.spawn().unwrap())
        .await
        .assert_code(0);
    let child = without(&["--os-cloud", "lap", "delete", "node-0002", "--yes"])
        .spawn()
        .unwrap();
    crate::support::finish(child)
        .await
        .assert_code(2)
        .assert_says(&["no cloud `lap`, did you mean `lab`?"]);
    let child = without(&["delete", "node-0002", "--yes"]).spawn().unwrap();
    crate::support::finish(child)
        .await
        .assert_code(2)
        .assert_says(&["no cloud is chosen", "lab"]);
}
