//! The sandbox behind real sockets: one port on the loopback with a prefix for each service.

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::State;
use axum::http::{Request, Response, StatusCode, Uri};
use bytes::Bytes;
use futures::stream;
use jiff::Timestamp;
use std::fmt;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::Service;
use super::config::User;
use super::faults::Effect;
use super::handle::{Clock, Outcome, Sandbox, wait};

/// The largest request body that is read.
const LARGEST: usize = 16 * 1024 * 1024;

/// A sandbox that listens. Dropping it stops it without waiting.
pub struct Served {
    sandbox: Sandbox,
    address: SocketAddr,
    user: User,
    region: String,
    stop: CancellationToken,
    task: JoinHandle<io::Result<()>>,
}

impl fmt::Debug for Served {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Served")
            .field("address", &self.address)
            .finish_non_exhaustive()
    }
}

/// The computer's clock, for sandboxes behind sockets.
#[allow(
    clippy::disallowed_methods,
    reason = "behind real sockets time is real; nowhere else in the sandbox"
)]
pub fn real_clock() -> Clock {
    Arc::new(Timestamp::now)
}

/// Puts a sandbox behind a port of its own choice on the loopback.
pub async fn serve(sandbox: Sandbox) -> io::Result<Served> {
    serve_at(sandbox, SocketAddr::from((Ipv4Addr::LOCALHOST, 0))).await
}

/// Puts a sandbox behind the address given.
pub async fn serve_at(sandbox: Sandbox, address: SocketAddr) -> io::Result<Served> {
    let listener = TcpListener::bind(address).await?;
    let address = listener.local_addr()?;
    let base = format!("http://{address}");
    let (user, region) = sandbox.with(|world, _| {
        let config = &mut world.config;
        config.keystone.base_url = format!("{base}/identity");
        config.ironic.base_url = format!("{base}/baremetal");
        config.placement.base_url = format!("{base}/placement");
        config.nova.base_url = format!("{base}/compute/v2.1");
        let nobody = || User::admin("", "", "");
        (
            config.keystone.users.first().cloned().unwrap_or_else(nobody),
            config.keystone.region.clone(),
        )
    });
    let stop = CancellationToken::new();
    let router = Router::new().fallback(answer).with_state(sandbox.clone());
    let server = axum::serve(listener, router).with_graceful_shutdown(stop.clone().cancelled_owned());
    let task = tokio::spawn(server.into_future());
    Ok(Served {
        sandbox,
        address,
        user,
        region,
        stop,
        task,
    })
}

impl Served {
    /// The sandbox.
    pub fn sandbox(&self) -> &Sandbox {
        &self.sandbox
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Where a service lives, without a trailing slash.
    pub fn url(&self, service: Service) -> String {
        format!("http://{}/{}", self.address, prefix(service))
    }

    /// The settings that clients look for in the environment.
    pub fn environment(&self) -> Vec<(&'static str, String)> {
        vec![
            ("OS_AUTH_TYPE", "password".into()),
            ("OS_AUTH_URL", self.url(Service::Keystone)),
            ("OS_USERNAME", self.user.name.clone()),
            ("OS_PASSWORD", self.user.password.clone()),
            ("OS_PROJECT_NAME", self.user.project.clone()),
            ("OS_USER_DOMAIN_NAME", "Default".into()),
            ("OS_PROJECT_DOMAIN_NAME", "Default".into()),
            ("OS_REGION_NAME", self.region.clone()),
            ("OS_IDENTITY_API_VERSION", "3".into()),
        ]
    }

    /// The same as lines that a shell reads.
    pub fn openrc(&self) -> String {
        self.environment()
            .into_iter()
            .map(|(name, value)| format!("export {name}='{value}'\n"))
            .collect()
    }

    /// A `clouds.yaml` with one cloud of the name given.
    pub fn clouds_yaml(&self, cloud: &str) -> String {
        let User {
            name,
            password,
            project,
            ..
        } = &self.user;
        let (url, region) = (self.url(Service::Keystone), &self.region);
        format!(
            "clouds:\n  {cloud}:\n    auth:\n      auth_url: {url}\n      username: {name}\n      \
             password: {password}\n      project_name: {project}\n      user_domain_name: Default\n      \
             project_domain_name: Default\n    region_name: {region}\n"
        )
    }

    /// Stops listening and waits until running requests are answered.
    pub async fn stop(mut self) -> io::Result<()> {
        self.stop.cancel();
        (&mut self.task).await.map_err(io::Error::other)?
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.stop.cancel();
        self.task.abort();
    }
}

fn prefix(service: Service) -> &'static str {
    match service {
        Service::Keystone => "identity",
        Service::Ironic => "baremetal",
        Service::Placement => "placement",
        Service::Nova => "compute",
    }
}

async fn answer(State(sandbox): State<Sandbox>, request: Request<Body>) -> Response<Body> {
    let Some((service, uri)) = route(request.uri()) else {
        return plain(StatusCode::NOT_FOUND);
    };
    let (mut parts, body) = request.into_parts();
    parts.uri = uri;
    parts.extensions.clear();
    let Ok(body) = to_bytes(body, LARGEST).await else {
        return plain(StatusCode::PAYLOAD_TOO_LARGE);
    };
    let request = Request::from_parts(parts, body);
    let effects = sandbox.meet(service, &request);
    wait(effects.iter().filter_map(Effect::delay)).await;
    let outcome = sandbox.exchange(service, request, &effects);
    wait(effects.iter().filter_map(Effect::reply_delay)).await;
    match outcome {
        Outcome::Answer(response) => response.map(Body::from),
        Outcome::LostBefore | Outcome::LostAfter => torn(),
    }
}

/// The service that a path belongs to, and the path within it.
fn route(uri: &Uri) -> Option<(Service, Uri)> {
    let path = uri.path().trim_start_matches('/');
    let (first, rest) = path.split_once('/').unwrap_or((path, ""));
    let service = [
        Service::Keystone,
        Service::Ironic,
        Service::Placement,
        Service::Nova,
    ]
    .into_iter()
    .find(|s| prefix(*s) == first)?;
    let query = uri.query().map(|query| format!("?{query}")).unwrap_or_default();
    Some((service, format!("/{rest}{query}").parse().ok()?))
}

fn plain(status: StatusCode) -> Response<Body> {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = status;
    response
}

/// An answer that breaks off, which closes the connection.
fn torn() -> Response<Body> {
    let broken: Result<Bytes, io::Error> =
        Err(io::Error::new(io::ErrorKind::ConnectionReset, "torn on purpose"));
    Response::new(Body::from_stream(stream::iter([broken])))
}
