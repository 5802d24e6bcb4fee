//! The journals: the conformance suite for each, and what is special about a file.
#![allow(
    clippy::unwrap_used,
    reason = "clippy's exception for tests does not see helpers beside them"
)]

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use futures::TryStreamExt;
use jiff::Timestamp;
use sqlx::{AssertSqlSafe, Connection, SqliteConnection};
use tempfile::TempDir;
use unprovision::core::{CaseId, Entry, Event};
use unprovision::journal::{Journal, JournalError, MemoryJournal, Seq, SqliteJournal};
use unprovision_testkit::conformance::journal::{run_all, run_shared};
use unprovision_testkit::conformance::older;
use uuid::Uuid;

const CASE: CaseId = CaseId(Uuid::from_u128(1));

fn entry() -> Entry {
    Entry {
        at: Timestamp::UNIX_EPOCH,
        event: Event::Freed,
    }
}

async fn sqlite(path: &Path) -> Arc<dyn Journal> {
    Arc::new(SqliteJournal::open(path).await.unwrap())
}

/// The text of the error with all its sources.
async fn refusal(path: &Path) -> String {
    let error = SqliteJournal::open(path).await.unwrap_err();
    assert!(matches!(error, JournalError::Storage { .. }), "{error:?}");
    let mut text = error.to_string();
    let mut source = std::error::Error::source(&error);
    while let Some(below) = source {
        text = format!("{text}: {below}");
        source = below.source();
    }
    text
}

#[tokio::test]
async fn memory_is_a_journal() {
    run_all(async || Arc::new(MemoryJournal::new()) as Arc<dyn Journal>).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn memory_is_a_journal_for_several_threads() {
    run_all(async || Arc::new(MemoryJournal::new()) as Arc<dyn Journal>).await;
    let journal: Arc<dyn Journal> = Arc::new(MemoryJournal::new());
    run_shared(Arc::clone(&journal), journal).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_file_is_a_journal() {
    let dir = TempDir::new().unwrap();
    let made = AtomicU32::new(0);
    let make = async || {
        let name = format!("{}.db", made.fetch_add(1, Ordering::Relaxed));
        sqlite(&dir.path().join(name)).await
    };
    run_all(make).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn two_handles_on_a_file_are_one_journal() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("journal.db");
    run_shared(sqlite(&path).await, sqlite(&path).await).await;
}

/// Opening lays the file out; eight processes may do that at the same time.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_new_file_may_be_opened_by_many_at_once() {
    for _ in 0..20 {
        let dir = TempDir::new().unwrap();
        let path = dir.path().join("journal.db");
        let opens = (0..8).map(|_| {
            let path = path.clone();
            tokio::spawn(async move { SqliteJournal::open(&path).await.map(drop) })
        });
        for opened in futures::future::join_all(opens).await {
            opened.unwrap().unwrap();
        }
    }
}

#[tokio::test]
async fn a_file_survives_being_closed_and_opened() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("journal.db");
    for seq in 0..5 {
        let journal = sqlite(&path).await;
        assert_eq!(journal.read(CASE).await.unwrap().len() as u64, seq);
        journal.append(CASE, Seq(seq), &[entry()]).await.unwrap();
    }
    let open = sqlite(&path).await.open_cases().try_collect::<Vec<_>>().await;
    assert_eq!(open.unwrap(), [CASE]);
}

#[tokio::test]
async fn a_file_and_its_companions_are_for_their_owner_only() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("state/unprovision/journal.db");
    let journal = sqlite(&path).await;
    journal.append(CASE, Seq(0), &[entry()]).await.unwrap();
    let files = std::fs::read_dir(path.parent().unwrap()).unwrap();
    let mut seen = 0;
    for file in files {
        let file = file.unwrap();
        let mode = file.metadata().unwrap().permissions().mode() & 0o777;
        assert_eq!(mode, 0o600, "{:?}", file.file_name());
        seen += 1;
    }
    assert!(seen >= 2, "the file and at least its log");
}

#[tokio::test]
async fn a_file_of_a_newer_version_is_refused() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("journal.db");
    let newer = empty_database(3);
    std::fs::write(&path, &newer).unwrap();
    let text = refusal(&path).await;
    assert!(
        text.contains("newer version (layout 3, this one knows 2)"),
        "{text}"
    );
    assert!(text.contains("journal.db"), "{text}");
    assert!(refusal(&path).await.contains("newer version"), "again");
}

#[tokio::test]
async fn an_empty_file_of_an_older_version_is_taken() {
    for layout in [0, 1] {
        let dir = TempDir::new().unwrap();
        let path = dir.path().join("journal.db");
        std::fs::write(&path, empty_database(layout)).unwrap();
        sqlite(&path)
            .await
            .append(CASE, Seq(0), &[entry()])
            .await
            .unwrap();
    }
}

