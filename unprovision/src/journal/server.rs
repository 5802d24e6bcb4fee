//! What the journals on database servers have in common: TLS, bounds on all waiting, and who wins.

use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use futures::future::BoxFuture;
use sqlx::{ColumnIndex, Connection, Database, Decode, Executor, IntoArguments, Pool, Type};

use super::place::authority;
use super::table::{self, LAYOUT, failed};
use super::{JournalError, Seq};
use crate::core::CaseId;

/// How long an answer is waited for.
const ANSWERS_WITHIN: Duration = Duration::from_secs(30);
/// How long a connection is waited for.
pub(super) const CONNECTS_WITHIN: Duration = Duration::from_secs(10);
/// So many connections at most. An append needs one for some milliseconds.
pub(super) const CONNECTIONS: u32 = 8;
/// How often a transaction is begun that the server has given up in favour of another one.
const TRIES: u32 = 5;

/// Whether the server's certificate has to be checked: everywhere but on this machine, unless the URL says what to do.
pub(super) fn verifies(url: &str) -> bool {
    let asked = url.contains("sslmode=") || url.contains("ssl-mode=");
    let host = authority(url).rsplit('@').next().unwrap_or_default();
    let name = match host.strip_prefix('[') {
        Some(v6) => v6.split(']').next().unwrap_or_default(),
        None => host.split(':').next().unwrap_or_default(),
    };
    let here = name.is_empty()
        || name == "localhost"
        || name.parse::<IpAddr>().is_ok_and(|address| address.is_loopback());
    !asked && !here
}

/// Where a server is looked for.
pub(super) fn address(socket: Option<&PathBuf>, host: &str, port: u16) -> String {
    match socket {
        Some(socket) => socket.display().to_string(),
        None => format!("{host} port {port}"),
    }
}

/// Connects once and hangs up: whatever refuses it is told at once.
pub(super) async fn try_out<C: Connection>(
    connecting: impl Future<Output = Result<C, sqlx::Error>>,
) -> Result<(), sqlx::Error> {
    let connected = within(CONNECTS_WITHIN, connecting).await?;
    // The server will notice by itself where this fails.
    let _ = connected.close().await;
    Ok(())
}

/// `undefined_table`, and MySQL's `ER_NO_SUCH_TABLE`.
const NO_TABLE: [&str; 2] = ["42P01", "42S02"];

