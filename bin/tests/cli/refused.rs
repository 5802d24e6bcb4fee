//! What is refused before anything is touched.

use std::time::Duration;

use unprovision_testkit::sandbox::Fault;
use unprovision_testkit::sandbox::Service;

use crate::support::{Cloud, Ran, quick};

const OTHER: &str = "11111111-2222-3333-4444-555555555555";

async fn refused(cloud: &Cloud, args: &[&str], code: i32, says: &[&str]) -> Ran {
    let ran = cloud.run(args).await;
    ran.assert_code(code).assert_says(says);
    assert_eq!(ran.stdout, "");
    assert_eq!(cloud.writes(), [""; 0]);
    cloud
        .run(&["resume"])
        .await
        .assert_code(0)
        .assert_says(&["nothing is open"]);
    ran
}

#[tokio::test]
async fn a_node_with_another_instance() {
    let cloud = Cloud::start(quick(1)).await;
    let says = format!(
        "node node-0001 carries instance {}, not {OTHER}",
        cloud.only().instance
    );
    refused(
        &cloud,
        &["delete", "node-0001", "--instance", OTHER, "--yes"],
        2,
        &[&says, "nothing was touched"],
    )
    .await;
}

#[tokio::test]
async fn all_that_is_wrong_with_any_node_is_told_at_once() {
    let cloud = Cloud::start(quick(3).each_node(|number, node| node.protected = number == 2)).await;
    let all = cloud.deployed();
    let mut args = vec!["delete", "node-0001", "node-0002", "node-0003", "--yes"];
    for instance in [&all[0].instance, &all[1].instance, OTHER] {
        args.extend(["--instance", instance]);
    }
    let ran = refused(
        &cloud,
        &args,
        2,
        &[
            "node-0002 is protected",
            "unset node-0002 --protected",
            "node-0003 carries",
        ],
    )
    .await;
    assert!(!ran.stderr.contains("node-0001"), "{}", ran.stderr);
}

#[tokio::test]
async fn a_node_that_ironic_does_not_know() {
    let cloud = Cloud::start(quick(1)).await;
    refused(
        &cloud,
        &["delete", "node-0001", "nope", "--yes"],
        2,
        &["Ironic does not know node nope"],
    )
    .await;
}

#[tokio::test]
async fn a_node_without_instance_where_none_is_named() {
    let cloud = Cloud::start(quick(1).nodes(2)).await;
    refused(
        &cloud,
        &["delete", "node-0002", "--yes"],
        2,
        &["node-0002 is `available`", "--instance"],
    )
    .await;
    refused(
        &cloud,
        &["delete", "node-0002", "--instance", OTHER, "--yes"],
        2,
        &["does not carry instance"],
    )
    .await;
}

#[tokio::test]
async fn bad_usage() {
    let cloud = Cloud::start(quick(2)).await;
    let one = &cloud.deployed()[0];
    let uuid = one.node.to_string();
    for (args, says) in [
        (vec!["delete", "--yes"], "<NODE>"),
        (vec!["delete", "node-*", "--yes"], "patterns are not taken"),
        (vec!["delete", "node-000?", "--yes"], "patterns are not taken"),
        (vec!["delete", "node-[1]", "--yes"], "patterns are not taken"),
        (
            vec!["delete", "node-0001", "node-0001", "--yes"],
            "node node-0001 is named twice",
        ),
        (
            vec!["delete", "node-0001", &uuid, "--yes"],
            "is named twice, by its name and by its UUID",
        ),
        (
            vec!["delete", "node-0001", "node-0002", "--instance", OTHER, "--yes"],
            "2 nodes and 1 instances",
        ),
        (
            vec![
                "delete",
                "a",
                "b",
                "--instance",
                OTHER,
                "--instance",
                OTHER,
                "--yes",
            ],
            "is named twice",
        ),
        (
            vec!["delete", "node-0001", "--instance", "x", "--yes"],
            "--instance",
        ),
        (
            vec!["delete", "node-0001", "--strategy", "hand-ower", "--yes"],
            "did you mean `hand-over`?",
        ),
        (vec!["delete", "node-0001", "--wait=90", "--yes"], "such as 90s"),
        (vec!["delete", "node-0001", "--wait=1ns", "--yes"], "1s at least"),
        (
            vec!["delete", "node-0001", "--wait=2h", "--no-wait", "--yes"],
            "cannot be used with",
        ),
        (vec!["delete", "node-0001", "--yes", "-o", "xml"], "table, json"),
    ] {
        refused(&cloud, &args, 2, &[says]).await;
    }
}

