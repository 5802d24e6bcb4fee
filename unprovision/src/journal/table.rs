//! How entries are kept in a table, whichever database that is in.

use futures::stream::BoxStream;
use futures::{Stream, StreamExt};
use sqlx::{ColumnIndex, Database, Decode, Encode, Executor, IntoArguments, Transaction, Type};

use super::{JournalError, Seq};
use crate::core::{CaseId, Entry, Event};

/// The layout that this version writes. A journal with a newer one is refused.
pub(super) const LAYOUT: i64 = 1;

/// The cases whose last entry does not close them.
pub(super) const OPEN: &str = "SELECT case_id FROM entries AS e WHERE closes = 0 AND NOT EXISTS \
    (SELECT 1 FROM entries AS later WHERE later.case_id = e.case_id AND later.seq > e.seq) ORDER BY case_id";
/// All cases.
pub(super) const ALL: &str = "SELECT DISTINCT case_id FROM entries ORDER BY case_id";

/// What is kept of an entry: whether it closes its case, and its text.
fn row(entry: &Entry) -> Result<(i64, String), sqlx::Error> {
    let closes = i64::from(matches!(entry.event, Event::Closed { .. }));
    let body = serde_json::to_string(entry).map_err(|error| sqlx::Error::Encode(error.into()))?;
    Ok((closes, body))
}

/// How a database is asked, which differs in the marks of the parameters alone.
pub(super) struct Statements {
    /// How many entries a case has.
    pub(super) count: &'static str,
    /// A new entry.
    pub(super) insert: &'static str,
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
    let id = case.to_string();
    let has: i64 = sqlx::query_scalar(statements.count)
        .bind(id.clone())
        .fetch_one(&mut *transaction)
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
            .execute(&mut *transaction)
            .await?;
    }
    transaction.commit().await?;
    Ok(true)
}

/// The entries, from their texts.
pub(super) fn entries(place: &str, bodies: &[String]) -> Result<Vec<Entry>, JournalError> {
    let parsed = bodies.iter().map(|body| serde_json::from_str(body));
    parsed
        .collect::<Result<_, _>>()
        .map_err(|error| failed(place, "understand an entry", sqlx::Error::Decode(error.into())))
}

/// The cases, from their identifiers' texts.
pub(super) fn cases<'a>(
    place: &'a str,
    ids: impl Stream<Item = Result<String, sqlx::Error>> + Send + 'a,
) -> BoxStream<'a, Result<CaseId, JournalError>> {
    ids.map(|id| {
        let id = id.map_err(|error| failed(place, "list its cases", error))?;
        let parsed = id.parse().map(CaseId);
        parsed.map_err(|error| {
            let error = sqlx::Error::Decode(Box::new(error));
            failed(place, "understand a case's name", error)
        })
    })
    .boxed()
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

pub(super) fn failed(place: &str, what: &str, error: sqlx::Error) -> JournalError {
    JournalError::Storage {
        journal: place.to_owned(),
        message: format!("could not {what}"),
        source: Some(Box::new(error)),
    }
}
