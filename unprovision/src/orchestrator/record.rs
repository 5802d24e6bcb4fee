//! What the journal has of a case, and what is added to it.

use super::{Parts, RunError};
use crate::core::{Case, CaseId, Entry, Event};
use crate::journal::Seq;

impl Parts {
    /// A case as the journal has it, and how many entries that are; refused where it belongs to another cloud.
    pub(super) async fn read(&self, id: CaseId) -> Result<(Case, Seq), RunError> {
        let entries = self.journal.read(id).await?;
        let case = Case::fold(id, &entries).ok_or(RunError::NoCase(id))?;
        self.belongs_here(&case)?;
        Ok((case, Seq(entries.len() as u64)))
    }

    /// Appends to the journal first, to the case in memory second.
    pub(crate) async fn record(&self, case: &mut Case, seq: &mut Seq, event: Event) -> Result<(), RunError> {
        self.record_all(case, seq, [event]).await
    }

    /// The same for several that belong together: all are in the journal, or none is.
    pub(super) async fn record_all(
        &self,
        case: &mut Case,
        seq: &mut Seq,
        events: impl IntoIterator<Item = Event>,
    ) -> Result<(), RunError> {
        let at = self.clock.now();
        let new: Vec<_> = events.into_iter().map(|event| Entry { at, event }).collect();
        if new.is_empty() {
            return Ok(());
        }
        *seq = self.journal.append(case.id, *seq, &new).await?;
        for entry in &new {
            case.push(entry);
            self.observer.entry(case, entry);
        }
        Ok(())
    }

    pub(crate) fn belongs_here(&self, case: &Case) -> Result<(), RunError> {
        match (&case.cloud, &self.identity) {
            (Some(begun), Some(here)) if begun != here => Err(RunError::OtherCloud {
                node: case.node,
                begun: begun.clone(),
                here: here.clone(),
            }),
            _ => Ok(()),
        }
    }
}
