//! Waking nodes: somebody knows that something has happened to them.

use axum::Json;
use axum::http::StatusCode;
use serde::{Deserialize, Serialize};
use unprovision::NodeUuid;
use unprovision::events::Hint;
use utoipa::ToSchema;
use uuid::Uuid;

use super::{From, Input, State, is_short};
use crate::problem::Problem;

/// So many nodes at once.
const MOST: usize = 1000;

/// Nodes to look at.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Hints {
    /// The nodes, by UUID: 1 to 1000.
    #[schema(min_items = 1, max_items = 1000)]
    nodes: Vec<Uuid>,
    /// Why, for the log.
    #[serde(default)]
    #[schema(max_length = 1000)]
    reason: String,
}

/// How many were taken.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Taken {
    /// How many nodes will be looked at.
    taken: usize,
}

/// Has nodes looked at sooner. Nothing is decided from it, and a node that Ironic does not know does no harm.
#[utoipa::path(post, path = "/v1/hints", tag = "guard", request_body = Hints, responses(
    (status = 202, description = "They will be looked at", body = Taken),
    (status = 400, description = "No node, or too many", body = Problem, content_type = "application/problem+json"),
    (status = 422, description = "Something else than that", body = Problem, content_type = "application/problem+json"),
))]
pub(super) async fn hint(
    state: State,
    from: From,
    Input(hints): Input<Hints>,
) -> Result<(StatusCode, Json<Taken>), Problem> {
    let taken = hints.nodes.len();
    if taken == 0 || taken > MOST {
        return Err(Problem::bad_request(format!(
            "`nodes` names {taken} nodes, and 1 to {MOST} are taken"
        )));
    }
    is_short(&hints.reason)?;
    tracing::info!(
        by = from.name,
        nodes = taken,
        reason = hints.reason,
        "nodes are to be looked at"
    );
    for node in hints.nodes {
        state.service.guard.hint(Hint {
            node: NodeUuid(node),
            reason: hints.reason.clone(),
            said_at: None,
        });
    }
    Ok((StatusCode::ACCEPTED, Json(Taken { taken })))
}
