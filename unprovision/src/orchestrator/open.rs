//! What the journal has open.

use futures::stream::TryStreamExt;

use super::{Orchestrator, RunError};
use crate::core::{Case, CaseId, CaseState};

impl Orchestrator {
    /// All tear-downs that have not ended. One whose entries cannot be read is told in the log, and does not stop the others.
    pub async fn open_cases(&self) -> Result<Vec<Case>, RunError> {
        let all = self.all_open().await?.into_iter();
        Ok(all.filter(|case| !case.is_guard()).collect())
    }

    /// The guard's own, which the guard carries on and nobody else.
    pub async fn guards_cases(&self) -> Result<Vec<Case>, RunError> {
        let all = self.all_open().await?.into_iter();
        Ok(all.filter(Case::is_guard).collect())
    }

    /// The case, if it has begun and not ended: asked for again, it goes on as it was begun.
    pub async fn open_case(&self, id: CaseId) -> Result<Option<Case>, RunError> {
        let entries = self.parts.journal.read(id).await?;
        Ok(Case::fold(id, &entries).filter(|case| !matches!(case.state, CaseState::Closed(_))))
    }

    async fn all_open(&self) -> Result<Vec<Case>, RunError> {
        let ids: Vec<CaseId> = self.parts.journal.open_cases().try_collect().await?;
        let mut cases = Vec::with_capacity(ids.len());
        for id in ids {
            let read = self.parts.journal.read(id).await.map_err(RunError::from);
            match read.and_then(|entries| Case::fold(id, &entries).ok_or(RunError::NoCase(id))) {
                Ok(case) => cases.push(case),
                Err(error) => {
                    let cause = std::error::Error::source(&error).map(ToString::to_string);
                    tracing::error!(case = %id, %error, cause, "left out: its journal cannot be read");
                }
            }
        }
        Ok(cases)
    }
}
