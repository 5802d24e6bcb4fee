//! What schedulers are told: `released` only of a node that can be had, and each thing once.

use std::sync::{Arc, Mutex};

use std::future::Future;

use futures::StreamExt;
use unprovision::guard::{Guard, NodeEvent, NodeEventKind as Kind, Settings, Told};
use unprovision_testkit::sandbox::config::NovaRule;
use unprovision_testkit::sandbox::ironic::State;
use unprovision_testkit::sandbox::{Fault, Sandbox, Service};
use uuid::Uuid;

use crate::common::{Scene, assert_clean, by_operator, cloud, delete_all, edit, only, secs, strategies};

/// Follows the guard's events while this happens; each is looked at the moment it is told.
async fn follow<T>(
    scene: &Scene,
    guard: &Guard,
    after: Option<u64>,
    events: impl Future<Output = T>,
) -> (Vec<NodeEvent>, T) {
    let told = Arc::new(Mutex::new(Vec::new()));
    let mut stream = Box::pin(guard.events().follow(after));
    let sandbox = scene.sandbox.clone();
    let listening = async {
        while let Some(Told::Event(event)) = stream.next().await {
            if event.event == Kind::Released {
                assert!(sandbox.is_offered(event.node.0), "{event:?}");
                let state = sandbox.with(|world, _| world.node(event.node.0).unwrap().provision_state);
                assert_eq!(state, State::Available, "{event:?}");
            }
            told.lock().unwrap().push(*event);
        }
    };
    let result = tokio::select! {
        result = scene.with_guard(guard, events) => result,
        () = listening => unreachable!("the guard is there"),
    };
    let told = std::mem::take(&mut *told.lock().unwrap());
    assert!(told.is_sorted_by(|one, next| one.id < next.id), "{told:?}");
    (told, result)
}

fn kinds(told: &[NodeEvent], node: Uuid) -> Vec<Kind> {
    let of = told.iter().filter(|event| event.node.0 == node);
    of.map(|event| event.event).collect()
}

#[tokio::test(start_paused = true)]
async fn each_node_is_held_once_and_released_once() {
    for strategy in strategies() {
        for rule in [NovaRule::Off, NovaRule::Old, NovaRule::Current] {
            let sandbox = cloud(3, rule).build();
            let scene = Scene::by(&sandbox, strategy);
            let guard = scene.guard();
            let (told, servers) = follow(&scene, &guard, None, async {
                let servers = delete_all(&sandbox);
                tokio::time::sleep(secs(250)).await;
                servers
            })
            .await;
            for (node, instance) in servers {
                let what = format!("{strategy} {rule:?}: {told:?}");
                let kinds = kinds(&told, node);
                assert_eq!(kinds.last(), Some(&Kind::Released), "{what}");
                let covered = rule == NovaRule::Current;
                assert!(
                    kinds == [Kind::Held, Kind::Released] || covered && kinds.len() == 1,
                    "{what}"
                );
                let event = told.iter().find(|event| event.node.0 == node).unwrap();
                assert_eq!(
                    (event.instance, event.provider.0),
                    (Some(instance), node),
                    "{what}"
                );
                assert_eq!(
                    event.resource_class.as_ref().unwrap().as_str(),
                    "CUSTOM_BAREMETAL"
                );
            }
        }
    }
}

