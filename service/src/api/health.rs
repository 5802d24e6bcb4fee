//! Whether the process answers, and whether it does its work.

use std::time::Duration;

use axum::http::StatusCode;
use jiff::SignedDuration;

use super::State;
use crate::problem::Problem;

/// The last look may be so many looks old.
const LOOKS: u32 = 10;
/// It may be so old however often is looked.
const AT_LEAST: Duration = Duration::from_secs(30);

/// The process answers.
#[utoipa::path(get, path = "/healthz", tag = "health", responses((status = 204, description = "It answers")))]
pub(super) async fn healthz() -> StatusCode {
    StatusCode::NO_CONTENT
}

/// The guard does its work: its journal answers, it has looked at everything once, and it looks often enough.
#[utoipa::path(get, path = "/readyz", tag = "health", responses(
    (status = 204, description = "It does"),
    (status = 503, description = "It does not, and why", body = Problem, content_type = "application/problem+json"),
))]
pub(super) async fn readyz(state: State) -> Result<StatusCode, Problem> {
    let service = &state.service;
    // The least that it can be asked: whoever probes does so all day.
    if let Err(error) = service.journal.leases().await {
        return Err(Problem::unavailable(format!(
            "the journal cannot be read: {error}"
        )));
    }
    let status = service.guard.status();
    if status.last_sweep.is_none() {
        return Err(Problem::unavailable("the guard has not looked at everything yet"));
    }
    let patience = (service.look * LOOKS).max(AT_LEAST);
    let patience = SignedDuration::try_from(patience).unwrap_or(SignedDuration::MAX);
    let since = status.last_look.max(status.last_sweep);
    let is_old = |at| service.clock.now().duration_since(at) > patience;
    match since.filter(|at| is_old(*at)) {
        Some(at) => Err(Problem::unavailable(format!(
            "the last look that Ironic answered was at {at:.0}"
        ))),
        None => Ok(StatusCode::NO_CONTENT),
    }
}
