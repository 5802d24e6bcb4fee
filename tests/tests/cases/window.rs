//! C01 the window after a delete, C06 automated cleaning off, C22 when a node is free.

use unprovision::core::Outcome;
use unprovision_testkit::rig::Rig;
use unprovision_testkit::sandbox::config::NovaRule;
use unprovision_testkit::sandbox::ironic::State;
use unprovision_testkit::sandbox::{Fault, Sandbox, Service, judge};

use crate::common::{
    assert_clean, assert_unexposed, count, is_offered, offered_again_after, only, outcome, requests, secs,
    strategies,
};

/// Ten nodes at once: without us Nova exposes them, with each strategy there is no instant of exposure.
#[tokio::test(start_paused = true)]
async fn c01_the_window_is_closed_by_every_strategy() {
    let ten = || {
        Sandbox::builder()
            .nodes(10)
            .deployed(10)
            .teardown(secs(4))
            .cleaning(secs(300))
    };
    let control = ten().nova(NovaRule::Old).build();
    for (_, instance) in control.deployed() {
        control.with(|world, now| world.nova_delete(instance, now));
    }
    tokio::time::sleep(secs(600)).await;
    let exposed = control
        .nodes()
        .into_iter()
        .filter(|node| !judge::exposure(&control.log(), *node).is_none());
    assert!(exposed.count() > 0, "the control must show the bug");

    for strategy in strategies() {
        for agent in [false, true] {
            let sandbox = if agent {
                ten().agent().build()
            } else {
                ten().build()
            };
            let rig = Rig::new(sandbox.clone());
            let requests = requests(&rig, strategy);
            let start = sandbox.now();
            let reports = rig.tear_down(&requests).await.unwrap();
            assert!(
                reports.iter().all(|report| outcome(report) == Outcome::Returned),
                "{strategy}: {reports:#?}"
            );
            for report in &reports {
                assert_clean(&sandbox, report.node.0, strategy);
                let again = offered_again_after(&sandbox, report.node.0, strategy, start).unwrap();
                assert!(
                    again <= secs(1),
                    "{strategy}: offered {again:?} after it was free"
                );
                let (freed, returned) = (report.freed_after_s, report.returned_after_s);
                let early = strategy != "wait-for-available";
                assert_eq!(freed.unwrap() < returned.unwrap(), early, "{report:?}");
            }
        }
    }
}

/// The node passes `deleting` and `cleaning` in milliseconds: no state in between need be seen.
#[tokio::test(start_paused = true)]
async fn c06_a_node_that_is_not_cleaned_returns_at_once() {
    for strategy in strategies() {
        let sandbox = Sandbox::builder()
            .nodes(1)
            .deployed(1)
            .teardown(secs(0))
            .configure(|c| c.ironic.automated_clean = false);
        let rig = Rig::new(sandbox.build());
        let (node, _) = only(&rig.sandbox);
        let start = rig.sandbox.now();
        let reports = rig.tear_down(&requests(&rig, strategy)).await.unwrap();
        assert_eq!(outcome(&reports[0]), Outcome::Returned, "{strategy}");
        assert_clean(&rig.sandbox, node, strategy);
        let again = offered_again_after(&rig.sandbox, node, strategy, start).unwrap();
        assert!(again <= secs(1), "{strategy}: {again:?}");
    }
}

/// Reads right after the accepted delete may come from a replica that still says `active`.
#[tokio::test(start_paused = true)]
async fn c06_a_stale_active_decides_nothing() {
    for strategy in strategies() {
        let rig = Rig::new(Sandbox::builder().nodes(1).deployed(1).cleaning(secs(60)).build());
        let (node, _) = only(&rig.sandbox);
        // From the third look on, two looks see the world of ten seconds ago.
        let stale = Fault::on(Service::Ironic)
            .method(http::Method::GET)
            .path("/v1/nodes/*")
            .nth(4)
            .times(2)
            .stale(secs(10));
        rig.sandbox.fault(stale);
        tokio::time::sleep(secs(20)).await;
        let reports = rig.tear_down(&requests(&rig, strategy)).await.unwrap();
        assert_eq!(outcome(&reports[0]), Outcome::Returned, "{strategy}");
        assert_clean(&rig.sandbox, node, strategy);
        assert_eq!(
            count(&rig.sandbox, "PUT", "/states/provision").0,
            1,
            "{strategy}: one accepted delete"
        );
    }
}

