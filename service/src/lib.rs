//! The HTTP interface of a running guard: what it does, live, for people and machines.
//!
//! It answers for the whole journal and for this one guard; it decides nothing. What it may do is to wake a node, and for those who may,
//! to stop all writes and to let them go on.
//!
//! ```text
//! listen  ──► access (who may) ──► api (one file for each resource) ──► the guard, its journal
//! bounds           │ Caller              │ Problem, where it cannot be
//! ```
#![warn(missing_docs)]

mod access;
mod api;
mod flight;
mod listen;
mod page;
mod problem;

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use unprovision::cloud::{Asked, Clock, OpenStack};
use unprovision::guard::Guard;
use unprovision::journal::Journal;
use unprovision::view::NodeRow;

use api::Audits;
use flight::Flight;

pub use access::Access;
pub use listen::serve;
pub use problem::Problem;

/// So many streams of events at the same time; whoever comes then is asked to come again.
const STREAMS: usize = 256;

/// So many readers of the whole journal at the same time; others wait.
const READERS: usize = 4;
/// How long one look at all nodes serves all who ask.
const NODES: Duration = Duration::from_secs(5);

/// What the interface is about.
#[derive(Debug)]
pub struct Service {
    /// The guard.
    pub guard: Arc<Guard>,
    /// The journal of this guard and all others beside it.
    pub journal: Arc<dyn Journal>,
    /// Looks at all nodes.
    pub cloud: Arc<OpenStack>,
    /// How an audit judges; when, how closely and which scope is filled in for each.
    pub audit: Asked,
    /// Tells the time.
    pub clock: Arc<dyn Clock>,
    /// From one look of the guard to the next, as it is set.
    pub look: Duration,
    /// Who may.
    pub access: Access,
    /// The version of the program.
    pub version: &'static str,
    /// Streams end with it.
    pub stop: CancellationToken,
}

/// What the handlers share.
#[derive(Debug)]
struct Shared {
    service: Service,
    streams: Arc<Semaphore>,
    readers: Semaphore,
    nodes: Flight<Vec<NodeRow>>,
    audits: Audits,
}

/// The whole interface, to be served or to be put into another one.
pub fn router(service: Service) -> Router {
    let access = Arc::new(service.access);
    let shared = Shared {
        streams: Arc::new(Semaphore::new(STREAMS)),
        readers: Semaphore::new(READERS),
        nodes: Flight::new(NODES),
        audits: Audits::new(&service.audit),
        service,
    };
    let checked = axum::middleware::from_fn_with_state(access, access::check);
    let router = api::router(Arc::new(shared)).merge(page::router());
    listen::bounded(router.layer(checked))
}
