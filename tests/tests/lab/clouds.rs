//! One credential for both services, and a token that becomes worthless on the way.

use std::sync::{Arc, Mutex};

use http::{HeaderValue, StatusCode};
use unprovision_testkit::lab::{Api, Setup};
use unprovision_testkit::proxy::{Call, Interfere};

use crate::common::{Scene, tear_down};

/// The role `service` may do everything in both services, so one login is enough.
#[tokio::test]
async fn one_credential_for_both_services() {
    let scene = Scene::per_strategy("service", &["--step-seconds", "2"]).await;
    let setup = Setup { ironic: "lab-service", placement: "lab-service", ..Setup::default() };
    let reports = tear_down(&scene.orchestrator(setup).await, &scene.requests()).await.unwrap();
    scene.assert_returned(&reports).await;
    let log = scene.proxies.recorder.exchanges();
    let mut tokens = log.iter().filter_map(|exchange| exchange.call.token.clone()).collect::<Vec<_>>();
    tokens.dedup();
    assert_eq!(tokens.len(), 1, "one login");
    scene.assert_unexposed().await;
}

/// Keystone takes both tokens back just before the first tear-down: they are replaced, and the run goes on.
#[tokio::test]
async fn a_revoked_token_is_replaced_in_the_middle() {
    let scene = Scene::per_strategy("revoked", &["--step-seconds", "2"]).await;
    let revoke = Arc::new(Revoke { api: scene.api.clone(), tokens: Mutex::default() });
    scene.proxies.recorder.interfere(revoke);
    let reports = scene.tear_down().await;
    scene.assert_returned(&reports).await;
    let log = scene.proxies.recorder.exchanges();
    let refused = log.iter().filter_map(|exchange| exchange.answer.as_ref()).filter(|a| a.status == StatusCode::UNAUTHORIZED);
    assert!(refused.count() > 0, "a service has refused a token");
    assert!(scene.nodes.iter().all(|node| scene.count(node, "deleted").0 == 1));
    scene.assert_unexposed().await;
}

/// Revokes every token that it has seen, once, when the first tear-down arrives.
#[derive(Debug)]
struct Revoke {
    api: Api,
    /// `None` once they are revoked.
    tokens: Mutex<Tokens>,
}

#[derive(Debug, Default)]
struct Tokens {
    seen: Vec<HeaderValue>,
    done: bool,
}

#[async_trait::async_trait]
impl Interfere for Revoke {
    async fn before(&self, call: &Call) {
        let revoked = {
            let mut tokens = self.tokens.lock().unwrap();
            let new = call.token.clone().filter(|token| !tokens.seen.contains(token));
            tokens.seen.extend(new);
            if tokens.done || call.body["target"] != "deleted" {
                return;
            }
            tokens.done = true;
            std::mem::take(&mut tokens.seen)
        };
        for token in &revoked {
            self.api.revoke(token).await.unwrap();
        }
    }
}
