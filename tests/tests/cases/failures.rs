//! C03 `error` after a tear-down, C04 `clean failed`, C05 maintenance, C07 a dying conductor, C09 a node that vanishes,
//! C24 `last_error`.

use std::time::Duration;

use unprovision::core::{Outcome, TearDownRequest};
use unprovision::orchestrator::CaseReport;
use unprovision_testkit::rig::Rig;
use unprovision_testkit::sandbox::ironic::{CleanFailure, Node, State, Stuck};
use unprovision_testkit::sandbox::{Builder, Fault, Sandbox, Service, World};

use crate::common::{
    assert_clean, assert_unexposed, count, is_offered, only, outcome, request, resumed, secs, strategies,
};

fn one(spoil: impl Fn(&mut Node) + Send + Sync + 'static) -> Builder {
    Sandbox::builder()
        .nodes(1)
        .deployed(1)
        .teardown(secs(4))
        .cleaning(secs(60))
        .each_node(move |_, node| spoil(node))
}

async fn run(rig: &Rig, strategy: &str, change: impl Fn(&mut TearDownRequest)) -> CaseReport {
    let (node, instance) = only(&rig.sandbox);
    let mut request = rig.request(node, instance, strategy);
    change(&mut request);
    let report = rig.tear_down(&[request]).await.unwrap().remove(0);
    assert_unexposed(&rig.sandbox, node, strategy);
    report
}

#[tokio::test(start_paused = true)]
async fn c03_error_is_a_failure_that_stays_held() {
    for strategy in strategies() {
        let rig = Rig::new(one(|node| node.behaviour.teardown_failures = 1).build());
        let node = only(&rig.sandbox).0;
        let report = run(&rig, strategy, |_| {}).await;
        assert_eq!(outcome(&report), Outcome::Failed, "{report:?}");
        assert!(report.held && report.provision_state.unwrap().to_string() == "error");
        let last_error = rig
            .sandbox
            .with(|world, _| world.node(node).unwrap().last_error.clone())
            .unwrap();
        assert!(report.reason.contains(&last_error), "{}", report.reason);
        tokio::time::sleep(secs(600)).await;
        assert!(!is_offered(&rig.sandbox, node, strategy), "{strategy}");
    }
}

