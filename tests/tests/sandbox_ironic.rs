//! Ironic's wire, reading: versions, single nodes, lists, filters and pages, as recorded from the real service.
#![allow(
    clippy::unwrap_used,
    reason = "a helper of a test may fail as the test itself may"
)]

use std::time::Duration;

use http::{Method, StatusCode};
use jiff::Timestamp;
use serde_json::{Value, json};
use unprovision_testkit::sandbox::config::Paging;
use unprovision_testkit::sandbox::handle::beginning;
use unprovision_testkit::sandbox::{Builder, Reply, Sandbox, Service, World};

fn at(seconds: f64) -> Timestamp {
    beginning().checked_add(Duration::from_secs_f64(seconds)).unwrap()
}

fn send(world: &mut World, version: &str, method: Method, path: &str, body: Option<Value>) -> Reply {
    world.ask_in(Service::Ironic, version, method, path, body)
}

fn get(world: &mut World, path: &str) -> Reply {
    send(world, "1.115", Method::GET, path, None)
}

fn cloud() -> Builder {
    Sandbox::builder().nodes(5).deployed(2)
}

#[test]
fn without_a_version_it_is_the_oldest_and_available_has_no_name() {
    let mut world = cloud().world(beginning());
    let reply = send(&mut world, "", Method::GET, "/v1/nodes/detail", None);
    assert_eq!(reply.headers["x-openstack-ironic-api-version"], "1.1");
    assert_eq!(reply.headers["x-openstack-ironic-api-minimum-version"], "1.1");
    assert_eq!(reply.headers["x-openstack-ironic-api-maximum-version"], "1.115");
    assert_eq!(reply.body["nodes"][0]["provision_state"], "active");
    assert_eq!(reply.body["nodes"][4]["provision_state"], Value::Null);
    assert!(reply.body["nodes"][0].get("name").is_none());
    assert!(reply.body["nodes"][0].get("traits").is_none());
}

#[test]
fn unknown_versions_are_not_acceptable() {
    let mut world = cloud().configure(|c| c.ironic.max_minor = 58).world(beginning());
    let reply = send(&mut world, "1.59", Method::GET, "/v1/nodes", None);
    assert_eq!(reply.status, StatusCode::NOT_ACCEPTABLE);
    assert_eq!(reply.headers["x-openstack-ironic-api-maximum-version"], "1.58");
    assert!(reply.headers.get("x-openstack-ironic-api-version").is_none());
    assert!(reply.error().contains("[1.1, 1.58]"));
    let reply = send(&mut world, "abc", Method::GET, "/v1/nodes", None);
    assert_eq!(reply.status, StatusCode::NOT_ACCEPTABLE);
    assert!(
        reply
            .headers
            .get("x-openstack-ironic-api-maximum-version")
            .is_none()
    );
    let reply = send(&mut world, "latest", Method::GET, "/v1", None);
    assert_eq!(reply.headers["x-openstack-ironic-api-version"], "1.58");
    assert_eq!(reply.body["version"]["version"], "1.58");
}

#[test]
fn what_is_newer_than_the_version_is_not_acceptable() {
    let mut world = cloud().world(beginning());
    let node = world.nodes()[0].uuid;
    let reply = send(
        &mut world,
        "1.10",
        Method::GET,
        "/v1/nodes?fields=uuid,automated_clean",
        None,
    );
    assert_eq!(
        (reply.status, reply.error()),
        (StatusCode::NOT_ACCEPTABLE, "Request not acceptable.".into())
    );
    let reply = send(&mut world, "1.40", Method::GET, "/v1/nodes?shard=a", None);
    assert_eq!(reply.status, StatusCode::NOT_ACCEPTABLE);
    let path = format!("/v1/nodes/{node}/states/provision");
    let reply = send(
        &mut world,
        "1.3",
        Method::PUT,
        &path,
        Some(json!({"target": "manage"})),
    );
    assert_eq!(reply.status, StatusCode::NOT_ACCEPTABLE);
}

#[test]
fn a_proxy_may_strip_the_version() {
    let mut world = cloud()
        .configure(|c| c.ironic.version_header_stripped = true)
        .world(beginning());
    let reply = get(&mut world, "/v1/nodes");
    assert_eq!(
        (reply.status, &reply.headers["x-openstack-ironic-api-version"]),
        (StatusCode::OK, &"1.1".parse().unwrap())
    );
}

#[test]
fn nodes_are_found_by_uuid_and_name() {
    let mut world = cloud().world(beginning());
    let by_name = get(&mut world, "/v1/nodes/node-0003").body;
    let uuid = by_name["uuid"].as_str().unwrap().to_owned();
    assert_eq!(get(&mut world, &format!("/v1/nodes/{uuid}")).body, by_name);
    let reply = get(&mut world, "/v1/nodes/nothing");
    assert_eq!(reply.status, StatusCode::NOT_FOUND);
    assert_eq!(reply.error(), "Node nothing could not be found.");
    assert_eq!(
        get(&mut world, "/v1/nodes/not%20a%20name").status,
        StatusCode::BAD_REQUEST
    );
    assert_eq!(
        send(&mut world, "1.4", Method::GET, "/v1/nodes/node-0003", None).status,
        StatusCode::BAD_REQUEST
    );
}

