//! On the sandbox: all single points, and all pairs of them.

use unprovision::strategy;
use unprovision_testkit::rig::protected_by;
use unprovision_testkit::sandbox::ironic::State;

use crate::support::{Cloud, Deployed, Ran, finish, quick};
use crate::{End, at_each_point, end, nothing_is_open};

/// Fewer points than an undisturbed run must have: each write has an intent and an outcome around it.
const AT_LEAST: u32 = 20;
/// A write whose outcome died with the process may be sent once more.
const SENT_AGAIN: usize = 1;

/// A node with an instance, and how a process that lives on treats it.
struct Story {
    strategy: &'static str,
    /// The writes of the undisturbed run.
    writes: Vec<String>,
}

impl Story {
    async fn of(strategy: &'static str) -> Self {
        let cloud = Cloud::start(quick(1)).await;
        let one = cloud.only();
        let ran = carry_on(&cloud, &one, strategy, None).await;
        assert_eq!(ran.assert_code(0).row()["outcome"], "returned");
        let writes = cloud.writes();
        Self { strategy, writes }
    }

    /// Dies at these points, one process after the other; the next one carries on to the end.
    async fn dies(&self, points: &[u32]) -> End {
        let cloud = Cloud::start(quick(1)).await;
        let one = cloud.only();
        let before = provider(&cloud, &one);
        let mut died = Vec::new();
        for point in points {
            match end(&carry_on(&cloud, &one, self.strategy, Some(*point)).await) {
                End::Died(at) => died.push(at),
                End::Survived => return End::Survived,
            }
        }
        let what = format!("{}, {}", self.strategy, died.join(", then "));
        let ran = carry_on(&cloud, &one, self.strategy, None).await;
        assert_eq!(ran.code, Some(0), "{what}: {}", ran.stderr);

        cloud.assert_returned_to(protected_by(self.strategy), one.node);
        assert_eq!(provider(&cloud, &one), before, "{what}: something is left");
        assert_eq!(cloud.tear_downs(one.node), 1, "{what}");
        let writes = cloud.writes();
        let most = self.writes.len() + SENT_AGAIN * points.len();
        assert!(
            writes.len() <= most,
            "{what}: {writes:#?} instead of {:#?}",
            self.writes
        );
        cloud.run(&["resume"]).await.assert_code(0);
        assert_eq!(cloud.writes().len(), writes.len(), "{what}: all was done already");
        End::Died(what)
    }
}

/// What an operator does after a crash: what was begun is carried on, what never was is asked for again.
async fn carry_on(cloud: &Cloud, one: &Deployed, strategy: &str, dies_at: Option<u32>) -> Ran {
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
    run(cloud, if never_begun { &delete } else { &resume }, dies_at).await
}

async fn run(cloud: &Cloud, args: &[&str], dies_at: Option<u32>) -> Ran {
    let mut command = cloud.command(args);
    if let Some(point) = dies_at {
        command.env("CRASH_AT", point.to_string());
    }
    finish(command.spawn().unwrap()).await
}

/// All that Placement has of the node, but the generation, which only ever grows.
fn provider(cloud: &Cloud, one: &Deployed) -> impl PartialEq + std::fmt::Debug {
    let provider = cloud
        .sandbox()
        .with(|world, _| world.provider(one.node).unwrap().clone());
    (provider.inventories, provider.traits, provider.aggregates)
}

#[tokio::test(flavor = "multi_thread")]
async fn every_single_point_is_recovered_from() {
    for strategy in strategy::ALL {
        let story = Story::of(strategy.name()).await;
        let points = at_each_point(async |point| story.dies(&[point]).await).await;
        assert!(points >= AT_LEAST, "{}: only {points} points", story.strategy);
        println!("{}: {points} points", story.strategy);
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes long: `tests/measure crash` runs it"]
async fn every_pair_of_points_is_recovered_from() {
    for strategy in strategy::ALL {
        let story = Story::of(strategy.name()).await;
        let (mut first, mut pairs) = (0, 0);
        loop {
            first += 1;
            let second = at_each_point(async |point| story.dies(&[first, point]).await).await;
            if second == 0 && story.dies(&[first]).await == End::Survived {
                break;
            }
            pairs += second;
        }
        assert!(pairs > AT_LEAST, "{}: only {pairs} pairs", story.strategy);
        println!("{}: {pairs} pairs of points", story.strategy);
    }
}
