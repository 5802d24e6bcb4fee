//! Scopes: each its own strategy and limits; what is outside of all of them is left alone.

use std::sync::Arc;

use tokio_util::sync::CancellationToken;
use unprovision::guard::Settings;
use unprovision::scope::{Care, Scope, Scopes, Selector};
use unprovision_testkit::sandbox::config::NovaRule;
use unprovision_testkit::sandbox::{Builder, Sandbox, judge};
use uuid::Uuid;

use crate::common::{Scene, assert_clean, assert_unexposed, cloud, delete_all, edit, secs, writes};

/// A scope of one conductor group, as careful as the guard is by default; without a strategy it only looks.
fn group(group: &str, strategy: Option<&str>) -> Scope {
    Scope {
        name: format!("group-{group}"),
        nodes: Selector {
            conductor_groups: Some(vec![group.to_owned()]),
            ..Selector::default()
        },
        care: strategy.map(|strategy| Care {
            strategy: strategy.to_owned(),
            release_nova_reservations: true,
            max_held_share: 0.8,
            max_held_floor: 10,
        }),
    }
}

fn scoped(scopes: Vec<Scope>) -> Settings {
    Settings {
        scopes: Scopes::new(scopes).unwrap(),
        ..Settings::default()
    }
}

/// Nodes in use, in these conductor groups.
fn grouped(groups: &'static [&str]) -> Builder {
    cloud(groups.len(), NovaRule::Off).each_node(|number, node| {
        node.conductor_group = groups[number - 1].to_owned();
    })
}

/// How often a request names the node in its path.
fn asked_for(sandbox: &Sandbox, node: Uuid) -> usize {
    let log = sandbox.log();
    let of_guard = log.requests().filter(|line| line.who == "guard");
    of_guard
        .filter(|line| line.path.contains(&node.to_string()))
        .count()
}

#[tokio::test(start_paused = true)]
async fn a_scope_has_its_own_strategy_and_nodes_outside_are_not_touched() {
    let sandbox = grouped(&["a", "b", "c", ""]).build();
    let nodes = sandbox.nodes();
    let scopes = vec![
        group("A", Some("hand-over")),
        group("b", Some("reserve-on-delete")),
        group("c", None),
    ];
    let scene = Scene::with(&sandbox, scoped(scopes));
    scene
        .while_guarding(async {
            delete_all(&sandbox);
            tokio::time::sleep(secs(20)).await;
            assert!(!sandbox.is_offered(nodes[0]) && !sandbox.is_offered(nodes[1]));
            tokio::time::sleep(secs(200)).await;
        })
        .await;
    for node in [nodes[0], nodes[1]] {
        assert_clean(&sandbox, node, "guarded");
    }
    let reserving = writes(&sandbox)
        .into_iter()
        .filter(|line| line.contains("inventories"));
    assert_eq!(reserving.count(), 2, "reserved and lifted again");
    for node in [nodes[2], nodes[3]] {
        assert!(
            !judge::exposure(&sandbox.log(), node).is_none(),
            "somebody hid it"
        );
    }
    assert_eq!(asked_for(&sandbox, nodes[3]), 0, "not even looked at");
    assert_eq!(scene.ear.heard("scope `group-c`: 1 nodes, audit-only"), 1);
    assert_eq!(scene.ear.heard("1 nodes are in no scope"), 1);
}

/// What does not fit is told while it does not, in a scope that is only looked at.
#[tokio::test(start_paused = true)]
async fn a_scope_that_is_only_looked_at_tells_and_writes_nothing() {
    let sandbox = grouped(&["c", "c"]).cleaning(secs(300)).build();
    let scene = Scene::with(&sandbox, scoped(vec![group("c", None), group("d", None)]));
    let guard = scene.guard();
    let findings = scene
        .with_guard(&guard, async {
            delete_all(&sandbox);
            tokio::time::sleep(secs(150)).await;
            let stop = CancellationToken::new();
            let once = scene.guard().once(&stop).await.unwrap();
            tokio::time::sleep(secs(400)).await;
            let after = scene.guard().once(&stop).await.unwrap();
            (once.findings, after.findings)
        })
        .await;
    assert_eq!(findings.0.len(), 2, "{findings:?}");
    assert!(
        findings.0[0]
            .1
            .contains("it would be held, but its scope `group-c` is audit-only")
    );
    assert_eq!(findings.1.len(), 0, "{findings:?}");
    assert_eq!(writes(&sandbox), Vec::<String>::new());
    assert!(scene.ear.heard("it would be held") >= 2);
    assert!(scene.ear.heard("scope `group-d`: NO node fits") >= 1);
}

/// A pass that guards nothing says so: a check that relies on it would be told that all is well.
#[tokio::test(start_paused = true)]
async fn scopes_that_no_node_fits_guard_nothing() {
    let sandbox = grouped(&["a"]).build();
    for (name, nothing) in [("z", true), ("a", false)] {
        let scene = Scene::with(&sandbox, scoped(vec![group(name, Some("hand-over"))]));
        let pass = scene.guard().once(&CancellationToken::new()).await.unwrap();
        let said = pass
            .sees_nothing
            .is_some_and(|why| why.contains("no node fits any scope"));
        assert_eq!(said, nothing, "{pass:?}");
    }
}

