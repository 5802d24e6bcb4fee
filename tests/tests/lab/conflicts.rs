//! C10 a second writer, C11 reserved and in use, C13 consumers that vanish.
//!
//! Not shown here: a consumer without allocations (no API leaves one), and other versions than the lab's.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use http::Method;
use serde_json::{Value, json};
use unprovision::core::Outcome;
use unprovision_session::Service;
use unprovision_testkit::lab::{Api, Deployed, order};
use unprovision_testkit::proxy::{Call, Interfere};
use uuid::Uuid;

use crate::common::{Scene, before, outcome, request, tear_down};

/// How often the other writer is faster than we are, for each kind of write.
const TIMES: u64 = 4;

/// Somebody else writes the provider and the consumers between our look and our write, again and again.
#[tokio::test]
async fn c10_a_second_writer_is_read_again() {
    let scene = Scene::per_strategy("writer", &["--step-seconds", "2"]).await;
    scene
        .api
        .call(
            Service::Placement,
            Method::PUT,
            "/resource_classes/CUSTOM_OTHER",
            &Value::Null,
        )
        .await
        .unwrap();
    let writer = Arc::new(Writer {
        api: scene.api.clone(),
        counts: Mutex::default(),
    });
    scene.proxies.recorder.interfere(Arc::clone(&writer) as _);
    let reports = scene.tear_down().await;
    scene.assert_returned(&reports).await;
    for (node, report) in scene.nodes.iter().zip(&reports) {
        let other = scene.placement(node.node).await.1["CUSTOM_OTHER"]["total"].clone();
        let writes = |what: &str| writer.counts.lock().unwrap().get(what).copied().unwrap_or(0);
        match report.strategy.as_str() {
            "reserve-on-delete" => assert_eq!(other, 2 * TIMES, "the other class is as it was"),
            _ => assert!(writes(&format!("consumer {}", node.instance)) >= TIMES),
        }
    }
    scene.assert_unexposed().await;
}

/// Writes what we are about to write, first.
#[derive(Debug)]
struct Writer {
    api: Api,
    counts: Mutex<BTreeMap<String, u64>>,
}

impl Writer {
    /// Whether this is to be done once more.
    fn once_more(&self, what: String, times: u64) -> Option<u64> {
        let mut counts = self.counts.lock().unwrap();
        let count = counts.entry(what).or_default();
        *count += 1;
        (*count <= times).then_some(*count)
    }

    /// Twice as often as a consumer: the provider is written at the beginning and at the end.
    async fn provider(&self, provider: Uuid) {
        let mut now = self.api.inventories(provider).await.unwrap();
        let reserved = now["inventories"]
            .as_object()
            .unwrap()
            .iter()
            .any(|(_, one)| one["reserved"] == 1);
        let Some(_) = self.once_more(format!("provider {provider}, reserved {reserved}"), TIMES) else {
            return;
        };
        let total = now["inventories"]["CUSTOM_OTHER"]["total"].as_u64().unwrap_or(0) + 1;
        now["inventories"]["CUSTOM_OTHER"] = json!({ "total": total });
        self.api.set_inventories(provider, &now).await.unwrap();
    }

    async fn consumer(&self, consumer: &str) {
        let path = format!("/allocations/{consumer}");
        let now = self
            .api
            .call(Service::Placement, Method::GET, &path, &Value::Null)
            .await
            .unwrap();
        if now["allocations"] == json!({}) || self.once_more(format!("consumer {consumer}"), TIMES).is_none()
        {
            return;
        }
        self.api
            .call(Service::Placement, Method::PUT, &path, &now)
            .await
            .unwrap();
    }
}

#[async_trait::async_trait]
impl Interfere for Writer {
    async fn before(&self, call: &Call) {
        if call.service != Service::Placement || call.method.is_safe() {
            return;
        }
        if let Some(provider) = reserved_provider(call) {
            self.provider(provider).await;
        }
        let one = call.path.strip_prefix("/allocations/").map(str::to_owned);
        let several = call
            .body
            .as_object()
            .filter(|_| call.path == "/allocations")
            .into_iter()
            .flatten();
        for consumer in one
            .into_iter()
            .chain(several.map(|(consumer, _)| consumer.clone()))
        {
            self.consumer(&consumer).await;
        }
    }
}

/// The provider whose inventories a request writes.
fn reserved_provider(call: &Call) -> Option<Uuid> {
    let path = call
        .path
        .strip_prefix("/resource_providers/")?
        .strip_suffix("/inventories")?;
    path.parse().ok().filter(|_| call.method == Method::PUT)
}

