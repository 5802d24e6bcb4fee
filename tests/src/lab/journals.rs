//! Databases for journals, on the servers that `tests/lab/lab journals` starts.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a failure here is a failure of the test that asks"
)]

use std::net::SocketAddr;
use std::sync::Arc;

use sqlx::{AssertSqlSafe, Connection, MySqlConnection, PgConnection};
use unprovision::journal::{Journal, JournalError, MariaDbJournal, PostgresJournal};

use super::Lab;

/// The variable that names the file with their URLs.
const VARIABLE: &str = "UNPROVISION_JOURNALS";
/// How an administrator logs in there.
const ADMIN: &str = "unprovision:journal-secret";

/// A database server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Server {
    /// PostgreSQL.
    PostgreSql,
    /// MariaDB.
    MariaDb,
}

impl Server {
    /// Each of them.
    pub const ALL: [Self; 2] = [Self::PostgreSql, Self::MariaDb];
}

/// An empty database of its own on one of the servers.
#[derive(Clone, Debug)]
pub struct Database {
    server: Server,
    /// Its URL, for an administrator.
    pub url: String,
    /// Its name.
    pub name: String,
}

impl Database {
    /// Makes one.
    ///
    /// # Panics
    ///
    /// Where there is no server; the message says how to start them.
    pub async fn new(server: Server) -> Self {
        let file = std::env::var(VARIABLE).unwrap_or_default();
        let text = std::fs::read(&file).expect(
            "there are no database servers: run the tests with `tests/run`, or start them yourself: \
             export UNPROVISION_JOURNALS=$(tests/lab/lab journals DIR)",
        );
        let urls: serde_json::Value = serde_json::from_slice(&text).unwrap();
        let key = match server {
            Server::PostgreSql => "postgres",
            Server::MariaDb => "mariadb",
        };
        let there = urls[key].as_str().unwrap();
        let name = Lab::unique("journal").replace('-', "_");
        let url = format!("{}/{name}", there.rsplit_once('/').unwrap().0);
        run(server, there, &format!("CREATE DATABASE {name}")).await;
        Self { server, url, name }
    }

    /// Where its server listens.
    ///
    /// # Panics
    ///
    /// Where its URL has no address.
    pub fn address(&self) -> SocketAddr {
        self.place().parse().unwrap()
    }

    /// Its URL, with its server at another address.
    pub fn at(&self, address: SocketAddr) -> String {
        self.url.replacen(self.place(), &address.to_string(), 1)
    }

    fn place(&self) -> &str {
        let after_login = self.url.rsplit('@').next().unwrap_or_default();
        after_login.split('/').next().unwrap_or_default()
    }

    /// A journal in it.
    ///
    /// # Panics
    ///
    /// Where it cannot be opened.
    pub async fn open(&self) -> Arc<dyn Journal> {
        self.try_open(&self.url).await.unwrap()
    }

    /// A journal at this URL, or why not.
    ///
    /// # Errors
    ///
    /// Those of the journal.
    pub async fn try_open(&self, url: &str) -> Result<Arc<dyn Journal>, JournalError> {
        Ok(match self.server {
            Server::PostgreSql => Arc::new(PostgresJournal::open(url).await?),
            Server::MariaDb => Arc::new(MariaDbJournal::open(url).await?),
        })
    }

    /// The journal in it for whoever only reads.
    ///
    /// # Errors
    ///
    /// Those of the journal.
    pub async fn open_to_read(&self) -> Result<Option<Arc<dyn Journal>>, JournalError> {
        Ok(match self.server {
            Server::PostgreSql => PostgresJournal::open_to_read(&self.url)
                .await?
                .map(|opened| Arc::new(opened) as _),
            Server::MariaDb => MariaDbJournal::open_to_read(&self.url)
                .await?
                .map(|opened| Arc::new(opened) as _),
        })
    }

    /// The names of its tables.
    ///
    /// # Panics
    ///
    /// Where it cannot be asked.
    pub async fn tables(&self) -> Vec<String> {
        const ALL: &str =
            "SELECT CAST(table_name AS CHAR(64)) FROM information_schema.tables WHERE table_schema = ";
        match self.server {
            Server::PostgreSql => {
                let mut connection = PgConnection::connect(&self.url).await.unwrap();
                let names = AssertSqlSafe(format!("{ALL}'public' ORDER BY 1"));
                sqlx::query_scalar(names)
                    .fetch_all(&mut connection)
                    .await
                    .unwrap()
            }
            Server::MariaDb => {
                let mut connection = MySqlConnection::connect(&self.url).await.unwrap();
                let names = AssertSqlSafe(format!("{ALL}'{}' ORDER BY 1", self.name));
                sqlx::query_scalar(names)
                    .fetch_all(&mut connection)
                    .await
                    .unwrap()
            }
        }
    }

    /// Runs a statement in it, as an administrator.
    ///
    /// # Panics
    ///
    /// Where it fails.
    pub async fn run(&self, statement: &str) {
        run(self.server, &self.url, statement).await;
    }

    /// The URL of a new user who may only add entries, and keep leases.
    ///
    /// # Panics
    ///
    /// Where the user cannot be made.
    pub async fn user(&self) -> String {
        let user = format!("{}_user", self.name);
        let name = &self.name;
        let statements = match self.server {
            Server::PostgreSql => format!(
                "CREATE ROLE {user} LOGIN PASSWORD 'other-secret'; \
                 GRANT SELECT, INSERT ON ALL TABLES IN SCHEMA public TO {user}; \
                 GRANT UPDATE, DELETE ON leases TO {user}"
            ),
            Server::MariaDb => format!(
                "CREATE USER {user}@'%' IDENTIFIED BY 'other-secret'; \
                 GRANT SELECT, INSERT ON {name}.* TO {user}@'%'; \
                 GRANT UPDATE, DELETE ON {name}.leases TO {user}@'%'"
            ),
        };
        self.run(&statements).await;
        self.url.replace(ADMIN, &format!("{user}:other-secret"))
    }
}

async fn run(server: Server, url: &str, statement: &str) {
    let statement = sqlx::raw_sql(AssertSqlSafe(statement.to_owned()));
    match server {
        Server::PostgreSql => {
            let mut connection = PgConnection::connect(url).await.unwrap();
            statement.execute(&mut connection).await.unwrap();
        }
        Server::MariaDb => {
            let mut connection = MySqlConnection::connect(url).await.unwrap();
            statement.execute(&mut connection).await.unwrap();
        }
    }
}
