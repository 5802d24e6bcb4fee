//! C04 `clean failed`, C05 maintenance, C07 a dying conductor and a dying guard, C09 a node that vanishes; and a Keystone that
//! knows nobody for a while.

use http::StatusCode;
use unprovision_testkit::sandbox::config::NovaRule;
use unprovision_testkit::sandbox::ironic::{Node, State, Stuck};
use unprovision_testkit::sandbox::{Builder, Fault, Sandbox, Service, judge};
use uuid::Uuid;

use crate::common::{
    Scene, assert_clean, assert_ironic_untouched, assert_unexposed, by_operator, cloud, delete_all, edit,
    only, secs, strategies, writes,
};

fn one(spoil: impl Fn(&mut Node) + Send + Sync + 'static) -> Builder {
    cloud(1, NovaRule::Old).each_node(move |_, node| spoil(node))
}

fn verb(sandbox: &Sandbox, node: Uuid, verb: &str) {
    let body = serde_json::json!({ "target": verb });
    by_operator(sandbox, &format!("PUT /v1/nodes/{node}/states/provision"), &body);
}

fn state(sandbox: &Sandbox, node: Uuid) -> State {
    sandbox.with(|world, _| world.node(node).unwrap().provision_state)
}

#[tokio::test(start_paused = true)]
async fn c04_a_failed_cleaning_stays_held_until_an_operator_has_cured_it() {
    for strategy in strategies() {
        let sandbox = one(|node| node.behaviour.clean_failures = 1).build();
        let scene = Scene::by(&sandbox, strategy);
        let (node, _) = only(&sandbox);
        scene
            .while_guarding(async {
                delete_all(&sandbox);
                tokio::time::sleep(secs(700)).await;
                assert_eq!(state(&sandbox, node), State::CleanFailed);
                assert!(!sandbox.is_offered(node), "{strategy}");
                verb(&sandbox, node, "manage");
                tokio::time::sleep(secs(200)).await;
                assert!(!sandbox.is_offered(node), "{strategy}: manageable is never free");
                edit(&sandbox, node, |node| {
                    node.maintenance = false;
                    node.fault = None;
                });
                verb(&sandbox, node, "provide");
                tokio::time::sleep(secs(100)).await;
            })
            .await;
        assert_clean(&sandbox, node, strategy);
        assert!(
            scene.ear.heard("waits: cleaning failed") >= 1,
            "a person must be told"
        );
        assert_ironic_untouched(&sandbox);
    }
}

/// Ironic takes the instance from a node in `error`, and Nova counts the server as gone: only the hold is left.
#[tokio::test(start_paused = true)]
async fn c07_a_tear_down_that_fails_stays_held() {
    type Spoil = fn(&mut Node);
    let spoil: [(&str, Spoil); 2] = [
        ("fails", |node| node.behaviour.teardown_failures = 1),
        ("the conductor dies", |node| {
            node.behaviour.stuck = Some(Stuck {
                state: State::Deleting,
                flip_after: Some(secs(900)),
            });
        }),
    ];
    for (what, spoil) in spoil {
        let sandbox = one(spoil).build();
        let scene = Scene::new(&sandbox);
        let (node, _) = only(&sandbox);
        scene
            .while_guarding(async {
                delete_all(&sandbox);
                tokio::time::sleep(secs(1100)).await;
                assert_eq!(state(&sandbox, node), State::Error, "{what}");
                assert!(!sandbox.is_offered(node), "{what}");
                edit(&sandbox, node, |node| node.behaviour.stuck = None);
                verb(&sandbox, node, "deleted");
                tokio::time::sleep(secs(200)).await;
            })
            .await;
        assert_clean(&sandbox, node, what);
        assert!(scene.ear.heard("waits: the tear-down failed") >= 1, "{what}");
    }
}

#[tokio::test(start_paused = true)]
async fn c05_maintenance_during_cleaning_is_waited_out() {
    let sandbox = one(|_| {}).agent().build();
    let scene = Scene::new(&sandbox);
    let (node, _) = only(&sandbox);
    let path = format!("/v1/nodes/{node}/maintenance");
    let reason = serde_json::json!({ "reason": "on fire" });
    scene
        .while_guarding(async {
            delete_all(&sandbox);
            tokio::time::sleep(secs(20)).await;
            by_operator(&sandbox, &format!("PUT {path}"), &reason);
            tokio::time::sleep(secs(1200)).await;
            assert!(!sandbox.is_offered(node));
            by_operator(&sandbox, &format!("DELETE {path}"), &reason);
            tokio::time::sleep(secs(100)).await;
        })
        .await;
    assert_clean(&sandbox, node, "maintenance");
    assert!(scene.ear.heard("on fire") >= 1);
}