#[tokio::test]
async fn a_case_that_could_not_be_resumed_is_not_left_behind() {
    let cloud = Cloud::start(quick(1)).await;
    let mut command = cloud.command(&["delete", "node-0001", "--no-wait", "--yes"]);
    let child = command.env("UNPROVISION_JOURNAL", "memory:").spawn().unwrap();
    crate::support::finish(child)
        .await
        .assert_code(2)
        .assert_says(&["journal", "memory:"]);
    assert_eq!(cloud.writes(), [""; 0]);
}

#[tokio::test]
async fn without_a_journal_nothing_is_done() {
    let cloud = Cloud::start(quick(1)).await;
    let garbage = cloud.home().join("garbage");
    std::fs::write(
        &garbage,
        "this is no journal, although it is a file, ".repeat(100),
    )
    .unwrap();
    let garbage = garbage.to_str().unwrap();
    for (journal, code, says) in [
        (
            "/dev/null/journal.sqlite",
            2,
            ["`journal` in UNPROVISION_JOURNAL", "/dev/null is not a folder"],
        ),
        (garbage, 1, [garbage, "know nothing of what is held"]),
    ] {
        let mut command = cloud.command(&["delete", "node-0001", "--yes"]);
        let child = command.env("UNPROVISION_JOURNAL", journal).spawn().unwrap();
        crate::support::finish(child)
            .await
            .assert_code(code)
            .assert_says(&says);
    }
    assert_eq!(cloud.writes(), [""; 0]);
}

#[tokio::test]
async fn a_service_that_is_too_old() {
    let old_placement = quick(1).configure(|config| config.placement.max_minor = 25);
    let old_ironic = quick(1).configure(|config| config.ironic.max_minor = 30);
    for (builder, says) in [(old_placement, "1.28 to 1.39"), (old_ironic, "1.38 to ")] {
        let cloud = Cloud::start(builder).await;
        cloud
            .run(&["delete", "node-0001", "--yes"])
            .await
            .assert_code(2)
            .assert_says(&["this client speaks API", says]);
        assert_eq!(cloud.writes(), [""; 0]);
    }
}

#[tokio::test]
async fn a_refused_login_is_configuration_an_absent_cloud_is_not() {
    let cloud = Cloud::start(quick(1)).await;
    let mut wrong = cloud.command(&["delete", "node-0001", "--yes"]);
    let ran = crate::support::finish(wrong.env("OS_PASSWORD", "wr0ng-s3cr3t").spawn().unwrap()).await;
    ran.assert_code(2).assert_says(&["no login for ironic"]);
    assert!(!ran.stderr.contains("wr0ng-s3cr3t"), "{}", ran.stderr);
    cloud.sandbox().fault(
        Fault::on(Service::Ironic)
            .status(http::StatusCode::FORBIDDEN, "{}")
            .times(u32::MAX),
    );
    cloud
        .run(&["delete", "node-0001", "--yes"])
        .await
        .assert_code(1)
        .assert_says(&["could not be looked up"]);
    let mut away = cloud.command(&["delete", "node-0001", "--yes"]);
    away.env("UNPROVISION_IRONIC__ENDPOINT", "http://127.0.0.1:1")
        .env("UNPROVISION_IRONIC__TIMEOUT", "1s");
    let began = tokio::time::Instant::now();
    crate::support::finish(away.spawn().unwrap())
        .await
        .assert_code(1)
        .assert_says(&["ironic was not reached"]);
    assert!(began.elapsed() < Duration::from_secs(50));
    assert_eq!(cloud.writes(), [""; 0]);
}
