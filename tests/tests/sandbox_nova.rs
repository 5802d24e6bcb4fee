//! Nova beside us: its rules, its cache, its deletes; and the windows measured on real ones.
#![allow(
    clippy::unwrap_used,
    reason = "a helper of a test may fail as the test itself may"
)]

use std::time::Duration;

use jiff::Timestamp;
use unprovision_testkit::sandbox::config::NovaRule;
use unprovision_testkit::sandbox::handle::beginning;
use unprovision_testkit::sandbox::ironic::State;
use unprovision_testkit::sandbox::log::Change;
use unprovision_testkit::sandbox::nova::{Stage, class_of};
use unprovision_testkit::sandbox::{Builder, Sandbox, World, judge};
use uuid::Uuid;

fn at(seconds: f64) -> Timestamp {
    beginning().checked_add(Duration::from_secs_f64(seconds)).unwrap()
}

fn cloud(rule: NovaRule) -> Builder {
    Sandbox::builder()
        .nodes(6)
        .deployed(3)
        .nova(rule)
        .teardown(Duration::from_secs(4))
        .cleaning(Duration::from_secs(30))
}

fn exposed(world: &World, node: Uuid) -> f64 {
    judge::exposure(&world.log, node).total.as_secs_f64()
}

/// The seconds that a node of the given rule is falsely offered, deleted at `t`, and those until it is offered again.
fn delete_at(rule: NovaRule, t: f64) -> (f64, f64) {
    let mut world = cloud(rule).world(beginning());
    let (node, instance) = world.deployed()[0];
    world.nova_delete(instance, at(t));
    world.advance(at(t + 600.0));
    assert_eq!(world.nova_stage(instance), Some(Stage::Deleted));
    let again = judge::offered_again_after(&world.log, node, at(t)).unwrap();
    (exposed(&world, node), again.as_secs_f64())
}

#[test]
fn without_passes_the_window_is_all_of_the_cleaning() {
    let (exposed, _) = delete_at(NovaRule::Off, 90.0);
    assert!((28.0..=30.5).contains(&exposed), "{exposed}");
}

#[test]
fn under_the_old_rule_a_settled_node_is_offered_until_the_next_pass() {
    // Passes at 60, 120, 180 seconds.
    let (exposed, _) = delete_at(NovaRule::Old, 62.0);
    assert!(
        (28.0..=30.5).contains(&exposed),
        "cleaning ends before the next pass: {exposed}"
    );
    let (exposed, again) = delete_at(NovaRule::Old, 110.0);
    assert!(
        (4.0..=6.5).contains(&exposed),
        "the pass at 120 cuts it short: {exposed}"
    );
    assert!(
        (30.0..=40.0).contains(&again),
        "and the one at 180 lifts it: {again}"
    );
}

#[test]
fn under_the_current_rule_a_settled_node_is_not_exposed() {
    let (exposed, again) = delete_at(NovaRule::Current, 90.0);
    assert_eq!(exposed, 0.0);
    assert!((6.0..=60.0).contains(&again), "{again}");
}

#[test]
fn under_the_current_rule_a_claim_during_a_pass_is_forgotten() {
    let builder = cloud(NovaRule::Current).configure(|c| c.nova.per_node = Duration::from_secs(1));
    let mut world = builder.world(beginning());
    let free = world.nodes()[3].uuid;
    let server = Uuid::from_u128(1);
    // The pass runs from 60 to 66; the claim falls into it.
    world.nova_create(server, "baremetal", Some(free), at(62.5));
    world.advance(at(75.0));
    assert_eq!(world.nova_stage(server), Some(Stage::Active));
    world.nova_delete(server, at(80.0));
    world.advance(at(119.0));
    assert!(
        (28.0..=30.5).contains(&exposed(&world, free)),
        "{}",
        exposed(&world, free)
    );
}

#[test]
fn under_the_current_rule_a_claim_outside_a_pass_is_remembered() {
    let mut world = cloud(NovaRule::Current).world(beginning());
    let free = world.nodes()[3].uuid;
    let server = Uuid::from_u128(1);
    world.nova_create(server, "baremetal", Some(free), at(65.0));
    world.advance(at(75.0));
    assert_eq!(world.nova_stage(server), Some(Stage::Active));
    world.nova_delete(server, at(80.0));
    world.advance(at(400.0));
    assert_eq!(exposed(&world, free), 0.0);
}

#[test]
fn the_switch_takes_the_reservation_at_the_delete_away() {
    let mut world = cloud(NovaRule::Current)
        .configure(|c| c.nova.reserve_at_delete = false)
        .world(beginning());
    let free = world.nodes()[3].uuid;
    let server = Uuid::from_u128(1);
    world.nova_create(server, "baremetal", Some(free), at(65.0));
    world.advance(at(75.0));
    world.nova_delete(server, at(80.0));
    world.advance(at(119.0));
    assert!(exposed(&world, free) > 25.0);
}

