//! A node's life in the sandbox: states, locks and the instance, in the order recorded from a real cloud.
#![allow(
    clippy::unwrap_used,
    reason = "a helper of a test may fail as the test itself may"
)]

use std::time::Duration;

use http::{Method, StatusCode};
use jiff::Timestamp;
use serde_json::{Value, json};
use unprovision_testkit::sandbox::handle::beginning;
use unprovision_testkit::sandbox::ironic::{CleanFailure, State, Stuck, Style};
use unprovision_testkit::sandbox::{Builder, Sandbox, Service, World};
use uuid::Uuid;

fn call(
    world: &mut World,
    method: Method,
    path: &str,
    body: Option<Value>,
    now: Timestamp,
) -> (StatusCode, Value) {
    world.advance(now);
    let reply = world.ask(Service::Ironic, method, path, body);
    (reply.status, reply.body)
}

fn verb(world: &mut World, node: Uuid, target: &str, now: Timestamp) -> StatusCode {
    let path = format!("/v1/nodes/{node}/states/provision");
    call(world, Method::PUT, &path, Some(json!({"target": target})), now).0
}

fn at(seconds: f64) -> Timestamp {
    beginning().checked_add(Duration::from_secs_f64(seconds)).unwrap()
}

fn one() -> Builder {
    Sandbox::builder()
        .nodes(1)
        .deployed(1)
        .teardown(Duration::from_secs(4))
        .cleaning(Duration::from_secs(30))
}

fn states(world: &World, node: Uuid) -> Vec<State> {
    world
        .log
        .states(node)
        .into_iter()
        .map(|(_, state)| state)
        .collect()
}

#[test]
fn fake_driver_is_locked_all_the_way() {
    let mut world = one().world(beginning());
    let (node, instance) = world.deployed()[0];
    assert_eq!(verb(&mut world, node, "deleted", at(0.0)), StatusCode::ACCEPTED);
    let look = |world: &mut World, seconds: f64| {
        world.advance(at(seconds));
        let node = world.node(node).unwrap();
        (
            node.provision_state,
            node.instance_uuid,
            node.reservation.is_some(),
        )
    };
    assert_eq!(look(&mut world, 3.9), (State::Deleting, Some(instance), true));
    // The instance goes at the end of the tear-down, before cleaning begins.
    assert_eq!(look(&mut world, 4.02), (State::Deleting, None, true));
    assert_eq!(look(&mut world, 4.1), (State::Cleaning, None, true));
    assert_eq!(look(&mut world, 34.0), (State::Cleaning, None, true));
    // Available a little earlier than unlocked.
    assert_eq!(look(&mut world, 34.06), (State::Available, None, true));
    assert_eq!(look(&mut world, 34.2), (State::Available, None, false));
    assert_eq!(world.next_event(), None);
}

#[test]
fn agent_is_unlocked_while_it_works() {
    let mut world = one().agent().world(beginning());
    let (node, _) = world.deployed()[0];
    verb(&mut world, node, "deleted", at(0.0));
    world.advance(at(20.0));
    let now = world.node(node).unwrap();
    assert_eq!(
        (now.provision_state, now.reservation.as_deref()),
        (State::CleanWait, None)
    );
    world.advance(at(60.0));
    use State::*;
    let way = [
        Active, Deleting, Cleaning, CleanWait, Cleaning, CleanWait, Cleaning, Available,
    ];
    assert_eq!(states(&world, node), way);
    let (end, _) = *world.log.states(node).last().unwrap();
    assert_eq!(end, at(34.05));
}

#[test]
fn a_lock_seen_free_may_be_taken_again_by_a_heartbeat() {
    let builder = one()
        .agent()
        .configure(|c| c.ironic.heartbeats = Some(Duration::from_secs(5)));
    let mut world = builder.world(beginning());
    let (node, _) = world.deployed()[0];
    verb(&mut world, node, "deleted", at(0.0));
    let mut locked = |seconds: f64| {
        world.advance(at(seconds));
        world.node(node).unwrap().reservation.is_some()
    };
    // The agent works from 7.15 on, and is heard of every 5 seconds.
    assert!(!locked(12.0) && locked(12.2) && !locked(12.3) && !locked(17.0) && locked(17.2));
    assert!(!locked(60.0));
    assert_eq!(world.node(node).unwrap().provision_state, State::Available);
    assert_eq!(world.next_event(), None);
}

#[test]
fn without_automated_clean_it_takes_milliseconds() {
    let mut world = one()
        .teardown(Duration::ZERO)
        .each_node(|_, node| node.automated_clean = Some(false))
        .world(beginning());
    let (node, _) = world.deployed()[0];
    verb(&mut world, node, "deleted", at(0.0));
    world.advance(at(0.005));
    assert_eq!(world.node(node).unwrap().provision_state, State::Available);
}

