//! A guard on the sandbox that is served, and how it is asked.

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use jiff::SignedDuration;
use reqwest::{Client, Method, Response};
use serde_json::Value;
use tokio::net::TcpListener;
use tokio_util::sync::{CancellationToken, DropGuard};
use unprovision::audit::Rules;
use unprovision::cloud::{Asked, Clock};
use unprovision::guard::{Adapters, Guard, Settings, Unobserved};
use unprovision::journal::MemoryJournal;
use unprovision::scope::Scopes;
use unprovision_service::{Access, Service, router, serve};
use unprovision_testkit::rig::{self, SandboxClock};
use unprovision_testkit::sandbox::Sandbox;
use unprovision_testkit::sandbox::config::NovaRule;
use uuid::Uuid;

/// How long anything may take here.
pub(crate) const LIMIT: Duration = Duration::from_secs(60);

/// A guard that is served.
pub(crate) struct Served {
    pub(crate) sandbox: Sandbox,
    pub(crate) address: String,
    pub(crate) client: Client,
    /// Stops both.
    _stop: DropGuard,
}

impl Served {
    pub(crate) async fn start(access: Access, look: Duration) -> Self {
        let sandbox = Sandbox::builder()
            .nodes(2)
            .deployed(2)
            .teardown(Duration::from_millis(300))
            .cleaning(Duration::from_millis(700))
            .nova(NovaRule::Old)
            .build();
        let clock: Arc<dyn Clock> = Arc::new(SandboxClock(sandbox.clone()));
        let cloud = Arc::new(rig::cloud(&sandbox));
        let journal = Arc::new(MemoryJournal::new());
        let adapters = Adapters {
            cloud: Arc::clone(&cloud) as _,
            fleet: Arc::clone(&cloud) as _,
            journal: Arc::clone(&journal) as _,
            clock: Arc::clone(&clock),
            observer: Arc::new(Unobserved),
            identity: None,
            events: None,
            servers: None,
        };
        let settings = Settings {
            look,
            ..Settings::default()
        };
        let guard = Arc::new(Guard::new(adapters, settings));
        let stop = CancellationToken::new();
        let router = router(Service {
            guard: Arc::clone(&guard),
            journal,
            cloud,
            audit: asked(),
            clock,
            look,
            access,
            version: "1.2.3",
            stop: stop.clone(),
        });
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let (serving, guarding) = (stop.clone(), stop.clone());
        tokio::spawn(async move { serve(listener, router, &serving, Duration::from_secs(1)).await });
        tokio::spawn(async move { guard.run(&guarding).await });
        Self {
            sandbox,
            address,
            client: Client::new(),
            _stop: stop.drop_guard(),
        }
    }

    pub(crate) async fn ask(&self, method: Method, path: &str, body: Option<Value>) -> Response {
        let mut request = self.client.request(method, format!("{}{path}", self.address));
        if let Some(body) = body {
            request = request
                .header("Content-Type", "application/json")
                .body(body.to_string());
        }
        request.send().await.unwrap()
    }

    pub(crate) async fn get(&self, path: &str) -> Value {
        let answer = self.ask(Method::GET, path, None).await;
        assert_eq!(answer.status(), 200, "{path}");
        json_of(answer).await
    }

    pub(crate) async fn is_ready(&self) {
        self.until("ready", async || {
            self.ask(Method::GET, "/readyz", None).await.status() == 204
        })
        .await;
    }

    pub(crate) async fn until(&self, what: &str, holds: impl AsyncFn() -> bool) {
        let reached = async {
            while !holds().await {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        let reached = tokio::time::timeout(LIMIT, reached).await;
        reached.unwrap_or_else(|_| panic!("it never came to: {what}"));
    }

    pub(crate) fn instances(&self) -> Vec<Uuid> {
        self.sandbox.with(|world, _| {
            let nodes = world.nodes().into_iter();
            nodes.filter_map(|node| node.instance_uuid).collect()
        })
    }

    pub(crate) fn nova_deletes(&self, instance: Uuid) {
        self.sandbox.with(|world, now| world.nova_delete(instance, now));
    }
}

fn asked() -> Asked {
    Asked {
        rules: Rules {
            now: jiff::Timestamp::UNIX_EPOCH,
            grace: SignedDuration::ZERO,
            open: [].into(),
            deep: false,
            tag: None,
        },
        concurrency: NonZeroUsize::MIN,
        scopes: Scopes::default(),
        only: None,
    }
}

pub(crate) async fn json_of(answer: Response) -> Value {
    serde_json::from_str(&answer.text().await.unwrap()).unwrap()
}

/// An error, which is a problem document that says the same status.
pub(crate) async fn problem(answer: Response, status: u16) -> Value {
    assert_eq!(answer.status(), status);
    let kind = answer.headers()["content-type"].to_str().unwrap().to_owned();
    assert_eq!(kind, "application/problem+json");
    let problem = json_of(answer).await;
    assert_eq!(problem["status"], status);
    for key in ["type", "title", "detail"] {
        assert!(
            problem[key].as_str().is_some_and(|text| !text.is_empty()),
            "{problem}"
        );
    }
    problem
}

/// Reads so many events: number, name, data.
pub(crate) async fn read(answer: Response, count: usize) -> Vec<(Option<u64>, String, Value)> {
    assert_eq!(answer.status(), 200);
    assert_eq!(answer.headers()["content-type"], "text/event-stream");
    let mut body = Box::pin(answer.bytes_stream());
    let (mut text, mut events) = (String::new(), Vec::new());
    let reading = async {
        while events.len() < count {
            let chunk = body.next().await.expect("the stream ended").unwrap();
            text.push_str(std::str::from_utf8(&chunk).unwrap());
            while let Some((event, rest)) = text.split_once("\n\n") {
                let field = |name: &str| {
                    let mut lines = event.lines();
                    lines.find_map(|line| Some(line.strip_prefix(name)?.trim().to_owned()))
                };
                if let (Some(name), Some(data)) = (field("event:"), field("data:")) {
                    let id = field("id:").map(|id| id.parse().unwrap());
                    events.push((id, name, serde_json::from_str(&data).unwrap()));
                }
                text = rest.to_owned();
            }
        }
    };
    tokio::time::timeout(LIMIT, reading)
        .await
        .expect("too few events");
    events
}
