//! What is left of ours with no case: tags that `audit` finds and takes off; and what `show --look` shows beside a story.

use std::collections::BTreeSet;

use serde_json::Value;
use unprovision::core::DEFAULT_TAG;
use unprovision_testkit::sandbox::ironic::State;
use unprovision_testkit::sandbox::{Fault, Service};
use uuid::Uuid;

use crate::audit::{audit, found};
use crate::support::{Cloud, quick, slow};

fn carries(cloud: &Cloud, node: Uuid) -> (bool, bool) {
    cloud.sandbox().with(|world, _| {
        let on_node = world.node(node).unwrap().traits.contains(DEFAULT_TAG);
        let on_provider = world.provider(node).unwrap().traits.contains(DEFAULT_TAG);
        (on_node, on_provider)
    })
}

/// By node, as findings are.
fn stale(nodes: &[Uuid]) -> Vec<(String, Uuid)> {
    let nodes = nodes.iter().copied().collect::<BTreeSet<_>>();
    nodes
        .into_iter()
        .map(|node| ("stale-hold".to_owned(), node))
        .collect()
}

/// By one list, without --deep; only where it was named, only from a free node, and nothing else of the traits is changed.
#[tokio::test]
async fn tags_that_no_case_explains_are_found_and_taken_off_free_nodes() {
    let cloud = Cloud::with_nova_traits(quick(1).nodes(4)).await;
    let nodes = cloud.sandbox().nodes();
    let (in_use, both, provider) = (nodes[0], nodes[1], nodes[2]);
    cloud.sandbox().with(|world, _| {
        world.tag(in_use, DEFAULT_TAG, true);
        world.tag(both, DEFAULT_TAG, true);
        world.tag(provider, DEFAULT_TAG, false);
    });
    let before = cloud
        .sandbox()
        .with(|world, _| world.provider(both).unwrap().traits.clone());
    let ran = audit(&cloud, &["-o", "json"]).await;
    assert_eq!(found(ran.assert_code(3)), stale(&[in_use, both, provider]));
    for row in ran.rows() {
        assert_eq!(row["tag"], DEFAULT_TAG);
        let commands = row["commands"].to_string();
        assert!(commands.contains("resource provider trait set"), "{row}");
    }
    let all = audit(&cloud, &["--fix-all", "--yes"]).await;
    let words = "left: only with --fix stale-hold";
    assert!(all.assert_code(3).stdout.contains(words), "{}", all.stdout);
    assert_eq!(cloud.writes(), [""; 0]);

    let ran = audit(&cloud, &["--fix", "stale-hold", "--yes", "-o", "json"]).await;
    ran.assert_code(3);
    for row in ran.rows() {
        let became: &Value = &row["repair"];
        let left = row["node"] == in_use.to_string();
        assert!(became.get(if left { "left" } else { "done" }).is_some(), "{row}");
    }
    assert_eq!(carries(&cloud, both), (false, false));
    assert_eq!(carries(&cloud, provider), (false, false));
    assert_eq!(carries(&cloud, in_use), (true, true));
    let mut after = cloud
        .sandbox()
        .with(|world, _| world.provider(both).unwrap().traits.clone());
    after.insert(DEFAULT_TAG.to_owned());
    assert_eq!(after, before);
    let again = audit(&cloud, &["--deep", "-o", "json"]).await;
    assert_eq!(found(&again), stale(&[in_use]));
}

