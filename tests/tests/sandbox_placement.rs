//! Placement's wire: versions, providers, inventories, traits, candidates.
#![allow(
    clippy::unwrap_used,
    reason = "a helper of a test may fail as the test itself may"
)]

use http::{Method, StatusCode};
use serde_json::{Value, json};
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

#[test]
fn versions_are_negotiated_by_header() {
    let (mut world, node, ..) = world(cloud().configure(|c| c.placement.max_minor = 25));
    let root = send(&mut world, "", Method::GET, "/", None);
    assert_eq!(root.headers["openstack-api-version"], "placement 1.0");
    assert_eq!(root.body["versions"][0]["links"][0]["href"], "");
    assert_eq!(root.body["versions"][0]["max_version"], "1.25");
    let path = format!("/resource_providers/{node}");
    let reply = send(&mut world, "1.26", Method::GET, &path, None);
    assert_eq!(
        (reply.status, &reply.body["errors"][0]["max_version"]),
        (StatusCode::NOT_ACCEPTABLE, &json!("1.25"))
    );
    assert_eq!(
        send(&mut world, "abc", Method::GET, &path, None).status,
        StatusCode::BAD_REQUEST
    );
    assert_eq!(
        send(&mut world, "latest", Method::GET, &path, None).headers["openstack-api-version"],
        "placement 1.25"
    );
}

#[test]
fn errors_have_a_code_from_1_23_on() {
    let (mut world, node, ..) = world(cloud());
    let reply = put_reserved(&mut world, "1.39", node, 0, 99);
    assert_eq!(
        (reply.status, reply.code()),
        (StatusCode::CONFLICT, "placement.concurrent_update")
    );
    let reply = put_reserved(&mut world, "1.22", node, 0, 99);
    assert_eq!((reply.status, reply.code()), (StatusCode::CONFLICT, ""));
}

#[test]
fn reserved_may_equal_total_from_1_26_on_and_never_exceed_it() {
    let (mut world, _, _, free) = world(cloud());
    let now = generation(&world, free);
    assert_eq!(
        put_reserved(&mut world, "1.25", free, 1, now).status,
        StatusCode::BAD_REQUEST
    );
    let reply = put_reserved(&mut world, "1.39", free, 2, now);
    assert_eq!(reply.status, StatusCode::BAD_REQUEST);
    assert!(
        reply
            .error()
            .contains("The reserved value is greater than total.")
    );
    let reply = put_reserved(&mut world, "1.26", free, 1, now);
    assert_eq!(
        (reply.status, &reply.body["resource_provider_generation"]),
        (StatusCode::OK, &json!(now + 1))
    );
    assert!(!world.is_offered(free));
}

#[test]
fn reserving_a_unit_in_use_is_allowed_and_hides_it() {
    let (mut world, node, instance, _) = world(cloud());
    let now = generation(&world, node);
    assert_eq!(
        put_reserved(&mut world, "1.39", node, 1, now).status,
        StatusCode::OK
    );
    send(
        &mut world,
        "1.39",
        Method::DELETE,
        &format!("/allocations/{instance}"),
        None,
    );
    assert!(!world.is_offered(node));
}

#[test]
fn inventories_in_use_cannot_be_dropped() {
    let (mut world, node, ..) = world(cloud());
    let path = format!("/resource_providers/{node}/inventories");
    let body = json!({"resource_provider_generation": generation(&world, node), "inventories": {}});
    for (method, body) in [(Method::PUT, Some(body)), (Method::DELETE, None)] {
        let reply = send(&mut world, "1.39", method, &path, body);
        assert_eq!(
            (reply.status, reply.code()),
            (StatusCode::CONFLICT, "placement.inventory.inuse")
        );
    }
    let reply = send(
        &mut world,
        "1.39",
        Method::DELETE,
        &format!("/resource_providers/{node}"),
        None,
    );
    assert_eq!(reply.code(), "placement.resource_provider.inuse");
}

#[test]
fn candidates_answer_for_all_providers_at_once() {
    let (mut world, node, _, free) = world(cloud());
    let all = get(&mut world, &format!("/allocation_candidates?resources={CLASS}:1"));
    assert_eq!(all["allocation_requests"].as_array().unwrap().len(), 2);
    assert!(all["provider_summaries"].get(node.to_string()).is_none());
    let summary = &all["provider_summaries"][free.to_string()];
    assert_eq!(summary["resources"][CLASS], json!({"capacity": 1, "used": 0}));
    let one = get(
        &mut world,
        &format!("/allocation_candidates?resources={CLASS}:1&limit=1"),
    );
    assert_eq!(one["allocation_requests"].as_array().unwrap().len(), 1);
    let list = get(&mut world, &format!("/resource_providers?resources={CLASS}:1"));
    assert_eq!(list["resource_providers"].as_array().unwrap().len(), 2);
    let none = get(
        &mut world,
        &format!("/allocation_candidates?resources={CLASS}:1&in_tree={node}"),
    );
    assert_eq!(none, json!({"allocation_requests": [], "provider_summaries": {}}));
}

