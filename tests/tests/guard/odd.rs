//! Odd ways to leave and to come back: re-enrolled, retired, not deleted after all, deleted without Nova or behind its back.

use serde_json::json;
use unprovision_testkit::sandbox::config::NovaRule;
use unprovision_testkit::sandbox::ironic::State;
use unprovision_testkit::sandbox::world::named_uuid;
use unprovision_testkit::sandbox::{Sandbox, judge};
use uuid::Uuid;

use crate::common::{
    Scene, assert_clean, assert_unexposed, by_operator, cloud, delete_all, edit, only, secs, strategies,
    writes,
};

fn verb(sandbox: &Sandbox, node: Uuid, verb: &str) {
    let path = format!("PUT /v1/nodes/{node}/states/provision");
    by_operator(sandbox, &path, &json!({ "target": verb }));
}

fn reserved(sandbox: &Sandbox, node: Uuid) -> u64 {
    sandbox.with(|world, _| {
        let provider = world.provider(node).unwrap();
        provider.inventories["CUSTOM_BAREMETAL"].reserved
    })
}

/// A name may be given anew; a node is its UUID.
#[tokio::test(start_paused = true)]
async fn c09_a_node_that_is_enrolled_anew_under_its_name_is_another_one() {
    for strategy in strategies() {
        // Many others, so that the list is not suddenly short.
        let sandbox = cloud(6, NovaRule::Off).build();
        let scene = Scene::by(&sandbox, strategy);
        let (node, instance) = only(&sandbox);
        let anew = named_uuid("enrolled anew");
        scene
            .while_guarding(async {
                sandbox.with(|world, now| world.nova_delete(instance, now));
                tokio::time::sleep(secs(20)).await;
                sandbox.with(|world, _| {
                    let name = world.node(node).unwrap().name.clone().unwrap();
                    world.remove_node(node);
                    let mut other = world.blank_node(&name, "baremetal");
                    other.uuid = anew;
                    world.plant(other, false);
                });
                tokio::time::sleep(secs(300)).await;
            })
            .await;
        assert_unexposed(&sandbox, node, strategy);
        assert!(!sandbox.is_offered(node), "{strategy}: it is gone");
        assert_clean(&sandbox, anew, strategy);
        let touched = writes(&sandbox)
            .into_iter()
            .filter(|line| line.contains(&anew.to_string()));
        assert_eq!(touched.count(), 0, "{strategy}: the new one is nobody's case");
    }
}

/// Ironic takes a retired node to `manageable` after its cleaning. It stays held until somebody ends that.
#[tokio::test(start_paused = true)]
async fn c22_a_node_that_is_retired_on_its_way_stays_held_until_that_ends() {
    for strategy in strategies() {
        let sandbox = cloud(1, NovaRule::Old).build();
        let scene = Scene::by(&sandbox, strategy);
        let (node, _) = only(&sandbox);
        scene
            .while_guarding(async {
                delete_all(&sandbox);
                tokio::time::sleep(secs(20)).await;
                edit(&sandbox, node, |node| node.retired = true);
                tokio::time::sleep(secs(1000)).await;
                assert!(!sandbox.is_offered(node), "{strategy}");
                edit(&sandbox, node, |node| node.retired = false);
                verb(&sandbox, node, "provide");
                tokio::time::sleep(secs(200)).await;
            })
            .await;
        assert!(sandbox.is_offered(node), "{strategy}");
        if strategy == "hand-over" {
            assert_clean(&sandbox, node, strategy);
        }
    }
}

/// Rule 10: the tear-down does not happen after all. The unit goes back to the instance, whose owner is as it was.
#[tokio::test(start_paused = true)]
async fn a_server_that_is_not_deleted_after_all_gets_its_unit_back() {
    for strategy in strategies() {
        let sandbox = cloud(1, NovaRule::Off).build();
        let scene = Scene::by(&sandbox, strategy);
        let (node, instance) = only(&sandbox);
        let owner = |sandbox: &Sandbox| {
            let consumer = sandbox
                .with(|world, _| world.consumer(instance).cloned())
                .unwrap();
            (consumer.project, consumer.user)
        };
        let before = owner(&sandbox);
        scene
            .while_guarding(async {
                edit(&sandbox, node, |node| node.provision_state = State::Deleting);
                tokio::time::sleep(secs(10)).await;
                assert!(!writes(&sandbox).is_empty(), "{strategy}: held");
                sandbox.with(|world, now| {
                    world.edit_node(node, |node| {
                        node.provision_state = State::Active;
                        node.provision_updated_at = Some(now);
                    });
                });
                tokio::time::sleep(secs(100)).await;
            })
            .await;
        let holders = sandbox.with(|world, _| world.holders(node));
        assert_eq!(holders, [instance], "{strategy}");
        assert_eq!(
            (owner(&sandbox), reserved(&sandbox, node)),
            (before, 0),
            "{strategy}"
        );
        assert!(scene.ear.heard("in use again") + scene.ear.heard("again, with the same instance") >= 1);
    }
}

