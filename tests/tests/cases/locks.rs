//! C02 a lock held for minutes, C08 hundreds of deletes at once.

use std::sync::Arc;
use std::time::Duration;

use unprovision::ProvisionState;
use unprovision::core::{CaseId, Entry, Event, Outcome};
use unprovision::journal::MemoryJournal;
use unprovision_testkit::rig::{Nobody, Rig};
use unprovision_testkit::sandbox::{Fault, Sandbox, Service};

use crate::common::{
    assert_clean, assert_unexposed, count, holding, only, outcome, requests, secs, strategies,
    tear_downs_sent,
};

fn locked(times: u32) -> Fault {
    Fault::on(Service::Ironic)
        .method(http::Method::PUT)
        .path("/v1/nodes/*/states/provision")
        .nth(1)
        .times(times)
        .locked()
}

#[tokio::test(start_paused = true)]
async fn c02_a_lock_is_waited_out() {
    for strategy in strategies() {
        for refusals in [3, 200] {
            let rig = Rig::new(Sandbox::builder().nodes(1).deployed(1).cleaning(secs(60)).build());
            let node = only(&rig.sandbox).0;
            rig.sandbox.fault(locked(refusals));
            let reports = rig.tear_down(&requests(&rig, strategy)).await.unwrap();
            assert_eq!(outcome(&reports[0]), Outcome::Returned, "{strategy}: {reports:?}");
            let accepted = count(&rig.sandbox, "PUT", "/states/provision").0;
            let sent = tear_downs_sent(&rig, &reports).await.len();
            assert_eq!((accepted, sent), (1, refusals as usize + 1), "{strategy}");
            let patches = rig
                .sandbox
                .log()
                .requests()
                .filter(|request| request.method == "PATCH")
                .count();
            assert_eq!(patches, 0, "the tear-down itself does all that is to be done");
            assert_clean(&rig.sandbox, node, strategy);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn c02_a_lock_that_stays_times_out_and_stays_held() {
    for strategy in strategies() {
        let rig = Rig::new(Sandbox::builder().nodes(1).deployed(1).build());
        let (node, instance) = only(&rig.sandbox);
        rig.sandbox.fault(locked(u32::MAX));
        let mut request = rig.request(node, instance, strategy);
        request.limits = rig.limits(secs(600));
        let report = rig.tear_down(&[request]).await.unwrap().remove(0);
        assert_eq!(outcome(&report), Outcome::TimedOut, "{strategy}: {report:?}");
        assert!(report.reason.contains("locked"), "{}", report.reason);
        // What nobody has touched yet is not held by us.
        let held = holding().any(|name| name == strategy);
        assert_eq!(report.held, held, "{report:?}");
        assert_unexposed(&rig.sandbox, node, strategy);
    }
}

/// A hundred nodes that were refused together do not come back together.
#[tokio::test(start_paused = true)]
async fn c02_the_retries_of_many_nodes_spread() {
    let rig = Rig::new(
        Sandbox::builder()
            .nodes(100)
            .deployed(100)
            .cleaning(secs(60))
            .build(),
    );
    rig.sandbox.fault(locked(300));
    let reports = rig.tear_down(&requests(&rig, "hand-over")).await.unwrap();
    assert!(reports.iter().all(|report| outcome(report) == Outcome::Returned));
    let sent = tear_downs_sent(&rig, &reports).await;
    // The first round leaves the gate together; from then on no tenth of a second sees more than a fifth of the nodes.
    let busiest = sent[100..].iter().map(|at| {
        let end = *at + std::time::Duration::from_millis(100);
        sent[100..]
            .iter()
            .filter(|other| *other >= at && **other < end)
            .count()
    });
    assert!(busiest.max().unwrap() <= 20);
}

/// 310 nodes where Ironic takes 50; the first ten are cleaned for ever, on behalf of strangers.
async fn crowded() -> Rig {
    let sandbox = Sandbox::builder()
        .nodes(310)
        .deployed(310)
        .teardown(secs(5))
        .cleaning(secs(60))
        .configure(|config| config.ironic.max_concurrent_clean = Some(50))
        .each_node(|number, node| {
            if number <= 10 {
                node.behaviour.cleaning = Some(secs(100_000));
            }
        })
        .build();
    for (_, instance) in &sandbox.deployed()[..10] {
        sandbox.with(|world, now| world.nova_delete(*instance, now));
    }
    tokio::time::sleep(secs(60)).await;
    let journal = Arc::new(MemoryJournal::new());
    Rig::polling(sandbox, journal, Arc::new(Nobody), secs(2))
}

/// How many tear-downs we sent, and how many holds were in place before the first.
fn sent_and_held_before(rig: &Rig) -> (usize, usize) {
    let (mut sent, mut held) = (0, 0);
    for request in rig
        .sandbox
        .log()
        .requests()
        .filter(|request| request.who == "client")
    {
        if request.path.ends_with("/states/provision") {
            sent += 1;
        } else if sent == 0 && request.method != "GET" && request.status.is_success() {
            held += 1;
        }
    }
    (sent, held)
}

/// 300 deletes where Ironic takes 50, of which strangers use 10: all held first, few refusals, all done.
#[tokio::test(start_paused = true)]
async fn c08_hundreds_of_deletes_share_ironics_limit() {
    for strategy in ["hand-over", "reserve-on-delete"] {
        let rig = crowded().await;
        let requests = requests(&rig, strategy);
        assert_eq!(requests.len(), 300);
        let reports = rig.tear_down(&requests).await.unwrap();
        for report in &reports {
            assert_eq!(outcome(report), Outcome::Returned, "{strategy}: {report:?}");
            assert_unexposed(&rig.sandbox, report.node.0, strategy);
        }
        let (sent, held) = sent_and_held_before(&rig);
        assert_eq!(
            held, 300,
            "{strategy}: all are held before the first is torn down"
        );
        assert!(
            sent <= 300 + 2 * 300,
            "{strategy}: {sent} tear-downs sent for 300 nodes"
        );
        println!("{strategy}: {sent} tear-downs sent for 300 nodes");
    }
}

/// Many nodes become free together: each is looked at once more before its release, but not one after the other.
#[tokio::test(start_paused = true)]
async fn c08_nodes_that_are_free_together_are_released_side_by_side() {
    let latency = Duration::from_millis(100);
    for strategy in strategies() {
        let sandbox = Sandbox::builder()
            .nodes(10)
            .deployed(10)
            .teardown(secs(4))
            .cleaning(secs(60))
            .build();
        for service in [Service::Ironic, Service::Placement] {
            sandbox.fault(Fault::on(service).delay(latency).times(u32::MAX));
        }
        let rig = Rig::new(sandbox);
        let reports = rig.tear_down(&requests(&rig, strategy)).await.unwrap();
        for report in reports {
            let case = CaseId::tear_down(report.node, report.instance.unwrap());
            let entries = rig.journal.read(case).await.unwrap();
            let is_available = |entry: &&Entry| matches!(&entry.event, Event::Saw { provision_state, .. } if *provision_state == ProvisionState::Available);
            let available = entries.iter().find(is_available).unwrap().at;
            let writes = entries.iter().filter(|entry| entry.at >= available);
            let writes = writes
                .filter(|entry| matches!(entry.event, Event::Intended { .. }))
                .count();
            let took = entries
                .last()
                .unwrap()
                .at
                .duration_since(available)
                .unsigned_abs();
            // After each write one look, which is three requests in a row at most.
            let most = latency * 4 * u32::try_from(writes).unwrap();
            assert!(
                writes <= 4 && took <= most,
                "{strategy}: {writes} writes took {took:?}"
            );
        }
    }
}
