//! The socket, and the bounds of what comes over it.

use std::any::Any;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::http::{HeaderName, HeaderValue, Response, header};
use axum::response::IntoResponse;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tower_http::catch_panic::CatchPanicLayer;
use tower_http::set_header::SetResponseHeaderLayer;

use crate::problem::Problem;

/// So many connections at the same time; others wait to be accepted.
const CONNECTIONS: usize = 1024;
/// So long a request's head may take, and so long a connection may be without a request.
const HEAD_WITHIN: Duration = Duration::from_secs(10);
/// The largest body.
const BODY: usize = 64 * 1024;
/// The pause after the system had no connection for us.
const PAUSE: Duration = Duration::from_millis(100);
/// What every answer says to browsers.
const HEADERS: [(HeaderName, &str); 4] = [
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::CACHE_CONTROL, "no-store"),
    (header::REFERRER_POLICY, "no-referrer"),
    (
        header::CONTENT_SECURITY_POLICY,
        "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    ),
];

/// With what holds for each request, whatever it asks for.
pub(crate) fn bounded(router: Router) -> Router {
    let router = router
        .layer(DefaultBodyLimit::max(BODY))
        .layer(CatchPanicLayer::custom(failed));
    HEADERS.into_iter().fold(router, |router, (name, value)| {
        let value = HeaderValue::from_static(value);
        router.layer(SetResponseHeaderLayer::if_not_present(name, value))
    })
}

/// A handler that fails is a bug; the guard and all other requests go on.
fn failed(_: Box<dyn Any + Send>) -> Response<axum::body::Body> {
    tracing::error!("a request made the service fail");
    Problem::internal().into_response()
}

/// Serves until it is stopped; what is under way then has so long to end.
pub async fn serve(listener: TcpListener, router: Router, stop: &CancellationToken, drain: Duration) {
    let places = Arc::new(Semaphore::new(CONNECTIONS));
    let graceful = GracefulShutdown::new();
    let mut server = http1::Builder::new();
    server.timer(TokioTimer::new()).header_read_timeout(HEAD_WITHIN);
    loop {
        let accepted = async {
            let place = Arc::clone(&places).acquire_owned().await;
            (place, listener.accept().await)
        };
        let (place, accepted) = tokio::select! {
            accepted = accepted => accepted,
            () = stop.cancelled() => break,
        };
        let socket = match accepted {
            Ok((socket, _)) => socket,
            // No more files, or the caller was gone already.
            Err(error) => {
                tracing::debug!(%error, "a connection could not be accepted");
                tokio::time::sleep(PAUSE).await;
                continue;
            }
        };
        let service = TowerToHyperService::new(router.clone());
        let connection = graceful.watch(server.serve_connection(TokioIo::new(socket), service));
        tokio::spawn(async move {
            // Whoever broke it off knows why.
            let _ = connection.await;
            drop(place);
        });
    }
    drop(listener);
    if tokio::time::timeout(drain, graceful.shutdown()).await.is_err() {
        tracing::warn!("some requests were still under way after {drain:?}, and are broken off");
    }
}