#[test]
fn forbidden_and_any_traits_hide_what_they_should() {
    let (mut world, _, _, free) = world(cloud());
    send(&mut world, "1.39", Method::PUT, "/traits/CUSTOM_TAG", None);
    let body = json!({"resource_provider_generation": generation(&world, free), "traits": ["CUSTOM_TAG"]});
    let path = format!("/resource_providers/{free}/traits");
    assert_eq!(
        send(&mut world, "1.39", Method::PUT, &path, Some(body)).status,
        StatusCode::OK
    );
    let base = format!("/allocation_candidates?resources={CLASS}:1&in_tree={free}");
    let count = |world: &mut World, more: &str| {
        let body = get(world, &format!("{base}{more}"));
        body["allocation_requests"].as_array().map(Vec::len)
    };
    assert_eq!(count(&mut world, ""), Some(1));
    assert_eq!(count(&mut world, "&required=!CUSTOM_TAG"), Some(0));
    assert_eq!(count(&mut world, "&required=CUSTOM_TAG"), Some(1));
    assert_eq!(
        count(&mut world, "&required=in:CUSTOM_TAG,HW_CPU_X86_VMX"),
        Some(1)
    );
    assert_eq!(
        count(
            &mut world,
            "&required=in:CUSTOM_TAG,HW_CPU_X86_VMX&required=!CUSTOM_TAG"
        ),
        Some(0)
    );
    for (version, required) in [
        ("1.21", "!CUSTOM_TAG"),
        ("1.38", "in:CUSTOM_TAG,HW_CPU_X86_VMX"),
        ("1.39", "CUSTOM_NOPE"),
    ] {
        let path = format!("/allocation_candidates?resources={CLASS}:1&required={required}");
        assert_eq!(
            send(&mut world, version, Method::GET, &path, None).status,
            StatusCode::BAD_REQUEST,
            "{required}"
        );
    }
    let reply = send(
        &mut world,
        "1.39",
        Method::GET,
        "/allocation_candidates?resources=CUSTOM_NOPE:1",
        None,
    );
    assert!(reply.error().contains("No such resource class CUSTOM_NOPE."));
}

#[test]
fn traits_are_created_before_use_and_guarded_by_generation() {
    let (mut world, node, ..) = world(cloud());
    assert_eq!(
        send(&mut world, "1.39", Method::PUT, "/traits/CUSTOM_A", None).status,
        StatusCode::CREATED
    );
    assert_eq!(
        send(&mut world, "1.39", Method::PUT, "/traits/CUSTOM_A", None).status,
        StatusCode::NO_CONTENT
    );
    assert_eq!(
        send(&mut world, "1.39", Method::PUT, "/traits/LAB_X", None).status,
        StatusCode::BAD_REQUEST
    );
    let path = format!("/resource_providers/{node}/traits");
    let now = generation(&world, node);
    let put = |world: &mut World, names: &[&str], generation: u64| {
        let body = json!({"resource_provider_generation": generation, "traits": names});
        send(world, "1.39", Method::PUT, &path, Some(body))
    };
    assert_eq!(
        put(&mut world, &["CUSTOM_NOPE"], now).status,
        StatusCode::BAD_REQUEST
    );
    assert_eq!(
        put(&mut world, &["CUSTOM_A"], now + 7).code(),
        "placement.concurrent_update"
    );
    assert_eq!(
        put(&mut world, &["CUSTOM_A"], now).body["resource_provider_generation"],
        now + 1
    );
    assert_eq!(
        send(&mut world, "1.39", Method::DELETE, "/traits/CUSTOM_A", None).status,
        StatusCode::CONFLICT
    );
}

#[test]
fn providers_are_created_listed_and_deleted() {
    let (mut world, ..) = world(cloud());
    let uuid = Uuid::from_u128(5);
    let body = json!({"name": "new", "uuid": uuid});
    let reply = send(
        &mut world,
        "1.39",
        Method::POST,
        "/resource_providers",
        Some(body.clone()),
    );
    assert_eq!(
        (reply.status, &reply.body["generation"]),
        (StatusCode::OK, &json!(0))
    );
    let reply = send(
        &mut world,
        "1.39",
        Method::POST,
        "/resource_providers",
        Some(body),
    );
    assert_eq!(reply.code(), "placement.duplicate_name");
    let old = json!({"name": "older"});
    assert_eq!(
        send(&mut world, "1.19", Method::POST, "/resource_providers", Some(old)).status,
        StatusCode::CREATED
    );
    for query in ["name=new", &format!("uuid={uuid}"), &format!("in_tree={uuid}")] {
        let found = get(&mut world, &format!("/resource_providers?{query}"));
        assert_eq!(
            found["resource_providers"].as_array().unwrap().len(),
            1,
            "{query}"
        );
    }
    assert_eq!(
        get(&mut world, "/resource_providers?name=none"),
        json!({"resource_providers": []})
    );
    let path = format!("/resource_providers/{uuid}");
    assert_eq!(
        send(&mut world, "1.39", Method::DELETE, &path, None).status,
        StatusCode::NO_CONTENT
    );
    assert_eq!(
        send(&mut world, "1.39", Method::GET, &path, None).status,
        StatusCode::NOT_FOUND
    );
}
