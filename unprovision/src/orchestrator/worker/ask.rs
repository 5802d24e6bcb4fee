//! Asking Nova before something is done that it may know better (rule 10).

use uuid::Uuid;

use super::{Step, Worker};
use crate::core::{Decision, Observation, whom_to_ask};
use crate::orchestrator::nova::Told;

impl Worker<'_> {
    /// The server that Nova has to be asked for before this is done, where it can be asked.
    pub(super) fn in_doubt(&self, seen: &Observation, decision: &Decision) -> Option<Uuid> {
        let nova = self.parts.nova.as_ref()?;
        whom_to_ask(&self.case, seen, decision, nova.is_required())
    }

    /// Asks, and looks once more: what is done then rests on a node that was seen after Nova's word.
    pub(super) async fn ask(&mut self, server: Uuid) -> Step {
        let Some(nova) = &self.parts.nova else {
            return Step::Again;
        };
        let (said, told) = tokio::select! {
            () = self.stop.cancelled() => return Step::Done(self.stopped()),
            answer = nova.ask(server) => answer,
        };
        match told {
            Told::Nothing => {}
            Told::Trouble(error) => self.parts.observer.trouble(&self.case, &error),
            Told::Unchecked(why) => self.parts.observer.unchecked(&self.case, &why),
        }
        self.said = Some(said);
        Step::Again
    }
}