/// A compute host is down: Nova drops the allocation at once, and tears the node down when it is back. Nothing is written while
/// the node is in use; from its departure on it is held.
#[tokio::test(start_paused = true)]
async fn c01_a_server_that_was_deleted_locally_is_held_once_its_node_leaves() {
    for rule in [NovaRule::Off, NovaRule::Old] {
        let sandbox = cloud(1, rule).build();
        let (node, instance) = only(&sandbox);
        let scene = Scene::new(&sandbox);
        let left = scene
            .while_guarding(async {
                sandbox.with(|world, now| world.nova_release(instance, now));
                tokio::time::sleep(secs(150)).await;
                assert_eq!(writes(&sandbox), Vec::<String>::new(), "{rule:?}: it is in use");
                let left = sandbox.now();
                delete_all(&sandbox);
                tokio::time::sleep(secs(200)).await;
                left
            })
            .await;
        assert_eq!(scene.ear.heard("its allocation is missing"), 1, "{rule:?}");
        let exposure = judge::exposure(&sandbox.log(), node);
        let since = judge::Exposure::between(&exposure, left, sandbox.now()).total;
        assert!(since <= secs(1), "{rule:?}: {since:?} after it had left");
        assert!(sandbox.is_offered(node), "{rule:?}");
        assert_eq!(
            sandbox.with(|world, _| world.holders(node)),
            Vec::<Uuid>::new(),
            "{rule:?}"
        );
    }
}

/// Rule 18: what a deferred delete does to the server's record is Nova's; the node is never offered too early.
#[tokio::test(start_paused = true)]
async fn c01_beside_deferred_deletes_no_node_is_offered_too_early() {
    for strategy in strategies() {
        for rule in [NovaRule::Off, NovaRule::Current] {
            let sandbox = cloud(4, rule)
                .configure(|config| config.nova.deferred_delete = true)
                .build();
            let servers = Scene::by(&sandbox, strategy)
                .while_guarding(async {
                    let servers = delete_all(&sandbox);
                    tokio::time::sleep(secs(250)).await;
                    servers
                })
                .await;
            for (node, _) in servers {
                assert_clean(&sandbox, node, &format!("{strategy} {rule:?}"));
            }
        }
    }
}

/// A cleaning that sees several of Nova's passes come and go.
#[tokio::test(start_paused = true)]
async fn c01_a_cleaning_longer_than_several_passes_is_covered() {
    for rule in [NovaRule::Off, NovaRule::Old, NovaRule::Current] {
        let sandbox = cloud(3, rule).cleaning(secs(400)).agent().build();
        let servers = Scene::new(&sandbox)
            .while_guarding(async {
                let servers = delete_all(&sandbox);
                tokio::time::sleep(secs(700)).await;
                servers
            })
            .await;
        for (node, _) in servers {
            assert_clean(&sandbox, node, &format!("{rule:?}"));
        }
    }
}

/// Rule 6: Placement belongs to another scheduler, which drops its allocation when it asks Ironic for the tear-down. Reservations
/// that were there stay, on nodes in use as on free ones: nothing tells whose they are.
#[tokio::test(start_paused = true)]
async fn without_nova_reservations_of_others_are_left_as_they_are() {
    for strategy in strategies() {
        let sandbox = cloud(2, NovaRule::Off).nodes(3).build();
        for (number, node) in sandbox.nodes().into_iter().enumerate() {
            sandbox.with(|world, _| {
                world.edit_provider(node, |provider| {
                    provider.traits.clear();
                    let class = provider.inventories.get_mut("CUSTOM_BAREMETAL").unwrap();
                    class.reserved = u64::from(number > 0);
                });
            });
        }
        let nodes = sandbox.nodes();
        Scene::by(&sandbox, strategy)
            .while_guarding(async {
                tokio::time::sleep(secs(5)).await;
                for (node, instance) in sandbox.deployed() {
                    verb(&sandbox, node, "deleted");
                    tokio::time::sleep(secs(1)).await;
                    sandbox.with(|world, now| world.nova_release(instance, now));
                }
                tokio::time::sleep(secs(200)).await;
            })
            .await;
        assert_clean(&sandbox, nodes[0], strategy);
        for (node, what) in [(nodes[1], "was in use"), (nodes[2], "is free")] {
            assert_unexposed(&sandbox, node, strategy);
            assert_eq!(reserved(&sandbox, node), 1, "{strategy}: {what}");
        }
        let of_free = writes(&sandbox)
            .into_iter()
            .filter(|line| line.contains(&nodes[2].to_string()));
        assert_eq!(of_free.count(), 0, "{strategy}");
    }
}
