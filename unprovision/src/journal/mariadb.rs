//! A journal in MariaDB, a Galera cluster of it, or MySQL, which several replicas share.

use std::collections::BTreeSet;
use std::time::Duration;

use async_trait::async_trait;
use futures::FutureExt;
use futures::stream::BoxStream;
use sqlx::ConnectOptions;
use sqlx::mysql::{
    MySqlConnectOptions, MySqlConnection, MySqlDatabaseError, MySqlPool, MySqlPoolOptions, MySqlSslMode,
};

use super::server::{self, answer};
use super::table::{self, Statements, failed};
use super::{Journal, JournalError, Seq};
use crate::core::{CaseId, Entry, Process};

const CREATE: [&str; 4] = [
    "CREATE TABLE IF NOT EXISTS entries (
        case_id VARCHAR(36) CHARACTER SET ascii NOT NULL,
        seq BIGINT NOT NULL,
        closes BIGINT NOT NULL,
        body LONGTEXT CHARACTER SET utf8mb4 NOT NULL,
        PRIMARY KEY (case_id, seq)
    ) ENGINE = InnoDB",
    "CREATE TABLE IF NOT EXISTS leases (
        process VARCHAR(500) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL PRIMARY KEY,
        until BIGINT NOT NULL
    ) ENGINE = InnoDB",
    "CREATE TABLE IF NOT EXISTS layout (layout BIGINT NOT NULL PRIMARY KEY) ENGINE = InnoDB",
    "INSERT IGNORE INTO layout (layout) VALUES (2)",
];

/// What every server knows, and what only some do: a Galera node has to have caught up before it is read, and a process that
/// stands still in the middle must not keep others from its case.
const SETTINGS: [&str; 3] = [
    "SET SESSION innodb_lock_wait_timeout = 15",
    "SET SESSION wsrep_sync_wait = 1",
    "SET SESSION idle_transaction_timeout = 10",
];
/// `ER_UNKNOWN_SYSTEM_VARIABLE`.
const UNKNOWN_VARIABLE: u16 = 1193;
/// `ER_LOCK_DEADLOCK`. Nothing of the transaction is left. A Galera node says this also at the commit, where another node was faster.
const DEADLOCK: u16 = 1213;

const STATEMENTS: Statements = Statements {
    count: "SELECT COUNT(*) FROM entries WHERE case_id = ?",
    insert: "INSERT INTO entries (case_id, seq, closes, body) VALUES (?, ?, ?, ?)",
    keep: "INSERT INTO leases (until, process) \
        VALUES (CAST(UNIX_TIMESTAMP(NOW(3)) * 1000 AS SIGNED) + ?, ?) ON DUPLICATE KEY UPDATE until = VALUES(until)",
    end: "DELETE FROM leases WHERE until < CAST(UNIX_TIMESTAMP(NOW(3)) * 1000 AS SIGNED) - ? OR process = ?",
    leases: "SELECT process FROM leases WHERE until > CAST(UNIX_TIMESTAMP(NOW(3)) * 1000 AS SIGNED)",
};

/// A journal in MariaDB or MySQL. Several processes on several machines may share it, also by several nodes of one Galera cluster.
#[derive(Clone, Debug)]
pub struct MariaDbJournal {
    place: String,
    pool: MySqlPool,
}

impl MariaDbJournal {
    /// Connects to `mysql://USER:PASSWORD@HOST:PORT/DATABASE`, and makes the tables where there are none: from then on the
    /// rights to select and insert, and on `leases` to update and delete, are enough. The server's certificate is checked, unless
    /// it is on this machine or the URL says another `ssl-mode`.
    ///
    /// An entry is as safe as the server keeps it: with `innodb_flush_log_at_trx_commit` other than 1 a server without
    /// synchronous replicas may lose the last second.
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
        let parsed = url.parse::<MySqlConnectOptions>();
        let mut options = parsed.map_err(|error| failed(&place, "understand its URL", error))?;
        if server::verifies(url) {
            options = options.ssl_mode(MySqlSslMode::VerifyIdentity);
        }
        // A pool goes on trying where nothing listens, and says in the end only that it took too long.
        let at = server::address(options.get_socket(), options.get_host(), options.get_port());
        let tried = server::try_out(options.connect()).await;
        tried.map_err(|error| failed(&place, &format!("connect to it at {at}"), error))?;
        let pool = MySqlPoolOptions::new()
            .max_connections(server::CONNECTIONS)
            .acquire_timeout(server::CONNECTS_WITHIN)
            .after_connect(|connection, _| Box::pin(prepare(connection)))
            .connect_with(options)
            .await
            .map_err(|error| failed(&place, "connect to it", error))?;
        Ok(Self { place, pool })
    }

    async fn try_append(&self, case: CaseId, after: Seq, new: &[Entry]) -> Result<bool, sqlx::Error> {
        let transaction = self.pool.begin().await?;
        table::append(transaction, &STATEMENTS, case, after, new).await
    }
}

async fn prepare(connection: &mut MySqlConnection) -> Result<(), sqlx::Error> {
    for setting in SETTINGS {
        match sqlx::query(setting).execute(&mut *connection).await {
            Err(error) if number(&error) != Some(UNKNOWN_VARIABLE) => return Err(error),
            _ => {}
        }
    }
    Ok(())
}

/// Nothing of the transaction is left.
fn was_undone(error: &sqlx::Error) -> bool {
    number(error) == Some(DEADLOCK)
}

fn number(error: &sqlx::Error) -> Option<u16> {
    let error = error.as_database_error()?;
    Some(error.try_downcast_ref::<MySqlDatabaseError>()?.number())
}

#[async_trait]
impl Journal for MariaDbJournal {
    async fn append(&self, case: CaseId, after: Seq, new: &[Entry]) -> Result<Seq, JournalError> {
        let next = Seq(after.0.saturating_add(new.len() as u64));
        let once = || self.try_append(case, after, new).boxed();
        server::append(&self.place, case, next, once, was_undone).await
    }

    async fn read(&self, case: CaseId) -> Result<Vec<Entry>, JournalError> {
        let bodies =
            sqlx::query_scalar::<_, String>("SELECT body FROM entries WHERE case_id = ? ORDER BY seq")
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