#[test]
fn a_failed_teardown_drops_the_instance_and_can_be_repeated() {
    let mut world = one()
        .each_node(|_, node| node.behaviour.teardown_failures = 1)
        .world(beginning());
    let (node, _) = world.deployed()[0];
    verb(&mut world, node, "deleted", at(0.0));
    world.advance(at(10.0));
    let failed = world.node(node).unwrap();
    assert_eq!(
        (failed.provision_state, failed.instance_uuid),
        (State::Error, None)
    );
    assert!(failed.last_error.as_deref().unwrap().contains("BMC"));
    assert_eq!(verb(&mut world, node, "deleted", at(11.0)), StatusCode::ACCEPTED);
    world.advance(at(60.0));
    assert_eq!(world.node(node).unwrap().provision_state, State::Available);
}

#[test]
fn a_failed_step_sets_maintenance_which_survives_the_way_back() {
    let mut world = one()
        .each_node(|_, node| node.behaviour.clean_failures = 1)
        .world(beginning());
    let (node, _) = world.deployed()[0];
    verb(&mut world, node, "deleted", at(0.0));
    world.advance(at(40.0));
    let failed = world.node(node).unwrap();
    assert_eq!(failed.provision_state, State::CleanFailed);
    assert_eq!(failed.target_provision_state, Some(State::Available));
    assert_eq!(
        (failed.maintenance, failed.fault.as_deref()),
        (true, Some("clean failure"))
    );
    assert_eq!(
        verb(&mut world, node, "provide", at(40.0)),
        StatusCode::BAD_REQUEST
    );
    assert_eq!(verb(&mut world, node, "manage", at(41.0)), StatusCode::ACCEPTED);
    assert_eq!(verb(&mut world, node, "provide", at(42.0)), StatusCode::ACCEPTED);
    world.advance(at(80.0));
    let back = world.node(node).unwrap();
    assert_eq!((back.provision_state, back.maintenance), (State::Available, true));
}

#[test]
fn a_timed_out_agent_leaves_maintenance_alone() {
    let builder = one().agent().each_node(|_, node| {
        node.behaviour.clean_failures = 1;
        node.behaviour.clean_failure = CleanFailure::Timeout;
    });
    let mut world = builder.world(beginning());
    let (node, _) = world.deployed()[0];
    verb(&mut world, node, "deleted", at(0.0));
    world.advance(at(60.0));
    let failed = world.node(node).unwrap();
    assert_eq!(
        (
            failed.provision_state,
            failed.maintenance,
            failed.fault.as_deref()
        ),
        (State::CleanFailed, false, None)
    );
    assert!(failed.last_error.as_deref().unwrap().starts_with("Timeout"));
}

#[test]
fn an_aborted_cleaning_leaves_maintenance_alone() {
    let mut world = one().agent().world(beginning());
    let (node, _) = world.deployed()[0];
    verb(&mut world, node, "deleted", at(0.0));
    assert_eq!(
        verb(&mut world, node, "abort", at(1.0)),
        StatusCode::CONFLICT,
        "deleting is locked"
    );
    assert_eq!(verb(&mut world, node, "abort", at(20.0)), StatusCode::ACCEPTED);
    world.advance(at(21.0));
    let failed = world.node(node).unwrap();
    assert_eq!(
        (failed.provision_state, failed.maintenance),
        (State::CleanFailed, false)
    );
    assert_eq!(
        failed.last_error.as_deref(),
        Some("By request, the clean operation was aborted")
    );
    assert_eq!(failed.reservation, None);
    world.advance(at(100.0));
    assert_eq!(world.node(node).unwrap().provision_state, State::CleanFailed);
}

#[test]
fn maintenance_pauses_an_agent_for_ever_or_until_lifted() {
    let mut world = one().agent().world(beginning());
    let (node, _) = world.deployed()[0];
    verb(&mut world, node, "deleted", at(0.0));
    world.advance(at(20.0));
    let path = format!("/v1/nodes/{node}/maintenance");
    let set = call(
        &mut world,
        Method::PUT,
        &path,
        Some(json!({"reason": "x"})),
        at(20.0),
    )
    .0;
    assert_eq!(set, StatusCode::ACCEPTED);
    world.advance(at(7200.0));
    assert_eq!(world.node(node).unwrap().provision_state, State::CleanWait);
    call(&mut world, Method::DELETE, &path, None, at(7200.0));
    world.advance(at(7202.0));
    assert_eq!(world.node(node).unwrap().provision_state, State::Available);
}

#[test]
fn maintenance_not_allowed_ends_cleaning_at_once() {
    let mut world = one()
        .configure(|c| c.ironic.allow_provisioning_in_maintenance = false)
        .world(beginning());
    let (node, _) = world.deployed()[0];
    world.edit_node(node, |node| node.maintenance = true);
    verb(&mut world, node, "deleted", at(0.0));
    world.advance(at(5.0));
    let failed = world.node(node).unwrap();
    assert_eq!(
        (failed.provision_state, failed.fault.as_deref()),
        (State::CleanFailed, None)
    );
    assert_eq!(
        failed.last_error.as_deref(),
        Some("Cleaning a node in maintenance mode is not allowed")
    );
    verb(&mut world, node, "manage", at(6.0));
    assert_eq!(
        verb(&mut world, node, "provide", at(7.0)),
        StatusCode::BAD_REQUEST
    );
}

