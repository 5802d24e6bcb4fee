//! A journal in one SQLite file: the embedded default.

mod writer;

use std::collections::BTreeSet;
use std::io::ErrorKind;
use std::path::Path;
use std::time::Duration;

use async_trait::async_trait;
use futures::stream::BoxStream;
use sqlx::sqlite::{
    SqliteConnectOptions, SqliteJournalMode, SqlitePool, SqlitePoolOptions, SqliteSynchronous,
};

use self::writer::Writer;
use super::table::{self, LAYOUT, Statements, failed};
use super::{Journal, JournalError, Seq};
use crate::core::{CaseId, Entry, Process};

const CREATE: [&str; 2] = [
    "CREATE TABLE IF NOT EXISTS entries (
        case_id VARCHAR(36) NOT NULL,
        seq BIGINT NOT NULL,
        closes BIGINT NOT NULL,
        body TEXT NOT NULL,
        PRIMARY KEY (case_id, seq)
    )",
    "CREATE TABLE IF NOT EXISTS leases (process VARCHAR(500) NOT NULL PRIMARY KEY, until BIGINT NOT NULL)",
];

const STATEMENTS: Statements = Statements {
    count: "SELECT COUNT(*) FROM entries WHERE case_id = ?",
    insert: "INSERT INTO entries (case_id, seq, closes, body) VALUES (?, ?, ?, ?)",
    keep: "INSERT INTO leases (until, process) VALUES (CAST(unixepoch('subsec') * 1000 AS INTEGER) + ?, ?) \
        ON CONFLICT (process) DO UPDATE SET until = excluded.until",
    end: "DELETE FROM leases WHERE until < CAST(unixepoch('subsec') * 1000 AS INTEGER) - ? OR process = ?",
    leases: "SELECT process FROM leases WHERE until > CAST(unixepoch('subsec') * 1000 AS INTEGER)",
};

/// A journal in one SQLite file. Several processes may share it.
#[derive(Clone, Debug)]
pub struct SqliteJournal {
    place: String,
    pool: SqlitePool,
    writer: Writer,
}

impl SqliteJournal {
    /// Opens the file, and makes it (readable by its owner only) where there is none.
    pub async fn open(path: &Path) -> Result<Self, JournalError> {
        let place = path.display().to_string();
        private(path).map_err(|error| failed(&place, "make it", sqlx::Error::Io(error)))?;
        let options = SqliteConnectOptions::new()
            .filename(path)
            .create_if_missing(true)
            .journal_mode(SqliteJournalMode::Wal)
            // With WAL, anything less may lose the last entries when the machine loses its power.
            .synchronous(SqliteSynchronous::Full)
            .busy_timeout(Duration::from_secs(10));
        let journal = Self::connect(place, &options).await?;
        journal.lay_out().await?;
        Ok(journal)
    }

    /// The same for whoever only reads entries: nothing is made, or brought to the layout of this version. `None` where there is no
    /// file, or nothing in it.
    pub async fn open_to_read(path: &Path) -> Result<Option<Self>, JournalError> {
        if !path.exists() {
            return Ok(None);
        }
        let options = SqliteConnectOptions::new()
            .filename(path)
            .busy_timeout(Duration::from_secs(10));
        let journal = Self::connect(path.display().to_string(), &options).await?;
        let layout = journal.layout().await?;
        Ok((layout > 0).then_some(journal))
    }

    async fn connect(place: String, options: &SqliteConnectOptions) -> Result<Self, JournalError> {
        let opened = connect(options).await;
        let pool = opened.map_err(|error| failed(&place, "open it", error))?;
        let writer = Writer::of(pool.clone());
        Ok(Self { place, pool, writer })
    }

    /// 0 for an empty file.
    async fn layout(&self) -> Result<i64, JournalError> {
        let read = sqlx::query_scalar("PRAGMA user_version")
            .fetch_one(&self.pool)
            .await;
        let layout = read.map_err(|error| self.failed("read its layout", error))?;
        table::refuse_newer(&self.place, layout)?;
        Ok(layout)
    }