#[test]
fn the_rules_by_table() {
    let reserved = |rule: NovaRule, state: State, instance: bool, maintenance: bool, power: Option<&str>| {
        let mut world = Sandbox::builder()
            .nodes(1)
            .nova(rule)
            .reserved_in_use(false)
            .world(beginning());
        let node = world.nodes()[0].uuid;
        let power = power.map(str::to_owned);
        world.edit_node(node, |node| {
            node.provision_state = state;
            node.instance_uuid = instance.then(|| Uuid::from_u128(9));
            node.maintenance = maintenance;
            node.power_state = power;
        });
        world.advance(at(61.0));
        world.provider(node).unwrap().inventories["CUSTOM_BAREMETAL"].reserved == 1
    };
    use NovaRule::*;
    let on = Some("power on");
    for (state, instance, maintenance, power, old, current) in [
        (State::Available, false, false, on, false, false),
        (State::Available, false, true, on, true, true),
        (State::Available, false, false, None, true, true),
        (State::Available, false, false, Some("error"), true, true),
        (State::Available, true, false, on, false, true),
        (State::Active, true, false, on, false, true),
        (State::Deleting, true, false, on, false, true),
        (State::Cleaning, false, false, on, true, true),
        (State::CleanFailed, false, true, on, true, true),
        (State::Manageable, false, false, on, true, true),
    ] {
        assert_eq!(
            reserved(Old, state, instance, maintenance, power),
            old,
            "old {state} {instance}"
        );
        assert_eq!(
            reserved(Current, state, instance, maintenance, power),
            current,
            "current {state} {instance}"
        );
    }
}

#[test]
fn a_pass_creates_what_is_missing_and_replaces_traits() {
    let mut world = cloud(NovaRule::Current).world(beginning());
    let (node, other) = (world.nodes()[4].uuid, world.nodes()[5].uuid);
    world.remove_provider(node);
    world.edit_node(other, |node| {
        node.traits.insert("CUSTOM_OF_THE_NODE".into());
    });
    world.edit_provider(other, |provider| {
        provider.traits.insert("CUSTOM_STRAY".into());
    });
    world.advance(at(61.0));
    assert!(world.is_offered(node));
    assert!(world.provider(node).unwrap().traits.contains("OWNER_NOVA"));
    let traits = &world.provider(other).unwrap().traits;
    assert!(
        traits.contains("CUSTOM_OF_THE_NODE") && !traits.contains("CUSTOM_STRAY"),
        "{traits:?}"
    );
}

#[test]
fn the_cache_hides_outside_changes_until_it_is_old_or_refused() {
    let mut world = cloud(NovaRule::Current).world(beginning());
    let node = world.nodes()[4].uuid;
    world.advance(at(61.0));
    world.edit_provider(node, |provider| {
        provider.traits.insert("CUSTOM_STRAY".into());
        provider.generation += 1;
    });
    let stray = |world: &World| world.provider(node).unwrap().traits.contains("CUSTOM_STRAY");
    world.advance(at(300.0));
    assert!(stray(&world), "passes at 120, 180, 240 and 300 believe the cache");
    world.advance(at(365.0));
    assert!(!stray(&world), "at 360 the cache is 300 seconds old");

    let mut world = cloud(NovaRule::Current).world(beginning());
    world.advance(at(61.0));
    world.edit_provider(node, |provider| {
        provider.traits.insert("CUSTOM_STRAY".into());
        provider.generation += 1;
    });
    // A change of its own makes it write with the old generation: refused, then repeated a second later.
    world.edit_node(node, |node| node.maintenance = true);
    world.advance(at(120.5));
    let conflicts = world
        .log
        .iter()
        .filter(|entry| matches!(entry.change, Change::TrackerConflict { .. }))
        .count();
    assert_eq!((conflicts, stray(&world)), (1, true));
    world.advance(at(121.5));
    assert!(!stray(&world) && !world.is_offered(node));
}

#[test]
fn strangers_are_left_alone_and_their_allocation_is_no_error() {
    let mut world = cloud(NovaRule::Old).world(beginning());
    let (node, instance) = world.deployed()[0];
    let guard = Uuid::from_u128(77);
    world.nova_delete(instance, at(70.0));
    world.advance(at(71.0));
    // The hand-over, as an edit.
    world.edit_provider(node, |provider| {
        let held = provider.holders.remove(&instance).unwrap();
        provider.holders.insert(guard, held);
        provider.generation += 1;
    });
    world.advance(at(400.0));
    assert_eq!(world.holders(node), [guard]);
    assert_eq!(world.nova_stage(instance), Some(Stage::Deleted));
}

