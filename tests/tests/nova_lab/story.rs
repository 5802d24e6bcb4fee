//! Servers are deleted: by Nova alone, or with the guard beside it.

use std::collections::BTreeSet;
use std::time::Duration;

use futures::future::join_all;
use unprovision_testkit::lab::sampler::{Samples, Sampling};
use unprovision_testkit::proxy::Mark;

use crate::common::{Deletion, Group, Placed, Stage, secs};
use crate::guard::Guard;

/// What a deletion cost and showed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Figures {
    /// How long the node was offered without being free, by the order of all that was said.
    pub(crate) exposed: Duration,
    /// The same, as a sampler saw it.
    pub(crate) sampled: Duration,
    /// Until Nova did not know the server any more.
    pub(crate) gone: Duration,
    /// From the node being free to its being offered.
    pub(crate) offered: Option<Duration>,
}

/// The one in the middle.
pub(crate) fn median(times: impl IntoIterator<Item = Duration>) -> Duration {
    let mut times = times.into_iter().collect::<Vec<_>>();
    times.sort_unstable();
    times[times.len() / 2]
}

/// What Nova does alone, until the nodes are available.
pub(crate) async fn alone(stage: &Stage, group: &Group, servers: &[Placed]) -> Vec<Figures> {
    watched(stage, group, servers, false).await
}

/// Deletes servers and looks on until their nodes are available, and perhaps until they are offered.
pub(crate) async fn watched(
    stage: &Stage,
    group: &Group,
    servers: &[Placed],
    until_offered: bool,
) -> Vec<Figures> {
    let (since, sampling) = (stage.now(), stage.sampling(group));
    let deletions = stage.delete(servers).await;
    let nodes = deletions
        .iter()
        .map(|deletion| deletion.node)
        .collect::<BTreeSet<_>>();
    stage.until_state(nodes.iter().copied(), "available").await;
    if until_offered {
        stage.until_offered(group, &nodes).await;
    }
    let samples = samples(sampling).await;
    figures(stage, &deletions, since, &samples)
}

/// The samples until now. One more look shows what has just happened.
pub(crate) async fn samples(sampling: Sampling) -> Samples {
    tokio::time::sleep(secs(1)).await;
    sampling.stop().await.unwrap()
}

/// What Nova does with the guard beside it, which is killed in the middle. The cleaning of one node fails.
pub(crate) async fn guarded(
    stage: &Stage,
    mut guard: Guard,
    group: &Group,
    servers: &[Placed],
) -> Vec<Figures> {
    let (since, sampling) = (stage.now(), stage.sampling(group));
    let (failing, good) = servers.split_last().unwrap();
    let nodes = good.iter().map(|placed| placed.node).collect::<BTreeSet<_>>();

    let killed = async {
        // On a busy machine the start takes seconds: longer than the tear-down, during which nobody would hold the others.
        stage.until_left(servers.iter().map(|placed| placed.node)).await;
        guard.kill_and_restart(stage).await;
    };
    let ((), deletions) = tokio::join!(killed, stage.delete(servers));
    stage.say("the servers are gone");
    // As soon as a node is free, somebody wants it. Nobody says which one: it must be one that is free.
    let again = join_all(nodes.iter().map(async |node| {
        stage.until_state([*node], "available").await;
        let waited = stage.until_to_be_had(group, *node).await;
        (
            waited,
            stage.nova.create("next", &group.flavor, None).await.unwrap(),
        )
    }));
    let (mut taken, mut waits) = (BTreeSet::new(), Vec::new());
    for (waited, server) in again.await {
        waits.push(waited);
        let built = stage.built(server).await;
        assert_eq!(built.status, "ACTIVE", "{:?}", built.fault);
        taken.insert(built.node.unwrap());
    }
    assert_eq!(taken, nodes, "the next servers are on the nodes that were freed");
    stage.until_state([failing.node], "clean failed").await;
    let samples = samples(sampling).await;
    let mut figures = figures(stage, &deletions, since, &samples);
    // The next server may be quicker than the sampler.
    for figures in &mut figures {
        figures.offered = figures.offered.or(waits.iter().max().copied());
    }
    let offered = stage.api.candidates(group.class.as_str()).await.unwrap();
    assert!(
        !offered.contains(&failing.node),
        "a node that could not be cleaned stays held"
    );
    let said = guard.said();
    let ended = guard.stop().await;
    assert!(ended.success(), "{ended}: {said}");
    println!("{said}");
    for deletion in &deletions {
        let exposures = stage.exposures(deletion.node, since);
        assert!(exposures.is_empty(), "{} {exposures:#?}", deletion.node);
    }
    // The last one did not come back.
    figures[..figures.len() - 1].to_vec()
}

/// With the guard nothing is exposed, and neither deletions nor what follows them are slower. Bounds on times are wide:
/// the machine is busy with other things.
pub(crate) fn compare(stage: &Stage, alone: &[Figures], guarded: &[Figures]) {
    assert!(guarded.len() >= 3);
    // A pass that comes early may close the window of one node; it cannot close that of all.
    assert!(
        alone.iter().any(|figures| figures.exposed > Duration::ZERO),
        "the control shows nothing: {alone:?}"
    );
    assert!(
        alone.iter().any(|figures| figures.sampled > Duration::ZERO),
        "the sampler shows nothing: {alone:?}"
    );
    for figures in guarded {
        assert_eq!(figures.sampled, Duration::ZERO, "{figures:?}");
        let offered = figures.offered.unwrap();
        assert!(offered < secs(10), "offered again only after {offered:.1?}");
    }
    let of = |figures: &[Figures]| median(figures.iter().map(|figures| figures.gone));
    let ratio = of(guarded).as_secs_f64() / of(alone).as_secs_f64();
    let offered = guarded
        .iter()
        .filter_map(|figures| figures.offered)
        .max()
        .unwrap();
    stage.say(&format!(
        "deletions take {ratio:.2} times as long with the guard; free to offered: at most {offered:.2?}"
    ));
    assert!(
        ratio < 3.0,
        "deletions take {ratio:.1} times as long with the guard"
    );
}

/// What it was for each of these.
pub(crate) fn figures(stage: &Stage, deletions: &[Deletion], since: Mark, samples: &Samples) -> Vec<Figures> {
    let of = |deletion: &Deletion| {
        let figures = Figures {
            exposed: stage.exposed(deletion.node, since),
            sampled: samples.exposed_for(deletion.node),
            gone: deletion.gone_after,
            offered: samples.offered_again_after(deletion.node),
        };
        stage.say(&format!("{} {figures:.2?}", deletion.node));
        for exposure in stage.exposures(deletion.node, since) {
            println!("  exposed for {:.2?} by {}", exposure.length(), exposure.by);
        }
        figures
    };
    deletions.iter().map(of).collect()
}