/// An `available` from before the node was deployed must not release anything.
#[tokio::test(start_paused = true)]
async fn c06_a_stale_available_releases_nothing() {
    for strategy in strategies() {
        let sandbox = Sandbox::builder().nodes(1).deployed(0).cleaning(secs(60)).build();
        let node = sandbox.nodes()[0];
        let rig = Rig::new(sandbox.clone());
        // The fault makes the sandbox remember the world in which the node is still available.
        tokio::time::sleep(secs(5)).await;
        sandbox.fault(
            Fault::on(Service::Ironic)
                .method(http::Method::GET)
                .path("/v1/nodes/*")
                .nth(3)
                .times(2)
                .stale(secs(100)),
        );
        let instance = uuid::Uuid::from_u128(7);
        sandbox.with(|world, now| world.nova_create(instance, "baremetal", Some(node), now));
        tokio::time::sleep(secs(95)).await;
        assert_eq!(sandbox.deployed(), [(node, instance)]);
        let reports = rig
            .tear_down(&[rig.request(node, instance, strategy)])
            .await
            .unwrap();
        assert_eq!(outcome(&reports[0]), Outcome::Returned, "{strategy}: {reports:?}");
        assert_unexposed(&sandbox, node, strategy);
    }
}

/// Available is not enough: maintenance, a lost power state and a retirement keep the node held.
#[tokio::test(start_paused = true)]
async fn c22_an_available_node_that_is_not_free_stays_held() {
    type Change = fn(&mut unprovision_testkit::sandbox::ironic::Node);
    let spoil: [(&str, Change, Change); 2] = [
        (
            "maintenance",
            |node| node.maintenance = true,
            |node| node.maintenance = false,
        ),
        (
            "power",
            |node| node.power_state = None,
            |node| node.power_state = Some("power off".into()),
        ),
    ];
    for strategy in strategies() {
        for (what, spoil, cure) in spoil {
            let rig = Rig::new(
                Sandbox::builder()
                    .nodes(1)
                    .deployed(1)
                    .teardown(secs(2))
                    .cleaning(secs(20))
                    .build(),
            );
            let (node, _) = only(&rig.sandbox);
            let requests = requests(&rig, strategy);
            let run = rig.tear_down(&requests);
            let events = async {
                tokio::time::sleep(secs(10)).await;
                rig.sandbox.with(|world, _| world.edit_node(node, spoil));
                tokio::time::sleep(secs(600)).await;
                assert_eq!(
                    rig.sandbox
                        .with(|world, _| world.node(node).unwrap().provision_state),
                    State::Available
                );
                assert!(!is_offered(&rig.sandbox, node, strategy), "{strategy}, {what}");
                rig.sandbox.with(|world, _| world.edit_node(node, cure));
            };
            let (reports, ()) = tokio::join!(run, events);
            assert_eq!(
                outcome(&reports.unwrap()[0]),
                Outcome::Returned,
                "{strategy}, {what}"
            );
            assert_clean(&rig.sandbox, node, strategy);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn c22_a_retired_node_is_blocked_and_stays_held() {
    for strategy in strategies() {
        let sandbox = Sandbox::builder()
            .nodes(1)
            .deployed(1)
            .cleaning(secs(20))
            .each_node(|_, node| node.retired = true);
        let rig = Rig::new(sandbox.build());
        let (node, _) = only(&rig.sandbox);
        let reports = rig.tear_down(&requests(&rig, strategy)).await.unwrap();
        assert_eq!(outcome(&reports[0]), Outcome::Blocked, "{strategy}: {reports:?}");
        assert!(
            reports[0].held && reports[0].reason.contains("retired"),
            "{reports:?}"
        );
        tokio::time::sleep(secs(60)).await;
        assert!(!is_offered(&rig.sandbox, node, strategy), "{strategy}");
        assert_unexposed(&rig.sandbox, node, strategy);
    }
}