#[test]
fn the_text_of_an_error_may_come_late() {
    let builder = one().each_node(|_, node| {
        node.behaviour.clean_failures = 1;
        node.behaviour.late_error = Some(Duration::from_secs(2));
    });
    let mut world = builder.world(beginning());
    let (node, _) = world.deployed()[0];
    verb(&mut world, node, "deleted", at(0.0));
    world.advance(at(35.0));
    let failed = world.node(node).unwrap();
    assert_eq!(
        (failed.provision_state, failed.last_error.as_deref()),
        (State::CleanFailed, None)
    );
    world.advance(at(37.0));
    assert!(world.node(node).unwrap().last_error.is_some());
}

#[test]
fn a_stuck_node_keeps_its_lock_until_a_conductor_finds_it() {
    let stuck = Stuck {
        state: State::Deleting,
        flip_after: Some(Duration::from_secs(900)),
    };
    let mut world = one()
        .each_node(move |_, node| node.behaviour.stuck = Some(stuck))
        .world(beginning());
    let (node, _) = world.deployed()[0];
    verb(&mut world, node, "deleted", at(0.0));
    world.advance(at(899.0));
    let now = world.node(node).unwrap();
    assert_eq!(
        (now.provision_state, now.reservation.as_deref()),
        (State::Deleting, Some("conductor-1"))
    );
    world.advance(at(901.0));
    let now = world.node(node).unwrap();
    assert_eq!(
        (now.provision_state, now.reservation.as_deref()),
        (State::Error, None)
    );
}

#[test]
fn a_conductor_may_freeze_and_go_on_or_die_and_start_anew() {
    let mut world = one().nodes(2).deployed(2).world(beginning());
    let (node, _) = world.deployed()[0];
    verb(&mut world, node, "deleted", at(0.0));
    world.advance(at(10.0));
    world.freeze_conductor();
    world.advance(at(1000.0));
    assert_eq!(world.node(node).unwrap().provision_state, State::Cleaning);
    world.revive_conductor();
    assert_eq!(world.node(node).unwrap().provision_state, State::Available);

    let (other, _) = world.deployed()[0];
    assert_ne!(node, other);
    verb(&mut world, other, "deleted", at(1000.0));
    world.advance(at(1010.0));
    world.kill_conductor();
    world.advance(at(2000.0));
    assert_eq!(world.node(other).unwrap().provision_state, State::Cleaning);
    assert_eq!(
        verb(&mut world, node, "manage", at(2000.0)),
        StatusCode::BAD_REQUEST,
        "no conductor serves it"
    );
    world.revive_conductor();
    let failed = world.node(other).unwrap();
    assert_eq!(
        (failed.provision_state, failed.fault.as_deref()),
        (State::CleanFailed, Some("clean failure"))
    );
}

#[test]
fn an_agent_outlives_its_conductor() {
    let mut world = one().agent().world(beginning());
    let (node, _) = world.deployed()[0];
    verb(&mut world, node, "deleted", at(0.0));
    world.advance(at(20.0));
    world.kill_conductor();
    world.advance(at(100.0));
    assert_eq!(world.node(node).unwrap().provision_state, State::CleanWait);
    world.revive_conductor();
    world.advance(at(101.0));
    assert_eq!(world.node(node).unwrap().provision_state, State::Available);
}

#[test]
fn cleaning_may_stop_in_a_hold() {
    for style in [Style::Fake, Style::Agent] {
        let builder = one().each_node(move |_, node| {
            node.behaviour.hold = true;
            node.behaviour.style = style;
        });
        let mut world = builder.world(beginning());
        let (node, _) = world.deployed()[0];
        verb(&mut world, node, "deleted", at(0.0));
        world.advance(at(500.0));
        assert_eq!(world.node(node).unwrap().provision_state, State::CleanHold);
        assert_eq!(verb(&mut world, node, "unhold", at(500.0)), StatusCode::ACCEPTED);
        world.advance(at(600.0));
        assert_eq!(world.node(node).unwrap().provision_state, State::Available);
    }
}

#[test]
fn a_retired_node_ends_manageable() {
    let mut world = one().each_node(|_, node| node.retired = true).world(beginning());
    let (node, _) = world.deployed()[0];
    verb(&mut world, node, "deleted", at(0.0));
    world.advance(at(60.0));
    assert_eq!(world.node(node).unwrap().provision_state, State::Manageable);
}

#[test]
fn an_event_long_past_keeps_its_own_time_in_the_log() {
    let mut world = one().world(beginning());
    let (node, _) = world.deployed()[0];
    verb(&mut world, node, "deleted", at(0.0));
    world.advance(at(100_000.0));
    assert!(world.log.states(node).contains(&(at(34.05), State::Available)));
    assert_eq!(world.node(node).unwrap().provision_updated_at, Some(at(34.05)));
}
