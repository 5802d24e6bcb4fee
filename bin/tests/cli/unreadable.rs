//! What cannot be read, or is asked for wrongly: it is said, and whoever only looks goes on with the rest.

use unprovision::audit::FindingKind as Kind;
use unprovision::core::DEFAULT_TAG;

use crate::audit::{audit, found, plant};
use crate::support::{Cloud, Ran, bare_in, finish, quick};

/// The command, with its journal elsewhere.
async fn with_journal(cloud: &Cloud, journal: &str, args: &[&str]) -> Ran {
    let mut command = cloud.command(args);
    command.env("UNPROVISION_JOURNAL", journal);
    finish(command.spawn().unwrap()).await
}

#[tokio::test]
async fn a_journal_that_cannot_be_made_is_no_good_cloud() {
    let cloud = Cloud::with_nova_traits(quick(1).nodes(2)).await;
    let ran = with_journal(&cloud, "/proc/nope/journal.sqlite", &["doctor"]).await;
    ran.assert_code(3);
    assert!(
        ran.stdout.contains("nothing can be made in /proc"),
        "{}",
        ran.stdout
    );
    let folder = cloud.home().join("new");
    let new = folder.join("journal.sqlite").display().to_string();
    let ran = with_journal(&cloud, &new, &["doctor"]).await;
    assert!(
        ran.assert_code(0).stdout.contains("can be made"),
        "{}",
        ran.stdout
    );
    assert!(!folder.exists());
    let left = std::fs::read_dir(cloud.home()).unwrap();
    assert_eq!(left.count(), 0, "what was tried is taken away");
}

/// As nova-manage's: 1 is an error, whatever it is about.
#[tokio::test]
async fn an_audit_that_fails_ends_with_1() {
    let cloud = Cloud::with_nova_traits(quick(1).nodes(2)).await;
    let mut wrong = cloud.command(&["audit"]);
    wrong.env("OS_PASSWORD", "wrong");
    finish(wrong.spawn().unwrap()).await.assert_code(1);
    let nowhere = bare_in(cloud.home(), &["audit"]).spawn().unwrap();
    finish(nowhere).await.assert_code(1).assert_says(&["error: "]);
    let usage = cloud.run(&["audit", "--yes"]).await;
    usage.assert_code(2);
}

#[tokio::test]
async fn whoever_only_reads_goes_on_without_a_journal_that_is_broken() {
    let cloud = Cloud::with_nova_traits(quick(1).nodes(3)).await;
    std::fs::write(
        cloud.home().join("journal.sqlite"),
        "this is no database, and long enough",
    )
    .unwrap();
    let nodes = cloud.run(&["nodes", "-o", "json"]).await;
    assert_eq!(nodes.assert_code(0).rows().len(), 3);
    nodes.assert_says(&[
        "be careful: the journal cannot be read",
        "which nodes have an open case is not known",
    ]);
    let looked = audit(&cloud, &[]).await;
    looked
        .assert_code(1)
        .assert_says(&["be careful: the journal cannot be read"]);
    assert!(looked.stdout.starts_with("3 nodes"), "{}", looked.stdout);
    let shown = cloud.run(&["show", "node-0001", "--look"]).await;
    shown.assert_code(1).assert_says(&["the journal cannot be read"]);
    assert!(
        shown.stdout.contains("as both services show it"),
        "{}",
        shown.stdout
    );
    plant(&cloud, &[Kind::OfferedNotFree]);
    let fix = audit(&cloud, &["--fix", "offered-not-free", "--yes"]).await;
    fix.assert_code(1);
    assert_eq!(fix.stdout, "", "who works on a node is not known");
    assert_eq!(cloud.writes(), [""; 0]);
}

#[tokio::test]
async fn a_server_that_is_not_there_is_named_with_what_refused() {
    let cloud = Cloud::with_nova_traits(quick(1)).await;
    for url in ["postgres://me@127.0.0.1:1/j", "mysql://me@127.0.0.1:1/j"] {
        let ran = with_journal(&cloud, url, &["cases"]).await;
        ran.assert_code(1).assert_says(&["127.0.0.1 port 1", "refused"]);
        assert!(!ran.stderr.contains("pool timed out"), "{}", ran.stderr);
    }
}

#[tokio::test]
async fn a_state_that_nobody_knows_is_refused_and_one_that_a_node_is_in_is_not() {
    let cloud = Cloud::with_nova_traits(quick(1).nodes(2)).await;
    let typo = cloud.run(&["nodes", "--state", "cleanin"]).await;
    typo.assert_code(2)
        .assert_says(&["did you mean `cleaning`?", "wait call-back"]);
    assert_eq!(typo.stdout, "");
}

/// Whoever asks for the class of a node does not get one whose provider has another.
#[tokio::test]
async fn a_node_is_offered_as_its_own_class() {
    let cloud = Cloud::with_nova_traits(quick(1).nodes(3)).await;
    let other = cloud.sandbox().nodes()[2];
    cloud.sandbox().with(|world, _| {
        world.edit_node(other, |node| node.resource_class = Some("other".to_owned()));
    });
    let rows = cloud.run(&["nodes", "-o", "json"]).await.assert_code(0).rows();
    let row = rows.iter().find(|row| row["node"] == other.to_string()).unwrap();
    assert_eq!(row["offered"], false, "{row}");
    assert_eq!(row["phase"], "idle_while_free", "{row}");
    assert_eq!(rows[1]["offered"], true);
}

/// What was done, with whose it was; not under which condition it is done.
#[tokio::test]
async fn a_repair_says_what_it_has_done() {
    let cloud = Cloud::with_nova_traits(quick(1).nodes(6)).await;
    let planted = plant(&cloud, &[Kind::ProviderOrphaned, Kind::AllocationWithoutInstance]);
    let consumer = cloud.sandbox().with(|world, _| world.holders(planted[1].1)[0]);
    let fix = [
        "--fix",
        "provider-orphaned,allocation-without-instance",
        "--yes",
        "-o",
        "json",
    ];
    let ran = audit(&cloud, &fix).await;
    let done = ran.assert_code(4).rows();
    let done = done.iter().map(|row| row["repair"]["done"].as_str().unwrap());
    let expected = [
        "the provider was deleted".to_owned(),
        format!("the allocation of consumer {consumer} was deleted"),
    ];
    assert_eq!(done.collect::<Vec<_>>(), expected);
}

/// Without --deep as well.
#[tokio::test]
async fn an_empty_inventory_and_a_tag_of_the_node_alone_are_seen_in_the_lists() {
    let cloud = Cloud::with_nova_traits(quick(1).nodes(4)).await;
    let empty = plant(&cloud, &[Kind::InventoryEmpty])[0].1;
    let tagged = cloud.sandbox().nodes()[3];
    cloud.sandbox().with(|world, _| {
        world.edit_node(tagged, |node| {
            node.traits.insert(DEFAULT_TAG.to_owned());
        });
    });
    let ran = audit(&cloud, &["-o", "json"]).await;
    let expected = [
        ("free-not-offered".to_owned(), empty),
        ("stale-hold".to_owned(), tagged),
    ];
    assert_eq!(found(ran.assert_code(3)), expected);
    let commands = ran.rows()[0]["commands"].to_string();
    assert!(
        commands.contains("inventory set") && commands.contains("CUSTOM_BAREMETAL=1"),
        "{commands}"
    );
}