#[tokio::test(start_paused = true)]
async fn c03_error_is_retried_as_often_as_asked() {
    for strategy in strategies() {
        let rig = Rig::new(one(|node| node.behaviour.teardown_failures = 1).build());
        let node = only(&rig.sandbox).0;
        let report = run(&rig, strategy, |request| request.limits.retry_error = 1).await;
        assert_eq!(outcome(&report), Outcome::Returned, "{strategy}: {report:?}");
        assert_clean(&rig.sandbox, node, strategy);
        assert_eq!(count(&rig.sandbox, "PUT", "/states/provision").0, 2);

        let rig = Rig::new(one(|node| node.behaviour.teardown_failures = 100).build());
        let report = run(&rig, strategy, |request| request.limits.retry_error = 3).await;
        assert_eq!(outcome(&report), Outcome::Failed, "{strategy}: {report:?}");
        assert_eq!(
            count(&rig.sandbox, "PUT", "/states/provision").0,
            4,
            "the first, and exactly three more"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn c04_a_failed_cleaning_is_cured_as_often_as_asked() {
    for strategy in strategies() {
        let rig = Rig::new(one(|node| node.behaviour.clean_failures = 1).build());
        let node = only(&rig.sandbox).0;
        let report = run(&rig, strategy, |request| request.limits.reclean = 1).await;
        assert_eq!(outcome(&report), Outcome::Returned, "{strategy}: {report:?}");
        assert_clean(&rig.sandbox, node, strategy);
        let verbs = count(&rig.sandbox, "PUT", "/states/provision").0;
        assert_eq!(
            (verbs, count(&rig.sandbox, "DELETE", "/maintenance").0),
            (3, 1),
            "deleted, manage, provide"
        );

        let rig = Rig::new(one(|node| node.behaviour.clean_failures = 4).build());
        let report = run(&rig, strategy, |request| request.limits.reclean = 3).await;
        assert_eq!(outcome(&report), Outcome::Failed, "{strategy}: {report:?}");
        assert_eq!(
            count(&rig.sandbox, "PUT", "/states/provision").0,
            7,
            "deleted, and three times manage and provide"
        );
        assert!(report.held);
    }
}

/// The time-out kind sets no maintenance, so none is ended.
#[tokio::test(start_paused = true)]
async fn c04_a_cleaning_that_timed_out_is_cured_without_touching_maintenance() {
    for strategy in strategies() {
        let spoil = |node: &mut Node| {
            node.behaviour.clean_failures = 1;
            node.behaviour.clean_failure = CleanFailure::Timeout;
        };
        let rig = Rig::new(one(spoil).agent().build());
        let report = run(&rig, strategy, |request| request.limits.reclean = 1).await;
        assert_eq!(outcome(&report), Outcome::Returned, "{strategy}: {report:?}");
        assert_eq!(count(&rig.sandbox, "DELETE", "/maintenance").1, 0);
    }
}

/// A person's maintenance is never ended, and the node is left alone.
#[tokio::test(start_paused = true)]
async fn c04_a_persons_maintenance_is_respected() {
    for strategy in strategies() {
        let spoil = |node: &mut Node| {
            node.behaviour.clean_failures = 1;
            node.behaviour.clean_failure = CleanFailure::Timeout;
        };
        let rig = Rig::new(one(spoil).agent().build());
        let (node, instance) = only(&rig.sandbox);
        let mut request = rig.request(node, instance, strategy);
        request.limits.reclean = 1;
        let requests = [request];
        let put_aside = async {
            tokio::time::sleep(secs(5)).await;
            rig.sandbox.with(|world, _| {
                world.edit_node(node, |node| {
                    node.maintenance = true;
                    node.maintenance_reason = Some("RMA".into());
                })
            });
            // With maintenance on, the sandbox's agent pauses: fail it by hand.
            tokio::time::sleep(secs(30)).await;
            rig.sandbox.with(|world, now| {
                world.edit_node(node, |node| {
                    node.provision_state = State::CleanFailed;
                    node.provision_updated_at = Some(now);
                    node.last_error = Some("timed out".into());
                })
            });
        };
        let (reports, ()) = tokio::join!(rig.tear_down(&requests), put_aside);
        let report = reports.unwrap().remove(0);
        assert_eq!(outcome(&report), Outcome::Failed, "{strategy}: {report:?}");
        assert!(report.reason.contains("RMA") && report.held, "{}", report.reason);
        assert_eq!(
            count(&rig.sandbox, "PUT", "/states/provision").1,
            1,
            "only the tear-down itself"
        );
        assert_eq!(count(&rig.sandbox, "DELETE", "/maintenance").1, 0);
        assert_unexposed(&rig.sandbox, node, strategy);
    }
}

/// `manageable` after a failed cleaning is an operator at work, never a free node.
#[tokio::test(start_paused = true)]
async fn c04_an_operator_may_cure_it_and_resume_releases_it() {
    for strategy in strategies() {
        let rig = Rig::new(one(|node| node.behaviour.clean_failures = 1).build());
        let node = only(&rig.sandbox).0;
        assert_eq!(outcome(&run(&rig, strategy, |_| {}).await), Outcome::Failed);
        for (after, verb) in [(10, "manage"), (60, "provide")] {
            tokio::time::sleep(secs(after)).await;
            if verb == "provide" {
                rig.sandbox.with(|world, _| {
                    world.edit_node(node, |node| {
                        node.maintenance = false;
                        node.fault = None;
                    })
                });
            }
            assert!(
                !is_offered(&rig.sandbox, node, strategy),
                "{strategy}: before {verb}"
            );
            let call = format!("PUT /v1/nodes/{node}/states/provision");
            let body = serde_json::json!({ "target": verb });
            rig.sandbox
                .with(|world, now| request(world, now, Service::Ironic, &call, &body));
        }
        let next = rig.restarted();
        let open = next.orchestrator.open_cases().await.unwrap();
        assert_eq!(open.len(), 1);
        let limits = next.limits(secs(3600));
        let report = resumed(&next, &[(open[0].id, limits)]).await;
        assert_eq!(outcome(&report), Outcome::Returned, "{strategy}: {report:?}");
        assert_clean(&rig.sandbox, node, strategy);
        assert!(next.orchestrator.open_cases().await.unwrap().is_empty());
    }
}

#[tokio::test(start_paused = true)]
async fn c05_maintenance_pauses_the_wait_and_blocks_it_at_the_deadline() {
    for strategy in strategies() {
        for lifted in [true, false] {
            let rig = Rig::new(one(|_| {}).agent().build());
            let (node, instance) = only(&rig.sandbox);
            let mut request = rig.request(node, instance, strategy);
            request.limits = rig.limits(secs(3600));
            let requests = [request];
            let maintain = async {
                tokio::time::sleep(secs(30)).await;
                rig.sandbox
                    .with(|world, now| set_maintenance(world, node, true, now));
                tokio::time::sleep(secs(1200)).await;
                assert!(!is_offered(&rig.sandbox, node, strategy), "{strategy}");
                if lifted {
                    rig.sandbox
                        .with(|world, now| set_maintenance(world, node, false, now));
                }
            };
            let (reports, ()) = tokio::join!(rig.tear_down(&requests), maintain);
            let report = reports.unwrap().remove(0);
            assert_unexposed(&rig.sandbox, node, strategy);
            if lifted {
                assert_eq!(outcome(&report), Outcome::Returned, "{strategy}: {report:?}");
                assert_clean(&rig.sandbox, node, strategy);
            } else {
                assert_eq!(outcome(&report), Outcome::Blocked, "{strategy}: {report:?}");
                assert!(
                    report.held && report.reason.contains("on fire"),
                    "{}",
                    report.reason
                );
            }
        }
    }
}

/// As an operator does it, by the API, so that the sandbox's agent notices.
fn set_maintenance(world: &mut World, node: uuid::Uuid, on: bool, now: jiff::Timestamp) {
    let method = if on { "PUT" } else { "DELETE" };
    let body = serde_json::json!({ "reason": "on fire" });
    request(
        world,
        now,
        Service::Ironic,
        &format!("{method} /v1/nodes/{node}/maintenance"),
        &body,
    );
}

#[tokio::test(start_paused = true)]
async fn c07_a_dead_conductor_is_waited_out_and_named() {
    for strategy in strategies() {
        let stuck = |flip_after| {
            move |node: &mut Node| {
                node.behaviour.stuck = Some(Stuck {
                    state: State::Deleting,
                    flip_after,
                })
            }
        };
        let rig = Rig::new(one(stuck(Some(secs(900)))).build());
        let report = run(&rig, strategy, |_| {}).await;
        assert_eq!(
            outcome(&report),
            Outcome::Failed,
            "{strategy}: flipped to error: {report:?}"
        );
        assert!(report.held);

        let rig = Rig::new(one(stuck(None)).build());
        let limits = rig.limits(secs(1800));
        let report = run(&rig, strategy, |request| request.limits = limits).await;
        assert_eq!(outcome(&report), Outcome::TimedOut, "{strategy}: {report:?}");
        let conductor = rig
            .sandbox
            .with(|world, _| world.nodes()[0].reservation.clone())
            .unwrap();
        assert!(
            report.held && report.reason.contains(&conductor),
            "{}",
            report.reason
        );
    }
}

#[tokio::test(start_paused = true)]
async fn c09_a_node_that_is_gone_is_not_a_success_and_never_offered() {
    for strategy in strategies() {
        let rig = Rig::new(one(|_| {}).build());
        let (node, instance) = only(&rig.sandbox);
        let requests = [rig.request(node, instance, strategy)];
        let vanish = async {
            tokio::time::sleep(secs(20)).await;
            rig.sandbox.with(|world, _| world.remove_node(node));
        };
        let (reports, ()) = tokio::join!(rig.tear_down(&requests), vanish);
        assert_eq!(outcome(&reports.unwrap()[0]), Outcome::Gone, "{strategy}");
        assert!(!rig.sandbox.is_offered(node));
        assert_unexposed(&rig.sandbox, node, strategy);
        let (holders, reserved) = rig.sandbox.with(|world, _| {
            let provider = world.provider(node).unwrap();
            (
                world.holders(node),
                provider
                    .inventories
                    .values()
                    .all(|inventory| inventory.reserved == inventory.total),
            )
        });
        assert!(
            holders.is_empty() && reserved,
            "{strategy}: Nova must be able to delete the provider"
        );
    }
}

/// Each write is followed by a look, and not each look has to confirm anew what was confirmed.
#[tokio::test(start_paused = true)]
async fn c09_that_a_node_is_gone_is_confirmed_once() {
    for strategy in strategies() {
        let rig = Rig::new(one(|_| {}).build());
        let (node, instance) = only(&rig.sandbox);
        let requests = [rig.request(node, instance, strategy)];
        let vanish = async {
            tokio::time::sleep(secs(20)).await;
            rig.sandbox.with(|world, _| world.remove_node(node));
            rig.sandbox.now()
        };
        let (reports, vanished) = tokio::join!(rig.tear_down(&requests), vanish);
        assert_eq!(outcome(&reports.unwrap()[0]), Outcome::Gone, "{strategy}");
        let took = rig.sandbox.now().duration_since(vanished).unsigned_abs();
        assert!(secs(16) <= took && took < secs(20), "{strategy}: {took:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn c09_one_missing_answer_is_not_believed() {
    for strategy in strategies() {
        let rig = Rig::new(one(|_| {}).build());
        let node = only(&rig.sandbox).0;
        let missing = r#"{"error_message": "{\"faultstring\": \"Node could not be found.\"}"}"#;
        let fault = Fault::on(Service::Ironic)
            .method(http::Method::GET)
            .path("/v1/nodes/*")
            .nth(9)
            .status(http::StatusCode::NOT_FOUND, missing);
        rig.sandbox.fault(fault.header(
            http::HeaderName::from_static("x-openstack-ironic-api-version"),
            "1.115",
        ));
        let report = run(&rig, strategy, |_| {}).await;
        assert_eq!(outcome(&report), Outcome::Returned, "{strategy}: {report:?}");
        assert_clean(&rig.sandbox, node, strategy);
    }
}

#[tokio::test(start_paused = true)]
async fn c24_the_text_of_a_failure_may_come_late_and_an_error_text_is_no_failure() {
    for strategy in strategies() {
        let late = |node: &mut Node| {
            node.behaviour.clean_failures = 1;
            node.behaviour.late_error = Some(Duration::from_secs(2));
        };
        let rig = Rig::new(one(late).build());
        let report = run(&rig, strategy, |_| {}).await;
        let text = rig
            .sandbox
            .with(|world, _| world.nodes()[0].last_error.clone())
            .unwrap();
        assert_eq!(outcome(&report), Outcome::Failed);
        assert!(report.reason.contains(&text), "{strategy}: {}", report.reason);

        let rig = Rig::new(one(|node| node.last_error = Some("node is locked by host c1".into())).build());
        assert_eq!(
            outcome(&run(&rig, strategy, |_| {}).await),
            Outcome::Returned,
            "{strategy}"
        );
    }
}
