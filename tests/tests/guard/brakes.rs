//! Rules 13 to 15: a sweep that cannot be true, the limits of the blast, the pause switch, standing down; dry runs and single
//! passes.

use std::sync::Arc;

use http::{HeaderName, Method, StatusCode};
use tokio_util::sync::CancellationToken;
use unprovision::core::Outcome;
use unprovision::guard::Settings;
use unprovision::orchestrator::Progress;
use unprovision_testkit::sandbox::config::NovaRule;
use unprovision_testkit::sandbox::{Fault, Sandbox, Service};
use uuid::Uuid;

use crate::common::{
    Scene, assert_clean, assert_ironic_untouched, assert_unexposed, by_operator, cloud, delete_all, only,
    secs, writes,
};

fn held(sandbox: &Sandbox, node: Uuid) -> bool {
    !sandbox.with(|world, _| world.holders(node)).is_empty()
}

/// Rule 13: the full list fails from some time on. What is held stays held, although each node by itself looks free.
#[tokio::test(start_paused = true)]
async fn a_sweep_that_fails_releases_nothing() {
    let sandbox = cloud(3, NovaRule::Off).build();
    let scene = Scene::new(&sandbox);
    let servers = scene
        .while_guarding(async {
            let servers = delete_all(&sandbox);
            tokio::time::sleep(secs(10)).await;
            // Not the lists of the look, which filter by state.
            let broken = Fault::on(Service::Ironic)
                .path("/v1/nodes")
                .query("retired")
                .status(StatusCode::INTERNAL_SERVER_ERROR, "{}");
            sandbox.fault(broken);
            tokio::time::sleep(secs(20)).await;
            // Cleaning ends after the first sweep has failed.
            for (node, _) in &servers {
                assert!(held(&sandbox, *node));
            }
            tokio::time::sleep(secs(100)).await;
            servers
        })
        .await;
    assert!(scene.ear.heard("ALARM: nothing is released") >= 1);
    let _ = servers;
}