#[test]
fn deferred_delete_fails_when_the_allocation_was_moved() {
    let mut world = cloud(NovaRule::Old)
        .configure(|c| c.nova.deferred_delete = true)
        .world(beginning());
    let (_, instance) = world.deployed()[0];
    world.nova_delete(instance, at(1.0));
    // Nova reads the consumer at 5.0; its allocation is touched before Nova writes, at 5.05.
    world.advance(at(5.02));
    world.placement_bump_consumer(instance);
    world.advance(at(60.0));
    assert_eq!(world.nova_stage(instance), Some(Stage::Error));
}

#[test]
fn a_failed_teardown_counts_as_done_for_nova() {
    let builder = cloud(NovaRule::Old).each_node(|_, node| node.behaviour.teardown_failures = 1);
    let mut world = builder.world(beginning());
    let (node, instance) = world.deployed()[0];
    world.nova_delete(instance, at(0.0));
    world.advance(at(10.0));
    assert_eq!(world.node(node).unwrap().provision_state, State::Error);
    assert_eq!(world.nova_stage(instance), Some(Stage::Deleted));
}

#[test]
fn a_teardown_that_hangs_ends_in_error_and_can_be_repeated() {
    let builder = cloud(NovaRule::Old).teardown(Duration::from_secs(600));
    let mut world = builder.world(beginning());
    let (_, instance) = world.deployed()[0];
    world.nova_delete(instance, at(0.0));
    world.advance(at(130.0));
    assert_eq!(world.nova_stage(instance), Some(Stage::Error));
    world.nova_delete(instance, at(200.0));
    world.advance(at(210.0));
    assert_eq!(world.nova_stage(instance), Some(Stage::Deleted));
}

#[test]
fn a_server_created_into_the_window_fails() {
    let mut world = cloud(NovaRule::Old).world(beginning());
    let (node, instance) = world.deployed()[0];
    world.nova_delete(instance, at(62.0));
    world.advance(at(70.0));
    assert!(world.is_offered(node), "the window is open");
    let server = Uuid::from_u128(1);
    world.nova_create(server, "baremetal", Some(node), at(70.0));
    world.advance(at(75.0));
    assert_eq!(world.nova_stage(server), Some(Stage::Error));
    assert!(
        world.log.iter().any(
            |entry| matches!(&entry.change, Change::Server { note, .. } if note.starts_with("MaxRetries"))
        )
    );
}

#[test]
fn an_unpinned_server_lands_on_a_free_node_or_nowhere() {
    let mut world = cloud(NovaRule::Current).world(beginning());
    for number in 0..3 {
        world.nova_create(Uuid::from_u128(number), "baremetal", None, at(65.0));
    }
    world.advance(at(80.0));
    assert!((0..3).all(|number| world.nova_stage(Uuid::from_u128(number)) == Some(Stage::Active)));
    world.nova_create(Uuid::from_u128(9), "baremetal", None, at(80.0));
    world.advance(at(90.0));
    assert_eq!(world.nova_stage(Uuid::from_u128(9)), Some(Stage::Error));
}

#[test]
fn the_scheduler_forbids_the_traits_it_is_told_to() {
    let mut world = cloud(NovaRule::Off)
        .configure(|c| c.nova.forbidden_traits = vec!["CUSTOM_TAG".into()])
        .world(beginning());
    let tagged: Vec<Uuid> = world.nodes()[3..5].iter().map(|node| node.uuid).collect();
    world.edit_node(tagged[0], |_| {});
    for provider in &tagged {
        world.edit_provider(*provider, |provider| {
            provider.traits.insert("CUSTOM_TAG".into());
        });
    }
    world.know_trait("CUSTOM_TAG");
    let server = Uuid::from_u128(1);
    world.nova_create(server, "baremetal", None, at(1.0));
    world.advance(at(20.0));
    let last = world.nodes()[5].uuid;
    assert_eq!(world.holders(last), [server]);
}

#[test]
fn a_node_gone_from_ironic_takes_its_provider_along_unless_somebody_holds_it() {
    let mut world = cloud(NovaRule::Current).world(beginning());
    world.advance(at(61.0));
    let (held, _) = world.deployed()[0];
    let free = world.nodes()[4].uuid;
    world.remove_node(held);
    world.remove_node(free);
    world.advance(at(121.0));
    assert!(world.provider(held).is_some() && world.provider(free).is_none());
}

#[test]
fn class_names_are_normalized_as_nova_does() {
    for (name, class) in [
        ("baremetal", "CUSTOM_BAREMETAL"),
        ("baremetal.gp2.small", "CUSTOM_BAREMETAL_GP2_SMALL"),
        ("bm--x..y", "CUSTOM_BM_X_Y"),
        ("CUSTOM_BAREMETAL", "CUSTOM_CUSTOM_BAREMETAL"),
        ("-a-", "CUSTOM__A_"),
        ("größe", "CUSTOM_GR_E"),
        ("ı", "CUSTOM__"),
    ] {
        assert_eq!(class_of(name), class);
    }
}
