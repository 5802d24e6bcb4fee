//! Ironic's wire, writing: nodes, patches, verbs, locks and traits, as recorded from the real service.
#![allow(
    clippy::unwrap_used,
    reason = "a helper of a test may fail as the test itself may"
)]

use std::time::Duration;

use http::{Method, StatusCode};
use jiff::Timestamp;
use serde_json::{Value, json};
use unprovision_testkit::sandbox::handle::beginning;
use unprovision_testkit::sandbox::ironic::State;
use unprovision_testkit::sandbox::{Builder, Reply, Sandbox, Service, World};
use uuid::Uuid;

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

fn provision(world: &mut World, node: Uuid, target: &str) -> Reply {
    let path = format!("/v1/nodes/{node}/states/provision");
    send(
        world,
        "1.115",
        Method::PUT,
        &path,
        Some(json!({"target": target})),
    )
}

fn patch(world: &mut World, node: Uuid, operations: Value) -> Reply {
    send(
        world,
        "1.115",
        Method::PATCH,
        &format!("/v1/nodes/{node}"),
        Some(operations),
    )
}

#[test]
fn nodes_can_be_created_and_brought_to_available() {
    let mut world = World::new(Default::default(), beginning());
    let body =
        json!({"driver": "fake-hardware", "name": "new-1", "resource_class": "baremetal", "extra": {"a": 1}});
    let reply = send(&mut world, "1.87", Method::POST, "/v1/nodes", Some(body.clone()));
    assert_eq!(reply.status, StatusCode::CREATED);
    assert_eq!(reply.body["provision_state"], "enroll");
    let node: Uuid = reply.body["uuid"].as_str().unwrap().parse().unwrap();
    assert_eq!(
        reply.headers["location"],
        format!("http://sandbox.invalid/baremetal/v1/nodes/{node}")
    );
    assert_eq!(
        send(&mut world, "1.87", Method::POST, "/v1/nodes", Some(body)).status,
        StatusCode::CONFLICT
    );
    assert_eq!(provision(&mut world, node, "manage").status, StatusCode::ACCEPTED);
    world.advance(at(10.0));
    let power = format!("/v1/nodes/{node}/states/power");
    let reply = send(
        &mut world,
        "1.87",
        Method::PUT,
        &power,
        Some(json!({"target": "power off"})),
    );
    assert_eq!(reply.status, StatusCode::ACCEPTED);
    assert_eq!(
        provision(&mut world, node, "provide").status,
        StatusCode::ACCEPTED
    );
    world.advance(at(100.0));
    let node = world.node(node).unwrap();
    assert_eq!(
        (node.provision_state, node.power_state.as_deref()),
        (State::Available, Some("power off"))
    );
}

#[test]
fn patches_change_fields_and_know_their_limits() {
    let mut world = cloud().world(beginning());
    let node = world.nodes()[4].uuid;
    let reply = patch(
        &mut world,
        node,
        json!([{"op": "add", "path": "/extra/a", "value": 1}]),
    );
    assert_eq!(
        (reply.status, &reply.body["extra"]),
        (StatusCode::OK, &json!({"a": 1}))
    );
    assert_eq!(
        reply.body["reservation"], "conductor-1",
        "the answer shows the conductor's own lock"
    );
    assert_eq!(
        get(&mut world, &format!("/v1/nodes/{node}")).body["reservation"],
        Value::Null
    );
    let reply = patch(&mut world, node, json!([{"op": "remove", "path": "/extra/zzz"}]));
    assert_eq!(reply.status, StatusCode::BAD_REQUEST);
    let reply = patch(
        &mut world,
        node,
        json!([{"op": "remove", "path": "/automated_clean"}]),
    );
    assert_eq!(
        reply.status,
        StatusCode::INTERNAL_SERVER_ERROR,
        "a quirk of 39.0.0"
    );
    let reply = patch(
        &mut world,
        node,
        json!([{"op": "replace", "path": "/automated_clean", "value": null}]),
    );
    assert_eq!(reply.status, StatusCode::OK);
    let reply = patch(
        &mut world,
        node,
        json!([{"op": "replace", "path": "/provision_state", "value": "active"}]),
    );
    assert!(reply.error().starts_with("Cannot patch /provision_state."));
}