/// Whoever opens it brings it to the layout of this version; several may do that at the same time.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_file_of_layout_1_keeps_its_cases() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("journal.db");
    std::fs::write(&path, empty_database(1)).unwrap();
    let mut older = SqliteConnection::connect(path.to_str().unwrap()).await.unwrap();
    let table = "CREATE TABLE entries (
        case_id VARCHAR(36) NOT NULL,
        seq BIGINT NOT NULL,
        closes BIGINT NOT NULL,
        body TEXT NOT NULL,
        PRIMARY KEY (case_id, seq)
    )";
    for statement in [table.to_owned()].into_iter().chain(older::entries_of_layout_1()) {
        let statement = sqlx::raw_sql(AssertSqlSafe(statement));
        statement.execute(&mut older).await.unwrap();
    }
    older.close().await.unwrap();
    let opens = (0..8).map(|_| {
        let path = path.clone();
        tokio::spawn(async move { SqliteJournal::open(&path).await.map(drop) })
    });
    for opened in futures::future::join_all(opens).await {
        opened.unwrap().unwrap();
    }
    older::keeps_its_cases(&*sqlite(&path).await).await;
    let mut now = SqliteConnection::connect(path.to_str().unwrap()).await.unwrap();
    let layout: i64 = sqlx::query_scalar("PRAGMA user_version")
        .fetch_one(&mut now)
        .await
        .unwrap();
    assert_eq!(layout, 2, "an older program refuses it from now on");
}

#[tokio::test]
async fn whoever_only_reads_makes_no_file_and_changes_none() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("state/journal.db");
    assert!(SqliteJournal::open_to_read(&path).await.unwrap().is_none());
    assert!(!path.parent().unwrap().exists());
    let path = dir.path().join("journal.db");
    for (layout, there) in [(0, false), (1, true)] {
        std::fs::write(&path, empty_database(layout)).unwrap();
        let before = std::fs::read(&path).unwrap();
        let opened = SqliteJournal::open_to_read(&path).await.unwrap();
        assert_eq!(opened.is_some(), there, "layout {layout}");
        drop(opened);
        assert_eq!(std::fs::read(&path).unwrap(), before, "layout {layout}");
    }
    std::fs::write(&path, empty_database(3)).unwrap();
    let error = SqliteJournal::open_to_read(&path).await.unwrap_err();
    assert!(error.to_string().contains("newer version"), "{error}");
    let path = dir.path().join("written.db");
    sqlite(&path)
        .await
        .append(CASE, Seq(0), &[entry()])
        .await
        .unwrap();
    let journal = SqliteJournal::open_to_read(&path).await.unwrap().unwrap();
    assert_eq!(journal.read(CASE).await.unwrap(), [entry()]);
}

/// Also for root, whom permissions do not stop: a folder that is a file, and one of the kernel's.
#[tokio::test]
async fn a_place_that_cannot_be_written_is_named() {
    let dir = TempDir::new().unwrap();
    let file = dir.path().join("file");
    std::fs::write(&file, "not a folder").unwrap();
    for path in [
        file.join("journal.db"),
        dir.path().to_owned(),
        "/proc/unprovision/journal.db".into(),
    ] {
        let text = refusal(&path).await;
        assert!(text.contains(path.to_str().unwrap()), "{text}");
        assert!(
            text.contains("could not make it: ") || text.contains("could not open it: "),
            "{text}"
        );
    }
}

#[tokio::test]
async fn something_else_than_a_journal_is_refused_and_left_as_it_is() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("notes.txt");
    let notes = "not a database, but somebody's notes\n".repeat(100);
    std::fs::write(&path, &notes).unwrap();
    let text = refusal(&path).await;
    assert!(
        text.contains("notes.txt") && text.contains("not a database"),
        "{text}"
    );
    assert_eq!(std::fs::read_to_string(&path).unwrap(), notes);
}

/// SQLite's file format, as far as an empty database needs it: one page with a header and an empty table of tables.
fn empty_database(user_version: u32) -> Vec<u8> {
    let mut page = vec![0; 4096];
    page[..16].copy_from_slice(b"SQLite format 3\0");
    page[16..18].copy_from_slice(&4096_u16.to_be_bytes());
    page[18..24].copy_from_slice(&[1, 1, 0, 64, 32, 32]);
    for (at, value) in [
        (24, 1),
        (28, 1),
        (44, 4),
        (56, 1),
        (60, user_version),
        (92, 1),
        (96, 3_045_000),
    ] {
        page[at..at + 4].copy_from_slice(&value.to_be_bytes());
    }
    // A leaf of a table's tree without cells, whose content begins at the end of the page.
    page[100] = 0x0d;
    page[105..107].copy_from_slice(&4096_u16.to_be_bytes());
    page
}
