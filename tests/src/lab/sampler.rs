//! The second judge: looks at the services directly, again and again, and says when a node was offered that was not
//! free.
//!
//! A look at Placement lies between two looks at Ironic. A node counts as exposed only if Placement offers it and
//! both looks at Ironic say that it is not free: on its way back a node becomes free once, so it was not free in
//! between either.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde_json::Value;
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use unprovision::core::DEFAULT_TAG;
use uuid::Uuid;

use super::{Api, LabError, is_free};

/// Between two rounds. Ironic takes tens of milliseconds of a processor for an answer.
const PAUSE: Duration = Duration::from_millis(100);

/// A sampler at work. Dropping it stops it.
#[derive(Debug)]
pub struct Sampling {
    stop: CancellationToken,
    task: Option<JoinHandle<Result<Samples, LabError>>>,
}

/// What was seen of all nodes of a class.
#[derive(Clone, Debug, Default)]
pub struct Samples {
    rounds: Vec<Round>,
}

/// One look at Placement between two looks at Ironic.
#[derive(Clone, Debug)]
struct Round {
    /// When the first look at Ironic was answered.
    before_at: Instant,
    before: BTreeMap<Uuid, bool>,
    /// When Placement answered.
    at: Instant,
    offered: BTreeSet<Uuid>,
    /// What it offered at the same time to queries that forbid the tag.
    untagged: BTreeSet<Uuid>,
    after: BTreeMap<Uuid, bool>,
}

impl Sampling {
    /// Begins to look at all nodes of this class, in Ironic's spelling and in Placement's.
    pub fn start(api: Api, resource_class: &str, class: &str) -> Self {
        let stop = CancellationToken::new();
        let work = look(api, resource_class.to_owned(), class.to_owned(), stop.clone());
        Self {
            stop,
            task: Some(tokio::spawn(work)),
        }
    }

    /// Ends it.
    ///
    /// # Errors
    ///
    /// Where a look has failed.
    pub async fn stop(mut self) -> Result<Samples, LabError> {
        self.stop.cancel();
        match self.task.take() {
            Some(task) => task.await.map_err(|error| LabError::Setup(error.to_string()))?,
            None => Ok(Samples::default()),
        }
    }
}

impl Drop for Sampling {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

async fn look(
    api: Api,
    resource_class: String,
    class: String,
    stop: CancellationToken,
) -> Result<Samples, LabError> {
    let free =
        |nodes: BTreeMap<Uuid, Value>| nodes.iter().map(|(uuid, node)| (*uuid, is_free(node))).collect();
    api.create_trait(DEFAULT_TAG).await?;
    let mut samples = Samples::default();
    let mut before: BTreeMap<Uuid, bool> = free(api.nodes(&resource_class).await?);
    let mut before_at = Instant::now();
    while !stop.is_cancelled() {
        let offered = api.candidates(&class).await?;
        let untagged = api.candidates_forbidding(&class, DEFAULT_TAG).await?;
        let at = Instant::now();
        let after: BTreeMap<Uuid, bool> = free(api.nodes(&resource_class).await?);
        let after_at = Instant::now();
        let round = Round {
            before_at,
            before: std::mem::replace(&mut before, after.clone()),
            at,
            offered,
            untagged,
            after,
        };
        samples.rounds.push(round);
        before_at = after_at;
        tokio::time::sleep(PAUSE).await;
    }
    Ok(samples)
}

impl Round {
    fn exposes(&self, node: Uuid) -> bool {
        let not_free = |looks: &BTreeMap<Uuid, bool>| looks.get(&node) == Some(&false);
        self.offered.contains(&node) && not_free(&self.before) && not_free(&self.after)
    }
}

impl Samples {
    /// The same looks, as queries saw them that forbid the tag.
    #[must_use]
    pub fn forbidding_the_tag(&self) -> Self {
        let mut samples = self.clone();
        for round in &mut samples.rounds {
            round.offered.clone_from(&round.untagged);
        }
        samples
    }

    /// How many looks there were.
    pub fn count(&self) -> usize {
        self.rounds.len()
    }

    /// How many of them saw the node exposed.
    pub fn exposed(&self, node: Uuid) -> usize {
        self.rounds.iter().filter(|round| round.exposes(node)).count()
    }

    /// How long the node was exposed at least: from the first to the last of all looks in a row that saw it so.
    pub fn exposed_for(&self, node: Uuid) -> Duration {
        let both = |pair: &&[Round]| pair.iter().all(|round| round.exposes(node));
        let length = |pair: &[Round]| Some(pair.last()?.at.duration_since(pair.first()?.at));
        self.rounds.windows(2).filter(both).filter_map(length).sum()
    }

    /// The longest time between two looks: what is shorter may have been missed.
    pub fn resolution(&self) -> Duration {
        let gap = |pair: &[Round]| Some(pair.last()?.at.duration_since(pair.first()?.at));
        self.rounds.windows(2).filter_map(gap).max().unwrap_or_default()
    }

    /// From the first look that saw the node free after it was not, to the first one that saw it offered then.
    pub fn offered_again_after(&self, node: Uuid) -> Option<Duration> {
        let left = self
            .rounds
            .iter()
            .position(|round| round.before.get(&node) == Some(&false))?;
        let rounds = self.rounds.get(left..)?;
        let freed = rounds
            .iter()
            .position(|round| round.before.get(&node) == Some(&true))?;
        let since = rounds.get(freed)?.before_at;
        let offered = rounds
            .get(freed..)?
            .iter()
            .find(|round| round.offered.contains(&node))?;
        Some(offered.at.duration_since(since))
    }
}