#[test]
fn an_instance_belongs_to_one_node() {
    let mut world = cloud().world(beginning());
    let (node, instance) = world.deployed()[0];
    let free = world.nodes()[4].uuid;
    let set = |value: Uuid| json!([{"op": "add", "path": "/instance_uuid", "value": value}]);
    let reply = patch(&mut world, free, set(instance));
    assert_eq!(reply.status, StatusCode::CONFLICT);
    assert!(reply.error().contains("already associated with a node"));
    let reply = patch(&mut world, node, set(Uuid::from_u128(7)));
    assert!(
        reply
            .error()
            .ends_with(&format!("is associated with instance {instance}."))
    );
    assert_eq!(
        patch(&mut world, free, set(Uuid::from_u128(7))).status,
        StatusCode::OK
    );
    let unset = json!([{"op": "remove", "path": "/instance_uuid"}]);
    assert_eq!(patch(&mut world, free, unset).body["instance_uuid"], Value::Null);
}

#[test]
fn while_locked_reads_work_and_writes_conflict() {
    let mut world = cloud().world(beginning());
    let (node, _) = world.deployed()[0];
    assert_eq!(
        provision(&mut world, node, "deleted").status,
        StatusCode::ACCEPTED
    );
    world.advance(at(10.0));
    assert_eq!(
        get(&mut world, &format!("/v1/nodes/{node}")).body["reservation"],
        "conductor-1"
    );
    let reply = patch(
        &mut world,
        node,
        json!([{"op": "add", "path": "/extra/a", "value": 1}]),
    );
    assert_eq!(reply.status, StatusCode::CONFLICT);
    assert!(reply.error().contains("while a state transition is in progress"));
    let body = || Some(json!({"reason": "x", "traits": []}));
    for (method, path) in [
        (Method::PUT, format!("/v1/nodes/{node}/maintenance")),
        (Method::DELETE, format!("/v1/nodes/{node}/maintenance")),
        (Method::PUT, format!("/v1/nodes/{node}/traits")),
        (Method::DELETE, format!("/v1/nodes/{node}")),
    ] {
        let reply = send(&mut world, "1.87", method.clone(), &path, body());
        assert_eq!(reply.status, StatusCode::CONFLICT, "{method} {path}");
        assert!(reply.error().contains("is locked by host conductor-1"));
    }
    assert_eq!(
        provision(&mut world, node, "deleted").status,
        StatusCode::CONFLICT
    );
    assert_eq!(provision(&mut world, node, "abort").status, StatusCode::CONFLICT);
}

#[test]
fn verbs_are_legal_in_their_states_only() {
    let mut world = cloud().world(beginning());
    let free = world.nodes()[4].uuid;
    let reply = provision(&mut world, free, "deleted");
    assert_eq!(reply.status, StatusCode::BAD_REQUEST);
    let text = format!(
        "The requested action \"deleted\" can not be performed on node \"{free}\" while it is in state \"available\"."
    );
    assert_eq!(reply.error(), text);
    assert_eq!(provision(&mut world, free, "fly").status, StatusCode::BAD_REQUEST);
    let deletable: Vec<State> = State::ALL
        .iter()
        .copied()
        .filter(|state| {
            let mut world = cloud()
                .each_node({
                    let state = *state;
                    move |_, node| node.provision_state = state
                })
                .world(beginning());
            let node = world.nodes()[0].uuid;
            provision(&mut world, node, "deleted").status == StatusCode::ACCEPTED
        })
        .collect();
    use State::*;
    let mut expected = vec![
        Active,
        DeployWait,
        DeployFailed,
        Error,
        Rescue,
        RescueWait,
        RescueFailed,
        UnrescueFailed,
        ServiceWait,
        ServiceFailed,
    ];
    expected.sort();
    let mut deletable = deletable;
    deletable.sort();
    assert_eq!(deletable, expected);
}

#[test]
fn protected_nodes_are_not_undeployed() {
    let mut world = cloud().world(beginning());
    let (node, _) = world.deployed()[0];
    let reply = patch(
        &mut world,
        node,
        json!([{"op": "replace", "path": "/protected", "value": true}]),
    );
    assert_eq!(reply.status, StatusCode::OK);
    for verb in ["deleted", "rebuild"] {
        let reply = provision(&mut world, node, verb);
        assert_eq!(reply.status, StatusCode::FORBIDDEN, "{verb}");
        assert!(reply.error().contains("is protected"));
    }
}