/// Somebody reserves the node between our look and our write: there is nothing left to reserve, nor to take back.
#[tokio::test]
async fn c10_what_somebody_else_did_already_is_not_done_again() {
    let scene = Scene::new("reserved", 1, &["--step-seconds", "2"]).await;
    let node = &scene.nodes[0];
    scene.proxies.recorder.interfere(Arc::new(Reserve {
        api: scene.api.clone(),
        node: node.clone(),
    }));
    let orchestrator = scene.orchestrator(Default::default()).await;
    let reports = tear_down(&orchestrator, &[request(node, "reserve-on-delete")])
        .await
        .unwrap();
    assert_eq!(outcome(&reports[0]), Outcome::Returned, "{reports:?}");
    assert_eq!(
        scene.requests_to(&Method::PUT, "/inventories"),
        (0, 1),
        "one refused, and no other"
    );
    scene
        .assert_held(node, "the reservation is not ours to lift")
        .await;
    let samples = scene.samples().await;
    assert!(samples.count() > 5);
}

#[derive(Debug)]
struct Reserve {
    api: Api,
    node: Deployed,
}

#[async_trait::async_trait]
impl Interfere for Reserve {
    async fn before(&self, call: &Call) {
        if reserved_provider(call).is_some() {
            reserve(&self.api, &self.node).await;
        }
    }
}

async fn reserve(api: &Api, node: &Deployed) {
    let mut now = api.inventories(node.node).await.unwrap();
    now["inventories"][node.class().unwrap().as_str()]["reserved"] = 1.into();
    api.set_inventories(node.node, &now).await.unwrap();
}

/// Reserved and in use, as current Nova has it. Placement 16 takes the hand-over, since the use does not grow; and
/// the reservation of a provider of Nova's is lifted at the end.
#[tokio::test]
async fn c11_a_reserved_node_is_handed_over_in_one_request() {
    let scene = Scene::new("novas", 1, &["--step-seconds", "2"]).await;
    let node = &scene.nodes[0];
    reserve(&scene.api, node).await;
    let path = format!("/resource_providers/{}/traits", node.node);
    let mut traits = scene
        .api
        .call(Service::Placement, Method::GET, &path, &Value::Null)
        .await
        .unwrap();
    traits["traits"] = json!(["COMPUTE_NODE"]);
    scene
        .api
        .call(Service::Placement, Method::PUT, &path, &traits)
        .await
        .unwrap();

    let orchestrator = scene.orchestrator(Default::default()).await;
    let mut asked = request(node, "hand-over");
    asked.nova_record_remains = false;
    let refused = orchestrator.check(&asked).await.unwrap_err().to_string();
    assert!(refused.contains("--nova-record-remains"), "{refused}");
    assert_eq!(scene.writes(), 0);

    let reports = tear_down(&orchestrator, &[request(node, "hand-over")])
        .await
        .unwrap();
    scene.assert_returned(&reports).await;
    assert_eq!(scene.requests_to(&Method::POST, "/allocations"), (1, 1));
    let now = scene
        .api
        .call(Service::Placement, Method::GET, &path, &Value::Null)
        .await
        .unwrap();
    assert_eq!(now["traits"], traits["traits"], "traits are as they were");
    let faults = order::faults(
        &scene.proxies.recorder.exchanges(),
        &order::Before {
            reserved: 1,
            ..before(node)
        },
    );
    assert!(faults.is_empty(), "{faults:#?}");
    let node = node.node;
    assert_eq!(scene.samples().await.exposed(node), 0);
}

/// The instance's allocation goes while we are about to take it: the node is claimed before it is torn down.
#[tokio::test]
async fn c13_an_allocation_that_vanishes_is_claimed() {
    let scene = Scene::per_strategy("vanishes", &["--step-seconds", "2"]).await;
    let vanish = Vanish {
        api: scene.api.clone(),
        left: Mutex::new(scene.nodes.iter().map(|node| node.instance).collect()),
    };
    scene.proxies.recorder.interfere(Arc::new(vanish));
    let reports = scene.tear_down().await;
    let log = scene.proxies.recorder.exchanges();
    for (report, node) in reports.iter().zip(&scene.nodes) {
        assert_eq!(outcome(report), Outcome::Returned, "{report:?}");
        scene.assert_clean(node, &report.strategy).await;
        // The sampler may see the node offered before we hold it: that is the other one's doing.
        let faults = order::faults_of(&log, &before(node), scene.promise(node));
        assert!(faults.is_empty(), "{}: {faults:#?}", report.strategy);
    }
    assert!(scene.samples().await.count() > 5);
}

/// Drops an instance's allocation just before a write of ours to it arrives.
#[derive(Debug)]
struct Vanish {
    api: Api,
    left: Mutex<Vec<Uuid>>,
}

#[async_trait::async_trait]
impl Interfere for Vanish {
    async fn before(&self, call: &Call) {
        if call.method.is_safe() || !call.path.starts_with("/allocations") {
            return;
        }
        let touched = |instance: &mut Uuid| {
            let id = instance.to_string();
            call.path.ends_with(&id) || !call.body[&id].is_null()
        };
        let instances = self
            .left
            .lock()
            .unwrap()
            .extract_if(.., touched)
            .collect::<Vec<_>>();
        for instance in instances {
            self.api.drop_consumer(instance).await.unwrap();
        }
    }
}
