//! Standing down: what is safe is released, the rest is listed with what a person needs to lift it (rule 15).

use serde::Serialize;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::notice::SEES_NOTHING;
use super::{Guard, Pass};
use crate::NodeUuid;
use crate::cloud::Reads;
use crate::core::{Case, by_hand};
use crate::orchestrator::{Progress, RunError, Until};

/// A node that is still held.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Held {
    /// The node.
    pub node: NodeUuid,
    /// Its name, where it has one.
    pub name: Option<String>,
    /// Why it is not released.
    pub why: String,
    /// What lifts it once the node is free.
    pub commands: Vec<String>,
}

impl Guard {
    /// Releases what is safe to release, takes no new hold, and lists what is still held: by this guard's journal, and by our
    /// mark in Placement on nodes that are not in use.
    ///
    /// # Errors
    ///
    /// Where the journal cannot be read, or not everything could be looked at.
    pub async fn stand_down(&self, stop: &CancellationToken) -> Result<(Pass, Vec<Held>), RunError> {
        self.brakes.no_new_holds();
        self.can_begin().await?;
        let (attention, wanted) = mpsc::unbounded_channel();
        self.carry_on(&attention).await?;
        let ((), hidden) = tokio::join!(self.say_nova(), self.hidden());
        let (nodes, hidden) = hidden?;
        let mut held = Vec::new();
        for node in hidden {
            if self.memory.case_of(node).is_some() {
                continue;
            }
            let seen = self.parts.cloud.observe(node, Reads::everything()).await?;
            let Some(consumer) = seen.provider.as_ref().and_then(|view| view.our_hold()) else {
                continue;
            };
            let Some(node) = seen.node else { continue };
            if crate::core::is_free(&node) {
                // Nobody can be missing at the other end: it is below.
                let _ = attention.send(node.uuid);
                continue;
            }
            held.push(Held {
                node: node.uuid,
                name: node.name,
                why: format!("the node is `{}`", node.provision_state),
                commands: by_hand(node.uuid, Some(consumer), None),
            });
        }
        drop(attention);
        let mut pass = Pass {
            sees_nothing: (nodes == 0).then_some(SEES_NOTHING),
            ..Pass::default()
        };
        self.tend(wanted, Until::Settled, stop, Some(&mut pass)).await;
        for report in &pass.reports {
            if report.outcome == Progress::Elsewhere {
                // Also where nothing is held yet: it may be any moment.
                let why = format!("{}: stop that guard first", report.reason);
                held.push(self.still_held(report.node, &why).await?);
            } else if report.held {
                held.push(self.still_held(report.node, &report.reason).await?);
            }
        }
        Ok((pass, held))
    }

    async fn still_held(&self, node: NodeUuid, why: &str) -> Result<Held, RunError> {
        let case = match self.memory.case_of(node) {
            Some(id) => Case::fold(id, &self.parts.journal.read(id).await?),
            None => None,
        };
        Ok(Held {
            node,
            name: case.as_ref().and_then(|case| case.found.name.clone()),
            why: why.to_owned(),
            commands: case.map(|case| case.by_hand()).unwrap_or_default(),
        })
    }
}
