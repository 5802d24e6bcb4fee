//! The journals on real database servers: the conformance suite for each, and what is special about a server.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "clippy's exception for tests does not see helpers beside them"
)]

use std::sync::Arc;
use std::time::Duration;

use tokio::time::timeout;

use futures::TryStreamExt;
use jiff::Timestamp;
use sqlx::{Connection, MySqlConnection, PgConnection};
use unprovision::core::{CaseId, Entry, Event};
use unprovision::journal::{Seq, read_open};
use unprovision_testkit::conformance::journal::{run_all, run_shared};
use unprovision_testkit::conformance::older;
use unprovision_testkit::lab::journals::{Database, Server};
use uuid::Uuid;

const CASE: CaseId = CaseId(Uuid::from_u128(1));

fn entry() -> Entry {
    Entry {
        at: Timestamp::UNIX_EPOCH,
        event: Event::Freed,
    }
}

/// The text of the error with all its sources.
fn in_full(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(below) = source {
        text = format!("{text}: {below}");
        source = below.source();
    }
    text
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn postgresql_is_a_journal() {
    run_all(async || Database::new(Server::PostgreSql).await.open().await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn mariadb_is_a_journal() {
    run_all(async || Database::new(Server::MariaDb).await.open().await).await;
}

/// As by two replicas on two machines.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn two_replicas_share_one_journal() {
    for kind in Server::ALL {
        let database = Database::new(kind).await;
        run_shared(database.open().await, database.open().await).await;
    }
}

/// Opening makes the tables; several replicas may do that at the same time, and find there what was written before.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_new_database_may_be_opened_by_many_at_once() {
    for kind in Server::ALL {
        let database = Arc::new(Database::new(kind).await);
        let opens = (0..8).map(|_| {
            let database = Arc::clone(&database);
            tokio::spawn(async move { database.try_open(&database.url).await.map(drop) })
        });
        for opened in futures::future::join_all(opens).await {
            opened.unwrap().unwrap();
        }
        database
            .open()
            .await
            .append(CASE, Seq(0), &[entry()])
            .await
            .unwrap();
        let open = database.open().await.open_cases().try_collect::<Vec<_>>().await;
        assert_eq!(open.unwrap(), [CASE], "{kind:?}");
    }
}

#[tokio::test]
async fn a_journal_of_a_newer_version_is_refused() {
    for kind in Server::ALL {
        let database = Database::new(kind).await;
        drop(database.open().await);
        database.run("INSERT INTO layout (layout) VALUES (3)").await;
        let text = in_full(&database.try_open(&database.url).await.unwrap_err());
        assert!(
            text.contains("newer version (layout 3, this one knows 2)"),
            "{text}"
        );
        assert!(
            text.contains(&database.name) && !text.contains("secret"),
            "{text}"
        );
    }
}

/// The tables of layout 1, which had no leases.
fn layout_1(kind: Server) -> [String; 3] {
    let (text, engine) = match kind {
        Server::PostgreSql => ("TEXT", ""),
        Server::MariaDb => ("LONGTEXT CHARACTER SET utf8mb4", "ENGINE = InnoDB"),
    };
    [
        format!(
            "CREATE TABLE entries (
                case_id VARCHAR(36) NOT NULL,
                seq BIGINT NOT NULL,
                closes BIGINT NOT NULL,
                body {text} NOT NULL,
                PRIMARY KEY (case_id, seq)
            ) {engine}"
        ),
        format!("CREATE TABLE layout (layout BIGINT NOT NULL PRIMARY KEY) {engine}"),
        "INSERT INTO layout (layout) VALUES (1)".to_owned(),
    ]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_journal_of_layout_1_keeps_its_cases() {
    for kind in Server::ALL {
        let database = Arc::new(Database::new(kind).await);
        for statement in layout_1(kind).into_iter().chain(older::entries_of_layout_1()) {
            database.run(&statement).await;
        }
        let opens = (0..8).map(|_| {
            let database = Arc::clone(&database);
            tokio::spawn(async move { database.try_open(&database.url).await.map(drop) })
        });
        for opened in futures::future::join_all(opens).await {
            opened.unwrap().unwrap();
        }
        older::keeps_its_cases(&*database.open().await).await;
        // Which an older program takes for newer than itself.
        database
            .run("INSERT INTO layout (layout) SELECT MAX(layout) + 7 FROM layout")
            .await;
        let text = in_full(&database.try_open(&database.url).await.unwrap_err());
        assert!(
            text.contains("newer version (layout 9, this one knows 2)"),
            "{text}"
        );
    }
}

/// Nothing is made in an empty database, and an older journal stays as it is; of a newer one nothing is read.
#[tokio::test]
async fn whoever_only_reads_changes_nothing() {
    for kind in Server::ALL {
        let database = Database::new(kind).await;
        assert!(database.open_to_read().await.unwrap().is_none(), "{kind:?}");
        assert!(database.tables().await.is_empty(), "{kind:?}");
        for statement in layout_1(kind).into_iter().chain(older::entries_of_layout_1()) {
            database.run(&statement).await;
        }
        let older = database.open_to_read().await.unwrap().unwrap();
        assert_eq!(read_open(&*older).await.unwrap().len(), 1, "{kind:?}");
        assert_eq!(database.tables().await.len(), 2, "{kind:?}: no leases are made");
        drop(database.open().await);
        assert_eq!(database.tables().await.len(), 3, "{kind:?}");
        database.run("INSERT INTO layout (layout) VALUES (3)").await;
        let text = in_full(&database.open_to_read().await.unwrap_err());
        assert!(text.contains("newer version"), "{text}");
    }
}

/// Once the tables are there.
#[tokio::test]
async fn the_rights_to_add_entries_and_to_keep_leases_are_enough() {
    for kind in Server::ALL {
        let database = Database::new(kind).await;
        drop(database.open().await);
        let url = database.user().await;
        let journal = database.try_open(&url).await.unwrap();
        journal.append(CASE, Seq(0), &[entry()]).await.unwrap();
        assert_eq!(journal.read(CASE).await.unwrap(), [entry()], "{kind:?}");
        let us = unprovision::process::this();
        for _ in 0..2 {
            journal.keep_lease(&us, Duration::from_secs(60)).await.unwrap();
        }
        journal.end_lease(&us).await.unwrap();
        assert!(journal.leases().await.unwrap().is_empty(), "{kind:?}");
    }
}

#[tokio::test]
async fn what_is_wrong_with_a_server_is_told_without_secrets() {
    for kind in Server::ALL {
        let database = Database::new(kind).await;
        let wrong = database.url.replace("journal-secret", "wrong-secret");
        let nobody = format!(
            "{}://me:journal-secret@127.0.0.1:1/journal",
            database.url.split("://").next().unwrap()
        );
        let nonsense = format!("{}?sslmode=sometimes", database.url);
        // There is no TLS here: whoever asks for it does not go on without.
        let verified = format!(
            "{}?sslmode={}",
            database.url,
            if kind == Server::PostgreSql {
                "verify-full"
            } else {
                "verify_identity"
            }
        );
        for (url, expected) in [
            (wrong, "could not connect to it"),
            (nobody, "could not connect to it"),
            (nonsense, "could not understand its URL"),
            (verified, "could not connect to it"),
        ] {
            let text = in_full(&database.try_open(&url).await.unwrap_err());
            assert!(
                text.contains(expected) && text.contains("127.0.0.1"),
                "{kind:?}: {text}"
            );
            assert!(!text.contains("secret"), "{kind:?}: {text}");
        }
    }
}

/// The server was restarted, or somebody has cut the connections: the next append has a new one.
#[tokio::test]
async fn connections_that_were_cut_are_made_anew() {
    for kind in Server::ALL {
        let database = Database::new(kind).await;
        let journal = database.open().await;
        journal.append(CASE, Seq(0), &[entry()]).await.unwrap();
        match kind {
            Server::PostgreSql => {
                let cut = format!(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{}' AND pid <> pg_backend_pid()",
                    database.name
                );
                database.run(&cut).await;
            }
            Server::MariaDb => {
                let mut admin = MySqlConnection::connect(&database.url).await.unwrap();
                let theirs = sqlx::AssertSqlSafe(format!(
                    "SELECT CAST(id AS CHAR) FROM information_schema.processlist WHERE db = '{}' AND id <> connection_id()",
                    database.name
                ));
                let ids: Vec<String> = sqlx::query_scalar(theirs).fetch_all(&mut admin).await.unwrap();
                assert!(!ids.is_empty());
                for id in ids {
                    database.run(&format!("KILL {id}")).await;
                }
            }
        }
        let mut has = 1;
        for _ in 0..10 {
            if journal.append(CASE, Seq(has), &[entry()]).await.is_ok() {
                has += 1;
            }
            assert_eq!(
                journal.read(CASE).await.unwrap().len() as u64,
                has,
                "{kind:?}: as told"
            );
        }
        assert!(has >= 10, "{kind:?}: {has}");
    }
}

/// A process that stands still right before its commit is thrown out, and its entry with it.
#[tokio::test]
async fn a_process_that_stands_still_in_the_middle_does_not_keep_others_from_its_case() {
    for kind in Server::ALL {
        let database = Database::new(kind).await;
        let journal = database.open().await;
        let insert =
            format!("INSERT INTO entries (case_id, seq, closes, body) VALUES ('{CASE}', 0, 0, '{{}}')");
        let insert = sqlx::AssertSqlSafe(insert);
        let frozen = match kind {
            Server::PostgreSql => {
                let mut frozen = PgConnection::connect(&database.url).await.unwrap();
                let settings = "SET idle_in_transaction_session_timeout = '10s'; BEGIN";
                sqlx::raw_sql(settings).execute(&mut frozen).await.unwrap();
                sqlx::raw_sql(insert).execute(&mut frozen).await.unwrap();
                (Some(frozen), None)
            }
            Server::MariaDb => {
                let mut frozen = MySqlConnection::connect(&database.url).await.unwrap();
                let settings = "SET SESSION idle_transaction_timeout = 10; START TRANSACTION";
                sqlx::raw_sql(settings).execute(&mut frozen).await.unwrap();
                sqlx::raw_sql(insert).execute(&mut frozen).await.unwrap();
                (None, Some(frozen))
            }
        };
        let entries = [entry()];
        let appended = timeout(Duration::from_secs(60), journal.append(CASE, Seq(0), &entries)).await;
        let appended = appended.expect("bounded");
        assert_eq!(appended.unwrap(), Seq(1), "{kind:?}");
        assert_eq!(journal.read(CASE).await.unwrap(), [entry()], "{kind:?}");
        drop(frozen);
    }
}
