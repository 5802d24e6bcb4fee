//! C02 locks, C10 a second writer, C13 consumers, C21 a provider that vanishes and comes back; holders that nobody knows.

use http::Method;
use unprovision_testkit::sandbox::config::{CapacityRule, NovaRule};
use unprovision_testkit::sandbox::{Fault, Sandbox, Service, judge};

use crate::common::{
    Scene, assert_clean, assert_ironic_untouched, assert_unexposed, cloud, delete_all, only, secs,
    strategies, writes,
};

/// Deletes the one server under the guard, and gives it this long to come back.
async fn delete_and_wait(scene: &Scene, seconds: u64) {
    scene
        .while_guarding(async {
            tokio::time::sleep(secs(2)).await;
            delete_all(&scene.sandbox);
            tokio::time::sleep(secs(seconds)).await;
        })
        .await;
}

fn placements_writes() -> [Fault; 2] {
    [Method::POST, Method::PUT].map(|method| Fault::on(Service::Placement).method(method).from("guard"))
}

/// The conductor holds the node's lock all the time; whoever only reads does not care.
#[tokio::test(start_paused = true)]
async fn c02_a_lock_is_no_obstacle() {
    let sandbox = cloud(1, NovaRule::Old)
        .agent()
        .configure(|config| config.ironic.heartbeats = Some(secs(2)))
        .build();
    let (node, _) = only(&sandbox);
    let locked = Fault::on(Service::Ironic)
        .method(Method::PUT)
        .from("guard")
        .locked();
    sandbox.fault(locked);
    delete_and_wait(&Scene::new(&sandbox), 100).await;
    assert_clean(&sandbox, node, "locked");
    assert_ironic_untouched(&sandbox);
}

/// Nova's tracker, or anybody, writes the provider between our look and our write, again and again.
#[tokio::test(start_paused = true)]
async fn c10_a_second_writer_is_read_again() {
    for strategy in strategies() {
        for times in [1, 5] {
            let sandbox = cloud(1, NovaRule::Off).build();
            let (node, instance) = only(&sandbox);
            for fault in placements_writes() {
                sandbox.fault(fault.nth(1).times(times).before(move |world, _| {
                    world.edit_provider(node, |provider| provider.generation += 1);
                    world.touch_consumer(instance);
                }));
            }
            delete_and_wait(&Scene::by(&sandbox, strategy), 200).await;
            assert_clean(&sandbox, node, &format!("{strategy}, {times} times"));
        }
    }
}

/// Nova deletes the allocation between our look and our hand-over: then the unit is claimed.
#[tokio::test(start_paused = true)]
async fn c13_an_allocation_that_goes_just_then_is_claimed() {
    let sandbox = cloud(1, NovaRule::Off).build();
    let (node, instance) = only(&sandbox);
    let fault = Fault::on(Service::Placement)
        .method(Method::POST)
        .path("/allocations")
        .from("guard");
    sandbox.fault(
        fault
            .nth(1)
            .before(move |world, now| world.nova_release(instance, now)),
    );
    let scene = Scene::new(&sandbox);
    delete_and_wait(&scene, 100).await;
    // Nova was first; that instant is not ours to close.
    let exposed = judge::exposure(&sandbox.log(), node).total;
    assert!(exposed < secs(1), "{exposed:?}");
    assert!(sandbox.is_offered(node));
    assert!(sandbox.with(|world, _| world.holders(node)).is_empty());
    assert!(scene.ear.heard("giver: None") >= 1, "the unit was claimed");
}

/// A crash left our consumer without allocations; Placement wants generation 0 and shows nothing.
#[tokio::test(start_paused = true)]
async fn c13_an_empty_consumer_of_ours_is_no_obstacle() {
    let sandbox = cloud(1, NovaRule::Off).build();
    let (node, instance) = only(&sandbox);
    let ours = unprovision::core::guard_consumer(unprovision::NodeUuid(node), instance).0;
    sandbox.with(|world, _| world.leave_empty_consumer(ours));
    delete_and_wait(&Scene::new(&sandbox), 100).await;
    assert_clean(&sandbox, node, "empty consumer");
}

/// A rebalance of compute hosts: the provider goes, and comes back without a hold while the node is still being cleaned.
#[tokio::test(start_paused = true)]
async fn c21_a_provider_that_comes_back_is_held_again() {
    let sandbox = cloud(1, NovaRule::Off).cleaning(secs(300)).build();
    let (node, _) = only(&sandbox);
    let scene = Scene::new(&sandbox);
    scene
        .while_guarding(async {
            delete_all(&sandbox);
            tokio::time::sleep(secs(10)).await;
            let ours = sandbox.with(|world, _| world.holders(node)).remove(0);
            // Placement deletes no provider of which somebody holds a unit: an operator clears it first.
            let mut provider = sandbox.with(|world, now| {
                world.nova_release(ours, now);
                let provider = world.provider(node).unwrap().clone();
                world.remove_provider(node);
                provider
            });
            tokio::time::sleep(secs(60)).await;
            provider.generation = 1;
            provider.holders.clear();
            sandbox.with(|world, _| world.add_provider(provider));
            let back = sandbox.now();
            tokio::time::sleep(secs(61)).await;
            assert!(!sandbox.is_offered(node));
            let exposure = judge::exposure(&sandbox.log(), node);
            let seen = judge::Exposure::between(&exposure, back, sandbox.now()).total;
            // It was held, so only sweeps look at it.
            assert!(seen <= secs(61), "held again after {seen:?}");
            tokio::time::sleep(secs(300)).await;
        })
        .await;
    assert!(sandbox.is_offered(node));
    assert!(sandbox.with(|world, _| world.holders(node)).is_empty());
}

