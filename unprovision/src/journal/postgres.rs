//! A journal in PostgreSQL, which several replicas share.

use std::collections::BTreeSet;
use std::time::Duration;

use async_trait::async_trait;
use futures::FutureExt;
use futures::stream::BoxStream;
use sqlx::ConnectOptions;
use sqlx::postgres::{PgConnectOptions, PgConnection, PgPool, PgPoolOptions, PgSslMode};

use super::server::{self, answer};
use super::table::{self, Statements, failed};
use super::{Journal, JournalError, Seq};
use crate::core::{CaseId, Entry, Process};

const CREATE: [&str; 4] = [
    "CREATE TABLE IF NOT EXISTS entries (
        case_id VARCHAR(36) NOT NULL,
        seq BIGINT NOT NULL,
        closes BIGINT NOT NULL,
        body TEXT NOT NULL,
        PRIMARY KEY (case_id, seq)
    )",
    "CREATE TABLE IF NOT EXISTS leases (process VARCHAR(500) NOT NULL PRIMARY KEY, until BIGINT NOT NULL)",
    "CREATE TABLE IF NOT EXISTS layout (layout BIGINT NOT NULL PRIMARY KEY)",
    "INSERT INTO layout (layout) VALUES (2) ON CONFLICT DO NOTHING",
];

/// A process that stands still in the middle must not keep others from its case, and an entry is safe when it is acknowledged.
const SETTINGS: [&str; 4] = [
    "SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') = 'off'",
    "SET idle_in_transaction_session_timeout = '10s'",
    "SET lock_timeout = '15s'",
    "SET statement_timeout = '25s'",
];

const STATEMENTS: Statements = Statements {
    count: "SELECT COUNT(*) FROM entries WHERE case_id = $1",
    insert: "INSERT INTO entries (case_id, seq, closes, body) VALUES ($1, $2, $3, $4)",
    keep: "INSERT INTO leases (until, process) \
        VALUES ((EXTRACT(EPOCH FROM clock_timestamp()) * 1000)::BIGINT + $1, $2) \
        ON CONFLICT (process) DO UPDATE SET until = excluded.until",
    end: "DELETE FROM leases WHERE until < (EXTRACT(EPOCH FROM clock_timestamp()) * 1000)::BIGINT - $1 \
        OR process = $2",
    leases: "SELECT process FROM leases \
        WHERE until > (EXTRACT(EPOCH FROM clock_timestamp()) * 1000)::BIGINT",
};

/// A journal in PostgreSQL. Several processes on several machines may share it.
#[derive(Clone, Debug)]
pub struct PostgresJournal {
    place: String,
    pool: PgPool,
}

impl PostgresJournal {
    /// Connects to `postgres://USER:PASSWORD@HOST:PORT/DATABASE`, and makes the tables where there are none: from then on
    /// the rights to select and insert, and on `leases` to update and delete, are enough. The server's certificate is checked, unless
    /// it is on this machine or the URL says another `sslmode`.
    ///
    /// # Errors
    ///
    /// Where the URL cannot be used, the server does not take it, or a newer version has written the journal.
    pub async fn open(url: &str) -> Result<Self, JournalError> {
        let journal = Self::connect(url).await?;
        server::make_ready(&journal.place, &journal.pool, &CREATE).await?;
        Ok(journal)
    }

    /// The same for whoever only reads entries: nothing is made, or brought to the layout of this version, and the right to select is
    /// enough. `None` where there are no tables.
    pub async fn open_to_read(url: &str) -> Result<Option<Self>, JournalError> {
        let journal = Self::connect(url).await?;
        let is_there = server::is_there(&journal.place, &journal.pool).await?;
        Ok(is_there.then_some(journal))
    }

    async fn connect(url: &str) -> Result<Self, JournalError> {
        let place = super::shown(url);
        let parsed = url.parse::<PgConnectOptions>();
        let mut options = parsed.map_err(|error| failed(&place, "understand its URL", error))?;
        if server::verifies(url) {
            options = options.ssl_mode(PgSslMode::VerifyFull);
        }
        // A pool goes on trying where nothing listens, and says in the end only that it took too long.
        let at = server::address(options.get_socket(), options.get_host(), options.get_port());
        let tried = server::try_out(options.connect()).await;
        tried.map_err(|error| failed(&place, &format!("connect to it at {at}"), error))?;
        let pool = PgPoolOptions::new()
            .max_connections(server::CONNECTIONS)
            .acquire_timeout(server::CONNECTS_WITHIN)
            .after_connect(|connection, _| Box::pin(prepare(connection)))
            .connect_with(options.application_name("unprovision"))
            .await
            .map_err(|error| failed(&place, "connect to it", error))?;
        Ok(Self { place, pool })
    }

    async fn try_append(&self, case: CaseId, after: Seq, new: &[Entry]) -> Result<bool, sqlx::Error> {
        let transaction = self.pool.begin().await?;
        table::append(transaction, &STATEMENTS, case, after, new).await
    }
}

async fn prepare(connection: &mut PgConnection) -> Result<(), sqlx::Error> {
    for setting in SETTINGS {
        sqlx::query(setting).execute(&mut *connection).await?;
    }
    Ok(())
}

/// `serialization_failure` and `deadlock_detected`: nothing of the transaction is left.
fn was_undone(error: &sqlx::Error) -> bool {
    let code = error.as_database_error().and_then(|error| error.code());
    matches!(code.as_deref(), Some("40001" | "40P01"))
}

#[async_trait]
impl Journal for PostgresJournal {
    async fn append(&self, case: CaseId, after: Seq, new: &[Entry]) -> Result<Seq, JournalError> {
        let next = Seq(after.0.saturating_add(new.len() as u64));
        let once = || self.try_append(case, after, new).boxed();
        server::append(&self.place, case, next, once, was_undone).await
    }

    async fn read(&self, case: CaseId) -> Result<Vec<Entry>, JournalError> {
        let bodies =
            sqlx::query_scalar::<_, String>("SELECT body FROM entries WHERE case_id = $1 ORDER BY seq")
                .bind(case.to_string())
                .fetch_all(&self.pool);
        let bodies = answer(bodies).await;
        table::entries(
            &self.place,
            &bodies.map_err(|error| failed(&self.place, "read it", error))?,
        )
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
        let once = || table::lease(&self.pool, STATEMENTS.keep, table::millis(for_the_next), of);
        let kept = server::insist(once, was_undone).await;
        kept.map_err(|error| failed(&self.place, "keep a lease", error))
    }

    async fn end_lease(&self, of: &Process) -> Result<(), JournalError> {
        let once = || table::lease(&self.pool, STATEMENTS.end, table::FORGOTTEN, of);
        let ended = server::insist(once, was_undone).await;
        ended.map_err(|error| failed(&self.place, "end a lease", error))
    }

    async fn leases(&self) -> Result<BTreeSet<Process>, JournalError> {
        let names = sqlx::query_scalar(STATEMENTS.leases).fetch_all(&self.pool);
        let names = answer(names).await;
        let names: Vec<String> = names.map_err(|error| failed(&self.place, "read its leases", error))?;
        table::processes(&self.place, &names)
    }
}
