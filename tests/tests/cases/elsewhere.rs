//! Answers that come from somewhere else than the cloud that is meant: a proxy's 404, another cloud, missing rights.

use tokio_util::sync::CancellationToken;
use unprovision::core::{CannotOpen, Outcome};
use unprovision::orchestrator::{RunError, Until};
use unprovision_testkit::rig::{Rig, each_with};
use unprovision_testkit::sandbox::{Fault, Sandbox, Service};

use crate::common::{
    assert_clean, assert_unexposed, only, outcome, requests, resumed, secs, strategies, writes,
};

fn one() -> Sandbox {
    Sandbox::builder()
        .nodes(1)
        .deployed(1)
        .teardown(secs(4))
        .cleaning(secs(60))
        .build()
}

fn proxys_404(service: Service) -> Fault {
    Fault::on(service)
        .method(http::Method::GET)
        .status(http::StatusCode::NOT_FOUND, "<html>no such page</html>")
}

/// Nothing could be held, and nobody would know whether Nova manages the node.
#[tokio::test(start_paused = true)]
async fn without_a_provider_nothing_begins() {
    for strategy in strategies() {
        let sandbox = one();
        let rig = Rig::new(sandbox.clone());
        let requests = requests(&rig, strategy);
        sandbox.with(|world, _| world.remove_provider(requests[0].node.0));
        let refused = rig.tear_down(&requests).await.unwrap_err();
        assert!(
            matches!(refused, RunError::CannotOpen(CannotOpen::NoProvider(_))),
            "{refused}"
        );

        let sandbox = one();
        sandbox.fault(proxys_404(Service::Placement).path("/resource_providers/**"));
        let rig = Rig::new(sandbox.clone());
        let refused = rig.tear_down(&self::requests(&rig, strategy)).await.unwrap_err();
        assert!(matches!(refused, RunError::Cloud(_)), "{refused}");
        assert_eq!(writes(&sandbox), 0);
    }
}

/// A maintenance page of the load balancer is no word about a node or a provider.
#[tokio::test(start_paused = true)]
async fn a_proxys_404_is_waited_out() {
    for strategy in strategies() {
        for (service, path) in [
            (Service::Ironic, "/v1/nodes/**"),
            (Service::Placement, "/resource_providers/**"),
        ] {
            let sandbox = one();
            let node = only(&sandbox).0;
            sandbox.fault(proxys_404(service).path(path).nth(6).times(12));
            let rig = Rig::new(sandbox.clone());
            let reports = rig.tear_down(&requests(&rig, strategy)).await.unwrap();
            assert_eq!(
                outcome(&reports[0]),
                Outcome::Returned,
                "{strategy}, {service}: {reports:?}"
            );
            assert_clean(&sandbox, node, strategy);
        }
    }
}

/// A node that is not shown before anything was done: nothing is done then, either.
#[tokio::test(start_paused = true)]
async fn a_node_that_vanishes_first_leaves_everything_as_it_was() {
    for strategy in strategies() {
        let rig = Rig::new(one());
        let (node, instance) = only(&rig.sandbox);
        let cases = rig.open(&requests(&rig, strategy)).await.unwrap();
        rig.sandbox.with(|world, _| world.remove_node(node));
        let stop = CancellationToken::new();
        let report = rig
            .orchestrator
            .run(&cases, Until::Ended, &stop)
            .await
            .remove(0)
            .unwrap();
        assert_eq!(
            (outcome(&report), report.held),
            (Outcome::Gone, false),
            "{strategy}"
        );
        assert_eq!(writes(&rig.sandbox), 0, "{strategy}");
        assert_eq!(rig.sandbox.with(|world, _| world.holders(node)), [instance]);
    }
}

