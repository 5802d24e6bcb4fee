//! Plays one world to its end: the tear-downs, with the sampler beside them.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, ensure};
use jiff::{SignedDuration, Timestamp};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use unprovision::NodeUuid;
use unprovision::cloud::{Clock, OpenStack, SystemClock};
use unprovision::core::{Limits, Outcome, TearDownRequest};
use unprovision::journal::MemoryJournal;
use unprovision::orchestrator::{self, Orchestrator, Until};
use unprovision::strategy::Strategy;

use super::Progress;
use super::sampler::{Sampler, Samples};
use super::stage::{IN_USE, Stage};

/// No world may take longer.
const AT_MOST: Duration = Duration::from_secs(25);
/// How long the world is watched after all nodes are back: so that a relapse would be seen.
const AFTERWARDS: Duration = Duration::from_secs(1);
/// How often our orchestrator looks at the nodes; like everything else ten times as often as by default.
const POLL: Duration = Duration::from_millis(100);

/// Who tears the nodes down.
#[derive(Clone, Copy, Debug)]
pub(super) enum Player {
    /// Nova deletes the servers, and nobody guards the nodes.
    Nova,
    /// Our orchestrator, with this strategy.
    Us(&'static dyn Strategy),
}

/// What came of it; the rest is in the world's log.
#[derive(Debug)]
pub(super) struct Played {
    /// The world.
    pub(super) stage: Stage,
    /// When the tear-downs were asked for.
    pub(super) asked: Timestamp,
    /// What the sampler saw.
    pub(super) samples: Samples,
}

/// Plays the world to the end.
pub(super) async fn play(stage: Stage, player: Player, progress: Progress) -> anyhow::Result<Played> {
    let name = stage.name;
    let playing = tokio::time::timeout(AT_MOST, play_on(stage, player, progress)).await;
    playing.with_context(|| {
        format!(
            "{name}: the nodes were not all back after {} s",
            AT_MOST.as_secs()
        )
    })?
}

async fn play_on(stage: Stage, player: Player, progress: Progress) -> anyhow::Result<Played> {
    let (report, mut samples) = watch::channel(Samples::default());
    let stop = CancellationToken::new();
    let sampling = tokio::spawn(Sampler::new(&stage, progress)?.run(report, stop.clone()));
    tokio::time::sleep(IN_USE).await;
    let asked = stage.sandbox.now();
    match player {
        Player::Nova => stage.sandbox.with(|world, now| {
            stage
                .pairs
                .iter()
                .for_each(|(_, instance)| world.nova_delete(*instance, now));
        }),
        Player::Us(strategy) => tear_down(&stage, strategy).await.context(stage.name)?,
    }
    // Fails only where the sampler has ended early: then its own error says more.
    let back = samples.wait_for(|samples| samples.all_back).await.is_ok();
    if back {
        tokio::time::sleep(AFTERWARDS).await;
    }
    stop.cancel();
    sampling.await??;
    let samples = *samples.borrow();
    Ok(Played {
        stage,
        asked,
        samples,
    })
}

/// The nodes by our own orchestrator, over the same clients that speak to a real cloud.
async fn tear_down(stage: &Stage, strategy: &'static dyn Strategy) -> anyhow::Result<()> {
    let clock = Arc::new(SystemClock);
    let deadline = clock.now() + SignedDuration::try_from(AT_MOST)?;
    let cloud = OpenStack::new(
        stage.ironic("unprovision"),
        stage.placement("unprovision"),
        clock.clone(),
    );
    let orchestrator = Orchestrator::builder(Arc::new(cloud), Arc::new(MemoryJournal::new()), clock)
        .poll(POLL)
        .build();
    let mut cases = Vec::with_capacity(stage.pairs.len());
    for (node, instance) in &stage.pairs {
        let request = TearDownRequest {
            node: NodeUuid(*node),
            instance: *instance,
            strategy: strategy.name().to_owned(),
            tag: None,
            limits: Limits {
                deadline,
                retry_error: 0,
                reclean: 0,
                release_nova_reservations: false,
            },
            // The providers carry Nova's traits, as all do; its record of the server is no concern of this world.
            nova_record_remains: true,
        };
        let first = orchestrator.check(&request).await?;
        cases.push(orchestrator.open(&request, first).await?);
    }
    for report in orchestrator
        .run(&cases, Until::Ended, &CancellationToken::new())
        .await
    {
        let report = report?;
        let returned = report.outcome == orchestrator::Progress::Ended(Outcome::Returned);
        ensure!(
            returned,
            "node {}: {}: {}",
            report.node,
            report.outcome,
            report.reason
        );
    }
    Ok(())
}
