//! `unprovision cases`, `show` and `nodes`: what the journal has, and what both services show.

use std::time::Duration;

use serde_json::Value;
use unprovision::audit::FindingKind as Kind;
use unprovision_testkit::sandbox::ironic::State;

use crate::audit::plant;
use crate::support::{Cloud, Ran, finish, quick, slow};

#[tokio::test]
async fn cases_are_listed_while_they_are_open_and_with_all_after_that() {
    let cloud = Cloud::start(quick(2)).await;
    let none = cloud.run(&["cases"]).await;
    none.assert_code(0);
    assert!(
        none.stdout.starts_with("there is no open case in the journal"),
        "{}",
        none.stdout
    );
    assert!(
        !cloud.home().join("journal.sqlite").exists(),
        "who only reads makes no journal"
    );
    cloud.run(&["delete", "node-0001", "--yes"]).await.assert_code(0);
    cloud.sandbox().with(|world, _| {
        let node = world.deployed()[0].0;
        world.edit_node(node, |node| node.behaviour.clean_failures = 1);
    });
    cloud.run(&["delete", "node-0002", "--yes"]).await.assert_code(3);
    let requests = cloud.sandbox().log().requests().count();
    let open = cloud.run(&["cases", "-o", "json"]).await;
    let row = open.assert_code(0).row();
    let expected = [
        "node-0002",
        "suspended",
        "failed",
        "clean failed",
        "hand-over",
        "tear-down",
    ];
    let shown = ["name", "state", "outcome", "provision_state", "strategy", "kind"]
        .map(|key| row[key].as_str().unwrap());
    assert_eq!(shown, expected);
    assert_eq!(row["held"], true);
    let all = cloud
        .run(&["cases", "--all", "-o", "json"])
        .await
        .assert_code(0)
        .rows();
    let states = all
        .iter()
        .map(|row| (row["name"].as_str().unwrap(), row["state"].as_str().unwrap()));
    assert_eq!(
        states.collect::<Vec<_>>(),
        [("node-0001", "closed"), ("node-0002", "suspended")]
    );
    let table = cloud.run(&["cases"]).await;
    table.assert_code(0);
    for words in ["node-0002", "cleaning failed", "suspended"] {
        assert!(table.stdout.contains(words), "{}", table.stdout);
    }
    assert_eq!(
        cloud.sandbox().log().requests().count(),
        requests,
        "only the journal is read"
    );
}

/// From the first look to what it waits for, by name, UUID, instance or case.
#[tokio::test]
async fn a_node_has_its_whole_story_told() {
    let cloud = Cloud::start(slow(1)).await;
    let one = cloud.only();
    cloud
        .run(&["delete", "node-0001", "--yes", "--no-wait"])
        .await
        .assert_code(0);
    let told = cloud.run(&["show", "node-0001"]).await;
    told.assert_code(0);
    let mut rest = told.stdout.as_str();
    for words in [
        &one.node.to_string(),
        "begins with hand-over",
        "is active",
        "hand the unit over from",
        "accepted",
        "tear down instance",
        "accepted",
        "now: open; something of ours may hold the provider",
        "once the node is free, by hand: openstack resource provider allocation delete",
    ] {
        let at = rest
            .find(words)
            .unwrap_or_else(|| panic!("`{words}` is not there in order:\n{}", told.stdout));
        rest = &rest[at..];
    }
    let story = cloud
        .run(&["show", &one.node.to_string(), "-o", "json"])
        .await
        .assert_code(0)
        .row();
    let entries = story["entries"].as_array().unwrap();
    let events = entries
        .iter()
        .map(|entry| entry["event"].as_str().unwrap())
        .collect::<Vec<_>>();
    assert_eq!(events.first(), Some(&"opened"));
    assert_eq!(
        events.iter().filter(|event| **event == "intended").count(),
        2,
        "{events:?}"
    );
    assert!(!story["commands"].as_array().unwrap().is_empty(), "{story}");
    for word in [&one.instance, story["case"].as_str().unwrap()] {
        cloud.run(&["show", word]).await.assert_code(0);
    }
    let wrong = cloud.run(&["show", "node-001"]).await;
    wrong
        .assert_code(2)
        .assert_says(&["has no case of node-001", "did you mean `node-0001`?"]);
}

