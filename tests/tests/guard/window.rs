//! C01 the window after a delete, C06 automated cleaning off.

use unprovision_testkit::sandbox::config::NovaRule;
use unprovision_testkit::sandbox::nova::Stage;
use unprovision_testkit::sandbox::{Builder, Sandbox, judge};

use crate::common::{
    Scene, assert_clean, assert_ironic_untouched, cloud, delete_all, deleted_after, secs, stage, strategies,
};

/// The bug in its two forms: any Nova before 26.1; and today's, for servers that its tracker has forgotten.
fn bugs() -> [(&'static str, Builder); 2] {
    [
        ("the old rule", cloud(10, NovaRule::Old)),
        (
            "today's Nova, claims forgotten",
            cloud(10, NovaRule::Current).reserved_in_use(false),
        ),
    ]
}

#[tokio::test(start_paused = true)]
async fn c01_without_a_guard_nova_exposes_nodes() {
    for (what, cloud) in bugs() {
        let sandbox = cloud.build();
        let deployed = delete_all(&sandbox);
        tokio::time::sleep(secs(200)).await;
        let log = sandbox.log();
        let exposed = deployed
            .iter()
            .filter(|(node, _)| !judge::exposure(&log, *node).is_none());
        assert_eq!(exposed.count(), 10, "{what}: the control must show the bug");
    }
}

/// Ten servers deleted at once: not one instant of exposure, offered at once when they are free, and Nova notices nothing.
#[tokio::test(start_paused = true)]
async fn c01_the_guard_closes_the_window_beside_any_nova() {
    for strategy in strategies() {
        // Its window beside the old rule is declared: the tracker takes the reservation back.
        let bugs = bugs().into_iter();
        let bugs = bugs.filter(|(what, _)| strategy == "hand-over" || *what != "the old rule");
        for (what, cloud) in bugs {
            let control = cloud.clone().build();
            let alone = control.now();
            let servers = delete_all(&control);
            tokio::time::sleep(secs(200)).await;

            let sandbox = cloud.build();
            let scene = Scene::by(&sandbox, strategy);
            let what = format!("{strategy}, {what}");
            let start = scene
                .while_guarding(async {
                    tokio::time::sleep(secs(5)).await;
                    let start = sandbox.now();
                    delete_all(&sandbox);
                    tokio::time::sleep(secs(195)).await;
                    start
                })
                .await;
            for (node, instance) in servers {
                assert_clean(&sandbox, node, &what);
                let again = judge::offered_again_after(&sandbox.log(), node, start).unwrap();
                assert!(again <= secs(1), "{what}: offered {again:?} after it was free");
                let (with, without) = (
                    deleted_after(&sandbox, instance, start),
                    deleted_after(&control, instance, alone),
                );
                assert_eq!(stage(&sandbox, instance), Some(Stage::Deleted), "{what}");
                assert!(
                    with.is_some() && with <= without,
                    "{what}: {with:?} instead of {without:?}"
                );
            }
            assert_ironic_untouched(&sandbox);
        }
    }
}

/// Nothing is written where nothing is wrong: today's Nova reserves a settled node itself.
#[tokio::test(start_paused = true)]
async fn a_node_that_nova_covers_is_only_lifted_at_the_end() {
    let sandbox = cloud(3, NovaRule::Current).build();
    let scene = Scene::new(&sandbox);
    let start = sandbox.now();
    let servers = scene
        .while_guarding(async {
            let servers = delete_all(&sandbox);
            tokio::time::sleep(secs(50)).await;
            servers
        })
        .await;
    for (node, _) in servers {
        assert_clean(&sandbox, node, "adopted");
        let again = judge::offered_again_after(&sandbox.log(), node, start).unwrap();
        assert!(again <= secs(1), "{again:?}");
    }
    let writes = crate::common::writes(&sandbox);
    assert_eq!(writes.len(), 3, "one lift for each node: {writes:?}");
    assert!(
        writes.iter().all(|line| line.ends_with("/inventories")),
        "{writes:?}"
    );
}

/// The node passes `deleting` and `cleaning` in milliseconds; it may even be seen only when it is free again.
#[tokio::test(start_paused = true)]
async fn c06_a_node_that_is_not_cleaned_returns_at_once() {
    for strategy in strategies() {
        for rule in [NovaRule::Old, NovaRule::Current] {
            let sandbox: Sandbox = cloud(5, rule)
                .teardown(secs(0))
                .configure(|config| config.ironic.automated_clean = false)
                .build();
            let scene = Scene::by(&sandbox, strategy);
            let start = sandbox.now();
            let servers = scene
                .while_guarding(async {
                    let servers = delete_all(&sandbox);
                    tokio::time::sleep(secs(150)).await;
                    servers
                })
                .await;
            for (node, _) in servers {
                assert_clean(&sandbox, node, strategy);
                let again = judge::offered_again_after(&sandbox.log(), node, start).unwrap();
                assert!(again <= secs(70), "{strategy}: {again:?}");
            }
        }
    }
}