/// A node is enrolled while the guard runs: it is cleaned before it has a provider.
#[tokio::test(start_paused = true)]
async fn c21_a_provider_that_comes_first_during_cleaning_is_held_at_once() {
    let sandbox = cloud(1, NovaRule::Off).cleaning(secs(120)).build();
    let (node, _) = only(&sandbox);
    let provider = sandbox.with(|world, _| world.provider(node).unwrap().clone());
    sandbox.with(|world, _| world.remove_provider(node));
    let scene = Scene::new(&sandbox);
    scene
        .while_guarding(async {
            delete_all(&sandbox);
            tokio::time::sleep(secs(30)).await;
            let mut fresh = provider.clone();
            fresh.holders.clear();
            sandbox.with(|world, _| world.add_provider(fresh));
            tokio::time::sleep(secs(6)).await;
            assert!(
                !sandbox.is_offered(node),
                "held within one look at what is offered"
            );
            tokio::time::sleep(secs(120)).await;
        })
        .await;
    assert!(sandbox.is_offered(node));
}

/// The guard starts in the middle: the node is cleaning, and Nova has not deleted the allocation yet. It is somebody's, so it is
/// not taken; when it goes, nothing opens.
#[tokio::test(start_paused = true)]
async fn a_holder_that_nobody_knows_is_covered_by_a_reservation() {
    let sandbox = cloud(1, NovaRule::Off)
        .configure(|config| config.nova.release_delay = secs(20))
        .build();
    let (node, _) = only(&sandbox);
    delete_all(&sandbox);
    tokio::time::sleep(secs(6)).await;
    let scene = Scene::new(&sandbox);
    scene.while_guarding(tokio::time::sleep(secs(100))).await;
    assert_clean(&sandbox, node, "unknown holder");
    let sent = writes(&sandbox);
    assert_eq!(sent.len(), 2, "reserved, and lifted: {sent:?}");
}

/// Placement before 14.0.0 takes no allocation write on a node that Nova has reserved in use: the reservation is adopted.
#[tokio::test(start_paused = true)]
async fn c11_over_capacity_is_adopted() {
    let sandbox = cloud(2, NovaRule::Current)
        .configure(|config| config.placement.capacity_rule = CapacityRule::Always)
        .build();
    let scene = Scene::new(&sandbox);
    let servers = scene
        .while_guarding(async {
            let servers = delete_all(&sandbox);
            tokio::time::sleep(secs(100)).await;
            servers
        })
        .await;
    for (node, _) in servers {
        assert_clean(&sandbox, node, "adopted");
    }
}

/// Rule 17: the journal is gone, the hold is found by its project and type, and released.
#[tokio::test(start_paused = true)]
async fn a_guard_without_its_journal_finds_its_holds_again() {
    for after in [10, 60] {
        let sandbox: Sandbox = cloud(2, NovaRule::Old).build();
        let scene = Scene::new(&sandbox);
        let servers = scene
            .until_killed(async {
                let servers = delete_all(&sandbox);
                tokio::time::sleep(secs(8)).await;
                servers
            })
            .await;
        tokio::time::sleep(secs(after)).await;
        Scene::new(&sandbox)
            .while_guarding(tokio::time::sleep(secs(130)))
            .await;
        for (node, _) in servers {
            assert_clean(&sandbox, node, &format!("started {after} s later"));
        }
    }
}

/// `unprovision delete` and the guard see the same hold, and neither is in the other's way.
#[tokio::test(start_paused = true)]
async fn a_tear_down_of_our_own_is_shared() {
    use unprovision_testkit::rig::Rig;
    let sandbox = cloud(2, NovaRule::Old).build();
    let rig = Rig::new(sandbox.clone());
    let scene = Scene::new(&sandbox);
    let servers = sandbox.deployed();
    let requests = servers
        .iter()
        .map(|(node, instance)| rig.request(*node, *instance, "hand-over"))
        .collect::<Vec<_>>();
    scene
        .while_guarding(async {
            let reports = rig.tear_down(&requests).await.unwrap();
            assert!(reports.iter().all(|report| !report.held), "{reports:?}");
            tokio::time::sleep(secs(70)).await;
        })
        .await;
    for (node, _) in servers {
        assert_clean(&sandbox, node, "both");
    }
}

/// An answer is lost: whether the hand-over was applied is looked after, and the hold is not taken twice.
#[tokio::test(start_paused = true)]
async fn a_lost_answer_is_looked_after() {
    let sandbox = cloud(1, NovaRule::Off).build();
    let (node, _) = only(&sandbox);
    for fault in placements_writes() {
        sandbox.fault(fault.nth(1).lose_reply());
    }
    delete_and_wait(&Scene::new(&sandbox), 100).await;
    assert_unexposed(&sandbox, node, "lost");
    assert_clean(&sandbox, node, "lost");
}