#[tokio::test]
async fn nodes_are_shown_as_both_services_see_them() {
    let cloud = Cloud::with_nova_traits(quick(1).nodes(5)).await;
    let planted = plant(
        &cloud,
        &[Kind::OfferedNotFree, Kind::FreeNotOffered, Kind::ProviderMissing],
    );
    let rows = cloud.run(&["nodes", "-o", "json"]).await.assert_code(0).rows();
    let shown = |row: &Value| {
        (
            row["name"].as_str().unwrap().to_owned(),
            row["phase"].as_str().unwrap().to_owned(),
        )
    };
    let expected = ["held", "exposed", "idle_while_free", "idle_while_free", "offered"];
    let expected = expected.iter().enumerate();
    let expected = expected.map(|(index, phase)| (format!("node-{:04}", index + 1), (*phase).to_owned()));
    assert_eq!(
        rows.iter().map(shown).collect::<Vec<_>>(),
        expected.collect::<Vec<_>>()
    );
    assert_eq!(rows[3]["provider"], false);
    let table = cloud.run(&["nodes"]).await;
    for words in ["YES, NOT FREE", "no, though free", "no provider", "5 nodes"] {
        assert!(table.assert_code(0).stdout.contains(words), "{}", table.stdout);
    }
    let some = cloud
        .run(&["nodes", "--state", "manageable", "-o", "json"])
        .await
        .assert_code(0)
        .row();
    assert_eq!(some["node"], planted[0].1.to_string());
    assert_eq!(cloud.state(planted[0].1), State::Manageable);
    let none = cloud.run(&["nodes", "--state", "deleting"]).await;
    assert_eq!(none.assert_code(0).stdout, "there is no such node\n");
    assert_eq!(cloud.writes(), [""; 0]);
}

async fn abandon(cloud: &Cloud, node: &str, more: &[&str]) -> Ran {
    let args = ["abandon", node, "--reason", "the rack is sold"];
    cloud.run(&[&args, more].concat()).await
}

/// Two nodes are torn down, and nobody waits for them.
async fn two_on_their_way() -> Cloud {
    let cloud = Cloud::start(slow(2)).await;
    let delete = ["delete", "node-0001", "node-0002", "--yes", "--no-wait"];
    cloud.run(&delete).await.assert_code(0);
    cloud
}

/// What is left is said, and undone only where that was asked for.
#[tokio::test]
async fn a_case_is_abandoned_with_a_signature() {
    let cloud = two_on_their_way().await;
    let nodes = cloud.deployed();
    tokio::time::sleep(Duration::from_secs(11)).await;
    let kept = abandon(&cloud, "node-0001", &["--yes", "-o", "json"]).await;
    let row = kept.assert_code(0).row();
    assert!(
        row["signed"].as_str().unwrap().starts_with("abandoned by "),
        "{row}"
    );
    assert_eq!(row["left"].as_array().unwrap().len(), 1, "{row}");
    cloud.assert_held(nodes[0].node);
    let undone = abandon(&cloud, "node-0002", &["--yes", "--undo", "-o", "json"]).await;
    let row = undone.assert_code(0).row();
    let count = |key: &str| row[key].as_array().unwrap().len();
    assert_eq!((count("undone"), count("left")), (1, 0), "{row}");
    assert!(cloud.sandbox().is_offered(nodes[1].node), "whatever the node is");
    let closed = cloud.run(&["cases", "--all", "-o", "json"]).await;
    for row in closed.assert_code(0).rows() {
        assert_eq!(row["state"], "closed");
        assert!(
            row["reason"].as_str().unwrap().ends_with(": the rack is sold"),
            "{row}"
        );
    }
    let again = abandon(&cloud, "node-0001", &["--yes"]).await;
    again
        .assert_code(2)
        .assert_says(&["no case of node-0001 is open"]);
}

/// Nobody is interrupted without being seen, and nothing ends by accident.
#[tokio::test]
async fn what_somebody_works_on_is_not_abandoned() {
    let cloud = two_on_their_way().await;
    let writes = cloud.writes();
    let alone = abandon(&cloud, "node-0001", &[]).await;
    alone.assert_code(2).assert_says(&["no terminal"]);
    let early = abandon(&cloud, "node-0001", &["--yes", "--undo"]).await;
    early
        .assert_code(2)
        .assert_says(&["somebody seems to work on the case"]);
    let other = abandon(&cloud, "node-0003", &["--yes"]).await;
    other.assert_code(2).assert_says(&["has no case of node-0003"]);
    let silent = cloud.run(&["abandon", "node-0001", "--reason", " "]).await;
    silent.assert_code(2).assert_says(&["say why"]);
    assert_eq!(cloud.writes(), writes);
    assert_eq!(
        cloud
            .run(&["cases", "-o", "json"])
            .await
            .assert_code(0)
            .rows()
            .len(),
        2
    );
}

/// That nothing is known is not the same as that nothing is held.
#[tokio::test]
async fn a_journal_that_is_not_there_is_not_taken_for_an_empty_one() {
    let cloud = Cloud::start(quick(1)).await;
    let mut command = cloud.command(&["cases"]);
    command.env("UNPROVISION_JOURNAL", cloud.home().join("no/such/journal.sqlite"));
    finish(command.spawn().unwrap())
        .await
        .assert_code(0)
        .assert_says(&["there is no journal", "another one than then"]);
    let ran = cloud.run(&["show", "node-0001"]).await;
    ran.assert_code(2).assert_says(&["there is no journal"]);
}