/// Killed at any time, and started again a while later: what was held stays held, and nothing is left in the end.
#[tokio::test(start_paused = true)]
async fn c07_a_guard_that_dies_at_any_time_is_carried_on() {
    for killed_after in (1..45).step_by(3) {
        let sandbox = cloud(3, NovaRule::Old).build();
        let scene = Scene::new(&sandbox);
        let start = sandbox.now();
        let servers = scene
            .until_killed(async {
                let servers = delete_all(&sandbox);
                tokio::time::sleep(secs(killed_after)).await;
                servers
            })
            .await;
        tokio::time::sleep(secs(20)).await;
        scene.while_guarding(tokio::time::sleep(secs(70))).await;
        for (node, _) in servers {
            let what = format!("killed after {killed_after} s");
            assert_clean(&sandbox, node, &what);
            let again = judge::offered_again_after(&sandbox.log(), node, start).unwrap();
            assert!(again <= secs(25), "{what}: {again:?}");
        }
        let open: Vec<_> = futures::StreamExt::collect(scene.journal.open_cases()).await;
        assert!(open.is_empty(), "killed after {killed_after} s: {open:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn c09_a_node_that_is_gone_is_reserved_and_not_held_by_us() {
    for strategy in strategies() {
        // Many others, so that the list is not suddenly short.
        let sandbox = cloud(6, NovaRule::Off).build();
        let scene = Scene::by(&sandbox, strategy);
        let (node, instance) = only(&sandbox);
        scene
            .while_guarding(async {
                sandbox.with(|world, now| world.nova_delete(instance, now));
                tokio::time::sleep(secs(20)).await;
                sandbox.with(|world, _| world.remove_node(node));
                tokio::time::sleep(secs(300)).await;
            })
            .await;
        assert_unexposed(&sandbox, node, strategy);
        assert!(!sandbox.is_offered(node), "{strategy}");
        let left = sandbox.with(|world, _| world.holders(node));
        assert!(
            left.is_empty(),
            "{strategy}: Nova must be able to delete the provider: {left:?}"
        );
    }
}

/// Ironic adds a state that nobody here knows. On its way a node is held in it, a free one is hidden once it gets there, and a
/// person is told; it ends when the node is available. With an instance it counts as in use.
#[tokio::test(start_paused = true)]
async fn a_state_that_ironic_adds_is_held_and_told_until_the_node_is_available() {
    for strategy in strategies() {
        let sandbox = cloud(2, NovaRule::Off).nodes(3).cleaning(secs(3600)).build();
        let scene = Scene::by(&sandbox, strategy);
        let [leaving, used, free] = sandbox.nodes()[..] else {
            panic!()
        };
        let instance = only(&sandbox).1;
        let becomes = |node, state| {
            sandbox.with(|world, now| {
                world.edit_node(node, |node| {
                    node.provision_state = state;
                    node.provision_updated_at = Some(now);
                });
            });
        };
        scene
            .while_guarding(async {
                sandbox.with(|world, now| world.nova_delete(instance, now));
                tokio::time::sleep(secs(20)).await;
                for node in [leaving, used, free] {
                    becomes(node, State::Quarantined);
                }
                tokio::time::sleep(secs(70)).await;
                for node in [leaving, free] {
                    assert!(!sandbox.is_offered(node), "{strategy}");
                }
                let of_used = writes(&sandbox)
                    .into_iter()
                    .filter(|line| line.contains(&used.to_string()));
                assert_eq!(of_used.count(), 0, "{strategy}: it carries an instance");
                assert_eq!(scene.ear.heard("does not know: `quarantined`"), 2, "{strategy}");
                tokio::time::sleep(secs(700)).await;
                assert_eq!(
                    scene.ear.heard("does not know: `quarantined`"),
                    2,
                    "{strategy}: once each"
                );
                for node in [leaving, free] {
                    assert!(!sandbox.is_offered(node), "{strategy}");
                    becomes(node, State::Available);
                }
                tokio::time::sleep(secs(100)).await;
            })
            .await;
        assert_clean(&sandbox, leaving, strategy);
        assert!(sandbox.is_offered(free), "{strategy}");
        let exposure = judge::exposure(&sandbox.log(), free);
        assert!(
            exposure.total <= secs(61),
            "{strategy}: up to the next sweep, {exposure:?}"
        );
    }
}

/// Keystone starts anew or changes its keys: the guard goes on as soon as it is known again, and gives up nothing.
#[tokio::test(start_paused = true)]
async fn a_storm_of_401_is_waited_out_by_the_guard() {
    for strategy in strategies() {
        for begins in [2, 5, 40, 70] {
            let sandbox = cloud(2, NovaRule::Old).build();
            let scene = Scene::by(&sandbox, strategy);
            scene
                .while_guarding(async {
                    tokio::time::sleep(secs(3)).await;
                    delete_all(&sandbox);
                    tokio::time::sleep(secs(begins)).await;
                    for service in [Service::Ironic, Service::Placement] {
                        let knows_nobody = Fault::on(service).from("guard");
                        sandbox.fault(knows_nobody.status(StatusCode::UNAUTHORIZED, "{}"));
                    }
                    tokio::time::sleep(secs(900)).await;
                    sandbox.clear_faults();
                    tokio::time::sleep(secs(200)).await;
                })
                .await;
            for node in sandbox.nodes() {
                assert_clean(&sandbox, node, strategy);
            }
            assert_ironic_untouched(&sandbox);
        }
    }
}
