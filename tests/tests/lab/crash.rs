//! The process dies in the middle, at many points; another one takes up its journal.

use std::path::Path;
use std::sync::{Arc, Mutex};

use http::StatusCode;
use tokio::task::AbortHandle;
use unprovision::ProvisionState;
use unprovision::core::{Action, Case, Entry, Event, Outcome};
use unprovision::journal::SqliteJournal;
use unprovision::orchestrator::Observer;
use unprovision_testkit::lab::order::Promise;
use unprovision_testkit::lab::{Deployed, Setup};
use unprovision_testkit::proxy::{Call, Interfere};

use crate::common::{Scene, limits, outcome, resume, secs, strategies, tear_down};

/// When the process dies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Point {
    HoldIntended,
    HoldAnswerLost,
    TearDownIntended,
    TearDownAnswerLost,
    Cleaning,
    Available,
    Released,
}

const POINTS: [Point; 7] = [
    Point::HoldIntended,
    Point::HoldAnswerLost,
    Point::TearDownIntended,
    Point::TearDownAnswerLost,
    Point::Cleaning,
    Point::Available,
    Point::Released,
];

/// Where nothing is written before the tear-down, nobody can die at it.
fn is_of_the_hold(point: Point) -> bool {
    matches!(point, Point::HoldIntended | Point::HoldAnswerLost)
}

/// Each node's process dies at another point. All share a journal; the one that takes it up returns all nodes, tears
/// none of them down twice, and none is ever exposed.
#[tokio::test]
async fn a_crash_anywhere_is_taken_up() {
    let plan = strategies()
        .flat_map(|strategy| POINTS.map(|point| (strategy, point)))
        .filter(|(strategy, point)| !(Promise::of(strategy).instance && is_of_the_hold(*point)))
        .collect::<Vec<_>>();
    let scene = Scene::new(
        "crash",
        plan.len(),
        &["--step-seconds", "4", "--knob", "lab_tear_down_seconds=1"],
    )
    .await;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("journal.sqlite");
    let runs = scene
        .nodes
        .iter()
        .zip(&plan)
        .map(|(node, (strategy, point))| die(&scene, &file, node, strategy, *point));
    futures::future::join_all(runs).await;

    let orchestrator = scene.orchestrator(setup(&file, None).await).await;
    assert_eq!(
        orchestrator.open_cases().await.unwrap().len(),
        plan.len(),
        "all have died before their end"
    );
    for report in resume(&orchestrator, limits(secs(150))).await {
        assert_eq!(outcome(&report), Outcome::Returned, "{report:?}");
    }
    assert!(orchestrator.open_cases().await.unwrap().is_empty());
    for (node, (strategy, point)) in scene.nodes.iter().zip(&plan) {
        scene.assert_clean(node, &format!("{strategy}, {point:?}")).await;
        assert_eq!(
            scene.count(node, "deleted").0,
            1,
            "{strategy}, {point:?}: one accepted tear-down"
        );
    }
    scene.assert_unexposed().await;
}

async fn setup(file: &Path, observer: Option<Arc<Death>>) -> Setup {
    let journal = Arc::new(SqliteJournal::open(file).await.unwrap());
    let setup = Setup {
        journal,
        ..Setup::default()
    };
    match observer {
        Some(observer) => Setup { observer, ..setup },
        None => setup,
    }
}

/// A process that tears the node down, and dies at the point.
async fn die(scene: &Scene, file: &Path, node: &Deployed, strategy: &'static str, point: Point) {
    let death = Arc::new(Death {
        point,
        node: node.clone(),
        process: Mutex::default(),
    });
    scene.proxies.recorder.interfere(Arc::clone(&death) as _);
    let orchestrator = scene
        .orchestrator(setup(file, Some(Arc::clone(&death))).await)
        .await;
    let requests = [scene.request(node, strategy)];
    let process = tokio::spawn(async move { tear_down(&orchestrator, &requests).await });
    *death.process.lock().unwrap() = Some(process.abort_handle());
    let ended = process.await;
    assert!(
        ended.is_err_and(|error| error.is_cancelled()),
        "{strategy}, {point:?}: it lived on"
    );
}

/// Aborts the process at the point: at its next wait nothing more of it happens.
#[derive(Debug)]
struct Death {
    point: Point,
    node: Deployed,
    process: Mutex<Option<AbortHandle>>,
}

impl Death {
    fn strike(&self) {
        if let Some(process) = self.process.lock().unwrap().as_ref() {
            process.abort();
        }
    }
}

impl Observer for Death {
    fn entry(&self, case: &Case, entry: &Entry) {
        let held = case.may_hold();
        let seen = case.seen.as_ref().map(|(state, _)| state);
        let now = match &entry.event {
            Event::Intended {
                write: Action::HandOver { .. } | Action::SetReserved { .. } | Action::AddNodeTrait { .. },
            } if !held => Some(Point::HoldIntended),
            Event::Intended {
                write: Action::Unprovision { .. },
            } => Some(Point::TearDownIntended),
            Event::Applied if seen == Some(&ProvisionState::Available) => Some(Point::Released),
            Event::Saw {
                provision_state: ProvisionState::Cleaning,
                ..
            } => Some(Point::Cleaning),
            Event::Saw {
                provision_state: ProvisionState::Available,
                ..
            } => Some(Point::Available),
            _ => None,
        };
        if now == Some(self.point) {
            self.strike();
        }
    }
}

#[async_trait::async_trait]
impl Interfere for Death {
    async fn after(&self, call: &Call, status: StatusCode) {
        let node = self.node.node.to_string();
        let writes = !call.method.is_safe() && status.is_success();
        let hold = call.path == "/allocations" && call.body.to_string().contains(&node)
            || ["inventories", "traits"]
                .map(|part| format!("/resource_providers/{node}/{part}"))
                .contains(&call.path);
        let tear_down = call.path == format!("/v1/nodes/{node}/states/provision");
        match self.point {
            Point::HoldAnswerLost if writes && hold => self.strike(),
            Point::TearDownAnswerLost if writes && tear_down => self.strike(),
            _ => {}
        }
    }
}
