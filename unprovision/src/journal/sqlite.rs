//! A journal in one SQLite file: the embedded default.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::Duration;

use async_trait::async_trait;
use futures::stream::BoxStream;
use futures::{StreamExt, TryStreamExt};
use sqlx::sqlite::{
    SqliteConnectOptions, SqliteJournalMode, SqlitePool, SqlitePoolOptions, SqliteSynchronous,
};

use super::{Journal, JournalError, Seq};
use crate::core::{CaseId, Entry, Event};

/// The layout that this version writes. A file with a newer one is refused.
const LAYOUT: i64 = 1;

const CREATE: &str = "CREATE TABLE IF NOT EXISTS entries (
    case_id VARCHAR(36) NOT NULL,
    seq BIGINT NOT NULL,
    closes BIGINT NOT NULL,
    body TEXT NOT NULL,
    PRIMARY KEY (case_id, seq)
)";

/// A journal in one SQLite file. Several processes may share it.
#[derive(Clone, Debug)]
pub struct SqliteJournal {
    path: PathBuf,
    pool: SqlitePool,
}

impl SqliteJournal {
    /// Opens the file, and makes it (readable by its owner only) where there is none.
    pub async fn open(path: &Path) -> Result<Self, JournalError> {
        private(path)?;
        let options = SqliteConnectOptions::new()
            .filename(path)
            .create_if_missing(true)
            .journal_mode(SqliteJournalMode::Wal)
            // With WAL, anything less may lose the last entries when the machine loses its power.
            .synchronous(SqliteSynchronous::Full)
            .busy_timeout(Duration::from_secs(10));
        let opened = connect(&options).await;
        let pool = opened.map_err(|error| storage(path, "open it", error))?;
        let journal = Self {
            path: path.to_owned(),
            pool,
        };
        journal.lay_out().await?;
        Ok(journal)
    }

    async fn lay_out(&self) -> Result<(), JournalError> {
        let read = sqlx::query_scalar("PRAGMA user_version")
            .fetch_one(&self.pool)
            .await;
        let layout: i64 = read.map_err(|error| self.failed("read its layout", error))?;
        if layout > LAYOUT {
            let message =
                format!("it was written by a newer version (layout {layout}, this one knows {LAYOUT})");
            return Err(JournalError::Storage {
                journal: self.path.display().to_string(),
                message,
                source: None,
            });
        }
        let made = sqlx::query(CREATE).execute(&self.pool).await;
        made.map_err(|error| self.failed("make its table", error))?;
        // A pragma takes no parameters; the number is ours.
        let marked = sqlx::query("PRAGMA user_version = 1").execute(&self.pool).await;
        marked
            .map_err(|error| self.failed("mark its layout", error))
            .map(drop)
    }

    async fn try_append(&self, case: CaseId, after: Seq, new: &[Entry]) -> Result<bool, sqlx::Error> {
        let mut transaction = self.pool.begin_with("BEGIN IMMEDIATE").await?;
        let id = case.to_string();
        let has: i64 = sqlx::query_scalar("SELECT COUNT(*) FROM entries WHERE case_id = ?")
            .bind(&id)
            .fetch_one(&mut *transaction)
            .await?;
        if u64::try_from(has).ok() != Some(after.0) {
            return Ok(false);
        }
        for (seq, entry) in (has..).zip(new) {
            let body = serde_json::to_string(entry).map_err(|error| sqlx::Error::Encode(error.into()))?;
            sqlx::query("INSERT INTO entries (case_id, seq, closes, body) VALUES (?, ?, ?, ?)")
                .bind(&id)
                .bind(seq)
                .bind(i64::from(matches!(entry.event, Event::Closed { .. })))
                .bind(body)
                .execute(&mut *transaction)
                .await?;
        }
        transaction.commit().await?;
        Ok(true)
    }

    /// The cases that this selects, in its order.
    fn list(
        &self,
        selected: &'static str,
        what: &'static str,
    ) -> BoxStream<'_, Result<CaseId, JournalError>> {
        sqlx::query_scalar::<_, String>(selected)
            .fetch(&self.pool)
            .map_err(move |error| self.failed(what, error))
            .map(|id| {
                let parsed = id?.parse().map(CaseId);
                parsed.map_err(|error| {
                    storage(
                        &self.path,
                        "understand a case's name",
                        sqlx::Error::Decode(Box::new(error)),
                    )
                })
            })
            .boxed()
    }

    fn failed(&self, what: &str, error: sqlx::Error) -> JournalError {
        storage(&self.path, what, error)
    }
}

#[async_trait]
impl Journal for SqliteJournal {
    async fn append(&self, case: CaseId, after: Seq, new: &[Entry]) -> Result<Seq, JournalError> {
        match self.try_append(case, after, new).await {
            Ok(true) => Ok(Seq(after.0 + new.len() as u64)),
            Ok(false) => Err(JournalError::Fenced(case)),
            Err(error) => Err(self.failed("append to it", error)),
        }
    }

    async fn read(&self, case: CaseId) -> Result<Vec<Entry>, JournalError> {
        let rows = sqlx::query_scalar::<_, String>("SELECT body FROM entries WHERE case_id = ? ORDER BY seq")
            .bind(case.to_string())
            .fetch_all(&self.pool)
            .await
            .map_err(|error| self.failed("read it", error))?;
        rows.iter()
            .map(|body| serde_json::from_str(body))
            .collect::<Result<_, _>>()
            .map_err(|error| {
                storage(
                    &self.path,
                    "understand an entry",
                    sqlx::Error::Decode(error.into()),
                )
            })
    }

    fn open_cases(&self) -> BoxStream<'_, Result<CaseId, JournalError>> {
        const OPEN: &str = "SELECT case_id FROM entries AS e WHERE closes = 0 AND NOT EXISTS \
            (SELECT 1 FROM entries AS later WHERE later.case_id = e.case_id AND later.seq > e.seq) ORDER BY case_id";
        self.list(OPEN, "list its open cases")
    }

    fn cases(&self) -> BoxStream<'_, Result<CaseId, JournalError>> {
        self.list(
            "SELECT DISTINCT case_id FROM entries ORDER BY case_id",
            "list its cases",
        )
    }
}

fn storage(path: &Path, what: &str, error: sqlx::Error) -> JournalError {
    JournalError::Storage {
        journal: path.display().to_string(),
        message: format!("could not {what}"),
        source: Some(Box::new(error)),
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
fn private(path: &Path) -> Result<(), JournalError> {
    use std::os::unix::fs::OpenOptionsExt;
    let made = || {
        if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
            std::fs::create_dir_all(folder)?;
        }
        let mut new = std::fs::OpenOptions::new();
        match new.write(true).create_new(true).mode(0o600).open(path) {
            Err(error) if error.kind() != ErrorKind::AlreadyExists => Err(error),
            _ => Ok(()),
        }
    };
    made().map_err(|error| storage(path, "make it", sqlx::Error::Io(error)))
}
