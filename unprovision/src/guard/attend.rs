//! The guard's rules applied to chosen nodes, once: what an audit has found is repaired so.

use std::collections::BTreeSet;

use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::{Guard, Pass};
use crate::NodeUuid;
use crate::journal::read_open;
use crate::orchestrator::{RunError, Until};

impl Guard {
    /// Looks at these nodes and does what there is to do for them now. Each gets a case of its own, which the next guard on
    /// this journal carries on; those that have one already are left to whoever works on it.
    ///
    /// # Errors
    ///
    /// Where the journal or the list of nodes cannot be read.
    pub async fn attend_to(&self, nodes: &[NodeUuid], stop: &CancellationToken) -> Result<Pass, RunError> {
        let open = read_open(&*self.parts.journal).await?;
        let taken = open.iter().map(|case| case.node).collect::<BTreeSet<_>>();
        open.iter().for_each(|case| self.brakes.holds(case));
        let nodes_now = self.fleet.all_nodes(&self.settings.scopes.reads()).await?;
        self.brakes.trust(self.layout(&nodes_now));
        let alone = nodes_now.iter().filter(|node| !self.is_guarded(node));
        let alone = alone.map(|node| node.uuid).collect::<BTreeSet<_>>();
        let (attention, wanted) = mpsc::unbounded_channel();
        for node in nodes.iter().filter(|node| !taken.contains(node)) {
            if alone.contains(node) {
                self.find(*node, "it is in no scope that is guarded, so nothing is written");
                continue;
            }
            // Nobody can be missing at the other end: it is below.
            let _ = attention.send(*node);
        }
        drop(attention);
        let mut pass = Pass::default();
        self.tend(wanted, Until::Settled, stop, Some(&mut pass)).await;
        pass.findings = self.memory.findings();
        Ok(pass)
    }
}