/// Credentials that do not show the node look like a node that is gone; with the right ones the case goes on.
#[tokio::test(start_paused = true)]
async fn a_node_that_comes_back_is_released() {
    for strategy in strategies() {
        let sandbox = one();
        let rig = Rig::new(sandbox.clone());
        let requests = requests(&rig, strategy);
        let node = requests[0].node.0;
        let hide = async {
            tokio::time::sleep(secs(10)).await;
            let hidden = sandbox.with(|world, _| world.node(node).cloned()).unwrap();
            sandbox.with(|world, _| world.remove_node(node));
            hidden
        };
        let (reports, mut hidden) = tokio::join!(rig.tear_down(&requests), hide);
        let report = reports.unwrap().remove(0);
        assert_eq!(
            (outcome(&report), report.held),
            (Outcome::Gone, true),
            "{strategy}: {report:?}"
        );
        assert!(!sandbox.is_offered(node));

        hidden.provision_state = unprovision_testkit::sandbox::ironic::State::Available;
        hidden.provision_updated_at = Some(sandbox.now());
        (hidden.instance_uuid, hidden.reservation) = (None, None);
        sandbox.with(|world, _| world.add_node(hidden));
        let open = rig.orchestrator.open_cases().await.unwrap();
        let taken = each_with(&open, rig.limits(secs(3600)));
        let report = resumed(&rig, &taken).await;
        assert_eq!(outcome(&report), Outcome::Returned, "{strategy}: {report:?}");
        assert_clean(&sandbox, node, strategy);
    }
}

/// The journal of one cloud, the credentials of another: the hold is not forgotten.
#[tokio::test(start_paused = true)]
async fn another_cloud_closes_no_case_that_holds_a_unit() {
    let sandbox = one();
    let node = only(&sandbox).0;
    let rig = Rig::new(sandbox.clone());
    let cases = rig.open(&requests(&rig, "hand-over")).await.unwrap();
    let stop = CancellationToken::new();
    rig.orchestrator
        .run(&cases, Until::Accepted, &stop)
        .await
        .remove(0)
        .unwrap();

    let other = Rig::with_journal(Sandbox::builder().nodes(0).build(), rig.journal.clone());
    let taken = [(cases[0], other.limits(secs(3600)))];
    let report = resumed(&other, &taken).await;
    assert_eq!(
        (outcome(&report), report.held),
        (Outcome::Blocked, true),
        "{report:?}"
    );

    let report = resumed(&rig, &taken).await;
    assert_eq!(outcome(&report), Outcome::Returned, "{report:?}");
    assert_clean(&sandbox, node, "hand-over");
    assert_unexposed(&sandbox, node, "hand-over");
}

/// A case that was begun in another cloud is refused before anything is written, to the cloud or to the journal.
#[tokio::test(start_paused = true)]
async fn a_case_of_another_cloud_is_not_taken_up() {
    for strategy in strategies() {
        let rig = Rig::new(one());
        let (node, _) = only(&rig.sandbox);
        let here = rig.named("https://a/v3");
        let requests = requests(&here, strategy);
        let cases = here.open(&requests).await.unwrap();
        let there = rig.named("https://b/v3");
        let taken = [(cases[0], there.limits(secs(3600)))];
        let stop = CancellationToken::new();
        let first = here.orchestrator.check(&requests[0]).await.unwrap();
        for refused in [
            there
                .orchestrator
                .resume(&taken, Until::Ended, &stop)
                .await
                .remove(0)
                .map(drop),
            there
                .orchestrator
                .run(&cases, Until::Ended, &stop)
                .await
                .remove(0)
                .map(drop),
            there.orchestrator.check(&requests[0]).await.map(drop),
            there.orchestrator.open(&requests[0], first).await.map(drop),
        ] {
            let refused = refused.unwrap_err();
            assert!(matches!(refused, RunError::OtherCloud { .. }), "{refused}");
            assert!(
                refused.to_string().contains("https://a/v3") && refused.to_string().contains("https://b/v3")
            );
        }
        assert_eq!(writes(&rig.sandbox), 0, "{strategy}");
        assert_eq!(rig.journal.read(cases[0]).await.unwrap().len(), 1, "{strategy}");

        let report = resumed(&here, &taken).await;
        assert_eq!(outcome(&report), Outcome::Returned, "{strategy}: {report:?}");
        assert_clean(&rig.sandbox, node, strategy);
    }
}
