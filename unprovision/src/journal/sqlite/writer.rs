//! Appends of many cases at once: what comes while the disk is waited for goes into the next transaction together.

use std::sync::Arc;

use sqlx::sqlite::SqlitePool;
use tokio::sync::{mpsc, oneshot};

use super::STATEMENTS;
use crate::core::{CaseId, Entry};
use crate::journal::Seq;
use crate::journal::table;

/// So many appends go into one transaction at most, so that nobody waits for long.
const MOST: usize = 512;

/// Whether the case had as many entries as it should; the error is everybody's whose append was in the same transaction.
type Written = Result<bool, Arc<sqlx::Error>>;

/// Hands appends to the one task that writes. The task ends when nobody is left who could.
#[derive(Clone, Debug)]
pub(super) struct Writer(mpsc::UnboundedSender<Append>);

#[derive(Debug)]
struct Append {
    case: CaseId,
    after: Seq,
    new: Vec<Entry>,
    done: oneshot::Sender<Written>,
}

impl Writer {
    pub(super) fn of(pool: SqlitePool) -> Self {
        let (appends, wanted) = mpsc::unbounded_channel();
        tokio::spawn(write(pool, wanted));
        Self(appends)
    }

    /// Appends where the case has exactly `after` entries; whether it had. Whoever stops waiting for it does not stop it.
    pub(super) async fn append(&self, case: CaseId, after: Seq, new: &[Entry]) -> Written {
        let (done, written) = oneshot::channel();
        let append = Append {
            case,
            after,
            new: new.to_vec(),
            done,
        };
        // Each waits for its own answer, so there are never more than there are callers.
        self.0
            .send(append)
            .map_err(|_| Arc::new(sqlx::Error::WorkerCrashed))?;
        written.await.map_err(|_| Arc::new(sqlx::Error::WorkerCrashed))?
    }
}

async fn write(pool: SqlitePool, mut wanted: mpsc::UnboundedReceiver<Append>) {
    let mut batch = Vec::new();
    while wanted.recv_many(&mut batch, MOST).await > 0 {
        let written = commit(&pool, &batch).await.map_err(Arc::new);
        for (index, append) in batch.drain(..).enumerate() {
            let written = written.as_ref().map(|fitted| fitted[index]);
            // Somebody who has gone does not want to know.
            let _ = append.done.send(written.map_err(Arc::clone));
        }
    }
}

/// All or nothing: either all that fit are on disk, or none is.
async fn commit(pool: &SqlitePool, batch: &[Append]) -> Result<Vec<bool>, sqlx::Error> {
    let mut transaction = pool.begin_with("BEGIN IMMEDIATE").await?;
    let mut fitted = Vec::with_capacity(batch.len());
    for Append { case, after, new, .. } in batch {
        fitted.push(table::insert(&mut transaction, &STATEMENTS, *case, *after, new).await?);
    }
    transaction.commit().await?;
    Ok(fitted)
}
