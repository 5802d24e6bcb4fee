//! The odd ways in which servers are deleted: in each of them hand-over shows nothing. `tests/measure guard way` runs them.

use std::cell::Cell;
use std::time::Duration;

use tokio::time::sleep;
use unprovision_testkit::lab::nova::{Compute, Rule, Server};

use crate::common::{Deletion, Group, Placed, Stage, secs};
use crate::guard::Guard;
use crate::story::samples;
use crate::table::{keep, ones, row};
use crate::tally::Since;

const SHAPE: [&str; 4] = ["--step-seconds", "30", "--knob", "lab_tear_down_seconds=4"];
const AT_ONCE: usize = 3;

/// Under the old rule nothing but our hold keeps a settled server's node.
fn old(interval: u64) -> Compute {
    Compute::new(Rule::Old, secs(interval))
}

/// Servers on a stage of its own are deleted in this way, beside a guard with these settings, and nothing shows.
async fn way(
    key: &str,
    name: &str,
    (stage, group): (&Stage, &Group),
    settings: &str,
    settled: bool,
    delete: impl AsyncFnOnce(&[Placed]) -> Vec<Deletion>,
) {
    let guard = Guard::with(stage, settings).await;
    let servers = stage.servers(group).await;
    if settled {
        stage.pass().await;
    }
    let (since, sampling) = (Since::now(stage), stage.sampling(group));
    let deletions = delete(&servers).await;
    stage
        .until_state(servers.iter().map(|placed| placed.node), "available")
        .await;
    let nodes = servers.iter().map(|placed| placed.node).collect();
    stage.until_offered(group, &nodes).await;
    let samples = samples(sampling).await;
    let said = guard.said();
    assert!(guard.stop().await.success(), "{said}");
    let ones = ones(stage, &servers, &deletions, since, &samples);
    let mut table = String::new();
    row(&mut table, name, "guard, hand-over", &ones);
    keep(key, &table);
    for (one, placed) in ones.iter().zip(&servers) {
        let exposures = stage.exposures(placed.node, since.mark);
        assert!(exposures.is_empty(), "{} {exposures:#?} {said}", placed.node);
        assert_eq!(one.figures.sampled, Duration::ZERO, "{said}");
    }
}

async fn stage(how: Compute, name: &str, shape: &[&str]) -> (Stage, Group) {
    let (stage, mut groups) = Stage::with(how, &[(name, AT_ONCE, shape)]).await;
    (stage, groups.remove(0))
}

#[tokio::test]
#[ignore = "takes minutes: `tests/measure guard way`"]
async fn guard_measured_way_before_the_first_pass() {
    let (stage, group) = stage(old(600), "first", &SHAPE).await;
    let delete = async |servers: &[Placed]| stage.delete(servers).await;
    let name = "old rule, deleted before a pass has seen the server";
    way("3-first", name, (&stage, &group), "", false, delete).await;
}

#[tokio::test]
#[ignore = "takes minutes: `tests/measure guard way`"]
async fn guard_measured_way_torn_down_within_a_second() {
    let shape = ["--step-seconds", "30", "--knob", "lab_tear_down_seconds=0.5"];
    let (stage, group) = stage(old(60), "quick", &shape).await;
    let delete = async |servers: &[Placed]| stage.delete(servers).await;
    let name = "old rule, tear-down in 0.5 s";
    way("3-quick", name, (&stage, &group), "", true, delete).await;
}

#[tokio::test]
#[ignore = "takes minutes: `tests/measure guard way`"]
async fn guard_measured_way_a_cleaning_of_several_passes_with_the_lock() {
    let shape = ["--step-seconds", "90", "--knob", "lab_tear_down_seconds=4"];
    let (stage, group) = stage(old(20), "locked", &shape).await;
    let delete = async |servers: &[Placed]| stage.delete(servers).await;
    let name = "old rule, cleaning of several passes that holds the lock";
    way("3-locked", name, (&stage, &group), "", true, delete).await;
}

#[tokio::test]
#[ignore = "takes minutes: `tests/measure guard way`"]
async fn guard_measured_way_a_cleaning_of_several_passes_in_clean_wait() {
    let shape = [
        "--interface",
        "agent",
        "--step-seconds",
        "90",
        "--knob",
        "lab_tear_down_seconds=4",
    ];
    let (stage, group) = stage(old(20), "waiting", &shape).await;
    let delete = async |servers: &[Placed]| stage.delete(servers).await;
    let name = "old rule, clean wait of several passes";
    way("3-waiting", name, (&stage, &group), "", true, delete).await;
}

