//! The cross-check: asks Placement over and over what it offers, and Ironic whether that is free.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use ironic_client::{Ironic, Node, NodeField, NodeFilter};
use placement_client::{CandidateQuery, Placement};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use unprovision::core::is_free;
use uuid::Uuid;

use super::Progress;
use super::stage::Stage;

/// From one sample to the next.
const EVERY: Duration = Duration::from_millis(50);

/// What was seen so far.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Samples {
    /// How often Placement was asked.
    pub(super) taken: u64,
    /// How many of its answers offered at least one node that was not free.
    pub(super) exposed: u64,
    /// The same for queries that do not forbid the strategy's tag.
    pub(super) exposed_plain: u64,
    /// Whether the last answer offered all nodes, all of them free.
    pub(super) all_back: bool,
}

/// Samples one world.
#[derive(Debug)]
pub(super) struct Sampler {
    name: &'static str,
    ironic: Arc<dyn Ironic>,
    placement: Arc<dyn Placement>,
    query: CandidateQuery,
    plain: Option<CandidateQuery>,
    progress: Progress,
}

impl Sampler {
    pub(super) fn new(stage: &Stage, progress: Progress) -> anyhow::Result<Self> {
        let plain = CandidateQuery::of(stage.class()?);
        let mut query = plain.clone();
        query.forbidden.extend(stage.forbids.clone());
        Ok(Self {
            name: stage.name,
            ironic: stage.ironic("sampler"),
            placement: stage.placement("sampler"),
            query,
            plain: stage.forbids.as_ref().map(|_| plain),
            progress,
        })
    }

    /// Samples until it is stopped; `samples` always holds the newest result. What changes is shown as progress.
    pub(super) async fn run(
        self,
        samples: watch::Sender<Samples>,
        stop: CancellationToken,
    ) -> anyhow::Result<()> {
        for tag in &self.query.forbidden {
            // A query that forbids a trait that Placement does not know is an error.
            self.placement.create_trait(tag).await?;
        }
        let mut ticks = tokio::time::interval(EVERY);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let mut shown = String::new();
        while !stop.is_cancelled() {
            ticks.tick().await;
            let (offered, plain, nodes) = self.look().await?;
            let look = Look::new(&nodes, &offered);
            let plain = Look::new(&nodes, &plain);
            samples.send_modify(|samples| {
                samples.taken += 1;
                samples.exposed += u64::from(look.false_offers > 0);
                samples.exposed_plain += u64::from(plain.false_offers > 0);
                samples.all_back = look.true_offers == nodes.len();
            });
            let words = look.to_string();
            if words != shown {
                self.progress.say(self.name, &words);
                shown = words;
            }
        }
        Ok(())
    }

    /// What Placement offers to the queries that are protected and to the others, and the nodes. Ironic is asked second, so that a node that becomes free in between is
    /// not mistaken for one that was offered too early.
    async fn look(&self) -> anyhow::Result<(BTreeSet<Uuid>, BTreeSet<Uuid>, Vec<Node>)> {
        let offered = self.offered(&self.query).await?;
        let plain = match &self.plain {
            Some(query) => self.offered(query).await?,
            None => offered.clone(),
        };
        let nodes = self
            .ironic
            .list_nodes(&NodeFilter::default(), &NodeField::ALL)
            .await?;
        Ok((offered, plain, nodes))
    }

    async fn offered(&self, query: &CandidateQuery) -> anyhow::Result<BTreeSet<Uuid>> {
        let candidates = self.placement.candidates(query).await?;
        Ok(candidates.iter().map(|candidate| candidate.provider.0).collect())
    }
}

/// One sample.
#[derive(Debug)]
struct Look {
    states: BTreeMap<String, usize>,
    true_offers: usize,
    false_offers: usize,
}

impl Look {
    fn new(nodes: &[Node], offered: &BTreeSet<Uuid>) -> Self {
        let mut look = Self {
            states: BTreeMap::new(),
            true_offers: 0,
            false_offers: 0,
        };
        for node in nodes {
            *look.states.entry(node.provision_state.to_string()).or_default() += 1;
            match offered.contains(&node.uuid.0) {
                true if is_free(node) => look.true_offers += 1,
                true => look.false_offers += 1,
                false => {}
            }
        }
        look
    }
}

impl std::fmt::Display for Look {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let states = self
            .states
            .iter()
            .map(|(state, nodes)| format!("{nodes} {state}"))
            .collect::<Vec<_>>();
        f.write_str(&states.join(", "))?;
        if self.false_offers > 0 {
            write!(f, "; {} OFFERED ALTHOUGH NOT FREE", self.false_offers)?;
        }
        if self.true_offers > 0 {
            write!(f, "; {} offered", self.true_offers)?;
        }
        Ok(())
    }
}