/// `stuck` is told once for each reason, and the way back goes on after it.
#[tokio::test(start_paused = true)]
async fn a_node_that_needs_somebody_is_told_to_be_stuck() {
    let sandbox = cloud(1, NovaRule::Off).build();
    let (node, _) = only(&sandbox);
    edit(&sandbox, node, |node| node.behaviour.clean_failures = 1);
    let scene = Scene::new(&sandbox);
    let guard = scene.guard();
    let (told, ()) = follow(&scene, &guard, None, async {
        delete_all(&sandbox);
        tokio::time::sleep(secs(200)).await;
        let target = format!("PUT /v1/nodes/{node}/states/provision");
        by_operator(&sandbox, &target, &serde_json::json!({ "target": "manage" }));
        tokio::time::sleep(secs(70)).await;
        edit(&sandbox, node, |node| {
            node.maintenance = false;
            node.fault = None;
        });
        by_operator(&sandbox, &target, &serde_json::json!({ "target": "provide" }));
        tokio::time::sleep(secs(150)).await;
    })
    .await;
    let kinds = kinds(&told, node);
    assert_eq!(
        (kinds[0], kinds.last()),
        (Kind::Held, Some(&Kind::Released)),
        "{told:?}"
    );
    let stuck = told
        .iter()
        .filter(|event| event.event == Kind::Stuck)
        .collect::<Vec<_>>();
    assert!(stuck[0].reason.contains("cleaning failed"), "{told:?}");
    assert!(stuck.len() <= 3, "again and again: {told:?}");
    assert_clean(&sandbox, node, "mended");
}

/// What is not there to be had is not `released`.
#[tokio::test(start_paused = true)]
async fn a_node_that_is_in_use_again_is_not_released() {
    let sandbox = cloud(1, NovaRule::Off).build();
    let (node, instance) = only(&sandbox);
    let scene = Scene::new(&sandbox);
    let guard = scene.guard();
    let (told, ()) = follow(&scene, &guard, None, async {
        edit(&sandbox, node, |node| node.provision_state = State::Deleting);
        tokio::time::sleep(secs(10)).await;
        sandbox.with(|world, now| {
            world.edit_node(node, |node| {
                node.provision_state = State::Active;
                node.instance_uuid = Some(instance);
                node.provision_updated_at = Some(now);
            });
        });
        tokio::time::sleep(secs(100)).await;
    })
    .await;
    assert_eq!(kinds(&told, node), [Kind::Held, Kind::Ended], "{told:?}");
}

/// The answer of the hold is lost, or the process dies: it is told once it is seen. Numbers go on in the next process.
#[tokio::test(start_paused = true)]
async fn a_hold_that_nobody_answered_for_is_told_when_it_is_seen() {
    let sandbox = cloud(1, NovaRule::Off).build();
    let (node, _) = only(&sandbox);
    let scene = Scene::with(&sandbox, Settings::default());
    let lost = Fault::on(Service::Placement)
        .path("/allocations")
        .method(http::Method::POST);
    sandbox.fault(lost.lose_reply().times(1));
    let guard = scene.guard();
    let (first, ()) = follow(&scene, &guard, None, async {
        delete_all(&sandbox);
        tokio::time::sleep(secs(15)).await;
    })
    .await;
    assert_eq!(kinds(&first, node), [Kind::Held], "{first:?}");
    let next = scene.guard();
    let after = first.last().unwrap().id;
    let mut stream = Box::pin(next.events().follow(Some(after)));
    scene.with_guard(&next, tokio::time::sleep(secs(100))).await;
    drop(next);
    let mut told = Vec::new();
    while let Some(one) = stream.next().await {
        told.push(one);
    }
    assert_eq!(
        told.first(),
        Some(&Told::Missed(None)),
        "of another process: {told:?}"
    );
    let kinds = told[1..].iter().map(|told| match told {
        Told::Event(event) if event.id > after => event.event,
        other => panic!("{other:?}"),
    });
    assert_eq!(kinds.collect::<Vec<_>>(), [Kind::Held, Kind::Released]);
}

/// Whoever does not read delays nothing.
#[tokio::test(start_paused = true)]
async fn a_follower_that_does_not_read_delays_nothing() {
    let sandbox: Sandbox = cloud(2, NovaRule::Off).build();
    let scene = Scene::new(&sandbox);
    let guard = scene.guard();
    let _sleeps = guard.events().follow(None);
    let servers = scene
        .with_guard(&guard, async {
            let servers = delete_all(&sandbox);
            tokio::time::sleep(secs(100)).await;
            servers
        })
        .await;
    for (node, _) in servers {
        assert_clean(&sandbox, node, "nobody reads");
    }
}
