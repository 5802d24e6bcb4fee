//! C02 a node that is locked while `active`.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use http::Method;
use serde_json::json;
use unprovision_session::Service;
use unprovision_testkit::lab::Api;
use unprovision_testkit::proxy::{Call, Interfere};

use crate::common::Scene;

/// Ironic answers 409 after some seconds; then the lock is waited out, and exactly one tear-down is accepted.
#[tokio::test]
async fn c02_a_lock_is_waited_out() {
    let flags = ["--step-seconds", "2", "--knob", "lab_reboot_seconds=9"];
    let scene = Scene::per_strategy("locked", &flags).await;
    scene.proxies.recorder.interfere(Arc::new(Reboot {
        api: scene.api.clone(),
        done: Mutex::default(),
    }));
    let reports = scene.tear_down().await;
    scene.assert_returned(&reports).await;
    for node in &scene.nodes {
        let (accepted, all) = scene.count(node, "deleted");
        assert!(
            accepted == 1 && all > 1,
            "{}: {accepted} of {all} accepted",
            node.name
        );
    }
    let patches = scene.requests_to(&Method::PATCH, "").1;
    assert_eq!(patches, 0, "the tear-down itself does all that is to be done");
    scene.assert_unexposed().await;
}

/// Reboots a node just before its first tear-down arrives: from then on a conductor holds its lock.
#[derive(Debug)]
struct Reboot {
    api: Api,
    done: Mutex<BTreeSet<String>>,
}

#[async_trait::async_trait]
impl Interfere for Reboot {
    async fn before(&self, call: &Call) {
        let Some(node) = call.path.strip_suffix("/states/provision") else {
            return;
        };
        if self.done.lock().unwrap().insert(node.to_owned()) {
            let path = format!("{node}/states/power");
            let body = json!({ "target": "rebooting" });
            self.api
                .call(Service::Ironic, Method::PUT, &path, &body)
                .await
                .unwrap();
        }
    }
}
