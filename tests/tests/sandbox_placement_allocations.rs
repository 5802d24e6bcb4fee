//! Placement's wire: allocations, the swap, capacity, consumers.
#![allow(
    clippy::unwrap_used,
    reason = "a helper of a test may fail as the test itself may"
)]

use http::{Method, StatusCode};
use serde_json::{Value, json};
use unprovision_testkit::sandbox::config::CapacityRule;
use unprovision_testkit::sandbox::handle::beginning;
use unprovision_testkit::sandbox::{Builder, Reply, Sandbox, Service, World};
use uuid::Uuid;

const CLASS: &str = "CUSTOM_BAREMETAL";

fn send(world: &mut World, version: &str, method: Method, path: &str, body: Option<Value>) -> Reply {
    world.ask_in(Service::Placement, version, method, path, body)
}

fn get(world: &mut World, path: &str) -> Value {
    send(world, "1.39", Method::GET, path, None).body
}

fn cloud() -> Builder {
    Sandbox::builder().nodes(3).deployed(1)
}

/// The world, the provider in use, its consumer, and a free provider.
fn world(builder: Builder) -> (World, Uuid, Uuid, Uuid) {
    let world = builder.world(beginning());
    let (node, instance) = world.deployed()[0];
    let free = world.nodes()[2].uuid;
    (world, node, instance, free)
}

fn generation(world: &World, provider: Uuid) -> u64 {
    world.provider(provider).unwrap().generation
}

fn put_reserved(world: &mut World, version: &str, provider: Uuid, reserved: u64, generation: u64) -> Reply {
    let inventory = json!({"total": 1, "reserved": reserved, "max_unit": 1});
    let body = json!({"resource_provider_generation": generation, "inventories": {CLASS: inventory}});
    send(
        world,
        version,
        Method::PUT,
        &format!("/resource_providers/{provider}/inventories"),
        Some(body),
    )
}

fn part(provider: Option<Uuid>, generation: Value) -> Value {
    let allocations = match provider {
        Some(provider) => json!({provider.to_string(): {"resources": {CLASS: 1}}}),
        None => json!({}),
    };
    json!({
        "allocations": allocations, "consumer_generation": generation, "project_id": "p", "user_id": "u",
        "consumer_type": "INSTANCE",
    })
}

fn swap(world: &mut World, provider: Uuid, giver: (Uuid, Value), receiver: (Uuid, Value)) -> Reply {
    let body = json!({
        giver.0.to_string(): part(None, giver.1),
        receiver.0.to_string(): part(Some(provider), receiver.1),
    });
    send(world, "1.39", Method::POST, "/allocations", Some(body))
}

const GUARD: Uuid = Uuid::from_u128(0xABCD);

#[test]
fn the_swap_is_atomic_and_moves_the_generation_by_one() {
    let (mut world, node, instance, _) = world(cloud());
    let before = generation(&world, node);
    let reply = swap(&mut world, node, (instance, json!(1)), (GUARD, Value::Null));
    assert_eq!(reply.status, StatusCode::NO_CONTENT);
    assert_eq!(generation(&world, node), before + 1);
    assert_eq!(
        get(&mut world, &format!("/allocations/{instance}")),
        json!({"allocations": {}})
    );
    let guard = get(&mut world, &format!("/allocations/{GUARD}"));
    assert_eq!(guard["consumer_generation"], 1);
    assert_eq!(guard["allocations"][node.to_string()]["generation"], before + 1);
    assert_eq!(world.holders(node), [GUARD]);
}

#[test]
fn a_wrong_generation_on_either_side_refuses_the_swap() {
    let (mut world, node, instance, _) = world(cloud());
    for (giver, receiver) in [
        (json!(99), Value::Null),
        (json!(1), json!(5)),
        (Value::Null, Value::Null),
    ] {
        let reply = swap(&mut world, node, (instance, giver), (GUARD, receiver));
        assert_eq!(
            (reply.status, reply.code()),
            (StatusCode::CONFLICT, "placement.concurrent_update")
        );
    }
    assert_eq!(world.holders(node), [instance]);
    assert!(world.consumer(GUARD).is_none());
}

