//! What is left behind, and carried on.

use std::time::Duration;

use rustix::process::Signal;
use unprovision::strategy;
use unprovision_testkit::lab::journals::{Database, Server};
use unprovision_testkit::rig::protected_by;
use unprovision_testkit::sandbox::ironic::State;

use crate::support::{Cloud, finish, quick, send, slow};

/// Cleaning that lasts long enough to be interrupted.
fn a_while() -> unprovision_testkit::sandbox::Builder {
    quick(1).cleaning(Duration::from_secs(4))
}

#[tokio::test]
async fn accepted_now_and_waited_for_later() {
    let cloud = Cloud::start(a_while()).await;
    let one = cloud.only();
    let ran = cloud
        .run(&["delete", "node-0001", "--yes", "--no-wait", "-o", "json"])
        .await;
    let row = ran.assert_code(0).row();
    assert_eq!(
        (row["outcome"].as_str(), row["held"].as_bool()),
        (Some("accepted"), Some(true))
    );
    assert!(
        row["reason"].as_str().unwrap().contains("unprovision resume"),
        "{row}"
    );
    cloud.assert_held(one.node);
    let ran = cloud.run(&["resume", "node-0001", "-o", "json"]).await;
    let row = ran.assert_code(0).row();
    assert_eq!(
        (row["outcome"].as_str(), row["instance"].as_str()),
        (Some("returned"), Some(one.instance.as_str()))
    );
    cloud.assert_returned(one.node);
    assert_eq!(cloud.tear_downs(one.node), 1);
}

#[tokio::test]
async fn killed_in_the_middle_of_the_wait() {
    for strategy in strategy::ALL.iter().map(|strategy| strategy.name()) {
        let cloud = Cloud::start(a_while()).await;
        let one = cloud.only();
        let mut child = cloud.spawn(&["delete", "node-0001", "--yes", "--strategy", strategy]);
        cloud.wait_for(one.node, State::Cleaning).await;
        child.kill().await.unwrap();
        let query = protected_by(strategy);
        assert!(!query.is_offered(&cloud.sandbox().log(), one.node), "{strategy}");
        let ran = cloud.run(&["resume", "-o", "json"]).await;
        assert_eq!(ran.assert_code(0).row()["outcome"], "returned");
        cloud.assert_returned_to(query, one.node);
        assert_eq!(cloud.tear_downs(one.node), 1);
    }
}

/// A replica on another machine knows nothing but the journal's URL.
#[tokio::test]
async fn killed_and_carried_on_by_another_replica() {
    for server in Server::ALL {
        let database = Database::new(server).await;
        let cloud = Cloud::start(a_while()).await;
        let one = cloud.only();
        let spawn = |args: &[&str]| {
            let mut command = cloud.command(args);
            command.env("UNPROVISION_JOURNAL", &database.url);
            command.spawn().unwrap()
        };
        let mut child = spawn(&["delete", "node-0001", "--yes"]);
        cloud.wait_for(one.node, State::Cleaning).await;
        child.kill().await.unwrap();
        cloud.assert_held(one.node);
        let listed = finish(spawn(&["cases", "-o", "json"])).await;
        assert!(
            listed.assert_code(0).stdout.contains(&one.node.to_string()),
            "{listed:?}"
        );
        let unknown = finish(spawn(&["show", "node-0002"])).await;
        assert!(
            unknown.assert_code(2).stderr.contains(&database.name),
            "{unknown:?}"
        );
        assert!(!unknown.stderr.contains("secret"), "{unknown:?}");
        let ran = finish(spawn(&["resume", "-o", "json"])).await;
        assert_eq!(ran.assert_code(0).row()["outcome"], "returned");
        cloud.assert_returned(one.node);
        assert_eq!(cloud.tear_downs(one.node), 1, "{server:?}");
    }
}

#[tokio::test]
async fn killed_and_found_returned() {
    let cloud = Cloud::start(quick(1)).await;
    let one = cloud.only();
    let mut child = cloud.spawn(&["delete", "node-0001", "--yes"]);
    cloud.wait_for(one.node, State::Cleaning).await;
    child.kill().await.unwrap();
    cloud.wait_for(one.node, State::Available).await;
    cloud.run(&["resume"]).await.assert_code(0);
    cloud.assert_returned(one.node);
}

#[tokio::test]
async fn a_signal_stops_the_waiting_not_the_hold() {
    for signal in [Signal::INT, Signal::TERM] {
        let cloud = Cloud::start(a_while()).await;
        let one = cloud.only();
        let child = cloud.spawn(&["delete", "node-0001", "--yes", "-o", "json"]);
        cloud.wait_for(one.node, State::Cleaning).await;
        send(&child, signal);
        let ran = finish(child).await;
        let row = ran
            .assert_code(1)
            .assert_says(&["stays held", "unprovision resume"])
            .row();
        assert_eq!(
            (row["outcome"].as_str(), row["held"].as_bool()),
            (Some("stopped"), Some(true))
        );
        cloud.assert_held(one.node);
        cloud.run(&["resume"]).await.assert_code(0);
        cloud.assert_returned(one.node);
    }
}