    async fn lay_out(&self) -> Result<(), JournalError> {
        let layout = self.layout().await?;
        if layout == LAYOUT {
            return Ok(());
        }
        for statement in CREATE {
            let made = sqlx::query(statement).execute(&self.pool).await;
            made.map_err(|error| self.failed("make its tables", error))?;
        }
        // A pragma takes no parameters; the number is ours.
        let marked = sqlx::query("PRAGMA user_version = 2").execute(&self.pool).await;
        marked
            .map_err(|error| self.failed("mark its layout", error))
            .map(drop)
    }

    fn failed(&self, what: &str, error: sqlx::Error) -> JournalError {
        failed(&self.place, what, error)
    }
}

#[async_trait]
impl Journal for SqliteJournal {
    async fn append(&self, case: CaseId, after: Seq, new: &[Entry]) -> Result<Seq, JournalError> {
        match self.writer.append(case, after, new).await {
            Ok(true) => Ok(Seq(after.0.saturating_add(new.len() as u64))),
            Ok(false) => Err(JournalError::Fenced(case)),
            Err(error) => Err(failed(&self.place, "append to it", error)),
        }
    }

    async fn read(&self, case: CaseId) -> Result<Vec<Entry>, JournalError> {
        let rows = sqlx::query_scalar::<_, String>("SELECT body FROM entries WHERE case_id = ? ORDER BY seq")
            .bind(case.to_string())
            .fetch_all(&self.pool)
            .await
            .map_err(|error| self.failed("read it", error))?;
        table::entries(&self.place, &rows)
    }

    fn open_cases(&self) -> BoxStream<'_, Result<CaseId, JournalError>> {
        table::cases(&self.place, sqlx::query_scalar(table::OPEN).fetch(&self.pool))
    }

    fn open_entries(&self) -> BoxStream<'_, Result<(CaseId, Vec<Entry>), JournalError>> {
        table::grouped(&self.place, sqlx::query_as(table::OPEN_ENTRIES).fetch(&self.pool))
    }

    fn cases(&self) -> BoxStream<'_, Result<CaseId, JournalError>> {
        table::cases(&self.place, sqlx::query_scalar(table::ALL).fetch(&self.pool))
    }

    async fn keep_lease(&self, of: &Process, for_the_next: Duration) -> Result<(), JournalError> {
        let kept = table::lease(&self.pool, STATEMENTS.keep, table::millis(for_the_next), of).await;
        kept.map_err(|error| self.failed("keep a lease", error))
    }

    async fn end_lease(&self, of: &Process) -> Result<(), JournalError> {
        let ended = table::lease(&self.pool, STATEMENTS.end, table::FORGOTTEN, of).await;
        ended.map_err(|error| self.failed("end a lease", error))
    }

    async fn leases(&self) -> Result<BTreeSet<Process>, JournalError> {
        let names = sqlx::query_scalar(STATEMENTS.leases).fetch_all(&self.pool).await;
        let names: Vec<String> = names.map_err(|error| self.failed("read its leases", error))?;
        table::processes(&self.place, &names)
    }
}

/// SQLite does not wait for others that make the same new file ready at the same time: that is done here.
async fn connect(options: &SqliteConnectOptions) -> Result<SqlitePool, sqlx::Error> {
    let mut tries = 0;
    loop {
        let pool = SqlitePoolOptions::new().max_connections(4);
        match pool.connect_with(options.clone()).await {
            Err(error) if is_busy(&error) && tries < 100 => {
                tries += 1;
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
            connected => return connected,
        }
    }
}

/// `SQLITE_BUSY`, which is the lowest byte of a code.
fn is_busy(error: &sqlx::Error) -> bool {
    let code = error.as_database_error().and_then(|error| error.code());
    code.and_then(|code| code.parse::<u32>().ok())
        .is_some_and(|code| code & 0xff == 5)
}

/// SQLite would make the file readable by everybody. One that exists is not touched: closing it here would take away the
/// locks that another handle of this process has on it.
fn private(path: &Path) -> std::io::Result<()> {
    use std::os::unix::fs::OpenOptionsExt;
    if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        std::fs::create_dir_all(folder)?;
    }
    let mut new = std::fs::OpenOptions::new();
    match new.write(true).create_new(true).mode(0o600).open(path) {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => Err(error),
        _ => Ok(()),
    }
}
