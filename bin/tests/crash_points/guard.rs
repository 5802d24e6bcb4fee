//! The guard beside the sandbox's Nova, which deletes a server: all single points, and all pairs of them.
//!
//! The guard does not end by itself: it has come through once its case is closed and it has swept since.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures::StreamExt;
use futures::future::join_all;
use rustix::process::Signal;
use tokio::process::Child;
use tokio::time::timeout;
use unprovision::journal::{Journal, SqliteJournal};
use unprovision_testkit::sandbox::Builder;
use unprovision_testkit::sandbox::config::NovaRule;
use unprovision_testkit::sandbox::ironic::State;
use unprovision_testkit::sandbox::judge::{self, Query};
use unprovision_testkit::sandbox::serve::real_clock;
use uuid::Uuid;

use crate::record::{self, Before, Left, among_others, novas, ours, seen};
use crate::support::{Cloud, Deployed, finish_within, quick, send};
use crate::{End, LIMIT, NOWHERE, after, assert_recovered, at_each, at_each_pair, has_died, lanes, points};

/// From one look of the test's to its next.
const GLANCE: Duration = Duration::from_millis(50);
/// So many sweeps must have begun until the first of them has surely ended, and one more has begun and ended after it.
const SWEEPS: usize = 3;

/// A Nova, and a strategy that guards beside it.
struct Beside {
    nova: &'static str,
    strategy: &'static str,
    cloud: fn() -> Builder,
    /// Whether this Nova alone shows the bug.
    exposes: bool,
    /// Whether a pass of its tracker meets the node while it is cleaned.
    passes: bool,
    /// A write that there must be, by the words of its intent.
    last: &'static str,
}

const ALL: [Beside; 3] = [
    Beside {
        nova: "a Nova before 26.1",
        strategy: "hand-over",
        cloud: || leaving(NovaRule::Old),
        exposes: true,
        passes: true,
        last: "release our hold",
    },
    Beside {
        nova: "today's Nova, which has forgotten the claim",
        strategy: "reserve-on-delete",
        cloud: || leaving(NovaRule::Current).reserved_in_use(false),
        exposes: true,
        passes: false,
        last: "set reserved = 0",
    },
    Beside {
        nova: "today's Nova, which has reserved the node",
        strategy: "hand-over",
        cloud: || leaving(NovaRule::Current),
        exposes: false,
        passes: false,
        last: "set reserved = 0",
    },
];

/// The tracker comes when the test says so.
fn leaving(rule: NovaRule) -> Builder {
    among_others(seen(quick(1))).nova(rule).configure(|config| {
        config.nova.first_pass = Duration::from_secs(3600);
        config.nova.conflict_retry = Duration::from_millis(100);
        config.nova.poll = Duration::from_millis(100);
        config.nova.polls = u32::MAX;
    })
}

/// What became of a guard that was let work.
enum Worked {
    Ended,
    /// The node is back; so many writes there had been when its case was closed.
    Closed(usize),
}

/// One run: its cloud, and the guard's journal.
struct Run {
    cloud: Cloud,
    one: Deployed,
    journal: SqliteJournal,
    passes: AtomicBool,
}

impl Run {
    async fn of(beside: &Beside) -> Self {
        let cloud = Cloud::with_nova_traits((beside.cloud)()).await;
        let one = cloud.only();
        let journal = SqliteJournal::open(&cloud.home().join("journal.sqlite"))
            .await
            .unwrap();
        Self {
            cloud,
            one,
            journal,
            passes: AtomicBool::new(beside.passes),
        }
    }

    fn guard(&self, strategy: &str, dies_at: &str) -> Child {
        let mut command = self.cloud.command(&["guard", "--strategy", strategy]);
        command
            .env("UNPROVISION_GUARD__LOOK", "250ms")
            .env("UNPROVISION_GUARD__SWEEP", "600ms")
            .env("CRASH_AT", dies_at);
        command.spawn().unwrap()
    }

    /// Nova deletes the server once the guard has looked at everything. The conductor stands still, so that a guard that
    /// dies too early has the time to be started again before the instance has left.
    async fn delete(&self, guard: &mut Child) {
        let looked = async {
            while self.sweeps() == 0 {
                assert!(guard.try_wait().unwrap().is_none(), "nothing was there to die at");
                tokio::time::sleep(GLANCE).await;
            }
        };
        timeout(LIMIT, looked).await.expect("the guard does not look");
        let instance = self.one.instance.parse().unwrap();
        self.cloud.sandbox().with(|world, now| {
            world.nova_delete(instance, now);
            world.freeze_conductor();
        });
    }

    /// Lets the guard work until its process ends, or its case is closed and a sweep has passed.
    async fn work(&self, guard: &mut Child) -> Worked {
        let mut closed = None;
        let ended = async {
            loop {
                if guard.try_wait().unwrap().is_some() {
                    return Worked::Ended;
                }
                let open = self.journal.open_cases().next().await.is_some();
                let (covered, back) = self.node();
                if open && covered {
                    self.cloud.sandbox().with(|world, _| world.revive_conductor());
                }
                self.pass_while_cleaning();
                match closed {
                    None if back && !open => closed = Some((self.sweeps(), self.writes().len())),
                    Some((swept, writes)) if self.sweeps() >= swept + SWEEPS => {
                        return Worked::Closed(writes);
                    }
                    _ => {}
                }
                tokio::time::sleep(GLANCE).await;
            }
        };
        timeout(LIMIT, ended)
            .await
            .expect("the guard does not come through")
    }

    fn pass_while_cleaning(&self) {
        if self.cloud.state(self.one.node) == State::Cleaning && self.passes.swap(false, Ordering::Relaxed) {
            self.cloud.sandbox().with(|world, now| world.nova_pass(now));
        }
    }

