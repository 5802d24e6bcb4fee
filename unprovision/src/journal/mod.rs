//! The journal: what was found, intended and done, on disk before it is done.

#[cfg(feature = "mariadb")]
mod mariadb;
mod memory;
mod place;
#[cfg(feature = "postgres")]
mod postgres;
#[cfg(any(feature = "mariadb", feature = "postgres"))]
mod server;
#[cfg(feature = "sqlite")]
mod sqlite;
#[cfg(any(feature = "sqlite", feature = "mariadb", feature = "postgres"))]
mod table;

use std::collections::BTreeSet;
use std::fmt;
use std::time::Duration;

use async_trait::async_trait;
use futures::stream::BoxStream;
use futures::{StreamExt, TryStreamExt};

use crate::core::{Case, CaseId, Entry, Process};

#[cfg(feature = "mariadb")]
pub use mariadb::MariaDbJournal;
pub use memory::MemoryJournal;
pub use place::shown;
#[cfg(feature = "postgres")]
pub use postgres::PostgresJournal;
#[cfg(feature = "sqlite")]
pub use sqlite::SqliteJournal;

/// How many entries a case has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Seq(pub u64);

/// Keeps the entries of cases.
#[async_trait]
pub trait Journal: fmt::Debug + Send + Sync {
    /// Appends to a case that has exactly `after` entries, all or nothing, and returns how many it has then. The entries are
    /// safe from a crash when this returns.
    ///
    /// # Errors
    ///
    /// [`JournalError::Fenced`] where the case has another number of entries: somebody else works on it. After any
    /// other error the entries may or may not have been written; read before you go on.
    async fn append(&self, case: CaseId, after: Seq, new: &[Entry]) -> Result<Seq, JournalError>;

    /// All entries of a case, in order; empty for an unknown one.
    async fn read(&self, case: CaseId) -> Result<Vec<Entry>, JournalError>;

    /// The cases whose last entry does not close them, in the order of their identifiers.
    fn open_cases(&self) -> BoxStream<'_, Result<CaseId, JournalError>>;

    /// The open cases with all their entries, in the order of their identifiers. A journal that can tell them by one question
    /// spares whoever begins with many of them as many.
    fn open_entries(&self) -> BoxStream<'_, Result<(CaseId, Vec<Entry>), JournalError>> {
        let entries = self.open_cases();
        entries
            .and_then(async |case| Ok((case, self.read(case).await?)))
            .boxed()
    }

    /// All cases, in the order of their identifiers.
    fn cases(&self) -> BoxStream<'_, Result<CaseId, JournalError>>;

    /// Keeps the lease of a process for so long from now on, by the journal's own clock, whether it had run out or not.
    async fn keep_lease(&self, of: &Process, for_the_next: Duration) -> Result<(), JournalError>;

    /// Ends a lease before it runs out.
    async fn end_lease(&self, of: &Process) -> Result<(), JournalError>;

    /// The processes whose leases have not run out.
    async fn leases(&self) -> Result<BTreeSet<Process>, JournalError>;
}

/// All cases that have not ended, of tear-downs and of the guard.
///
/// # Errors
///
/// Where one of them cannot be read.
pub async fn read_open(journal: &dyn Journal) -> Result<Vec<Case>, JournalError> {
    let open = journal.open_entries();
    let cases = open.try_filter_map(async |(id, entries)| Ok(Case::fold(id, &entries)));
    cases.try_collect().await
}

/// Why the journal did not do it.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    /// Somebody else has appended to the case.
    #[error("case {0} is worked on by another process")]
    Fenced(CaseId),
    /// It could not be read or written.
    #[error("the journal {journal} cannot be used: {message}")]
    Storage {
        /// Where it is.
        journal: String,
        /// What was tried.
        message: String,
        /// What went wrong below.
        #[source]
        source: Option<Box<dyn std::error::Error + Send + Sync>>,
    },
}
