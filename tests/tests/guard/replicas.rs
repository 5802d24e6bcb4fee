//! Several guards on one journal: each node is one's, and what a dead one leaves is another's (rule 16).

use std::collections::BTreeMap;

use unprovision::core::Process;
use unprovision::orchestrator::Progress;
use unprovision::process;
use unprovision_testkit::sandbox::Sandbox;
use unprovision_testkit::sandbox::config::NovaRule;
use uuid::Uuid;

use crate::common::{
    Scene, assert_clean, assert_ironic_untouched, cloud, delete_all, secs, strategies, writes,
};

fn replica(number: u32) -> Process {
    Process {
        host: format!("controller-{number}"),
        namespace: format!("of {number}"),
        pid: number,
        ..process::this()
    }
}

/// Two on the same cloud and journal.
fn two(sandbox: &Sandbox, strategy: &str) -> (Scene, Scene) {
    let one = Scene::by(sandbox, strategy);
    let other = Scene {
        who: "guard-2",
        ear: Default::default(),
        ..one.clone()
    };
    (one, other)
}

fn guard_of(scene: &Scene, number: u32) -> unprovision::guard::Guard {
    let guard = std::sync::Arc::into_inner(scene.guard()).unwrap();
    guard.process(replica(number))
}

/// How many writes each node's provider and consumers took.
fn per_write(sandbox: &Sandbox) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for write in writes(sandbox) {
        let kind = write.split('/').take(2).collect::<Vec<_>>().join("/");
        *counts.entry(kind).or_default() += 1;
    }
    counts
}

fn deleted(sandbox: &Sandbox) -> Vec<Uuid> {
    delete_all(sandbox).into_iter().map(|(node, _)| node).collect()
}

#[tokio::test(start_paused = true)]
async fn two_do_no_more_than_one() {
    for strategy in strategies() {
        let new = || cloud(8, NovaRule::Off).build();
        let alone = new();
        let nodes = deleted(&alone);
        let scene = Scene::by(&alone, strategy);
        scene.while_guarding(tokio::time::sleep(secs(120))).await;
        nodes
            .iter()
            .for_each(|node| assert_clean(&alone, *node, strategy));

        let shared = new();
        let nodes = deleted(&shared);
        let (one, other) = two(&shared, strategy);
        let (first, second) = (guard_of(&one, 1), guard_of(&other, 2));
        let both = other.with_guard(&second, tokio::time::sleep(secs(120)));
        one.with_guard(&first, both).await;
        nodes
            .iter()
            .for_each(|node| assert_clean(&shared, *node, strategy));
        assert_ironic_untouched(&shared);
        assert_eq!(per_write(&shared), per_write(&alone), "{strategy}");
        for ear in [&one.ear, &other.ear] {
            assert_eq!(
                ear.heard("is worked on by another"),
                0,
                "{strategy}: {:?}",
                ear.lines
            );
        }
    }
}

#[tokio::test(start_paused = true)]
async fn what_a_dead_one_leaves_is_taken_up_once_its_lease_has_run_out() {
    for strategy in strategies() {
        let sandbox = cloud(6, NovaRule::Off).build();
        let nodes = deleted(&sandbox);
        let (one, other) = two(&sandbox, strategy);
        let (first, second) = (guard_of(&one, 1), guard_of(&other, 2));
        let stop = tokio_util::sync::CancellationToken::new();
        tokio::select! {
            biased;
            () = tokio::time::sleep(secs(10)) => {}
            _ = first.run(&stop) => panic!("the guard ended by itself"),
        }
        let left = one.ear.heard("Applied");
        assert!(left >= nodes.len(), "{strategy}: all are held");
        other
            .with_guard(&second, async {
                tokio::time::sleep(secs(100)).await;
                let idle = other.ear.heard("Intended");
                assert_eq!(idle, 0, "{strategy}: the first may be at work still");
                assert!(nodes.iter().all(|node| !sandbox.is_offered(*node)), "{strategy}");
                other.journal.end_lease(&replica(1)).await.unwrap();
                tokio::time::sleep(secs(10)).await;
            })
            .await;
        nodes
            .iter()
            .for_each(|node| assert_clean(&sandbox, *node, strategy));
        drop(first);
    }
}

/// Whoever looks once, or stands down, beside a guard sees what that one holds, and leaves it alone.
#[tokio::test(start_paused = true)]
async fn what_another_guard_holds_is_listed_and_left_alone() {
    let sandbox = cloud(2, NovaRule::Off).cleaning(secs(3600)).build();
    let nodes = deleted(&sandbox);
    let (one, other) = two(&sandbox, "hand-over");
    let (first, second, third) = (guard_of(&one, 1), guard_of(&other, 2), guard_of(&other, 3));
    let stop = tokio_util::sync::CancellationToken::new();
    let (pass, (stood_down, held)) = one
        .with_guard(&first, async {
            tokio::time::sleep(secs(10)).await;
            let pass = second.once(&stop).await.unwrap();
            (pass, third.stand_down(&stop).await.unwrap())
        })
        .await;
    for pass in [&pass, &stood_down] {
        let theirs = pass.reports.iter().map(|report| (report.node.0, report.outcome));
        let theirs = theirs.collect::<BTreeMap<_, _>>();
        let expected = nodes.iter().map(|node| (*node, Progress::Elsewhere));
        assert_eq!(theirs, expected.collect(), "{pass:?}");
        assert!(pass.failed.is_empty(), "{pass:?}");
        let words = format!("{} looks after it", replica(1));
        assert!(
            pass.reports
                .iter()
                .all(|report| report.held && report.reason == words),
            "{pass:?}"
        );
    }
    assert_eq!(held.len(), nodes.len(), "{held:?}");
    for one in &held {
        assert!(
            one.why.ends_with("looks after it: stop that guard first"),
            "{one:?}"
        );
        assert!(!one.commands.is_empty(), "{one:?}");
    }
    assert_eq!(other.ear.heard("Intended"), 0, "{:?}", other.ear.lines);
    let beside = format!("not alone: {} is at work on this journal", replica(1));
    assert!(other.ear.heard(&beside) >= 2, "{:?}", other.ear.lines);
    assert_eq!(one.ear.heard("not alone"), 0, "the first is the first");
}