#[test]
fn naming_only_the_receiver_is_a_lack_of_capacity() {
    let (mut world, node, ..) = world(cloud());
    let body = json!({GUARD.to_string(): part(Some(node), Value::Null)});
    let reply = send(&mut world, "1.39", Method::POST, "/allocations", Some(body));
    assert_eq!(
        (reply.status, reply.code()),
        (StatusCode::CONFLICT, "placement.undefined_code")
    );
    assert!(reply.error().contains("would exceed the capacity"));
}

#[test]
fn over_capacity_the_new_rule_lets_the_swap_pass_and_the_old_one_does_not() {
    for (rule, status) in [(CapacityRule::GrowthOnly, 204), (CapacityRule::Always, 409)] {
        let builder = cloud()
            .reserved_in_use(true)
            .configure(|c| c.placement.capacity_rule = rule);
        let (mut world, node, instance, _) = world(builder);
        let reply = swap(&mut world, node, (instance, json!(1)), (GUARD, Value::Null));
        assert_eq!(reply.status, status, "{rule:?}");
        if rule == CapacityRule::Always {
            assert_eq!(reply.code(), "placement.undefined_code");
            assert!(reply.error().contains("Unable to allocate inventory"));
            assert!(world.consumer(GUARD).is_none(), "nothing is left behind");
        }
    }
    // Below capacity both pass, and emptying always passes.
    let builder = cloud().configure(|c| c.placement.capacity_rule = CapacityRule::Always);
    let (mut world, node, instance, _) = world(builder);
    assert_eq!(
        swap(&mut world, node, (instance, json!(1)), (GUARD, Value::Null)).status,
        204
    );
    let now = generation(&world, node);
    put_reserved(&mut world, "1.39", node, 1, now);
    let empty = part(None, json!(1));
    assert_eq!(
        send(
            &mut world,
            "1.39",
            Method::PUT,
            &format!("/allocations/{GUARD}"),
            Some(empty)
        )
        .status,
        204
    );
}

#[test]
fn an_emptied_consumer_is_gone_and_starts_anew() {
    let (mut world, node, instance, free) = world(cloud());
    let path = format!("/allocations/{instance}");
    assert_eq!(
        send(&mut world, "1.39", Method::PUT, &path, Some(part(None, json!(1)))).status,
        204
    );
    assert!(world.consumer(instance).is_none());
    assert!(world.is_offered(node));
    assert_eq!(
        send(
            &mut world,
            "1.39",
            Method::PUT,
            &path,
            Some(part(Some(free), json!(2)))
        )
        .status,
        409
    );
    assert_eq!(
        send(
            &mut world,
            "1.39",
            Method::PUT,
            &path,
            Some(part(Some(free), Value::Null))
        )
        .status,
        204
    );
    assert_eq!(world.consumer(instance).unwrap().generation, 1);
    assert_eq!(
        send(
            &mut world,
            "1.39",
            Method::PUT,
            &path,
            Some(part(Some(free), json!(1)))
        )
        .status,
        204
    );
    assert_eq!(world.consumer(instance).unwrap().generation, 2);
}

#[test]
fn a_consumer_left_empty_wants_generation_0() {
    let (mut world, node, instance, _) = world(cloud());
    world.leave_empty_consumer(GUARD);
    assert_eq!(
        get(&mut world, &format!("/allocations/{GUARD}")),
        json!({"allocations": {}})
    );
    let reply = swap(&mut world, node, (instance, json!(1)), (GUARD, Value::Null));
    assert_eq!(reply.code(), "placement.concurrent_update");
    assert!(reply.error().contains("expected 0 but got None"));
    assert_eq!(
        swap(&mut world, node, (instance, json!(1)), (GUARD, json!(0))).status,
        204
    );
}

