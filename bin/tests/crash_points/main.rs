//! The built binary kills itself at each point of its work, is started again, and comes to the end that the undisturbed run
//! comes to.
//!
//! A point is before or after a journal append or a request that writes; the feature `crash-points` counts them.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    dead_code,
    reason = "a test may panic; not all that the tests of the command line share is needed"
)]

mod guard;
mod lab;
mod record;
mod sandbox;
#[path = "../cli/support.rs"]
mod support;

use std::fmt;
use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::path::Path;
use std::slice;
use std::time::Duration;

use futures::FutureExt;
use futures::future::join_all;
use futures::stream::StreamExt;
use tokio::sync::Semaphore;
use unprovision::journal::{Journal, SqliteJournal};

/// How many runs are under way at the same time; they mostly wait.
const SIDE_BY_SIDE: usize = 24;
/// How long a process may take. It is short of what the runner takes for hanging, and long on a busy machine.
pub(crate) const LIMIT: Duration = Duration::from_secs(240);
/// Such a point may be missing in another run.
const BY_CHANCE: &str = "the entry: saw ";
/// How often a point is tried. Whether a short state is seen at all is chance.
const TRIES: usize = 5;
/// What a process that is not to die is told, so that it tells its points.
pub(crate) const NOWHERE: &str = "nowhere";

/// What became of a run that was to die at a point.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// It died there; the points that the process passed which carried on.
    Died(Vec<String>),
    /// It did not come by that point.
    Survived,
}

/// What became of all points.
#[derive(Debug, Default)]
pub(crate) struct Points {
    /// Those at which it died, each with those that were passed afterwards.
    pub(crate) died: Vec<(String, Vec<String>)>,
    /// Those that it did not come by again: a state that was seen only once.
    pub(crate) unseen: Vec<String>,
    /// Those that a run failed at, with why.
    pub(crate) failed: Vec<String>,
}

/// So many runs may be under way.
pub(crate) fn lanes() -> Semaphore {
    Semaphore::new(SIDE_BY_SIDE)
}

/// Dies at each of the points, in a run for each.
pub(crate) async fn at_each<F: Future<Output = End>>(
    lanes: &Semaphore,
    points: &[String],
    run: impl Fn(String) -> F,
) -> Points {
    let run = &run;
    let tried = points.iter().map(|point| async move {
        for _ in 0..TRIES {
            let _lane = lanes.acquire().await.unwrap();
            // One that fails is told at the end, with all others.
            match AssertUnwindSafe(run(point.clone())).catch_unwind().await {
                Ok(End::Died(then)) => return (point, Ok(Some(then))),
                Ok(End::Survived) => {}
                Err(_) => return (point, Err("it failed")),
            }
        }
        let by_chance = point.contains(BY_CHANCE);
        (
            point,
            if by_chance {
                Ok(None)
            } else {
                Err("it never came by")
            },
        )
    });
    let mut all = Points::default();
    for (point, result) in join_all(tried).await {
        match result {
            Ok(Some(then)) => all.died.push((point.clone(), then)),
            Ok(None) => all.unseen.push(point.clone()),
            Err(why) => all.failed.push(format!("{point}: {why}")),
        }
    }
    all
}

/// What became of all pairs.
#[derive(Debug, Default)]
pub(crate) struct Pairs {
    /// How many there are.
    pub(crate) pairs: usize,
    /// In how many runs they were tried.
    runs: usize,
    /// Those of a state that was not seen again, and those that failed.
    points: Points,
}

