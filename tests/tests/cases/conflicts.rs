//! C10 generations, C11 over capacity, C12 old Placement, C13 consumers, C15 resource classes.

use unprovision::core::Outcome;
use unprovision_testkit::rig::Rig;
use unprovision_testkit::sandbox::config::{CapacityRule, NovaRule};
use unprovision_testkit::sandbox::placement::Inventory;
use unprovision_testkit::sandbox::{Fault, Sandbox, Service, World};
use uuid::Uuid;

use crate::common::{
    assert_clean, assert_unexposed, count, holding, only, outcome, request, requests, secs, strategies,
    writes,
};

fn one() -> Sandbox {
    Sandbox::builder()
        .nodes(1)
        .deployed(1)
        .teardown(secs(4))
        .cleaning(secs(60))
        .build()
}

fn writes_to_placement() -> [Fault; 2] {
    [http::Method::POST, http::Method::PUT].map(|method| Fault::on(Service::Placement).method(method))
}

/// Somebody else writes the provider between our look and our write, again and again.
#[tokio::test(start_paused = true)]
async fn c10_a_second_writer_is_read_again() {
    for strategy in strategies() {
        for times in [1, 5, 50] {
            let sandbox = one();
            let (node, instance) = only(&sandbox);
            sandbox.with(|world, now| {
                request(
                    world,
                    now,
                    Service::Placement,
                    "PUT /resource_classes/CUSTOM_OTHER",
                    &serde_json::Value::Null,
                );
                world.edit_provider(node, |provider| {
                    provider
                        .inventories
                        .insert("CUSTOM_OTHER".into(), Inventory::of(4, 4));
                })
            });
            for fault in writes_to_placement() {
                sandbox.fault(fault.nth(1).times(times).before(move |world, _| {
                    world.edit_provider(node, |provider| provider.generation += 1);
                    world.touch_consumer(instance);
                }));
            }
            let rig = Rig::new(sandbox.clone());
            let reports = rig.tear_down(&requests(&rig, strategy)).await.unwrap();
            assert_eq!(
                outcome(&reports[0]),
                Outcome::Returned,
                "{strategy}, {times}: {reports:?}"
            );
            assert_clean(&sandbox, node, strategy);
            let other =
                sandbox.with(|world, _| world.provider(node).unwrap().inventories["CUSTOM_OTHER"].clone());
            assert_eq!(
                other,
                Inventory::of(4, 4),
                "{strategy}: the other class is as it was"
            );
        }
    }
}

/// The tracker reserves the node between our look and our write: then there is nothing left to reserve.
#[tokio::test(start_paused = true)]
async fn c10_what_somebody_else_did_already_is_not_done_again() {
    let sandbox = one();
    let (node, _) = only(&sandbox);
    // Not a provider of Nova's: there, the reservation would be lifted in Nova's stead.
    sandbox.with(|world, _| world.edit_provider(node, |provider| provider.traits.clear()));
    let reserve = move |world: &mut World, _| {
        world.edit_provider(node, |provider| {
            provider
                .inventories
                .values_mut()
                .for_each(|inventory| inventory.reserved = inventory.total);
            provider.generation += 1;
        });
    };
    sandbox.fault(
        Fault::on(Service::Placement)
            .method(http::Method::PUT)
            .path("/resource_providers/*/inventories")
            .nth(1)
            .before(reserve),
    );
    let rig = Rig::new(sandbox.clone());
    let reports = rig.tear_down(&requests(&rig, "reserve-on-delete")).await.unwrap();
    assert_eq!(outcome(&reports[0]), Outcome::Returned);
    assert_eq!(
        count(&sandbox, "PUT", "/inventories"),
        (0, 1),
        "one refused, and no other"
    );
    assert!(!sandbox.is_offered(node), "the reservation is not ours to lift");
}

