//! Everything that can go wrong on the way to Ironic and Placement, while deletes are under way: in the end all nodes are
//! back, none was ever exposed or torn down twice, and what was written is bounded.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use futures::future::join_all;
use http::header::{CONTENT_TYPE, RETRY_AFTER};
use http::{Response, StatusCode};
use tokio::time::Instant;
use unprovision::orchestrator::CaseReport;
use unprovision_session::Service;
use unprovision_testkit::lab::Setup;
use unprovision_testkit::proxy::{Call, Interfere, Mishap};

use crate::common::{Scene, open, run, secs};

const SHAPE: [&str; 4] = ["--step-seconds", "6", "--knob", "lab_tear_down_seconds=2"];
/// So long things go wrong: through the holds, the tear-downs and most of the cleaning.
const TROUBLE: Duration = Duration::from_secs(15);
/// Without trouble a strategy writes at most seven times for a node; each may have to be sent again a few times.
const WRITES: usize = 40;

/// Goes wrong with a share of all requests, for some time.
#[derive(Debug)]
struct Trouble {
    what: fn(&Call) -> Option<Mishap>,
    /// One request of so many.
    one_in: usize,
    until: Instant,
    considered: AtomicUsize,
}

impl Interfere for Trouble {
    fn mishap(&self, call: &Call) -> Option<Mishap> {
        if Instant::now() > self.until {
            return None;
        }
        let mishap = (self.what)(call)?;
        let nth = self.considered.fetch_add(1, Ordering::Relaxed);
        nth.is_multiple_of(self.one_in).then_some(mishap)
    }
}

fn answer(status: u16, kind: &'static str, body: &'static str) -> Response<Bytes> {
    let mut response = Response::new(Bytes::from_static(body.as_bytes()));
    *response.status_mut() = StatusCode::from_u16(status).unwrap();
    response.headers_mut().insert(CONTENT_TYPE, kind.parse().unwrap());
    response
}

fn busy(status: u16) -> Mishap {
    let mut response = answer(status, "text/plain", "not now");
    response.headers_mut().insert(RETRY_AFTER, "1".parse().unwrap());
    Mishap::Answered(response)
}

/// A gateway's own page.
const PAGE: &str = "<html><head><title>502 Bad Gateway</title></head><body>nginx</body></html>";
const FAULT: &str =
    r#"{"error_message": "{\"faultstring\": \"something broke\", \"faultcode\": \"Server\"}"}"#;

/// A node for each strategy is torn down while this goes wrong.
async fn survived(name: &str, one_in: usize, what: fn(&Call) -> Option<Mishap>) {
    let scene = Scene::per_strategy(name, &SHAPE).await;
    let orchestrator = scene.orchestrator(Setup::default()).await;
    let cases = open(&orchestrator, &scene.requests()).await.unwrap();
    let trouble = Arc::new(Trouble {
        what,
        one_in,
        until: Instant::now() + TROUBLE,
        considered: AtomicUsize::new(0),
    });
    scene.proxies.recorder.interfere(Arc::clone(&trouble) as _);
    let reports = run(&orchestrator, &cases).await.unwrap();
    let met = trouble.considered.load(Ordering::Relaxed).div_ceil(one_in);
    println!("{name}: {met} requests met it");
    assert!(met > 3, "{name}: only {met} requests met it");
    end(name, scene, &reports).await;
}

async fn end(name: &str, scene: Scene, reports: &[CaseReport]) {
    scene.assert_returned(reports).await;
    for node in &scene.nodes {
        assert_eq!(scene.count(node, "deleted").0, 1, "{name}: torn down once");
    }
    let writes = scene.writes();
    println!("{name}: {writes} writes for {} nodes", scene.nodes.len());
    assert!(writes <= WRITES * scene.nodes.len(), "{name}: {writes} writes");
    scene.assert_unexposed().await;
}

#[tokio::test]
async fn connections_that_break_before_or_after_the_request_was_applied() {
    tokio::join!(
        survived("lost-before", 2, |_| Some(Mishap::LostBefore)),
        survived("lost-after", 2, |_| Some(Mishap::LostAfter)),
        survived("truncated", 2, |_| Some(Mishap::Truncated)),
    );
}

#[tokio::test]
async fn answers_of_services_that_are_broken_or_of_proxies_before_them() {
    tokio::join!(
        survived("error-500", 2, |_| {
            Some(Mishap::Answered(answer(500, "application/json", FAULT)))
        }),
        survived("page-502", 2, |_| Some(Mishap::Answered(answer(
            502,
            "text/html",
            PAGE
        )))),
        survived("busy-503", 2, |_| Some(busy(503))),
        survived("late-504", 2, |_| Some(Mishap::Answered(answer(
            504,
            "text/html",
            PAGE
        )))),
    );
}

#[tokio::test]
async fn services_that_are_slow_or_too_busy_or_answer_with_what_was() {
    tokio::join!(
        survived("busy-429", 2, |_| Some(busy(429))),
        survived("slow", 3, |_| Some(Mishap::Slow(secs(3)))),
        survived("stale", 2, |_| Some(Mishap::Stale)),
    );
}

/// Nobody listens for some seconds, at one service or the other, or at both.
#[tokio::test]
async fn services_that_refuse_connections() {
    let cases = [
        ("ironic-away", vec![Service::Ironic]),
        ("placement-away", vec![Service::Placement]),
        ("both-away", vec![Service::Ironic, Service::Placement]),
    ];
    join_all(cases.map(async |(name, away)| {
        let scene = Scene::per_strategy(name, &SHAPE).await;
        let orchestrator = scene.orchestrator(Setup::default()).await;
        let cases = open(&orchestrator, &scene.requests()).await.unwrap();
        let refuse = async {
            for _ in 0..2 {
                tokio::time::sleep(secs(2)).await;
                let each = away
                    .iter()
                    .map(|service| scene.proxies.to(*service).refuse_for(secs(4)));
                for refused in join_all(each).await {
                    refused.unwrap();
                }
            }
        };
        let (reports, ()) = tokio::join!(run(&orchestrator, &cases), refuse);
        end(name, scene, &reports.unwrap()).await;
    }))
    .await;
}
