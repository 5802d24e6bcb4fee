//! C25 what the provision call may answer, and everything that is refused before anything is touched.

use unprovision::core::{CannotOpen, Outcome};
use unprovision::orchestrator::RunError;
use unprovision_testkit::rig::Rig;
use unprovision_testkit::sandbox::config::NovaRule;
use unprovision_testkit::sandbox::{Fault, Sandbox, Service};
use uuid::Uuid;

use crate::common::{
    assert_clean, assert_unexposed, count, only, outcome, requests, secs, strategies, writes,
};

fn one() -> Sandbox {
    Sandbox::builder()
        .nodes(1)
        .deployed(1)
        .teardown(secs(4))
        .cleaning(secs(60))
        .build()
}

fn provision() -> Fault {
    Fault::on(Service::Ironic)
        .method(http::Method::PUT)
        .path("/v1/nodes/*/states/provision")
        .nth(1)
}

fn ironic_says(status: u16, text: &str) -> Fault {
    let inner =
        serde_json::json!({ "faultcode": "Client", "faultstring": text, "debuginfo": null }).to_string();
    let body = serde_json::json!({ "error_message": inner }).to_string();
    provision().status(http::StatusCode::from_u16(status).unwrap(), &body)
}

/// Whatever becomes of the answer, at most one tear-down is accepted and the node returns.
#[tokio::test(start_paused = true)]
async fn c25_a_lost_or_garbled_answer_is_looked_after() {
    for strategy in strategies() {
        let faults = [
            ("accepted, the answer lost", provision().lose_reply()),
            ("never arrived", provision().lose_request()),
            ("a proxy's 502", provision().bad_gateway()),
            ("500", ironic_says(500, "boom")),
            ("503", ironic_says(503, "no worker")),
            ("arrives late", provision().arrives_late(secs(2))),
        ];
        for (what, fault) in faults {
            let sandbox = one();
            sandbox.fault(fault);
            let rig = Rig::new(sandbox);
            let node = only(&rig.sandbox).0;
            let reports = rig.tear_down(&requests(&rig, strategy)).await.unwrap();
            assert_eq!(
                outcome(&reports[0]),
                Outcome::Returned,
                "{strategy}, {what}: {reports:?}"
            );
            assert!(
                count(&rig.sandbox, "PUT", "/states/provision").0 <= 1,
                "{strategy}, {what}"
            );
            assert_clean(&rig.sandbox, node, strategy);
        }
    }
}

/// No conductor for five minutes heals by itself.
#[tokio::test(start_paused = true)]
async fn c25_no_conductor_is_waited_out() {
    for strategy in strategies() {
        let sandbox = one();
        let text =
            "No conductor service registered which supports driver fake-hardware for conductor group \"\".";
        sandbox.fault(ironic_says(400, text).times(15));
        let rig = Rig::new(sandbox);
        let node = only(&rig.sandbox).0;
        let reports = rig.tear_down(&requests(&rig, strategy)).await.unwrap();
        assert_eq!(outcome(&reports[0]), Outcome::Returned, "{strategy}: {reports:?}");
        assert_clean(&rig.sandbox, node, strategy);
    }
}

/// Refused for good: Placement is put back exactly as it was, in favour of the instance.
#[tokio::test(start_paused = true)]
async fn c25_what_ironic_refuses_for_good_is_handed_back() {
    for strategy in strategies() {
        for (what, fault) in [
            ("forbidden", ironic_says(403, "Access was denied")),
            ("illegal", ironic_says(400, "The requested action \"deleted\" can not be performed on node x while it is in state \"active\".").times(50)),
        ] {
            let sandbox = one();
            sandbox.fault(fault);
            let rig = Rig::new(sandbox);
            let (node, instance) = only(&rig.sandbox);
            let before = rig.sandbox.with(|world, _| (world.holders(node), world.provider(node).unwrap().inventories.clone()));
            let reports = rig.tear_down(&requests(&rig, strategy)).await.unwrap();
            assert_eq!(outcome(&reports[0]), Outcome::Blocked, "{strategy}, {what}: {reports:?}");
            assert!(!reports[0].held, "{strategy}, {what}");
            let after = rig.sandbox.with(|world, _| (world.holders(node), world.provider(node).unwrap().inventories.clone()));
            assert_eq!(before, after, "{strategy}, {what}");
            assert_eq!(after.0, [instance]);
            assert!(rig.orchestrator.open_cases().await.unwrap().is_empty());
            assert_unexposed(&rig.sandbox, node, strategy);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn bad_requests_are_refused_before_anything_is_touched() {
    for strategy in strategies() {
        let sandbox = one();
        let rig = Rig::new(sandbox.clone());
        let (node, instance) = only(&sandbox);
        let refused = async |node, instance, remains| {
            let mut request = rig.request(node, instance, strategy);
            request.nova_record_remains = remains;
            match rig.tear_down(&[request]).await {
                Err(RunError::CannotOpen(why)) => why,
                other => panic!("{other:?}"),
            }
        };
        let other = Uuid::from_u128(99);
        assert!(matches!(
            refused(node, other, true).await,
            CannotOpen::OtherInstance { .. }
        ));
        assert!(matches!(
            refused(other, instance, true).await,
            CannotOpen::NoNode(_)
        ));
        sandbox.with(|world, _| world.edit_node(node, |node| node.protected = true));
        assert!(matches!(
            refused(node, instance, true).await,
            CannotOpen::Protected(_)
        ));
        sandbox.with(|world, _| {
            world.edit_node(node, |node| {
                (node.protected, node.instance_uuid) = (false, Some(other))
            })
        });
        assert!(matches!(
            refused(node, instance, true).await,
            CannotOpen::OtherInstance { .. }
        ));
        assert!(matches!(
            refused(node, other, true).await,
            CannotOpen::OtherHolder { .. }
        ));
        sandbox.with(|world, _| {
            world.edit_node(node, |node| {
                (node.resource_class, node.instance_uuid) = (None, Some(instance))
            })
        });
        assert!(matches!(
            refused(node, instance, true).await,
            CannotOpen::NoResourceClass(_)
        ));
        sandbox.with(|world, _| world.edit_node(node, |node| node.resource_class = Some("other".into())));
        assert!(matches!(
            refused(node, instance, true).await,
            CannotOpen::WrongResourceClass { .. }
        ));
        assert_eq!(writes(&sandbox), 0);
    }
}

/// Rule 4: a node of Nova's is not torn down behind its back.
#[tokio::test(start_paused = true)]
async fn a_node_of_novas_needs_the_callers_word() {
    let sandbox = Sandbox::builder()
        .nodes(1)
        .deployed(1)
        .nova(NovaRule::Current)
        .build();
    tokio::time::sleep(secs(120)).await;
    let rig = Rig::new(sandbox.clone());
    let (node, instance) = only(&sandbox);
    let before = sandbox
        .log()
        .requests()
        .filter(|request| request.who == "client")
        .count();
    let mut request = rig.request(node, instance, "hand-over");
    request.nova_record_remains = false;
    let refused = rig.tear_down(&[request]).await.unwrap_err();
    assert!(refused.to_string().contains("--nova-record-remains"), "{refused}");
    assert!(
        sandbox
            .log()
            .requests()
            .skip(before)
            .filter(|request| request.who == "client")
            .all(|request| request.method == "GET")
    );
}
