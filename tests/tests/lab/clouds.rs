//! One credential for both services, and a token that becomes worthless on the way.

use std::sync::Arc;

use http::{HeaderValue, StatusCode};
use tokio::sync::Mutex;
use tokio_util::sync::CancellationToken;
use unprovision::core::Outcome;
use unprovision::journal::{Journal, MemoryJournal};
use unprovision::orchestrator::{Progress, Until};
use unprovision_session::Service;
use unprovision_testkit::lab::{Api, Setup};
use unprovision_testkit::proxy::{Call, Exchange, Interfere};

use crate::common::{Scene, limits, outcome, resume, secs, tear_down};

/// The role `service` may do everything in both services, so one login is enough.
#[tokio::test]
async fn one_credential_for_both_services() {
    let scene = Scene::per_strategy("service", &["--step-seconds", "2"]).await;
    let setup = Setup {
        ironic: "lab-service",
        placement: "lab-service",
        ..Setup::default()
    };
    let reports = tear_down(&scene.orchestrator(setup).await, &scene.requests())
        .await
        .unwrap();
    scene.assert_returned(&reports).await;
    let mut tokens = tokens(&scene);
    tokens.dedup();
    assert_eq!(tokens.len(), 1, "one login");
    scene.assert_unexposed().await;
}

/// The process that waits for a torn-down node has tokens that Keystone takes back: they are replaced, and it goes on.
///
/// The services keep what they know of a token for minutes, so each token is revoked before it is first seen.
#[tokio::test]
async fn a_revoked_token_is_replaced_in_the_middle() {
    let scene = Scene::per_strategy("revoked", &["--step-seconds", "6"]).await;
    let journal: Arc<dyn Journal> = Arc::new(MemoryJournal::new());
    let process = async || {
        scene
            .orchestrator(Setup {
                journal: Arc::clone(&journal),
                ..Setup::default()
            })
            .await
    };
    let first = process().await;
    let mut cases = Vec::new();
    for request in scene.requests() {
        let entry = first.check(&request).await.unwrap();
        cases.push(first.open(&request, entry).await.unwrap());
    }
    let stop = CancellationToken::new();
    for report in first.run(&cases, Until::Accepted, &stop).await {
        assert_eq!(report.unwrap().outcome, Progress::Accepted);
    }
    let both = [Service::Ironic, Service::Placement];
    let revoke = Revoke {
        api: scene.api.clone(),
        known: tokens(&scene),
        left: Mutex::new(both.to_vec()),
    };
    scene.proxies.recorder.interfere(Arc::new(revoke));
    let second = process().await;
    for report in resume(&second, limits(secs(150))).await {
        assert_eq!(outcome(&report), Outcome::Returned, "{report:?}");
    }
    let log = scene.proxies.recorder.exchanges();
    for service in both {
        let refused = |exchange: &&Exchange| {
            let status = exchange.answer.as_ref().map(|answer| answer.status);
            exchange.call.service == service && status == Some(StatusCode::UNAUTHORIZED)
        };
        assert!(
            log.iter().filter(refused).count() > 0,
            "{service} has refused a token"
        );
    }
    for node in &scene.nodes {
        scene.assert_clean(node, "revoked").await;
        assert_eq!(scene.count(node, "deleted"), (1, 1));
    }
    scene.assert_unexposed().await;
}

fn tokens(scene: &Scene) -> Vec<HeaderValue> {
    scene
        .proxies
        .recorder
        .exchanges()
        .into_iter()
        .filter_map(|exchange| exchange.call.token)
        .collect()
}

/// Revokes the first new token of each service.
#[derive(Debug)]
struct Revoke {
    api: Api,
    known: Vec<HeaderValue>,
    left: Mutex<Vec<Service>>,
}

#[async_trait::async_trait]
impl Interfere for Revoke {
    async fn before(&self, call: &Call) {
        let Some(token) = call.token.as_ref().filter(|token| !self.known.contains(token)) else {
            return;
        };
        // Others with the same token wait here until it is worthless.
        let mut left = self.left.lock().await;
        if left.contains(&call.service) {
            self.api.revoke(token).await.unwrap();
            left.retain(|service| *service != call.service);
        }
    }
}
