//! A recording proxy: everything that a program says to Ironic and Placement, in one order.
//!
//! Each service has a proxy of its own on the loopback, and both write to one log. A request is marked when it
//! arrives here, an answer before it leaves here: of two marks, the smaller one was surely first. Everything is
//! forwarded unchanged, whether or not the program still waits for the answer.

use std::fmt;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::State;
use bytes::Bytes;
use http::header::{CONNECTION, CONTENT_LENGTH, HOST, TRANSFER_ENCODING, USER_AGENT};
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode};
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio::time::Instant;
use unprovision_session::Service;

/// The largest body that is read.
const LARGEST: usize = 64 * 1024 * 1024;

/// A place in the log's order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Mark {
    /// Counts all requests and answers of both services.
    pub seq: u64,
    /// Since the log began.
    pub at: Duration,
}

/// A request.
#[derive(Clone, Debug)]
pub struct Call {
    /// Whose.
    pub service: Service,
    /// The method.
    pub method: Method,
    /// Path and query.
    pub path: String,
    /// The body; null where there is none.
    pub body: Value,
    /// The token that it carries.
    pub token: Option<HeaderValue>,
    /// What the program calls itself; empty where it does not.
    pub agent: String,
}

/// A request and its answer.
#[derive(Clone, Debug)]
pub struct Exchange {
    /// The request.
    pub call: Call,
    /// When it left.
    pub sent: Mark,
    /// What came back; `None` while nothing has.
    pub answer: Option<Answer>,
}

/// What came back.
#[derive(Clone, Debug)]
pub struct Answer {
    /// When.
    pub at: Mark,
    /// The status.
    pub status: StatusCode,
    /// The body; null where it is not JSON.
    pub body: Value,
}

impl Exchange {
    /// Whether it changes something.
    pub fn is_write(&self) -> bool {
        !self.call.method.is_safe()
    }

    /// Whether it was answered with success.
    pub fn is_accepted(&self) -> bool {
        self.answer
            .as_ref()
            .is_some_and(|answer| answer.status.is_success())
    }

    /// Whether it asks this provision state of this node.
    pub fn asks(&self, node: uuid::Uuid, target: &str) -> bool {
        self.call.path == format!("/v1/nodes/{node}/states/provision") && self.call.body["target"] == target
    }
}

/// Acts in between: another writer, or the end of the program.
#[async_trait]
pub trait Interfere: fmt::Debug + Send + Sync {
    /// The request has arrived, and is forwarded when this returns.
    async fn before(&self, _call: &Call) {}

    /// The service has answered, and the answer is handed over when this returns.
    async fn after(&self, _call: &Call, _status: StatusCode) {}
}

/// The log. Clones write to the same one.
#[derive(Clone, Debug)]
pub struct Recorder(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    began: Instant,
    log: Mutex<Log>,
    interferes: Mutex<Vec<Arc<dyn Interfere>>>,
}

#[derive(Debug, Default)]
struct Log {
    seq: u64,
    exchanges: Vec<Exchange>,
}

impl Default for Recorder {
    fn default() -> Self {
        let (log, interferes) = (Mutex::default(), Mutex::default());
        Self(Arc::new(Shared {
            began: Instant::now(),
            log,
            interferes,
        }))
    }
}

impl Recorder {
    /// An empty log.
    pub fn new() -> Self {
        Self::default()
    }

    /// All requests so far, in the order in which they left.
    pub fn exchanges(&self) -> Vec<Exchange> {
        lock(&self.0.log).exchanges.clone()
    }

    /// From now on this one acts on every request.
    pub fn interfere(&self, with: Arc<dyn Interfere>) {
        lock(&self.0.interferes).push(with);
    }

    /// A proxy to the service at this URL.
    ///
    /// # Errors
    ///
    /// Where there is no port to be had.
    pub async fn proxy(&self, service: Service, target: &str) -> io::Result<Proxy> {
        self.proxy_at(service, target, 0).await
    }