/// Rule 18: with deferred deletes Nova releases by GET and PUT. Where our hand-over comes between, the delete fails
/// once, and is asked for again.
#[tokio::test]
#[ignore = "takes minutes: `tests/measure guard way`"]
async fn guard_measured_way_deferred() {
    let how = Compute {
        reclaim: secs(5),
        ..old(60)
    };
    let (stage, group) = stage(how, "deferred", &SHAPE).await;
    let delete = async |servers: &[Placed]| {
        let again = Cell::new(0);
        let once_more = async |placed: &Placed, _: &Server| {
            again.set(again.get() + 1);
            stage.nova.delete(placed.server).await.unwrap();
            sleep(secs(5)).await;
        };
        let deletions = stage.delete_or(servers, once_more).await;
        stage.say(&format!("{} deletes were asked for again", again.get()));
        deletions
    };
    let name = "old rule, deferred delete (5 s)";
    way("3-deferred", name, (&stage, &group), "", true, delete).await;
}

/// With nova-compute down, Nova's API drops the allocation at once, while the node is still in use. Under today's rule
/// a settled server's node is reserved then; its hold is taken once it leaves its instance, here by an operator.
#[tokio::test]
#[ignore = "takes minutes: `tests/measure guard way`"]
async fn guard_measured_way_local_delete() {
    let how = Compute::new(Rule::Current, secs(20));
    let (stage, group) = stage(how, "local", &SHAPE).await;
    let delete = async |servers: &[Placed]| {
        // A second pass: the first one may have begun before the last server was claimed.
        stage.pass().await;
        stage.lab.stop("nova-compute").await.unwrap();
        stage.nova.force_down(true).await.unwrap();
        let deletions = stage.delete(servers).await;
        sleep(secs(5)).await;
        for placed in servers {
            stage.api.provision(placed.node, "deleted").await.unwrap();
        }
        stage.until_left(servers.iter().map(|placed| placed.node)).await;
        stage.nova.force_down(false).await.unwrap();
        stage.lab.compute(&how).await.unwrap();
        deletions
    };
    let name = "as shipped, local delete, then torn down by an operator";
    way("3-local", name, (&stage, &group), "", true, delete).await;
}

#[tokio::test]
#[ignore = "takes minutes: `tests/measure guard way`"]
async fn guard_measured_way_nova_compute_restarted() {
    let shape = ["--step-seconds", "60", "--knob", "lab_tear_down_seconds=4"];
    let how = old(60);
    let (stage, group) = stage(how, "restarted", &shape).await;
    let delete = async |servers: &[Placed]| {
        let deletions = stage.delete(servers).await;
        stage.lab.compute(&how).await.unwrap();
        stage.say("nova-compute is started anew, and passes at once");
        deletions
    };
    let name = "old rule, nova-compute restarted during the cleaning";
    way("3-restarted", name, (&stage, &group), "", true, delete).await;
}

#[tokio::test]
#[ignore = "takes minutes: `tests/measure guard way`"]
async fn guard_measured_way_two_nova_computes() {
    let how = Compute {
        second: true,
        ..old(20)
    };
    let (stage, group) = stage(how, "two", &SHAPE).await;
    let delete = async |servers: &[Placed]| stage.delete(servers).await;
    let name = "old rule, two nova-computes";
    way("3-two", name, (&stage, &group), "", true, delete).await;
}

#[tokio::test]
#[ignore = "takes minutes: `tests/measure guard way`"]
async fn guard_measured_way_the_broker_away() {
    let shape = ["--step-seconds", "60", "--knob", "lab_tear_down_seconds=4"];
    let (stage, group) = stage(old(20), "brokerless", &shape).await;
    let url = stage.lab.amqp_url().unwrap().to_owned();
    let delete = async |servers: &[Placed]| {
        let deletions = stage.delete(servers).await;
        stage.lab.stop("rabbitmq").await.unwrap();
        stage.say("the broker is away");
        sleep(secs(20)).await;
        stage.lab.bring_back().await.unwrap();
        stage.say("the broker is back");
        deletions
    };
    let settings = format!("[notifications]\nurl = {url:?}\n");
    let name = "old rule, the broker away for 20 s of the cleaning";
    way("3-broker", name, (&stage, &group), &settings, true, delete).await;
}
