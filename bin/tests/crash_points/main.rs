//! The built binary kills itself at each point of its work, is started again, and comes to the end that the undisturbed run
//! comes to.
//!
//! A point is before or after a journal append or a write to the cloud; the feature `crash-points` counts them.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    dead_code,
    reason = "a test may panic; not all that the tests of the command line share is needed"
)]

mod lab;
mod sandbox;
#[path = "../cli/support.rs"]
mod support;

use std::future::Future;
use std::path::Path;

use futures::stream::{FuturesUnordered, StreamExt};
use unprovision::journal::{Journal, SqliteJournal};

/// How many runs are under way at the same time.
const SIDE_BY_SIDE: u32 = 6;

/// What became of a run that was to die at a point.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// It died there; the point in words.
    Died(String),
    /// It has no such point.
    Survived,
}

/// Runs for the points 1, 2, 3, ... until one is survived, and says how many there were.
pub(crate) async fn at_each_point<F: Future<Output = End>>(mut run: impl FnMut(u32) -> F) -> u32 {
    let mut first = 1;
    loop {
        let batch = first..first + SIDE_BY_SIDE;
        let mut runs = batch
            .map(|point| {
                let run = run(point);
                async move { (point, run.await) }
            })
            .collect::<FuturesUnordered<_>>();
        let mut survived = None;
        while let Some((point, end)) = runs.next().await {
            if end == End::Survived {
                survived = Some(survived.unwrap_or(point).min(point));
            }
        }
        if let Some(point) = survived {
            return point - 1;
        }
        first += SIDE_BY_SIDE;
    }
}

/// A process that was to die has died at its point, or has ended well without coming to it.
pub(crate) fn end(ran: &support::Ran) -> End {
    match ran.code {
        None => {
            let last = ran.stderr.lines().last().unwrap_or_default();
            assert!(
                last.starts_with("crash point "),
                "killed by somebody else:\n{}",
                ran.stderr
            );
            End::Died(last.to_owned())
        }
        Some(_) => {
            ran.assert_code(0);
            End::Survived
        }
    }
}

/// Whether the journal has no case to carry on.
pub(crate) async fn nothing_is_open(journal: &Path) -> bool {
    let journal = SqliteJournal::open(journal).await.unwrap();
    journal.open_cases().next().await.is_none()
}