    /// The same at this port, where somebody looks for it. 0: any.
    ///
    /// # Errors
    ///
    /// Where somebody else has the port.
    pub async fn proxy_at(&self, service: Service, target: &str, port: u16) -> io::Result<Proxy> {
        let listener = TcpListener::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, port))).await?;
        let url = format!("http://{}", listener.local_addr()?);
        let client = reqwest::Client::builder()
            .no_gzip()
            .no_proxy()
            .redirect(reqwest::redirect::Policy::none())
            // A kept connection that the service closes would look like a fault of the service's.
            .pool_max_idle_per_host(0)
            .build()
            .map_err(io::Error::other)?;
        let way = Way {
            recorder: self.clone(),
            service,
            target: target.trim_end_matches('/').to_owned(),
            client,
        };
        let router = Router::new().fallback(answer).with_state(way);
        let server = axum::serve(listener, router).into_future();
        let task = tokio::spawn(async move {
            if let Err(error) = server.await {
                tracing::error!(%error, "the proxy ended");
            }
        });
        Ok(Proxy { url, task })
    }

    fn sent(&self, call: Call) -> usize {
        let mut log = lock(&self.0.log);
        let sent = log.mark(self.0.began);
        log.exchanges.push(Exchange {
            call,
            sent,
            answer: None,
        });
        log.exchanges.len() - 1
    }

    fn answered(&self, index: usize, status: StatusCode, body: &Bytes) {
        let body = serde_json::from_slice(body).unwrap_or_default();
        let mut log = lock(&self.0.log);
        let at = log.mark(self.0.began);
        if let Some(exchange) = log.exchanges.get_mut(index) {
            exchange.answer = Some(Answer { at, status, body });
        }
    }

    fn interferes(&self) -> Vec<Arc<dyn Interfere>> {
        lock(&self.0.interferes).clone()
    }
}

impl Log {
    fn mark(&mut self, began: Instant) -> Mark {
        self.seq += 1;
        Mark {
            seq: self.seq,
            at: began.elapsed(),
        }
    }
}

/// A proxy that listens. Dropping it stops it.
#[derive(Debug)]
pub struct Proxy {
    url: String,
    task: JoinHandle<()>,
}

impl Proxy {
    /// Where it listens, without a slash at the end.
    pub fn url(&self) -> &str {
        &self.url
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// From one proxy to its service.
#[derive(Clone)]
struct Way {
    recorder: Recorder,
    service: Service,
    target: String,
    client: reqwest::Client,
}

async fn answer(State(way): State<Way>, request: Request<Body>) -> Response<Body> {
    // A task of its own: a program that is gone does not take its request back.
    let forwarded = tokio::spawn(async move { way.carry(request).await }).await;
    let lost = |problem: String| {
        let mut response = Response::new(Body::from(problem));
        *response.status_mut() = StatusCode::BAD_GATEWAY;
        response
    };
    match forwarded {
        Ok(Ok(response)) => response.map(Body::from),
        Ok(Err(error)) => lost(error.to_string()),
        Err(error) => lost(error.to_string()),
    }
}

impl Way {
    async fn carry(&self, request: Request<Body>) -> Result<Response<Bytes>, axum::Error> {
        let (head, body) = request.into_parts();
        let body = to_bytes(body, LARGEST).await?;
        let path = head
            .uri
            .path_and_query()
            .map_or("/", |path| path.as_str())
            .to_owned();
        let call = Call {
            service: self.service,
            method: head.method,
            path,
            body: serde_json::from_slice(&body).unwrap_or_default(),
            token: head.headers.get("x-auth-token").cloned().map(secret),
            agent: agent(&head.headers),
        };
        let index = self.recorder.sent(call.clone());
        for other in self.recorder.interferes() {
            other.before(&call).await;
        }
        let forwarded = self.forward(&call, head.headers, body).await;
        let response = forwarded.map_err(axum::Error::new)?;
        for other in self.recorder.interferes() {
            other.after(&call, response.status()).await;
        }
        self.recorder.answered(index, response.status(), response.body());
        Ok(response)
    }

    async fn forward(
        &self,
        call: &Call,
        mut headers: HeaderMap,
        body: Bytes,
    ) -> reqwest::Result<Response<Bytes>> {
        for name in [HOST, CONNECTION, CONTENT_LENGTH, TRANSFER_ENCODING] {
            headers.remove(name);
        }
        let url = format!("{}{}", self.target, call.path);
        let request = self
            .client
            .request(call.method.clone(), url)
            .headers(headers)
            .body(body);
        let answer = request.send().await?;
        let mut response = Response::new(Bytes::new());
        *response.status_mut() = answer.status();
        *response.headers_mut() = answer.headers().clone();
        for name in [CONNECTION, CONTENT_LENGTH, TRANSFER_ENCODING] {
            response.headers_mut().remove(name);
        }
        *response.body_mut() = answer.bytes().await?;
        Ok(response)
    }
}

fn agent(headers: &HeaderMap) -> String {
    let agent = headers.get(USER_AGENT).and_then(|agent| agent.to_str().ok());
    agent.unwrap_or_default().to_owned()
}

fn secret(mut token: HeaderValue) -> HeaderValue {
    token.set_sensitive(true);
    token
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // No code that holds a lock here can panic half-way through a change.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