#[test]
fn more_cleanings_than_allowed_are_refused_not_queued() {
    let builder = cloud()
        .deployed(4)
        .agent()
        .configure(|c| c.ironic.max_concurrent_clean = Some(2));
    let mut world = builder.world(beginning());
    let nodes = world.deployed();
    assert_eq!(
        provision(&mut world, nodes[0].0, "deleted").status,
        StatusCode::ACCEPTED
    );
    world.advance(at(20.0));
    assert_eq!(world.node(nodes[0].0).unwrap().provision_state, State::CleanWait);
    assert_eq!(
        provision(&mut world, nodes[1].0, "deleted").status,
        StatusCode::ACCEPTED
    );
    let reply = provision(&mut world, nodes[2].0, "deleted");
    assert_eq!(
        reply.status,
        StatusCode::SERVICE_UNAVAILABLE,
        "deleting and clean wait both count"
    );
    assert!(
        reply
            .error()
            .contains("concurrent action limit for unprovisioning")
    );
    world.advance(at(100.0));
    assert_eq!(
        provision(&mut world, nodes[2].0, "deleted").status,
        StatusCode::ACCEPTED
    );
}

#[test]
fn traits_are_at_most_fifty() {
    let mut world = cloud().world(beginning());
    let node = world.nodes()[4].uuid;
    let traits: Vec<String> = (0..50).map(|number| format!("CUSTOM_T{number}")).collect();
    let path = format!("/v1/nodes/{node}/traits");
    let reply = send(
        &mut world,
        "1.80",
        Method::PUT,
        &path,
        Some(json!({"traits": traits})),
    );
    assert_eq!(reply.status, StatusCode::NO_CONTENT);
    let reply = send(
        &mut world,
        "1.80",
        Method::PUT,
        &format!("{path}/CUSTOM_ONE_MORE"),
        None,
    );
    assert_eq!(reply.status, StatusCode::BAD_REQUEST);
    assert_eq!(
        send(
            &mut world,
            "1.80",
            Method::DELETE,
            &format!("{path}/CUSTOM_T0"),
            None
        )
        .status,
        StatusCode::NO_CONTENT
    );
    assert_eq!(
        send(
            &mut world,
            "1.80",
            Method::DELETE,
            &format!("{path}/CUSTOM_T0"),
            None
        )
        .status,
        StatusCode::NOT_FOUND
    );
    let reply = send(&mut world, "1.80", Method::GET, &path, None);
    assert_eq!(reply.body["traits"].as_array().unwrap().len(), 49);
    assert_eq!(
        send(&mut world, "1.80", Method::DELETE, &path, None).status,
        StatusCode::NO_CONTENT
    );
    assert_eq!(
        send(&mut world, "1.36", Method::GET, &path, None).status,
        StatusCode::NOT_ACCEPTABLE
    );
    assert_eq!(
        send(&mut world, "1.80", Method::PUT, &format!("{path}/lower"), None).status,
        StatusCode::BAD_REQUEST
    );
}

#[test]
fn nodes_are_deleted_only_when_safe() {
    let mut world = cloud().world(beginning());
    let (node, _) = world.deployed()[0];
    let delete = |world: &mut World, node: Uuid| {
        send(world, "1.87", Method::DELETE, &format!("/v1/nodes/{node}"), None).status
    };
    assert_eq!(delete(&mut world, node), StatusCode::CONFLICT);
    let free = world.nodes()[4].uuid;
    assert_eq!(delete(&mut world, free), StatusCode::NO_CONTENT);
    assert_eq!(delete(&mut world, free), StatusCode::NOT_FOUND);
    world.edit_node(node, |node| node.maintenance = true);
    assert_eq!(
        delete(&mut world, node),
        StatusCode::NO_CONTENT,
        "maintenance allows it"
    );
}

#[test]
fn no_conductor_is_a_bad_request() {
    let mut world = cloud().world(beginning());
    let (node, _) = world.deployed()[0];
    world.kill_conductor();
    let reply = provision(&mut world, node, "deleted");
    assert_eq!(reply.status, StatusCode::BAD_REQUEST);
    assert!(reply.error().contains("No conductor service registered"));
    assert_eq!(
        get(&mut world, "/v1/conductors").body["conductors"][0]["alive"],
        false
    );
}
