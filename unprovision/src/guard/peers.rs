//! Other guards on the same journal: what one that has died leaves is taken up.

use std::collections::BTreeSet;
use std::time::Duration;

use super::{Attention, Guard};
use crate::core::{Claim, Process};
use crate::journal::{JournalError, read_open};

/// How often is looked who is at work.
const PAUSE: Duration = Duration::from_secs(5);

impl Guard {
    /// Takes up the cases of guards whose leases have run out, as soon as that is seen.
    pub(super) async fn follow_peers(&self, attention: &Attention) {
        let mut known = BTreeSet::new();
        loop {
            self.parts.clock.sleep(PAUSE).await;
            match self.gone_since(&known).await {
                Ok((now, true)) => match self.take_up(&now, attention).await {
                    Ok(()) => known = now,
                    Err(error) => tracing::warn!(%error, "what another guard has left could not be taken up"),
                },
                Ok((now, false)) => known = now,
                Err(error) => tracing::warn!(%error, "who is at work could not be read"),
            }
        }
    }

    /// Who is at work now, and whether anybody is not any more.
    async fn gone_since(&self, known: &BTreeSet<Process>) -> Result<(BTreeSet<Process>, bool), JournalError> {
        let now = self.parts.at_work().await?;
        let gone = known.difference(&now).next().is_some();
        Ok((now, gone))
    }

    async fn take_up(&self, at_work: &BTreeSet<Process>, attention: &Attention) -> Result<(), JournalError> {
        for case in read_open(&*self.parts.journal).await? {
            let nobodys = case.claim(self.parts.us(), at_work) == Claim::Nobodys;
            if nobodys && case.is_guard() && self.parts.belongs_here(&case).is_ok() {
                self.memory.opened(case.node, case.id);
                self.brakes.holds(&case);
                // Nobody can be missing at the other end: it is there as long as the guard is.
                let _ = attention.send(case.node);
            }
        }
        Ok(())
    }
}
