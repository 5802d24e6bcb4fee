//! A tear-down on the sandbox: all single points, and all pairs of them.

use futures::future::join_all;
use unprovision::NodeUuid;
use unprovision::core::{CaseId, Entry, Event, Outcome};
use unprovision::journal::{Journal, SqliteJournal};
use unprovision::strategy;
use unprovision_testkit::rig::protected_by;
use unprovision_testkit::sandbox::ironic::State;

use crate::record::{self, Before, Left, add_foreign_things, among_others, seen};
use crate::support::{Cloud, Deployed, Ran, finish_within, quick};
use crate::{
    End, LIMIT, NOWHERE, after, assert_recovered, at_each, at_each_pair, has_died, lanes, nothing_is_open,
    points,
};

/// Fewer points than an undisturbed run must have: each write has an intent and an outcome around it.
const AT_LEAST: usize = 20;
/// A write whose outcome died with the process may be sent once more.
const SENT_AGAIN: usize = 1;

/// A node with an instance, and how a process that lives on treats it.
struct Story {
    strategy: &'static str,
    /// The points of the undisturbed run.
    points: Vec<String>,
    /// Its writes.
    writes: Vec<String>,
    /// What it leaves.
    left: Vec<Left>,
}

impl Story {
    async fn of(strategy: &'static str) -> Self {
        let (cloud, one) = cloud().await;
        let ran = carry_on(&cloud, &one, strategy, NOWHERE).await;
        assert_eq!(ran.assert_code(0).row()["outcome"], "returned");
        let (points, writes) = (points(&ran.stderr), cloud.writes());
        // By what others saw, none is missing.
        assert_eq!(after(&points, "request"), writes.len(), "{strategy}: {points:#?}");
        assert_eq!(
            after(&points, "entry"),
            entries(&cloud, &one).await.len(),
            "{strategy}"
        );
        Self {
            strategy,
            points,
            writes,
            left: record::all(&cloud),
        }
    }

    /// Dies at these points, one process after the other; the next one carries on to the end.
    async fn dies(&self, at: &[String]) -> End {
        let (cloud, one) = cloud().await;
        let before = Before::of(&cloud, &one);
        for point in at {
            if !has_died(&carry_on(&cloud, &one, self.strategy, point).await, point) {
                return End::Survived;
            }
        }
        let what = format!("{}, dies {}", self.strategy, at.join(", then "));
        let ran = carry_on(&cloud, &one, self.strategy, NOWHERE).await;
        assert_eq!(ran.code, Some(0), "{what}: {}", ran.stderr);

        cloud.assert_returned_to(protected_by(self.strategy), one.node);
        assert_eq!(record::all(&cloud), self.left, "{what}: the end is another one");
        let told = entries(&cloud, &one).await;
        let last = &told.last().unwrap().event;
        assert!(
            matches!(last, Event::Closed { ending } if ending.outcome == Outcome::Returned),
            "{what}: {last:?}"
        );
        assert_eq!(before.touched(&cloud.sandbox().log()), [], "{what}");
        assert_eq!(cloud.tear_downs(one.node), 1, "{what}");
        let writes = cloud.writes();
        let most = self.writes.len() + SENT_AGAIN * at.len();
        assert!(
            writes.len() <= most,
            "{what}: {writes:#?} instead of {:#?}, as the journal tells it: {told:#?}",
            self.writes
        );
        // Whoever looks at everything finds nothing to do.
        let sweep = finish_within(cloud.spawn(&["guard", "--once"]), LIMIT).await;
        sweep.assert_code(0);
        assert_eq!(cloud.writes().len(), writes.len(), "{what}: all was done already");
        End::Died(points(&ran.stderr))
    }
}

async fn cloud() -> (Cloud, Deployed) {
    let cloud = Cloud::start(among_others(seen(quick(1)))).await;
    let one = cloud.only();
    add_foreign_things(&cloud, one.node);
    (cloud, one)
}

/// What an operator does after a crash: what was begun is carried on, what never was is asked for again.
async fn carry_on(cloud: &Cloud, one: &Deployed, strategy: &str, dies_at: &str) -> Ran {
    let delete = [
        "delete",
        "node-0001",
        "--yes",
        "--strategy",
        strategy,
        "-o",
        "json",
    ];
    let resume = ["resume", "-o", "json"];
    let never_begun =
        nothing_is_open(&cloud.home().join("journal.sqlite")).await && cloud.state(one.node) == State::Active;
    let mut command = cloud.command(if never_begun { &delete } else { &resume });
    command.env("CRASH_AT", dies_at).env("UNPROVISION_POLL", "250ms");
    finish_within(command.spawn().unwrap(), LIMIT).await
}

/// What the journal has of the case.
async fn entries(cloud: &Cloud, one: &Deployed) -> Vec<Entry> {
    let journal = SqliteJournal::open(&cloud.home().join("journal.sqlite"))
        .await
        .unwrap();
    let case = CaseId::tear_down(NodeUuid(one.node), one.instance.parse().unwrap());
    journal.read(case).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn every_single_point_is_recovered_from() {
    let lanes = &lanes();
    let strategies = strategy::ALL.iter().map(|strategy| async {
        let story = Story::of(strategy.name()).await;
        assert!(
            story.points.len() >= AT_LEAST,
            "{}: {:#?}",
            story.strategy,
            story.points
        );
        let points = at_each(lanes, &story.points, async |point| story.dies(&[point]).await).await;
        println!("delete, {}: single points: {points}", story.strategy);
        points
    });
    assert_recovered(join_all(strategies).await);
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes long: `tests/measure crash` runs it"]
async fn every_pair_of_points_is_recovered_from() {
    let lanes = &lanes();
    let strategies = strategy::ALL.iter().map(|strategy| async {
        let story = Story::of(strategy.name()).await;
        let pairs = at_each_pair(lanes, &story.points, async |both: Vec<String>| {
            story.dies(&both).await
        })
        .await;
        assert!(
            pairs.pairs > story.points.len(),
            "{}: only {pairs}",
            story.strategy
        );
        println!("delete, {}: pairs: {pairs}", story.strategy);
        pairs
    });
    assert_recovered(join_all(strategies).await);
}