/// Reserved and in use, as current Nova has it: old Placement refuses the hand-over, and the reservation is adopted.
#[tokio::test(start_paused = true)]
async fn c11_over_capacity_is_adopted_not_fought() {
    for (rule, accepted) in [(CapacityRule::Always, 0), (CapacityRule::GrowthOnly, 1)] {
        let sandbox = Sandbox::builder()
            .nodes(1)
            .deployed(1)
            .teardown(secs(4))
            .cleaning(secs(60))
            .nova(NovaRule::Current);
        let sandbox = sandbox
            .configure(|config| config.placement.capacity_rule = rule)
            .build();
        tokio::time::sleep(secs(90)).await;
        let rig = Rig::new(sandbox.clone());
        let (node, _) = only(&sandbox);
        let reports = rig.tear_down(&requests(&rig, "hand-over")).await.unwrap();
        assert_eq!(outcome(&reports[0]), Outcome::Returned, "{rule:?}: {reports:?}");
        let (ok, all) = count(&sandbox, "POST", "/allocations");
        assert_eq!(ok, accepted, "{rule:?}");
        assert!(all <= 2, "{rule:?}: {all} hand-overs sent");
        assert_clean(&sandbox, node, "hand-over");
        tokio::time::sleep(secs(300)).await;
        assert_clean(&sandbox, node, "hand-over, after some of Nova's passes");
    }
}

#[tokio::test(start_paused = true)]
async fn c12_a_placement_that_is_too_old_is_refused_before_anything_is_touched() {
    for strategy in strategies() {
        let sandbox = Sandbox::builder()
            .nodes(1)
            .deployed(1)
            .configure(|config| config.placement.max_minor = 25)
            .build();
        let rig = Rig::new(sandbox.clone());
        let error = rig.tear_down(&requests(&rig, strategy)).await.unwrap_err();
        assert!(error.to_string().contains("1.28"), "{error}");
        assert_eq!(writes(&sandbox), 0);
    }
}

/// The instance's allocation goes while we are about to take it over.
#[tokio::test(start_paused = true)]
async fn c13_an_allocation_that_vanishes_is_claimed() {
    for path in ["/allocations", "/allocations/*"] {
        let sandbox = one();
        let (node, instance) = only(&sandbox);
        let method = if path == "/allocations" {
            http::Method::POST
        } else {
            http::Method::GET
        };
        let gone = move |world: &mut World, now| {
            request(
                world,
                now,
                Service::Placement,
                &format!("DELETE /allocations/{instance}"),
                &serde_json::Value::Null,
            );
        };
        // The second look at the consumer is the first of the run itself.
        let nth = if path == "/allocations" { 1 } else { 2 };
        sandbox.fault(
            Fault::on(Service::Placement)
                .method(method)
                .path(path)
                .nth(nth)
                .before(gone),
        );
        let rig = Rig::new(sandbox.clone());
        let reports = rig.tear_down(&requests(&rig, "hand-over")).await.unwrap();
        assert_eq!(outcome(&reports[0]), Outcome::Returned, "{path}: {reports:?}");
        assert!(!sandbox.is_offered(node) || sandbox.with(|world, _| world.holders(node)).is_empty());
        let left = sandbox.with(|world, _| world.holders(node));
        assert!(left.is_empty() && sandbox.is_offered(node));
    }
}

/// A crash left our consumer without allocations: Placement then expects generation 0 and shows nothing.
#[tokio::test(start_paused = true)]
async fn c13_an_empty_consumer_of_an_earlier_crash_is_no_obstacle() {
    let sandbox = one();
    let (node, instance) = only(&sandbox);
    let guard = unprovision::core::guard_consumer(ironic_client::NodeUuid(node), instance);
    sandbox.with(|world, _| world.leave_empty_consumer(guard.0));
    let rig = Rig::new(sandbox.clone());
    let reports = rig.tear_down(&requests(&rig, "hand-over")).await.unwrap();
    assert_eq!(outcome(&reports[0]), Outcome::Returned, "{reports:?}");
    assert_eq!(
        count(&sandbox, "POST", "/allocations"),
        (1, 2),
        "one refused, one with generation 0"
    );
    assert_clean(&sandbox, node, "hand-over");
}

