//! A journal in memory: for tests, and for programs that can do without one after a crash.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use futures::StreamExt;
use futures::stream::{self, BoxStream};

use super::{Journal, JournalError, Seq};
use crate::cloud::{Clock, SystemClock};
use crate::core::{CaseId, Entry, Event, Process};

/// A journal in memory.
#[derive(Debug, Default)]
pub struct MemoryJournal {
    cases: Mutex<BTreeMap<CaseId, Vec<Entry>>>,
    /// Until when each runs, by the clock that only goes forward.
    leases: Mutex<BTreeMap<Process, Duration>>,
}

impl MemoryJournal {
    /// An empty one.
    pub fn new() -> Self {
        Self::default()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<CaseId, Vec<Entry>>> {
        // No code that holds the lock can panic half-way through a change.
        self.cases.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock_leases(&self) -> MutexGuard<'_, BTreeMap<Process, Duration>> {
        self.leases.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl Journal for MemoryJournal {
    async fn append(&self, case: CaseId, after: Seq, new: &[Entry]) -> Result<Seq, JournalError> {
        let mut cases = self.lock();
        let has = cases.get(&case).map_or(0, Vec::len) as u64;
        if has != after.0 {
            return Err(JournalError::Fenced(case));
        }
        if !new.is_empty() {
            cases.entry(case).or_default().extend_from_slice(new);
        }
        Ok(Seq(has + new.len() as u64))
    }

    async fn read(&self, case: CaseId) -> Result<Vec<Entry>, JournalError> {
        Ok(self.lock().get(&case).cloned().unwrap_or_default())
    }

    fn open_cases(&self) -> BoxStream<'_, Result<CaseId, JournalError>> {
        let is_open = |entries: &Vec<Entry>| {
            !matches!(
                entries.last(),
                Some(Entry {
                    event: Event::Closed { .. },
                    ..
                })
            )
        };
        let open = self
            .lock()
            .iter()
            .filter(|(_, entries)| is_open(entries))
            .map(|(case, _)| Ok(*case))
            .collect::<Vec<_>>();
        stream::iter(open).boxed()
    }

    fn cases(&self) -> BoxStream<'_, Result<CaseId, JournalError>> {
        let all = self.lock().keys().map(|case| Ok(*case)).collect::<Vec<_>>();
        stream::iter(all).boxed()
    }

    async fn keep_lease(&self, of: &Process, for_the_next: Duration) -> Result<(), JournalError> {
        let until = SystemClock.elapsed() + for_the_next;
        self.lock_leases().insert(of.clone(), until);
        Ok(())
    }

    async fn end_lease(&self, of: &Process) -> Result<(), JournalError> {
        self.lock_leases().remove(of);
        Ok(())
    }

    async fn leases(&self) -> Result<BTreeSet<Process>, JournalError> {
        let now = SystemClock.elapsed();
        let mut leases = self.lock_leases();
        leases.retain(|_, until| now < *until);
        Ok(leases.keys().cloned().collect())
    }
}