#[tokio::test]
async fn a_second_signal_ends_the_process_at_once() {
    let cloud = Cloud::start(quick(1)).await;
    let one = cloud.only();
    // Placement takes a minute to answer: the first signal waits for that, the second one does not.
    let fault = unprovision_testkit::sandbox::Fault::on(unprovision_testkit::sandbox::Service::Placement);
    let child = cloud.spawn(&["delete", "node-0001", "--yes"]);
    cloud.wait_for(one.node, State::Deleting).await;
    cloud
        .sandbox()
        .fault(fault.delay(Duration::from_secs(60)).times(u32::MAX));
    tokio::time::sleep(Duration::from_secs(1)).await;
    send(&child, Signal::INT);
    tokio::time::sleep(Duration::from_millis(500)).await;
    send(&child, Signal::INT);
    let began = tokio::time::Instant::now();
    finish(child)
        .await
        .assert_code(1)
        .assert_says(&["once more to stop at once"]);
    assert!(began.elapsed() < Duration::from_secs(10));
    cloud.assert_never_exposed(one.node);
}

#[tokio::test]
async fn only_the_nodes_that_are_named_are_carried_on() {
    let cloud = Cloud::start(slow(2)).await;
    let all = cloud.deployed();
    cloud
        .run(&["delete", "node-0001", "node-0002", "--yes", "--no-wait"])
        .await
        .assert_code(0);
    let uuid = all[1].node.to_string();
    let ran = cloud.run(&["resume", &uuid, "--wait=1s", "-o", "json"]).await;
    let row = ran
        .assert_code(4)
        .assert_says(&["is taken up again: instance "])
        .row();
    assert_eq!(row["node"], uuid);
    assert!(!ran.stderr.contains("begins"), "{}", ran.stderr);
    cloud.assert_held(all[0].node);
    cloud.assert_held(all[1].node);
}

#[tokio::test]
async fn nothing_is_open() {
    let cloud = Cloud::start(quick(1)).await;
    let ran = cloud.run(&["resume", "-o", "json"]).await;
    assert!(
        ran.assert_code(0)
            .assert_says(&["nothing is open"])
            .rows()
            .is_empty()
    );
    cloud.run(&["delete", "node-0001", "--yes"]).await.assert_code(0);
    cloud
        .run(&["resume"])
        .await
        .assert_code(0)
        .assert_says(&["nothing is open"]);
}

/// A slip of the pen must not look like success.
#[tokio::test]
async fn what_the_journal_does_not_have_is_refused_with_what_it_has() {
    let cloud = Cloud::start(slow(2)).await;
    let all = cloud.deployed();
    cloud
        .run(&["resume", "node-0001"])
        .await
        .assert_code(2)
        .assert_says(&[
            "nothing is open for node-0001",
            "journal.sqlite",
            "(open: nothing)",
        ]);
    let delete = [
        "delete",
        "node-0001",
        "node-0002",
        "--yes",
        "--no-wait",
        "--strategy",
        "reserve-on-delete",
    ];
    cloud.run(&delete).await.assert_code(0);
    let before = cloud.writes();
    let missing = all[0].node.to_string().replace(|c: char| c.is_ascii_digit(), "0");
    for args in [
        ["resume", "node-0001", "node-00002"],
        ["resume", "node-0001", &missing],
    ] {
        cloud.run(&args).await.assert_code(2).assert_says(&[
            args[2],
            "node-0001, node-0002",
            "journal.sqlite",
        ]);
    }
    cloud
        .run(&["resume", "node-00002"])
        .await
        .assert_says(&["did you mean `node-0002`?"]);
    assert_eq!(cloud.writes(), before);
    // By the instance, and with the strategy that it was begun with.
    let ran = cloud
        .run(&["resume", &all[1].instance, "--wait=1s", "-o", "json"])
        .await;
    let row = ran
        .assert_code(4)
        .assert_says(&[&format!(
            "is taken up again: instance {}, reserve-on-delete",
            all[1].instance
        )])
        .row();
    assert_eq!(
        (row["name"].as_str(), row["strategy"].as_str()),
        (Some("node-0002"), Some("reserve-on-delete"))
    );
}