#[tokio::test(start_paused = true)]
async fn c13_every_placement_since_1_28_will_do() {
    for strategy in strategies() {
        for max in [28, 36, 38, 39] {
            let sandbox = Sandbox::builder()
                .nodes(1)
                .deployed(1)
                .cleaning(secs(60))
                .configure(|c| c.placement.max_minor = max)
                .build();
            let rig = Rig::new(sandbox.clone());
            let reports = rig.tear_down(&requests(&rig, strategy)).await.unwrap();
            assert_eq!(
                outcome(&reports[0]),
                Outcome::Returned,
                "{strategy}, 1.{max}: {reports:?}"
            );
            assert_clean(&sandbox, only_node(&sandbox), strategy);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn c13_a_500_once_is_no_obstacle() {
    for strategy in strategies() {
        for fault in writes_to_placement() {
            let sandbox = one();
            sandbox.fault(fault.nth(1).status(http::StatusCode::INTERNAL_SERVER_ERROR, "{}"));
            let rig = Rig::new(sandbox.clone());
            let reports = rig.tear_down(&requests(&rig, strategy)).await.unwrap();
            assert_eq!(outcome(&reports[0]), Outcome::Returned, "{strategy}: {reports:?}");
            assert_clean(&sandbox, only_node(&sandbox), strategy);
        }
    }
}

/// An instance may hold more than the node: the rest stays as it was.
#[tokio::test(start_paused = true)]
async fn what_the_instance_holds_elsewhere_stays() {
    for strategy in strategies() {
        let sandbox = Sandbox::builder()
            .nodes(2)
            .deployed(1)
            .teardown(secs(4))
            .cleaning(secs(60))
            .build();
        let (node, instance) = only(&sandbox);
        let elsewhere = sandbox.nodes().into_iter().find(|other| *other != node).unwrap();
        let class = sandbox
            .with(|world, _| world.provider(node).unwrap().inventories.keys().next().cloned())
            .unwrap();
        let both = [node, elsewhere].map(|provider| {
            (
                provider.to_string(),
                serde_json::json!({ "resources": { &class: 1 } }),
            )
        });
        let body = serde_json::json!({
            "allocations": serde_json::Map::from_iter(both), "project_id": "p", "user_id": "u", "consumer_generation": 1,
        });
        let call = format!("PUT /allocations/{instance}");
        sandbox.with(|world, now| request(world, now, Service::Placement, &call, &body));
        let rig = Rig::new(sandbox.clone());
        let reports = rig.tear_down(&requests(&rig, strategy)).await.unwrap();
        assert_eq!(outcome(&reports[0]), Outcome::Returned, "{strategy}: {reports:?}");
        assert_clean(&sandbox, node, strategy);
        assert_eq!(
            sandbox.with(|world, _| world.holders(elsewhere)),
            [instance],
            "{strategy}"
        );
    }
}

/// C15: a class whose name Nova mangles is held all the same.
#[tokio::test(start_paused = true)]
async fn c15_odd_class_names_are_held() {
    for strategy in strategies() {
        for class in [
            "baremetal.gp2.small",
            "bm--x..y",
            "CUSTOM_BAREMETAL",
            "-a-",
            "größe",
        ] {
            let sandbox = Sandbox::builder()
                .class(class)
                .nodes(1)
                .deployed(1)
                .cleaning(secs(60))
                .build();
            let rig = Rig::new(sandbox.clone());
            let node = only_node(&sandbox);
            let reports = rig.tear_down(&requests(&rig, strategy)).await.unwrap();
            assert_eq!(
                outcome(&reports[0]),
                Outcome::Returned,
                "{strategy}, {class}: {reports:?}"
            );
            assert_unexposed(&sandbox, node, strategy);
            assert_clean(&sandbox, node, strategy);
        }
    }
}

fn only_node(sandbox: &Sandbox) -> Uuid {
    sandbox.nodes()[0]
}

/// Placement refuses the hold for good: nothing is torn down, and the case ends.
#[tokio::test(start_paused = true)]
async fn a_hold_that_is_refused_for_good_blocks_the_tear_down() {
    for strategy in holding() {
        for status in [http::StatusCode::FORBIDDEN, http::StatusCode::BAD_REQUEST] {
            let sandbox = one();
            for fault in writes_to_placement() {
                sandbox.fault(fault.status(
                    status,
                    r#"{"errors": [{"detail": "no", "code": "placement.undefined_code"}]}"#,
                ));
            }
            let rig = Rig::new(sandbox.clone());
            let reports = rig.tear_down(&requests(&rig, strategy)).await.unwrap();
            assert_eq!(outcome(&reports[0]), Outcome::Blocked, "{strategy}: {reports:?}");
            assert!(
                !reports[0].held && reports[0].reason.contains("no"),
                "{}",
                reports[0].reason
            );
            assert_eq!(count(&sandbox, "PUT", "/states/provision").1, 0);
        }
    }
}
