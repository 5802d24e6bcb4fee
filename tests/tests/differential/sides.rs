//! The two that are asked: a served sandbox, and the lab.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::time::Duration;

use bytes::Bytes;
use http::{Method, Request};
use serde_json::{Value, json};
use unprovision_testkit::contract::{HttpTarget, Identity, Service, Target, log_in, version_header};
use unprovision_testkit::sandbox::config::{Auth, User};
use unprovision_testkit::sandbox::serve::{Served, real_clock, serve};
use unprovision_testkit::sandbox::{self, Sandbox};

use crate::shape::{differences, normal};

/// So many requests are told with one that was answered differently.
const STORY: usize = 8;

/// One request, for both.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    pub(crate) service: Service,
    pub(crate) version: &'static str,
    pub(crate) method: Method,
    pub(crate) path: String,
    pub(crate) body: Option<Value>,
}

impl Call {
    pub(crate) fn new(
        service: Service,
        version: &'static str,
        method: Method,
        path: impl Into<String>,
    ) -> Self {
        Self {
            service,
            version,
            method,
            path: path.into(),
            body: None,
        }
    }

    pub(crate) fn with(mut self, body: Value) -> Self {
        self.body = Some(body);
        self
    }
}

impl fmt::Display for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} ({})", self.method, self.path, self.version)?;
        match &self.body {
            Some(body) => write!(f, " {body}"),
            None => Ok(()),
        }
    }
}

/// What one of them said.
#[derive(Clone, Debug)]
struct Answer {
    status: u16,
    body: Value,
}

struct Side {
    name: &'static str,
    target: HttpTarget,
    tokens: BTreeMap<&'static str, String>,
}

/// The sandbox and the lab.
pub(crate) struct Pair {
    sides: [Side; 2],
    _served: Served,
    story: VecDeque<String>,
    /// The generations that were told last: of providers and consumers, by their UUIDs.
    generations: BTreeMap<String, Value>,
}

impl Pair {
    pub(crate) async fn start() -> Self {
        let Some(lab) = std::env::var_os("UNPROVISION_LAB") else {
            panic!(
                "there are no real services to ask; start them with: export UNPROVISION_LAB=$(tests/lab/lab up)"
            );
        };
        let identity = Identity {
            username: "admin".into(),
            password: "secret".into(),
            user_domain_id: "default".into(),
            project_name: "admin".into(),
            project_domain_id: "default".into(),
        };
        let served = serve(strict(&identity)).await.unwrap();
        let [keystone, ironic, placement] = [
            sandbox::Service::Keystone,
            sandbox::Service::Ironic,
            sandbox::Service::Placement,
        ]
        .map(|service| served.url(service));
        let ours = HttpTarget::new(&keystone, &ironic, &placement, identity).unwrap();
        let real = HttpTarget::from_lab(lab.as_ref()).unwrap();
        Self {
            sides: [
                Side::log_in("sandbox", ours).await,
                Side::log_in("real", real).await,
            ],
            _served: served,
            story: VecDeque::new(),
            generations: BTreeMap::new(),
        }
    }

    /// Asks both, and says where their answers differ.
    pub(crate) async fn ask(&mut self, call: &Call) -> Vec<String> {
        let [ours, real] = &mut self.sides;
        let (ours, real) = (ours.ask(call).await, real.ask(call).await);
        self.story.push_back(format!("{} {call}", real.status));
        if self.story.len() > STORY {
            self.story.pop_front();
        }
        self.remember(call, &real.body);
        let mut different = Vec::new();
        if ours.status != real.status {
            different.push(format!("sandbox {}: {}", ours.status, ours.body));
            different.push(format!("real {}: {}", real.status, real.body));
        } else {
            different.extend(differences(&ours.body, &real.body));
        }
        different
    }

    /// Asks both for something that both must do.
    pub(crate) async fn set_up(&mut self, call: Call) {
        let different = self.ask(&call).await;
        assert!(different.is_empty(), "{call}: {different:#?}");
    }

    /// Waits until both say that the node is in this state, and hold it no more.
    pub(crate) async fn settled(&mut self, call: Call, state: &str) {
        for side in &mut self.sides {
            let reached = async {
                loop {
                    let (_, body) = side.send(&call).await;
                    if body["provision_state"] == state && body["reservation"].is_null() {
                        break;
                    }
                    tokio::time::sleep(Duration::from_millis(200)).await;
                }
            };
            let reached = tokio::time::timeout(Duration::from_secs(60), reached).await;
            assert!(reached.is_ok(), "{}: {call}: not {state}", side.name);
        }
    }

    /// The generation that was told last of this one.
    pub(crate) fn generation(&self, of: &str) -> Value {
        self.generations.get(of).cloned().unwrap_or(Value::Null)
    }

    pub(crate) fn story(&self) -> String {
        self.story.iter().cloned().collect::<Vec<_>>().join("\n")
    }

    fn remember(&mut self, call: &Call, body: &Value) {
        let of = call.path.split(['/', '?']).nth(2).unwrap_or_default().to_owned();
        for key in [
            "resource_provider_generation",
            "generation",
            "consumer_generation",
        ] {
            if let Some(generation) = body.get(key) {
                self.generations.insert(of.clone(), generation.clone());
            }
        }
        if call.path.starts_with("/allocations/") && body.get("allocations") == Some(&json!({})) {
            self.generations.insert(of, Value::Null);
        }
    }
}

impl Side {
    async fn log_in(name: &'static str, mut target: HttpTarget) -> Self {
        let mut tokens = BTreeMap::new();
        for scope in ["project", "system"] {
            tokens.insert(scope, log_in(&mut target, scope).await.unwrap());
        }
        Self { name, target, tokens }
    }

    async fn ask(&mut self, call: &Call) -> Answer {
        let (status, body) = self.send(call).await;
        let body = normal(&body, self.target.root(call.service));
        Answer { status, body }
    }

    async fn send(&mut self, call: &Call) -> (u16, Value) {
        let scope = match call.service {
            Service::Placement => "project",
            _ => "system",
        };
        let (header, version) = version_header(call.service, call.version).unwrap();
        let mut request = Request::builder()
            .method(call.method.clone())
            .uri(format!("{}{}", self.target.root(call.service), call.path))
            .header("X-Auth-Token", &self.tokens[scope])
            .header(header, version)
            .header("Accept", "application/json");
        if call.body.is_some() {
            request = request.header("Content-Type", "application/json");
        }
        let body = call.body.as_ref().map(Value::to_string).unwrap_or_default();
        let request = request.body(Bytes::from(body)).unwrap();
        let answer = self.target.send(request).await;
        let answer = answer.unwrap_or_else(|error| panic!("{}: {call}: {error}", self.name));
        let body = serde_json::from_slice(answer.body()).unwrap_or_default();
        (answer.status().as_u16(), body)
    }
}

fn strict(who: &Identity) -> Sandbox {
    let admin = User::admin(&who.username, &who.password, &who.project_name);
    Sandbox::builder()
        .teardown(Duration::from_millis(500))
        .cleaning(Duration::from_secs(3))
        .clock(real_clock())
        .configure(|config| {
            config.keystone.users = vec![admin];
            config.keystone.strict_scopes = true;
            config.ironic.auth = Auth::Keystone;
            config.placement.auth = Auth::Keystone;
        })
        .build()
}