/// A hold is never stranded: its node may leave every scope, also while no guard is there.
#[tokio::test(start_paused = true)]
async fn what_is_held_is_carried_to_its_end_outside_of_every_scope() {
    for restart in [false, true] {
        for to_group in ["", "c"] {
            let sandbox = grouped(&["a", "a"]).cleaning(secs(300)).build();
            let (node, other) = (sandbox.nodes()[0], sandbox.nodes()[1]);
            let scopes = vec![group("a", Some("hand-over")), group("c", None)];
            let scene = Scene::with(&sandbox, scoped(scopes));
            let leaves = async {
                delete_all(&sandbox);
                tokio::time::sleep(secs(20)).await;
                edit(&sandbox, node, |node| node.conductor_group = to_group.to_owned());
            };
            let rest = tokio::time::sleep(secs(500));
            if restart {
                scene.until_killed(leaves).await;
                scene.while_guarding(rest).await;
            } else {
                let all = async {
                    leaves.await;
                    rest.await;
                };
                scene.while_guarding(all).await;
            }
            assert_clean(&sandbox, node, "it has left");
            assert_clean(&sandbox, other, "it has stayed");
            assert!(
                scene
                    .ear
                    .heard("its open case goes on until nothing of ours is left")
                    >= 1
            );
        }
    }
}

/// Rule 14 counts the nodes of a class in the scope, not in the cloud.
#[tokio::test(start_paused = true)]
async fn a_share_is_that_of_the_nodes_in_the_scope() {
    let limited = |share| {
        let mut scope = group("a", Some("hand-over"));
        let care = scope.care.as_mut().unwrap();
        (care.max_held_share, care.max_held_floor) = (share, 0);
        scope
    };
    for (share, held) in [(0.5, 2), (1.0, 4)] {
        let sandbox = grouped(&["a", "a", "a", "a", "b", "b", "b", "b", "b", "b"])
            .cleaning(secs(600))
            .build();
        let settings = scoped(vec![limited(share), group("b", Some("hand-over"))]);
        let scene = Scene::with(&sandbox, settings);
        let guard = scene.guard();
        scene
            .with_guard(&guard, async {
                for (_, instance) in sandbox.deployed().into_iter().take(4) {
                    sandbox.with(|world, now| world.nova_delete(instance, now));
                }
                tokio::time::sleep(secs(100)).await;
                assert_eq!(guard.status().held, held, "{share}");
                let alarm = scene
                    .ear
                    .heard("4 nodes of CUSTOM_BAREMETAL in scope `group-a` would be held");
                assert_eq!(alarm > 0, held < 4, "{share}");
            })
            .await;
    }
}

/// A list without the field would look as if no node had one: then nothing would be guarded, in silence.
#[tokio::test(start_paused = true)]
async fn an_api_that_does_not_tell_the_scope_is_refused() {
    let sandbox = cloud(1, NovaRule::Off)
        .configure(|config| config.ironic.max_minor = 81)
        .build();
    let by_shard = Scope {
        nodes: Selector {
            shards: Some(vec!["s".to_owned()]),
            ..Selector::default()
        },
        ..group("x", None)
    };
    let guard = Scene::with(&sandbox, scoped(vec![by_shard])).guard();
    let stop = CancellationToken::new();
    for error in [
        guard.run(&stop).await.unwrap_err(),
        guard.once(&stop).await.unwrap_err(),
        Arc::clone(&guard).stand_down(&stop).await.unwrap_err(),
    ] {
        let said = error.to_string();
        assert!(
            said.contains("`shard`") && said.contains("1.82") && said.contains("1.81"),
            "{said}"
        );
    }
}

/// Standing down leaves the holds of another guard's scope alone.
#[tokio::test(start_paused = true)]
async fn standing_down_is_for_the_own_scopes() {
    let sandbox = grouped(&["a", "b"]).cleaning(secs(60)).build();
    let (mine, others) = (sandbox.nodes()[0], sandbox.nodes()[1]);
    let one = Scene::with(&sandbox, scoped(vec![group("a", Some("hand-over"))]));
    let other = Scene::with(&sandbox, scoped(vec![group("b", Some("hand-over"))]));
    let deleted = async {
        delete_all(&sandbox);
        tokio::time::sleep(secs(20)).await;
    };
    let guard = other.guard();
    let stop = CancellationToken::new();
    tokio::select! {
        () = one.until_killed(deleted) => {}
        _ = guard.run(&stop) => unreachable!(),
    }
    tokio::time::sleep(secs(100)).await;
    let (_, held) = one.guard().stand_down(&stop).await.unwrap();
    assert_eq!(held, []);
    assert!(sandbox.is_offered(mine) && !sandbox.is_offered(others));
    other.while_guarding(tokio::time::sleep(secs(70))).await;
    assert_unexposed(&sandbox, others, "in the other scope");
    assert!(sandbox.is_offered(others));
}
