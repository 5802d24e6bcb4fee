//! A recording proxy: everything that a program says to Ironic and Placement, in one order.
//!
//! Each service has a proxy of its own on the loopback, and both write to one log. A request is marked when it
//! arrives here, an answer before it leaves here: of two marks, the smaller one was surely first. Everything is
//! forwarded unchanged, whether or not the program still waits for the answer.

mod way;

use std::fmt;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use axum::Router;
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, Response, StatusCode};
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio::time::Instant;
use unprovision_session::Service;

use self::way::{Way, answer};

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
    /// The headers, without those of the connection.
    pub headers: HeaderMap,
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

    /// What goes wrong with it on the way.
    fn mishap(&self, _call: &Call) -> Option<Mishap> {
        None
    }
}

/// What goes wrong with a request or its answer on the way.
#[derive(Clone, Debug)]
pub enum Mishap {
    /// The connection breaks before the request has reached the service.
    LostBefore,
    /// The connection breaks once the service has answered.
    LostAfter,
    /// The answer breaks off in the middle.
    Truncated,
    /// Somebody on the way answers, and the service hears nothing.
    Answered(Response<Bytes>),
    /// It reaches the service only after so long.
    Slow(Duration),
    /// A read is answered as the last one of the same path was.
    Stale,
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

    /// Drops all that has been answered: a log of hours is large.
    pub fn forget(&self) {
        lock(&self.0.log)
            .exchanges
            .retain(|exchange| exchange.answer.is_none());
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
        let task = Mutex::new(serve(listener, router.clone()));
        Ok(Proxy { url, router, task })
    }

    /// The last answer to this read, as far as there is one.
    fn last(&self, call: &Call) -> Option<Response<Bytes>> {
        let log = lock(&self.0.log);
        let same = |exchange: &&Exchange| {
            exchange.call.service == call.service
                && exchange.call.method == Method::GET
                && exchange.call.path == call.path
        };
        let mut before = log.exchanges.iter().rev().filter(same);
        let answer = before.find_map(|exchange| exchange.answer.as_ref())?;
        let mut response = Response::new(Bytes::from(answer.body.to_string()));
        *response.status_mut() = answer.status;
        response.headers_mut().clone_from(&answer.headers);
        Some(response)
    }

    fn mishap(&self, call: &Call) -> Option<Mishap> {
        self.interferes().iter().find_map(|other| other.mishap(call))
    }

    fn sent(&self, call: Call) -> Mark {
        let mut log = lock(&self.0.log);
        let sent = log.mark(self.0.began);
        log.exchanges.push(Exchange {
            call,
            sent,
            answer: None,
        });
        sent
    }

    fn answered(&self, sent: Mark, response: &Response<Bytes>) {
        let (status, headers) = (response.status(), response.headers().clone());
        let body = serde_json::from_slice(response.body()).unwrap_or_default();
        let mut log = lock(&self.0.log);
        let at = log.mark(self.0.began);
        if let Ok(index) = log
            .exchanges
            .binary_search_by_key(&sent, |exchange| exchange.sent)
        {
            log.exchanges[index].answer = Some(Answer {
                at,
                status,
                headers,
                body,
            });
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
    router: Router,
    task: Mutex<JoinHandle<()>>,
}

impl Proxy {
    /// Where it listens, without a slash at the end.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Nobody listens for so long: connections are refused.
    ///
    /// # Errors
    ///
    /// Where the port is not to be had any more.
    pub async fn refuse_for(&self, time: Duration) -> io::Result<()> {
        lock(&self.task).abort();
        tokio::time::sleep(time).await;
        let address = self.url.trim_start_matches("http://");
        let listener = TcpListener::bind(address).await?;
        *lock(&self.task) = serve(listener, self.router.clone());
        Ok(())
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        lock(&self.task).abort();
    }
}

fn serve(listener: TcpListener, router: Router) -> JoinHandle<()> {
    let server = axum::serve(listener, router).into_future();
    tokio::spawn(async move {
        if let Err(error) = server.await {
            tracing::error!(%error, "the proxy ended");
        }
    })
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // No code that holds a lock here can panic half-way through a change.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
