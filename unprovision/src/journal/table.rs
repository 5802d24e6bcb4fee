//! How entries are kept in a table, whichever database that is in.

use std::collections::BTreeSet;
use std::error::Error;
use std::time::Duration;

use futures::stream::{self, BoxStream};
use futures::{Stream, StreamExt, TryStreamExt};
use sqlx::{ColumnIndex, Database, Decode, Encode, Executor, IntoArguments, Pool, Transaction, Type};

use super::{JournalError, Seq};
use crate::core::{CaseId, Entry, Event, Process};

/// The layout that this version writes: 1 had no leases. An older one is brought to it, a newer one is refused.
pub(super) const LAYOUT: i64 = 2;

/// The cases whose last entry does not close them.
pub(super) const OPEN: &str = "SELECT case_id FROM entries AS e WHERE closes = 0 AND NOT EXISTS \
    (SELECT 1 FROM entries AS later WHERE later.case_id = e.case_id AND later.seq > e.seq) ORDER BY case_id";
/// The entries of these cases.
pub(super) const OPEN_ENTRIES: &str = "SELECT case_id, body FROM entries WHERE case_id IN \
    (SELECT case_id FROM entries AS e WHERE closes = 0 AND NOT EXISTS \
    (SELECT 1 FROM entries AS later WHERE later.case_id = e.case_id AND later.seq > e.seq)) ORDER BY case_id, seq";
/// All cases.
pub(super) const ALL: &str = "SELECT DISTINCT case_id FROM entries ORDER BY case_id";

/// Leases that ran out so long ago are forgotten, in milliseconds.
pub(super) const FORGOTTEN: i64 = 24 * 3600 * 1000;

/// A process, as it is kept.
fn name(process: &Process) -> Result<String, sqlx::Error> {
    serde_json::to_string(process).map_err(|error| sqlx::Error::Encode(error.into()))
}

/// Processes, from their texts.
pub(super) fn processes(place: &str, names: &[String]) -> Result<BTreeSet<Process>, JournalError> {
    let parsed = names.iter().map(|name| serde_json::from_str(name));
    let parsed = parsed.collect::<Result<_, _>>();
    parsed.map_err(|error| failed(place, "understand a lease", error))
}

/// A duration as it is kept.
pub(super) fn millis(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX / 4)
}

/// What is kept of an entry: whether it closes its case, and its text.
fn row(entry: &Entry) -> Result<(i64, String), sqlx::Error> {
    let closes = i64::from(matches!(entry.event, Event::Closed { .. }));
    let body = serde_json::to_string(entry).map_err(|error| sqlx::Error::Encode(error.into()))?;
    Ok((closes, body))
}

/// How a database is asked: the marks of the parameters differ, and how it says the time.
pub(super) struct Statements {
    /// How many entries a case has.
    pub(super) count: &'static str,
    /// A new entry.
    pub(super) insert: &'static str,
    /// Keeps a lease for so many milliseconds from now on.
    pub(super) keep: &'static str,
    /// Ends a lease, and forgets those that ran out so many milliseconds ago.
    pub(super) end: &'static str,
    /// The processes whose leases have not run out.
    pub(super) leases: &'static str,
}

/// Keeps or ends a lease, by the clock of the database: whichever the statement says, with its number of milliseconds.
pub(super) async fn lease<D: Database>(
    pool: &Pool<D>,
    statement: &'static str,
    millis: i64,
    of: &Process,
) -> Result<(), sqlx::Error>
where
    for<'c> &'c Pool<D>: Executor<'c, Database = D>,
    D::Arguments: IntoArguments<D>,
    for<'q> String: Encode<'q, D> + Type<D>,
    for<'q> i64: Encode<'q, D> + Type<D>,
{
    let lease = sqlx::query(statement).bind(millis).bind(name(of)?);
    lease.execute(pool).await.map(drop)
}

/// Appends where the case has exactly `after` entries, in a transaction that counts first and inserts then; whether it had.
pub(super) async fn append<D: Database>(
    mut transaction: Transaction<'_, D>,
    statements: &Statements,
    case: CaseId,
    after: Seq,
    new: &[Entry],
) -> Result<bool, sqlx::Error>
where
    for<'c> &'c mut D::Connection: Executor<'c, Database = D>,
    D::Arguments: IntoArguments<D>,
    for<'q> String: Encode<'q, D> + Type<D>,
    for<'q> i64: Encode<'q, D> + Decode<'q, D> + Type<D>,
    usize: ColumnIndex<D::Row>,
{
    let fits = insert(&mut transaction, statements, case, after, new).await?;
    if fits {
        transaction.commit().await?;
    }
    Ok(fits)
}