/// Dies at each of the points, and the process that carries on at each of its own.
pub(crate) async fn at_each_pair<F: Future<Output = End>>(
    lanes: &Semaphore,
    points: &[String],
    run: impl Fn(Vec<String>) -> F,
) -> Pairs {
    let run = &run;
    let firsts = moments(points);
    let pairs = firsts.iter().map(|(first, same)| async move {
        let single = at_each(lanes, slice::from_ref(first), |first| run(vec![first])).await;
        let seconds = single
            .died
            .first()
            .map(|(_, then)| moments(then))
            .unwrap_or_default();
        let names = seconds
            .iter()
            .map(|(second, _)| second.clone())
            .collect::<Vec<_>>();
        let died = at_each(lanes, &names, |second| run(vec![first.clone(), second])).await;
        (*same, single, seconds, died)
    });
    let mut all = Pairs::default();
    for (same, single, seconds, died) in join_all(pairs).await {
        let count = seconds
            .iter()
            .filter(|(second, _)| died.died.iter().any(|(at, _)| at == second));
        all.pairs += same * count.map(|(_, same)| same).sum::<usize>();
        all.runs += died.died.len();
        for points in [single, died] {
            all.points.unseen.extend(points.unseen);
            all.points.failed.extend(points.failed);
        }
    }
    all
}

/// After one thing and before the next, nothing is written: to die at either is to leave the same cloud and the same journal. So
/// one of them stands for both. With each, how many points there are at that moment.
fn moments(points: &[String]) -> Vec<(String, usize)> {
    let mut moments = Vec::<(String, usize)>::new();
    for (nth, point) in points.iter().enumerate() {
        let after = nth % 2 == 1;
        let kind = if after { " after the " } else { " before the " };
        assert!(point.contains(kind), "two things at once: {points:#?}");
        match moments.last_mut() {
            Some((other, same)) if !after => {
                *same += 1;
                // Now the one, now the other; rather not what is chance.
                if other.contains(BY_CHANCE) || (nth % 4 == 0 && !point.contains(BY_CHANCE)) {
                    other.clone_from(point);
                }
            }
            _ => moments.push((point.clone(), 1)),
        }
    }
    moments
}

impl From<Pairs> for Points {
    fn from(pairs: Pairs) -> Self {
        pairs.points
    }
}

impl fmt::Display for Pairs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} in {} runs", self.pairs, self.runs)?;
        self.points.rest(f)
    }
}

/// Said after all figures, so that one that failed hides no other.
pub(crate) fn assert_recovered(all: impl IntoIterator<Item = impl Into<Points>>) {
    let failed = all.into_iter().flat_map(|points| points.into().failed);
    let failed = failed.collect::<Vec<_>>();
    assert!(failed.is_empty(), "{failed:#?}");
}

impl fmt::Display for Points {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.died.len())?;
        self.rest(f)
    }
}

impl Points {
    /// How it went.
    fn rest(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.failed.len() {
            0 => f.write_str(", all recovered")?,
            failed => write!(f, ", {failed} FAILED")?,
        }
        match self.unseen.len() {
            0 => Ok(()),
            more => write!(f, " ({more} states were not seen again in {TRIES} runs)"),
        }
    }
}

/// Whether a process died at the point that it was told to. Else it has ended well.
pub(crate) fn has_died(ran: &support::Ran, point: &str) -> bool {
    if ran.code.is_none() {
        let last = points(&ran.stderr).pop();
        assert_eq!(
            last.as_deref(),
            Some(point),
            "killed by somebody else:\n{}",
            ran.stderr
        );
        return true;
    }
    ran.assert_code(0);
    false
}

/// The points that a process has passed.
pub(crate) fn points(stderr: &str) -> Vec<String> {
    let told = stderr
        .lines()
        .filter_map(|line| line.strip_prefix("crash point: "));
    told.map(str::to_owned).collect()
}

/// How many of the points are after something.
pub(crate) fn after(points: &[String], what: &str) -> usize {
    let after = points
        .iter()
        .filter(|point| point.contains(&format!(" after the {what}: ")));
    after.count()
}

/// Whether the journal has no case to carry on.
pub(crate) async fn nothing_is_open(journal: &Path) -> bool {
    let journal = SqliteJournal::open(journal).await.unwrap();
    journal.open_cases().next().await.is_none()
}