/// Makes the tables where there are none, or fewer than this version has, and refuses those of a newer one.
pub(super) async fn make_ready<D: Database>(
    place: &str,
    pool: &Pool<D>,
    create: &[&'static str],
) -> Result<(), JournalError>
where
    for<'c> &'c Pool<D>: Executor<'c, Database = D>,
    D::Arguments: IntoArguments<D>,
    for<'r> i64: Decode<'r, D> + Type<D>,
    usize: ColumnIndex<D::Row>,
{
    let layout = answer(lay_out(pool, create)).await;
    let layout = layout.map_err(|error| failed(place, "make its tables", error))?;
    table::refuse_newer(place, layout)
}

/// Whether there are tables; those of a newer version are refused.
pub(super) async fn is_there<D: Database>(place: &str, pool: &Pool<D>) -> Result<bool, JournalError>
where
    for<'c> &'c Pool<D>: Executor<'c, Database = D>,
    D::Arguments: IntoArguments<D>,
    for<'r> i64: Decode<'r, D> + Type<D>,
    usize: ColumnIndex<D::Row>,
{
    let layout = answer(layout(pool)).await;
    let layout = layout.map_err(|error| failed(place, "read its layout", error))?;
    table::refuse_newer(place, layout.unwrap_or_default())?;
    Ok(layout.is_some())
}

/// The layout of the tables; none where there are no tables.
async fn layout<D: Database>(pool: &Pool<D>) -> Result<Option<i64>, sqlx::Error>
where
    for<'c> &'c Pool<D>: Executor<'c, Database = D>,
    D::Arguments: IntoArguments<D>,
    for<'r> i64: Decode<'r, D> + Type<D>,
    usize: ColumnIndex<D::Row>,
{
    let read = sqlx::query_scalar::<_, Option<i64>>("SELECT MAX(layout) FROM layout");
    match read.fetch_one(pool).await {
        Err(sqlx::Error::Database(error)) if error.code().is_some_and(|code| NO_TABLE.contains(&&*code)) => {
            Ok(None)
        }
        read => read,
    }
}

/// The layout of the tables, which are made where there are none, or fewer than this version has. Whoever makes them at the same
/// time may be in each other's way.
async fn lay_out<D: Database>(pool: &Pool<D>, create: &[&'static str]) -> Result<i64, sqlx::Error>
where
    for<'c> &'c Pool<D>: Executor<'c, Database = D>,
    D::Arguments: IntoArguments<D>,
    for<'r> i64: Decode<'r, D> + Type<D>,
    usize: ColumnIndex<D::Row>,
{
    let mut tries = 0;
    loop {
        if let Ok(Some(layout)) = layout(pool).await
            && layout >= LAYOUT
        {
            return Ok(layout);
        }
        for statement in create {
            match sqlx::query(*statement).execute(pool).await {
                Err(error) if tries >= 20 || error.as_database_error().is_none() => return Err(error),
                _ => {}
            }
        }
        tries += 1;
    }
}

/// What the server says, or an error once that has taken too long.
pub(super) async fn answer<T>(work: impl Future<Output = Result<T, sqlx::Error>>) -> Result<T, sqlx::Error> {
    within(ANSWERS_WITHIN, work).await
}

async fn within<T>(
    time: Duration,
    work: impl Future<Output = Result<T, sqlx::Error>>,
) -> Result<T, sqlx::Error> {
    match tokio::time::timeout(time, work).await {
        Ok(done) => done,
        Err(_) => {
            let words = format!("no answer within {time:?}");
            Err(sqlx::Error::Io(std::io::Error::new(
                std::io::ErrorKind::TimedOut,
                words,
            )))
        }
    }
}

/// Appends by transactions that count first and insert then. `try_once` says whether the count was right; `was_undone` whether an
/// error means that the server has undone it all, and that it may be tried again.
pub(super) async fn append<'a>(
    place: &str,
    case: CaseId,
    next: Seq,
    try_once: impl Fn() -> BoxFuture<'a, Result<bool, sqlx::Error>>,
    was_undone: impl Fn(&sqlx::Error) -> bool,
) -> Result<Seq, JournalError> {
    match insist(try_once, was_undone).await {
        Ok(true) => Ok(next),
        Ok(false) => Err(JournalError::Fenced(case)),
        // Somebody has inserted that number between our count and our insert.
        Err(sqlx::Error::Database(error)) if error.is_unique_violation() => Err(JournalError::Fenced(case)),
        Err(error) => Err(failed(place, "append to it", error)),
    }
}

/// Tries again what the server has undone.
pub(super) async fn insist<T, F>(
    try_once: impl Fn() -> F,
    was_undone: impl Fn(&sqlx::Error) -> bool,
) -> Result<T, sqlx::Error>
where
    F: Future<Output = Result<T, sqlx::Error>>,
{
    let mut tries = 1;
    loop {
        match answer(try_once()).await {
            Err(error) if was_undone(&error) && tries < TRIES => tries += 1,
            done => return done,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::verifies;

    #[test]
    fn certificates_are_checked_unless_the_server_is_here_or_the_url_says_otherwise() {
        for (url, expected) in [
            ("mysql://me:x@db.example.org/journal", true),
            ("postgres://me@[2001:db8::1]:5432/journal", true),
            ("postgres://me@10.0.0.1/journal", true),
            ("postgres://me@10.0.0.1/journal?sslmode=disable", false),
            ("mysql://me@db/journal?ssl-mode=preferred", false),
            ("mysql://localhost:3306/journal", false),
            ("mysql://127.0.0.2/journal", false),
            ("postgres://me@[::1]/journal", false),
            ("postgres://me@/journal?host=/run/pg", false),
        ] {
            assert_eq!(verifies(url), expected, "{url}");
        }
    }
}