    /// Whether the node is kept from being offered by somebody else than its instance; whether it is back.
    fn node(&self) -> (bool, bool) {
        let instance: Uuid = self.one.instance.parse().unwrap();
        self.cloud.sandbox().with(|world, _| {
            let provider = world.provider(self.one.node).unwrap();
            let held = provider.holders.keys().any(|holder| *holder != instance);
            let reserved = provider
                .inventories
                .values()
                .any(|inventory| inventory.reserved > 0);
            let (holders, free) = (provider.holders.len(), world.is_offered(self.one.node));
            (held || reserved, free && holders == 0)
        })
    }

    fn sweeps(&self) -> usize {
        let log = self.cloud.sandbox().log();
        let lists = log.requests().filter(|line| line.path.contains("?resources="));
        lists.count()
    }

    fn writes(&self) -> Vec<String> {
        ours(&self.cloud.sandbox().log())
    }
}

/// The undisturbed run.
struct Story {
    beside: &'static Beside,
    what: String,
    points: Vec<String>,
    writes: Vec<String>,
    left: Vec<Left>,
}

impl Story {
    async fn of(beside: &'static Beside) -> Self {
        let what = format!("guard, {} beside {}", beside.strategy, beside.nova);
        assert_eq!(is_exposed_alone(beside), beside.exposes, "{what}: the control");
        let run = Run::of(beside).await;
        let mut guard = run.guard(beside.strategy, NOWHERE);
        run.delete(&mut guard).await;
        assert!(
            matches!(run.work(&mut guard).await, Worked::Closed(_)),
            "{what}: it ended"
        );
        send(&guard, Signal::TERM);
        let points = points(&finish_within(guard, LIMIT).await.assert_code(0).stderr);
        assert!(
            points.iter().any(|point| point.contains(beside.last)),
            "{what}: {points:#?}"
        );
        let (writes, left) = (run.writes(), record::all(&run.cloud));
        assert_eq!(after(&points, "request"), writes.len(), "{what}: {points:#?}");
        Self {
            beside,
            what,
            points,
            writes,
            left,
        }
    }

    /// Dies at these points, one guard after the other; the next one carries on.
    async fn dies(&self, at: &[String]) -> End {
        let run = Run::of(self.beside).await;
        let before = Before::of(&run.cloud, &run.one);
        for (nth, point) in at.iter().enumerate() {
            let mut guard = run.guard(self.beside.strategy, point);
            if nth == 0 {
                run.delete(&mut guard).await;
            }
            if matches!(run.work(&mut guard).await, Worked::Closed(_)) {
                send(&guard, Signal::TERM);
            }
            if !has_died(&finish_within(guard, LIMIT).await, point) {
                return End::Survived;
            }
        }
        let what = format!("{}, dies {}", self.what, at.join(", then "));
        let mut guard = run.guard(self.beside.strategy, NOWHERE);
        let Worked::Closed(writes) = run.work(&mut guard).await else {
            panic!(
                "{what}: it ended by itself: {:?}",
                finish_within(guard, LIMIT).await
            );
        };
        send(&guard, Signal::TERM);
        let ran = finish_within(guard, LIMIT).await;
        assert_eq!(ran.code, Some(0), "{what}: {}", ran.stderr);
        self.judge(&run, &before, &what, writes, at.len());
        End::Died(points(&ran.stderr))
    }

    fn judge(&self, run: &Run, before: &Before, what: &str, writes: usize, crashes: usize) {
        let log = run.cloud.sandbox().log();
        assert_eq!(before.exposed(Query::default(), &log), [], "{what}");
        assert_eq!(
            record::all(&run.cloud),
            self.left,
            "{what}: the end is another one"
        );
        assert_eq!(before.touched(&log), [], "{what}");
        let all = ours(&log);
        assert_eq!(all.len(), writes, "{what}: more after the end: {all:#?}");
        assert!(
            all.iter().all(|write| write.starts_with("placement")),
            "{what}: {all:#?}"
        );
        // One that died with the process is sent again; each of Nova's may refuse one of ours, or make one needed.
        let most = self.writes.len() + crashes + novas(&log);
        assert!(
            all.len() <= most,
            "{what}: {all:#?} instead of {:#?}",
            self.writes
        );
    }
}

/// Whether this Nova alone exposes the node that it deletes a server from.
fn is_exposed_alone(beside: &Beside) -> bool {
    let start = real_clock()();
    let mut world = (beside.cloud)().world(start);
    let (node, instance) = world.deployed().remove(0);
    world.nova_delete(instance, start);
    world.advance(start + Duration::from_secs(60));
    !judge::exposure(&world.log, node).is_none()
}

#[tokio::test(flavor = "multi_thread")]
async fn every_single_point_of_the_guard_is_recovered_from() {
    let lanes = &lanes();
    let all = ALL.iter().map(|beside| async {
        let story = Story::of(beside).await;
        let points = at_each(lanes, &story.points, async |point| story.dies(&[point]).await).await;
        println!("{}: single points: {points}", story.what);
        points
    });
    assert_recovered(join_all(all).await);
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes long: `tests/measure crash` runs it"]
async fn every_pair_of_points_of_the_guard_is_recovered_from() {
    let lanes = &lanes();
    let all = ALL.iter().map(|beside| async {
        let story = Story::of(beside).await;
        let pairs = at_each_pair(lanes, &story.points, async |both: Vec<String>| {
            story.dies(&both).await
        })
        .await;
        assert!(pairs.pairs > story.points.len(), "{}: only {pairs}", story.what);
        println!("{}: pairs: {pairs}", story.what);
        pairs
    });
    assert_recovered(join_all(all).await);
}