#[test]
fn lists_come_in_pages_with_a_link() {
    let mut world = cloud().nodes(7).world(beginning());
    let mut path = "/v1/nodes?limit=3&fields=uuid,provision_state".to_owned();
    let mut seen = Vec::new();
    loop {
        let reply = get(&mut world, &path);
        let nodes = reply.body["nodes"].as_array().unwrap().clone();
        assert!(
            nodes.iter().all(|node| node.as_object().unwrap().len() == 3),
            "uuid, provision_state, links"
        );
        seen.extend(nodes.iter().map(|node| node["uuid"].clone()));
        let Some(next) = reply.body["next"].as_str() else {
            break;
        };
        path = next
            .strip_prefix("http://sandbox.invalid/baremetal")
            .unwrap()
            .to_owned();
    }
    assert_eq!(seen.len(), 7);
    seen.dedup();
    assert_eq!(seen.len(), 7);
}

#[test]
fn a_page_never_holds_more_than_the_service_allows() {
    let mut world = cloud().nodes(1001).world(beginning());
    let reply = get(&mut world, "/v1/nodes?limit=5000");
    assert_eq!(reply.body["nodes"].as_array().unwrap().len(), 1000);
    assert!(reply.body["next"].as_str().unwrap().contains("limit=1000"));
}

#[test]
fn the_next_link_forgets_the_filter_as_the_real_one_does() {
    let mut world = cloud().world(beginning());
    let reply = get(&mut world, "/v1/nodes?provision_state=active&limit=1&fields=uuid");
    let next = reply.body["next"].as_str().unwrap();
    assert!(!next.contains("provision_state"), "{next}");
    let reply = get(&mut world, "/v1/nodes?associated=true&limit=1");
    assert!(reply.body["next"].as_str().unwrap().contains("associated=true"));
}

#[test]
fn paging_may_be_wrong_in_known_ways() {
    let paged = |paging: Paging| {
        let mut world = cloud().configure(|c| c.ironic.paging = paging).world(beginning());
        let marker = world.nodes()[0].uuid;
        get(
            &mut world,
            &format!("/v1/nodes?limit=2&fields=uuid&marker={marker}"),
        )
        .body["next"]
            .clone()
    };
    assert!(paged(Paging::NoNext).is_null());
    assert!(!paged(Paging::ForgetsFields).as_str().unwrap().contains("fields"));
    let mut world = cloud()
        .configure(|c| c.ironic.paging = Paging::SamePage)
        .world(beginning());
    let marker = world.nodes()[0].uuid;
    let reply = get(&mut world, &format!("/v1/nodes?limit=2&marker={marker}"));
    assert!(
        reply.body["next"]
            .as_str()
            .unwrap()
            .ends_with(&format!("marker={marker}"))
    );
    let reply = get(
        &mut world,
        "/v1/nodes?marker=00000000-0000-0000-0000-000000000000",
    );
    assert_eq!(reply.status, StatusCode::NOT_FOUND);
}

#[test]
fn lists_are_filtered() {
    let builder = cloud().each_node(|number, node| {
        node.conductor_group = if number == 1 {
            "rack1".into()
        } else {
            String::new()
        };
        node.owner = (number == 2).then(|| "someone".into());
        node.shard = (number == 3).then(|| "blue".into());
        node.maintenance = number == 4;
        node.resource_class = Some(if number == 5 {
            "gold".into()
        } else {
            "baremetal".into()
        });
    });
    let mut world = builder.world(beginning());
    let instance = world.deployed()[0].1;
    for (filter, count) in [
        ("provision_state=active".to_owned(), 2),
        ("provision_state=cleaning".to_owned(), 0),
        (format!("instance_uuid={instance}"), 1),
        ("associated=false".to_owned(), 3),
        ("maintenance=true".to_owned(), 1),
        ("conductor_group=rack1".to_owned(), 1),
        ("owner=someone".to_owned(), 1),
        ("shard=blue,green".to_owned(), 1),
        ("resource_class=gold".to_owned(), 1),
    ] {
        let reply = get(&mut world, &format!("/v1/nodes?{filter}"));
        assert_eq!(reply.body["nodes"].as_array().unwrap().len(), count, "{filter}");
    }
    assert_eq!(
        get(&mut world, "/v1/nodes?provision_state=flying").status,
        StatusCode::BAD_REQUEST
    );
    // As Ironic 39.0.0 does.
    assert_eq!(
        get(&mut world, "/v1/nodes?fields=nonsense").status,
        StatusCode::INTERNAL_SERVER_ERROR
    );
}

#[test]
fn times_may_be_cut_to_seconds() {
    let state = |whole: bool| {
        let mut world = cloud()
            .configure(|c| c.ironic.whole_seconds = whole)
            .world(at(0.5));
        let node = world.nodes()[0].uuid;
        get(
            &mut world,
            &format!("/v1/nodes/{node}?fields=provision_updated_at"),
        )
        .body["provision_updated_at"]
            .clone()
    };
    assert_eq!(state(false), "2026-01-01T00:00:00.500000+00:00");
    assert_eq!(state(true), "2026-01-01T00:00:00+00:00");
}