/// It is looked once more before the write, and an open case explains its tag.
#[tokio::test]
async fn a_tag_stays_where_the_node_is_not_free_any_more_or_a_case_is_open() {
    let cloud = Cloud::with_nova_traits(quick(0).nodes(1)).await;
    let node = cloud.sandbox().nodes()[0];
    cloud
        .sandbox()
        .with(|world, _| world.tag(node, DEFAULT_TAG, true));
    // The second reading of the node is the one before the write.
    let taken = Fault::on(Service::Ironic)
        .path(format!("/v1/nodes/{node}"))
        .nth(2);
    let taken = taken.before(move |world, _| {
        world.edit_node(node, |node| node.provision_state = State::Manageable);
    });
    cloud.sandbox().fault(taken);
    let ran = audit(&cloud, &["--fix", "stale-hold", "--yes"]).await;
    assert!(
        ran.assert_code(3).stdout.contains("left: it is not so any more"),
        "{}",
        ran.stdout
    );
    assert_eq!(carries(&cloud, node), (true, true));
    assert_eq!(cloud.writes(), [""; 0]);

    let cloud = Cloud::start(slow(1)).await;
    let delete = [
        "delete",
        "node-0001",
        "--strategy",
        "trait-tagging",
        "--yes",
        "--no-wait",
    ];
    cloud.run(&delete).await.assert_code(0);
    assert_eq!(carries(&cloud, cloud.sandbox().nodes()[0]), (true, true));
    audit(&cloud, &["--deep"]).await.assert_code(0);
}

/// What it was at when something was written down last, and what a look shows; nothing is changed.
#[tokio::test]
async fn a_story_goes_on_to_what_a_look_shows() {
    let cloud = Cloud::start(slow(1)).await;
    let one = cloud.only();
    let delete = ["delete", "node-0001", "--yes", "--no-wait"];
    cloud.run(&delete).await.assert_code(0);
    cloud.wait_for(one.node, State::Cleaning).await;
    let before = cloud.writes();
    let ran = cloud.run(&["show", "node-0001"]).await;
    assert!(
        !ran.assert_code(0).stdout.contains("as both services show it"),
        "{}",
        ran.stdout
    );
    let ran = cloud.run(&["show", "node-0001", "--look"]).await;
    for words in [
        "next: it waits: the node is `cleaning`",
        "as both services show it:",
        "node: cleaning since ",
        "carries no instance",
        "not free: the node is `cleaning`",
        "provider: not offered; CUSTOM_BAREMETAL: 1 in all, 0 reserved, 1 used",
        ": ours, of case ",
    ] {
        assert!(
            ran.assert_code(0).stdout.contains(words),
            "`{words}` in {}",
            ran.stdout
        );
    }
    let row = cloud
        .run(&["show", "node-0001", "--look", "-o", "json"])
        .await
        .row();
    assert_eq!(row["look"]["node"]["provision_state"], "cleaning");
    assert_eq!(row["look"]["provider"]["offered"], false);
    assert_eq!(row["next"], "next: it waits: the node is `cleaning`");

    // With the settings of another cloud the same UUID is another node.
    let other = cloud
        .command(&["show", "node-0001", "--look"])
        .env("OS_REGION_NAME", "")
        .spawn();
    let ran = crate::support::finish(other.unwrap()).await;
    assert!(
        ran.assert_code(0).stdout.contains("was begun in the cloud"),
        "{}",
        ran.stdout
    );
    assert!(!ran.stdout.contains("as both services show it"), "{}", ran.stdout);
    assert_eq!(cloud.writes(), before);
}

#[tokio::test]
async fn a_node_without_a_case_is_looked_at_too() {
    let cloud = Cloud::start(slow(1).nodes(2)).await;
    let free = cloud.run(&["show", "node-0002", "--look"]).await;
    for words in [
        "node: available",
        "\n  free\n",
        "provider: OFFERED",
        "held by nobody",
    ] {
        assert!(
            free.assert_code(0).stdout.contains(words),
            "`{words}` in {}",
            free.stdout
        );
    }
    let nobody = cloud.run(&["show", "node-9999", "--look"]).await;
    nobody
        .assert_code(2)
        .assert_says(&["Ironic does not know it either", "no case of node-9999"]);
    assert_eq!(cloud.writes(), [""; 0]);
    assert!(
        !cloud.home().join("journal.sqlite").exists(),
        "who only looks makes no journal"
    );
}
