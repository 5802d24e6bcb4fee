//! Stopping all writes, and letting them go on.

use axum::Json;
use serde::Deserialize;
use utoipa::ToSchema;

use super::status::Status;
use super::{From, Input, State, is_short};
use crate::access::Caller;
use crate::problem::Problem;

/// Why.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Reason {
    /// Why, for the log and for whoever looks at the guard.
    #[schema(min_length = 1, max_length = 1000)]
    reason: String,
}

impl Reason {
    /// What somebody says who may write.
    fn of(&self, caller: &Caller) -> Result<&str, Problem> {
        caller.must_write()?;
        match self.reason.trim() {
            "" => Err(Problem::bad_request("`reason` is empty; say why")),
            reason => is_short(reason).map(|()| reason),
        }
    }
}

/// Stops all writes of this guard, until somebody lets them go on. What is held stays held.
#[utoipa::path(post, path = "/v1/pause", tag = "guard", request_body = Reason, responses(
    (status = 200, description = "Nothing is written any more", body = Status),
    (status = 400, description = "No reason", body = Problem, content_type = "application/problem+json"),
    (status = 403, description = "Whoever asks may not do that", body = Problem, content_type = "application/problem+json"),
    (status = 422, description = "Something else than that", body = Problem, content_type = "application/problem+json"),
))]
pub(super) async fn pause(
    state: State,
    from: From,
    Input(reason): Input<Reason>,
) -> Result<Json<Status>, Problem> {
    let reason = reason.of(&from)?;
    tracing::warn!(by = from.name, reason, "all writes are stopped");
    state
        .service
        .guard
        .brakes()
        .pause(&format!("{reason} ({})", from.name));
    Ok(Json(Status::of(&state)))
}

/// Lets writes go on, also past an alarm: whoever says so has looked. A pause file stops them until it is gone.
#[utoipa::path(delete, path = "/v1/pause", tag = "guard", request_body = Reason, responses(
    (status = 200, description = "Writes go on", body = Status),
    (status = 400, description = "No reason", body = Problem, content_type = "application/problem+json"),
    (status = 403, description = "Whoever asks may not do that", body = Problem, content_type = "application/problem+json"),
    (status = 422, description = "Something else than that", body = Problem, content_type = "application/problem+json"),
))]
pub(super) async fn go_on(
    state: State,
    from: From,
    Input(reason): Input<Reason>,
) -> Result<Json<Status>, Problem> {
    let reason = reason.of(&from)?;
    tracing::warn!(by = from.name, reason, "writes go on");
    state.service.guard.brakes().go_on();
    Ok(Json(Status::of(&state)))
}