#[test]
fn delete_checks_and_moves_no_generation() {
    let (mut world, node, instance, _) = world(cloud());
    let before = generation(&world, node);
    let path = format!("/allocations/{instance}");
    assert_eq!(
        send(&mut world, "1.39", Method::DELETE, &path, None).status,
        StatusCode::NO_CONTENT
    );
    assert_eq!(generation(&world, node), before);
    let reply = send(&mut world, "1.39", Method::DELETE, &path, None);
    assert_eq!(reply.status, StatusCode::NOT_FOUND);
    assert!(
        reply
            .error()
            .contains(&format!("No allocations for consumer '{instance}'"))
    );
}

#[test]
fn a_giver_keeps_what_it_holds_elsewhere() {
    let (mut world, node, instance, free) = world(cloud());
    let both = json!({
        "allocations": {
            node.to_string(): {"resources": {CLASS: 1}}, free.to_string(): {"resources": {CLASS: 1}},
        },
        "consumer_generation": 1, "project_id": "p", "user_id": "u", "consumer_type": "INSTANCE",
    });
    assert_eq!(
        send(
            &mut world,
            "1.39",
            Method::PUT,
            &format!("/allocations/{instance}"),
            Some(both)
        )
        .status,
        204
    );
    let body = json!({
        instance.to_string(): part(Some(free), json!(2)),
        GUARD.to_string(): part(Some(node), Value::Null),
    });
    assert_eq!(
        send(&mut world, "1.39", Method::POST, "/allocations", Some(body)).status,
        204
    );
    assert_eq!(
        (world.holders(node), world.holders(free)),
        (vec![GUARD], vec![instance])
    );
    assert_eq!(world.consumer(instance).unwrap().generation, 3);
}

#[test]
fn consumer_types_are_asked_for_from_1_38_on() {
    let (mut world, _, instance, free) = world(cloud());
    let path = format!("/allocations/{GUARD}");
    let mut body = part(Some(free), Value::Null);
    assert_eq!(
        send(&mut world, "1.36", Method::PUT, &path, Some(body.clone())).status,
        StatusCode::BAD_REQUEST
    );
    body["consumer_type"] = json!("lower-case");
    assert_eq!(
        send(&mut world, "1.39", Method::PUT, &path, Some(body.clone())).status,
        StatusCode::BAD_REQUEST
    );
    body.as_object_mut().unwrap().remove("consumer_type");
    assert_eq!(
        send(&mut world, "1.39", Method::PUT, &path, Some(body.clone())).status,
        StatusCode::BAD_REQUEST
    );
    assert_eq!(
        send(&mut world, "1.36", Method::PUT, &path, Some(body)).status,
        StatusCode::NO_CONTENT
    );
    // Nova writes below 1.38: what it wrote reads back as unknown, and that word cannot be written.
    assert_eq!(
        get(&mut world, &format!("/allocations/{instance}"))["consumer_type"],
        "unknown"
    );
    assert!(
        send(&mut world, "1.37", Method::GET, &path, None)
            .body
            .get("consumer_type")
            .is_none()
    );
    let mut body = part(Some(free), json!(1));
    body["consumer_type"] = json!("unknown");
    assert_eq!(
        send(&mut world, "1.39", Method::PUT, &path, Some(body)).status,
        StatusCode::BAD_REQUEST
    );
}

#[test]
fn project_and_user_follow_the_writer() {
    let (mut world, _, instance, _) = world(cloud());
    let (node, _) = world.deployed()[0];
    let path = format!("/allocations/{instance}");
    let before = get(&mut world, &path);
    assert_eq!(before["project_id"], world.config.nova.project);
    assert_eq!(
        send(
            &mut world,
            "1.39",
            Method::PUT,
            &path,
            Some(part(Some(node), json!(1)))
        )
        .status,
        204
    );
    let after = get(&mut world, &path);
    assert_eq!(
        (&after["project_id"], &after["user_id"]),
        (&json!("p"), &json!("u"))
    );
    let usages = get(&mut world, "/usages?project_id=p&consumer_type=all");
    assert_eq!(usages["usages"]["all"], json!({CLASS: 1, "consumer_count": 1}));
}