/// The same without the end of the transaction. Where the number is another one, nothing is inserted.
pub(super) async fn insert<D: Database>(
    transaction: &mut Transaction<'_, D>,
    statements: &Statements,
    case: CaseId,
    after: Seq,
    new: &[Entry],
) -> Result<bool, sqlx::Error>
where
    for<'c> &'c mut D::Connection: Executor<'c, Database = D>,
    D::Arguments: IntoArguments<D>,
    for<'q> String: Encode<'q, D> + Type<D>,
    for<'q> i64: Encode<'q, D> + Decode<'q, D> + Type<D>,
    usize: ColumnIndex<D::Row>,
{
    let id = case.to_string();
    let has: i64 = sqlx::query_scalar(statements.count)
        .bind(id.clone())
        .fetch_one(&mut **transaction)
        .await?;
    if u64::try_from(has).ok() != Some(after.0) {
        return Ok(false);
    }
    for (seq, entry) in (has..).zip(new) {
        let (closes, body) = row(entry)?;
        sqlx::query(statements.insert)
            .bind(id.clone())
            .bind(seq)
            .bind(closes)
            .bind(body)
            .execute(&mut **transaction)
            .await?;
    }
    Ok(true)
}

/// Cases with their entries, from rows that are sorted by case and number.
pub(super) fn grouped<'a>(
    place: &'a str,
    rows: impl Stream<Item = Result<(String, String), sqlx::Error>> + Send + 'a,
) -> BoxStream<'a, Result<(CaseId, Vec<Entry>), JournalError>> {
    let rows = rows.map(move |row| {
        let (id, body) = row.map_err(|error| failed(place, "read its open cases", error))?;
        let entry = serde_json::from_str::<Entry>(&body);
        let entry = entry.map_err(|error| failed(place, "understand an entry", error))?;
        Ok((parse(place, &id)?, entry))
    });
    let rows = Box::pin(rows.peekable());
    stream::try_unfold(rows, |mut rows| async move {
        let Some((id, first)) = rows.try_next().await? else {
            return Ok(None);
        };
        let mut entries = vec![first];
        let is_next = |row: &Result<_, _>| matches!(row, Ok((next, _)) if *next == id);
        while let Some(Ok((_, entry))) = rows.as_mut().next_if(is_next).await {
            entries.push(entry);
        }
        Ok(Some(((id, entries), rows)))
    })
    .boxed()
}

/// The entries, from their texts.
pub(super) fn entries(place: &str, bodies: &[String]) -> Result<Vec<Entry>, JournalError> {
    let parsed = bodies.iter().map(|body| serde_json::from_str(body));
    parsed
        .collect::<Result<_, _>>()
        .map_err(|error| failed(place, "understand an entry", error))
}

/// The cases, from their identifiers' texts.
pub(super) fn cases<'a>(
    place: &'a str,
    ids: impl Stream<Item = Result<String, sqlx::Error>> + Send + 'a,
) -> BoxStream<'a, Result<CaseId, JournalError>> {
    ids.map(|id| {
        let id = id.map_err(|error| failed(place, "list its cases", error))?;
        parse(place, &id)
    })
    .boxed()
}

fn parse(place: &str, id: &str) -> Result<CaseId, JournalError> {
    let parsed = id.parse().map(CaseId);
    parsed.map_err(|error| failed(place, "understand a case's name", error))
}

/// Guessing what a newer version meant could release a node.
pub(super) fn refuse_newer(place: &str, layout: i64) -> Result<(), JournalError> {
    if layout <= LAYOUT {
        return Ok(());
    }
    Err(JournalError::Storage {
        journal: place.to_owned(),
        message: format!("it was written by a newer version (layout {layout}, this one knows {LAYOUT})"),
        source: None,
    })
}

pub(super) fn failed(
    place: &str,
    what: &str,
    error: impl Into<Box<dyn Error + Send + Sync>>,
) -> JournalError {
    JournalError::Storage {
        journal: place.to_owned(),
        message: format!("could not {what}"),
        source: Some(error.into()),
    }
}