/// The journal of one cloud, the settings of another: nothing is sent, and nothing is written down.
#[tokio::test]
async fn the_journal_of_another_cloud_is_refused() {
    let (ours, other) = (Cloud::start(slow(1)).await, Cloud::start(slow(2)).await);
    let one = ours.only();
    ours.run(&["delete", "node-0001", "--yes", "--no-wait"])
        .await
        .assert_code(0);
    let journal = ours.home().join("journal.sqlite");
    let elsewhere = |args: &[&str]| {
        let mut command = other.command(args);
        command.env("UNPROVISION_JOURNAL", &journal);
        finish(command.spawn().unwrap())
    };
    let [here, there] = [&ours, &other].map(|cloud| {
        let environment = cloud.served().environment();
        environment
            .into_iter()
            .find(|(name, _)| *name == "OS_AUTH_URL")
            .unwrap()
            .1
    });
    let both = [here.trim_end_matches('/'), there.trim_end_matches('/')];
    for args in [
        ["resume", "-o", "json"].as_slice(),
        &["resume", "node-0001"],
        &["resume", &one.instance],
    ] {
        elsewhere(args).await.assert_code(2).assert_says(&both);
    }
    assert_eq!(other.sandbox().log().requests().count(), 0);
    // What is begun there is carried on there, and the other one is left alone.
    elsewhere(&["delete", "node-0002", "--yes", "--no-wait"])
        .await
        .assert_code(0);
    elsewhere(&["resume", "--wait=1s"])
        .await
        .assert_code(4)
        .assert_says(&["left alone: ", both[0]]);
    ours.assert_held(one.node);
}

/// Asked for again, it goes on as it was begun: that is what is said, not what was asked for.
#[tokio::test]
async fn what_is_asked_for_again_goes_on_as_it_was_begun() {
    let cloud = Cloud::start(quick(1).teardown(Duration::from_secs(3600))).await;
    let again = ["delete", "node-0001", "--yes", "--no-wait", "--strategy"];
    let ask = async |strategy: &str| cloud.run(&[&again[..], &[strategy]].concat()).await;
    ask("hand-over")
        .await
        .assert_code(0)
        .assert_says(&["begins: instance "]);
    for (strategy, says) in [
        ("trait-tagging", ", hand-over (asked for: trait-tagging)\n"),
        ("hand-over", ", hand-over\n"),
    ] {
        let ran = ask(strategy).await;
        ran.assert_code(0)
            .assert_says(&["is taken up again: instance ", says]);
        for other in ["begins", "protects"] {
            assert!(!ran.stderr.contains(other), "{}", ran.stderr);
        }
    }
    cloud.assert_held(cloud.only().node);
}

/// Only a person knows that a cloud with another address is the same.
#[tokio::test]
async fn a_cloud_may_have_moved() {
    let cloud = Cloud::start(a_while()).await;
    let one = cloud.only();
    cloud
        .run(&["delete", "node-0001", "--yes", "--no-wait"])
        .await
        .assert_code(0);
    let moved = |args: &[&str]| {
        let mut command = cloud.command(args);
        for (name, value) in cloud.served().environment() {
            command.env(name, value.replace("127.0.0.1", "localhost"));
        }
        finish(command.spawn().unwrap())
    };
    moved(&["resume", "node-0001"])
        .await
        .assert_code(2)
        .assert_says(&["http://127.0.0.1:", "http://localhost:", "--cloud-moved"]);
    moved(&["resume", "node-0001", "--cloud-moved"])
        .await
        .assert_code(0);
    cloud.assert_returned(one.node);
}

#[tokio::test]
async fn a_signal_before_anything_has_begun_touches_nothing() {
    for signal in [Signal::INT, Signal::TERM] {
        let cloud = Cloud::start(quick(1)).await;
        let fault = unprovision_testkit::sandbox::Fault::on(unprovision_testkit::sandbox::Service::Placement);
        cloud
            .sandbox()
            .fault(fault.delay(Duration::from_secs(60)).times(u32::MAX));
        let child = cloud.spawn(&["delete", "node-0001", "--yes"]);
        while cloud.sandbox().log().requests().count() == 0 {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        send(&child, signal);
        finish(child)
            .await
            .assert_code(1)
            .assert_says(&["stopped before anything was begun; nothing was touched"]);
        assert_eq!(cloud.writes(), [""; 0]);
        cloud.run(&["resume"]).await.assert_says(&["nothing is open"]);
    }
}

#[tokio::test]
async fn what_was_allowed_at_the_start_is_still_allowed() {
    let cloud = Cloud::start(a_while().each_node(|_, node| node.behaviour.clean_failures = 1)).await;
    let one = cloud.only();
    cloud
        .run(&["delete", "node-0001", "--yes", "--no-wait", "--reclean", "1"])
        .await
        .assert_code(0);
    cloud
        .run(&["resume"])
        .await
        .assert_code(0)
        .assert_says(&["clean again"]);
    cloud.assert_returned(one.node);
}

#[tokio::test]
async fn whoever_comes_later_leaves_it_to_the_first() {
    let cloud = Cloud::start(a_while()).await;
    let one = cloud.only();
    let first = cloud.spawn(&["delete", "node-0001", "--yes", "-o", "json"]);
    cloud.wait_for(one.node, State::Cleaning).await;
    let second = cloud.spawn(&["resume", "-o", "json"]);
    let (first, second) = tokio::join!(finish(first), finish(second));
    assert_eq!(first.assert_code(0).row()["outcome"], "returned");
    let row = second.assert_code(1).row();
    assert_eq!(row["outcome"], "error");
    let reason = row["reason"].as_str().unwrap();
    assert!(reason.contains("is worked on by process"), "{row}");
    cloud.assert_returned(one.node);
}