/// Rule 13: Ironic suddenly shows a few nodes only. Nothing is released, closed or given up until it shows them again.
#[tokio::test(start_paused = true)]
async fn far_fewer_nodes_release_nothing_until_somebody_looks() {
    for by_hand in [false, true] {
        let sandbox = cloud(10, NovaRule::Off).cleaning(secs(90)).build();
        let scene = Scene::new(&sandbox);
        let guard = scene.guard();
        let servers = scene
            .with_guard(&guard, async {
                let servers = delete_all(&sandbox);
                tokio::time::sleep(secs(50)).await;
                let empty = Fault::on(Service::Ironic)
                    .path("/v1/nodes")
                    .query("retired")
                    .status(StatusCode::OK, r#"{"nodes": []}"#);
                sandbox
                    .fault(empty.header(HeaderName::from_static("x-openstack-ironic-api-version"), "1.115"));
                tokio::time::sleep(secs(150)).await;
                for (node, _) in &servers {
                    assert!(held(&sandbox, *node), "released by a list that cannot be true");
                }
                match by_hand {
                    true => guard.brakes().go_on(),
                    false => sandbox.clear_faults(),
                }
                tokio::time::sleep(secs(70)).await;
                servers
            })
            .await;
        assert!(scene.ear.heard("Ironic shows 0 nodes, and 10 before") >= 1);
        for (node, _) in servers {
            assert_clean(&sandbox, node, "trusted again");
        }
    }
}

/// Rule 13: a word that came before the guard counts for its first sweep, and for no other.
#[tokio::test(start_paused = true)]
async fn a_word_said_beforehand_is_for_the_first_sweep() {
    let sandbox = cloud(10, NovaRule::Off).cleaning(secs(600)).build();
    let scene = Scene::new(&sandbox);
    let stop = CancellationToken::new();
    delete_all(&sandbox);
    tokio::time::sleep(secs(1)).await;
    let unneeded = scene.guard();
    unneeded.brakes().go_on_beforehand();
    unneeded.once(&stop).await.unwrap();
    let empty = Fault::on(Service::Ironic)
        .path("/v1/nodes")
        .query("retired")
        .status(StatusCode::OK, r#"{"nodes": []}"#);
    sandbox.fault(empty.header(HeaderName::from_static("x-openstack-ironic-api-version"), "1.115"));
    for beforehand in [false, true] {
        let guard = scene.guard();
        if beforehand {
            guard.brakes().go_on_beforehand();
        }
        guard.once(&stop).await.unwrap();
        assert_eq!(guard.status().distrust.is_none(), beforehand);
    }
    unneeded.once(&stop).await.unwrap();
    assert!(unneeded.status().distrust.is_some(), "it lay in wait");
}

/// Rule 14: too large a share of a class. Everything stops, it says how to go on, and it does then.
#[tokio::test(start_paused = true)]
async fn too_many_holds_stop_all_writes_until_somebody_looks() {
    let sandbox = cloud(40, NovaRule::Off).cleaning(secs(600)).build();
    let settings = Settings {
        max_held_share: 0.5,
        ..Settings::default()
    };
    let scene = Scene::with(&sandbox, settings);
    let guard = scene.guard();
    let servers = scene
        .with_guard(&guard, async {
            let servers = delete_all(&sandbox);
            tokio::time::sleep(secs(100)).await;
            let status = guard.status();
            assert_eq!(status.held, 20, "{status}");
            assert!(
                status.stopped.as_deref().unwrap().contains("max_held_share"),
                "{status}"
            );
            let sent = writes(&sandbox).len();
            assert_eq!(sent, 20);
            guard.brakes().go_on();
            tokio::time::sleep(secs(20)).await;
            assert_eq!(guard.status().held, 40);
            tokio::time::sleep(secs(700)).await;
            servers
        })
        .await;
    assert_eq!(scene.ear.heard("ALARM: nothing is written"), 1, "once");
    for (node, _) in servers {
        assert!(sandbox.is_offered(node));
    }
}

/// Rule 14: after a restart, more nodes would be released at once than is thought to be right.
#[tokio::test(start_paused = true)]
async fn too_many_releases_after_a_start_stop_all_writes() {
    let sandbox = cloud(12, NovaRule::Off).build();
    let settings = Settings {
        max_releases_at_start: 5,
        max_held_floor: 20,
        ..Settings::default()
    };
    let scene = Scene::with(&sandbox, settings);
    let servers = scene
        .until_killed(async {
            let servers = delete_all(&sandbox);
            tokio::time::sleep(secs(20)).await;
            servers
        })
        .await;
    tokio::time::sleep(secs(100)).await;
    let guard = scene.guard();
    scene
        .with_guard(&guard, async {
            tokio::time::sleep(secs(30)).await;
            let still = servers.iter().filter(|(node, _)| held(&sandbox, *node)).count();
            assert_eq!(still, 7, "five were released");
            assert!(guard.status().stopped.is_some());
            guard.brakes().go_on();
            tokio::time::sleep(secs(30)).await;
        })
        .await;
    for (node, _) in servers {
        assert_clean(&sandbox, node, "released in the end");
    }
}

/// The pause switch: a word, and a file. Nothing is written meanwhile, everything afterwards.
#[tokio::test(start_paused = true)]
async fn the_pause_switch_stops_all_writes_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("pause");
    for by_file in [false, true] {
        let sandbox = cloud(2, NovaRule::Off).teardown(secs(30)).build();
        let settings = Settings {
            pause_file: Some(file.clone()),
            ..Settings::default()
        };
        let scene = Scene::with(&sandbox, settings);
        let guard = scene.guard();
        let servers = scene
            .with_guard(&guard, async {
                match by_file {
                    true => std::fs::write(&file, "").unwrap(),
                    false => guard.brakes().pause("by the test"),
                }
                tokio::time::sleep(secs(2)).await;
                let servers = delete_all(&sandbox);
                tokio::time::sleep(secs(15)).await;
                assert_eq!(writes(&sandbox), Vec::<String>::new());
                match by_file {
                    true => std::fs::remove_file(&file).unwrap(),
                    false => guard.brakes().go_on(),
                }
                tokio::time::sleep(secs(5)).await;
                assert_eq!(writes(&sandbox).len(), 2, "held as soon as it goes on");
                tokio::time::sleep(secs(100)).await;
                servers
            })
            .await;
        for (node, _) in servers {
            assert_clean(&sandbox, node, "paused in time");
        }
    }
}

/// Rule 15: what is free is released, nothing new is held, and the rest is listed with its commands.
#[tokio::test(start_paused = true)]
async fn standing_down_releases_what_is_safe_and_lists_the_rest() {
    for journal_lost in [false, true] {
        let sandbox = cloud(3, NovaRule::Off)
            .each_node(|number, node| {
                node.behaviour.cleaning = Some(secs(if number == 1 { 30 } else { 3600 }))
            })
            .build();
        let mut scene = Scene::new(&sandbox);
        let servers = sandbox.deployed();
        scene
            .until_killed(async {
                for (_, instance) in &servers[..2] {
                    sandbox.with(|world, now| world.nova_delete(*instance, now));
                }
                tokio::time::sleep(secs(20)).await;
            })
            .await;
        // Somebody else's turn: the first is free by now, the third just leaves.
        tokio::time::sleep(secs(30)).await;
        sandbox.with(|world, now| world.nova_delete(servers[2].1, now));
        tokio::time::sleep(secs(2)).await;
        if journal_lost {
            scene = Scene::new(&sandbox);
        }
        let before = writes(&sandbox).len();
        let (pass, listed) = scene.guard().stand_down(&CancellationToken::new()).await.unwrap();
        assert!(pass.failed.is_empty(), "{pass:?}");
        assert_clean(&sandbox, servers[0].0, "the free one");
        assert_eq!(writes(&sandbox).len(), before + 1, "one release, nothing else");
        let [one] = &listed[..] else { panic!("{listed:?}") };
        assert_eq!(one.node.0, servers[1].0);
        let ours = sandbox.with(|world, _| world.holders(servers[1].0)).remove(0);
        assert_eq!(
            one.commands,
            [format!("openstack resource provider allocation delete {ours}")]
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_dry_run_says_everything_and_does_nothing() {
    let sandbox = cloud(2, NovaRule::Old).build();
    let settings = Settings {
        dry_run: true,
        ..Settings::default()
    };
    let scene = Scene::with(&sandbox, settings);
    scene
        .while_guarding(async {
            delete_all(&sandbox);
            tokio::time::sleep(secs(30)).await;
        })
        .await;
    assert_eq!(writes(&sandbox), Vec::<String>::new());
    assert_eq!(scene.ear.heard("not sent: hand the unit over from"), 2);
    assert_eq!(
        scene.ear.heard("Intended"),
        0,
        "nothing is intended that is not meant"
    );
}

/// One pass holds what leaves, releases what is free, and ends.
#[tokio::test(start_paused = true)]
async fn one_pass_does_all_that_can_be_done_now() {
    let sandbox = cloud(2, NovaRule::Off).build();
    let scene = Scene::new(&sandbox);
    let stop = CancellationToken::new();
    let idle = scene.guard().once(&stop).await.unwrap();
    assert!(
        idle.reports.is_empty() && idle.findings.is_empty() && idle.failed.is_empty(),
        "{idle:?}"
    );
    let servers = delete_all(&sandbox);
    tokio::time::sleep(secs(1)).await;
    let first = scene.guard().once(&stop).await.unwrap();
    assert_eq!(
        first.reports.iter().filter(|report| report.held).count(),
        2,
        "{first:?}"
    );
    tokio::time::sleep(secs(60)).await;
    let second = scene.guard().once(&stop).await.unwrap();
    assert!(second.reports.iter().all(|report| !report.held), "{second:?}");
    for (node, _) in servers {
        assert_clean(&sandbox, node, "two passes");
    }
}

/// The node comes back before anybody has released the instance's allocation: a pass does not wait for that, and in the end nobody
/// is told that the node is offered.
#[tokio::test(start_paused = true)]
async fn one_pass_does_not_wait_for_somebody_elses_allocation() {
    let sandbox = cloud(1, NovaRule::Off).build();
    let (node, instance) = only(&sandbox);
    let settings = Settings {
        max_held_share: 0.0,
        max_held_floor: 0,
        ..Settings::default()
    };
    let braked = Scene::with(&sandbox, settings);
    let scene = Scene {
        settings: Settings::default(),
        ..braked.clone()
    };
    let stop = CancellationToken::new();
    let call = format!("PUT /v1/nodes/{node}/states/provision");
    by_operator(&sandbox, &call, &serde_json::json!({"target": "deleted"}));
    tokio::time::sleep(secs(1)).await;
    braked.guard().once(&stop).await.unwrap();
    tokio::time::sleep(secs(50)).await;

    let begun = tokio::time::Instant::now();
    let early = scene.guard().once(&stop).await.unwrap();
    assert!(begun.elapsed() < secs(15), "{:?}", begun.elapsed());
    assert_eq!(early.reports[0].outcome, Progress::Waits, "{early:?}");
    tokio::time::sleep(secs(180)).await;
    let late = scene.guard().once(&stop).await.unwrap();
    assert_eq!(late.reports[0].outcome, Progress::Ended(Outcome::Blocked));
    assert!(late.reports[0].reason.contains(&instance.to_string()), "{late:?}");
    assert!(!sandbox.is_offered(node));
    assert_eq!(writes(&sandbox), Vec::<String>::new());
}

/// Rule 1: with a role that may only read in Ironic, the guard does all of its work.
#[tokio::test(start_paused = true)]
async fn a_right_to_read_is_enough_in_ironic() {
    let sandbox = cloud(3, NovaRule::Old).build();
    for method in [Method::PUT, Method::POST, Method::PATCH, Method::DELETE] {
        let forbidden = Fault::on(Service::Ironic).method(method).from("guard");
        sandbox.fault(forbidden.status(StatusCode::FORBIDDEN, "{}"));
    }
    let scene = Arc::new(Scene::new(&sandbox));
    let servers = scene
        .while_guarding(async {
            let servers = delete_all(&sandbox);
            tokio::time::sleep(secs(100)).await;
            servers
        })
        .await;
    for (node, _) in servers {
        assert_unexposed(&sandbox, node, "read only");
        assert_clean(&sandbox, node, "read only");
    }
    assert_ironic_untouched(&sandbox);
}
