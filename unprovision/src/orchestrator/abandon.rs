//! An operator's end of a case.

use super::{Orchestrator, RunError};
use crate::cloud::Reads;
use crate::core::{Action, CaseId, CaseState, Ending, Event, Outcome, undo};
use crate::journal::{JournalError, Seq};

/// More than a case can have set.
const MOST: usize = 8;

/// What an operator's end of a case has done, and left.
#[derive(Clone, Debug, PartialEq)]
pub struct Abandoned {
    /// The writes that undid something of ours.
    pub undone: Vec<Action>,
    /// What of ours is left, as the commands that lift it.
    pub left: Vec<String>,
}

impl Orchestrator {
    /// Ends a case, of the guard as well, by an operator's word, which the journal keeps. With `undo` exactly what the case has
    /// set is taken back first, **whatever the node is**: it may be offered from then on although it is not free.
    ///
    /// `after` is the number of entries that the operator has seen: if there are more by now, somebody works on the case, and
    /// nothing is done.
    ///
    /// # Errors
    ///
    /// [`JournalError::Fenced`] where somebody else has worked on the case since, and with `undo` [`RunError::Theirs`] where somebody
    /// does; a [`CloudError`](crate::cloud::CloudError) where a write failed: then the case
    /// stays open.
    pub async fn abandon(
        &self,
        id: CaseId,
        after: Seq,
        word: &str,
        undo_all: bool,
    ) -> Result<Abandoned, RunError> {
        let (mut case, mut seq) = self.parts.read(id).await?;
        if seq != after || matches!(case.state, CaseState::Closed(_)) {
            return Err(JournalError::Fenced(id).into());
        }
        if undo_all {
            self.parts.take(&mut case, &mut seq, None).await?;
        }
        let mut undone = Vec::new();
        loop {
            let term = self.parts.term();
            let seen = self.parts.cloud.observe(case.node, Reads::everything()).await?;
            let next = undo(&case, &seen).filter(|_| undo_all && undone.len() < MOST);
            let Some(write) = next else {
                let left = case.left_behind(&seen);
                let ending = Ending {
                    outcome: Outcome::Blocked,
                    reason: word.to_owned(),
                    held: !left.is_empty(),
                };
                self.parts
                    .record(&mut case, &mut seq, Event::Closed { ending })
                    .await?;
                return Ok(Abandoned { undone, left });
            };
            if !self.parts.goes_on(term).await? {
                continue;
            }
            let intended = Event::Intended { write: write.clone() };
            self.parts.record(&mut case, &mut seq, intended).await?;
            let sending = self.parts.cloud.apply(case.node, &write);
            let answer = self.parts.within(term, sending).await;
            let became = answer
                .as_ref()
                .map_or_else(|error| error.outcome(), |()| Event::Applied);
            self.parts.record(&mut case, &mut seq, became).await?;
            answer?;
            undone.push(write);
        }
    }
}
