//! How the guard is.

use axum::Json;
use serde::Serialize;
use utoipa::ToSchema;

use super::State;
use crate::Shared;

/// How this guard is.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Status {
    /// The version of the program.
    version: &'static str,
    /// Nodes that Ironic has, by the last sweep.
    nodes: usize,
    /// Nodes with an open case, also those that other guards on this journal work on.
    open: usize,
    /// Nodes that something of ours hides.
    held: usize,
    /// When the last look at the nodes on their way succeeded.
    #[schema(value_type = Option<String>, format = DateTime)]
    last_look: Option<jiff::Timestamp>,
    /// When the last complete sweep succeeded.
    #[schema(value_type = Option<String>, format = DateTime)]
    last_sweep: Option<jiff::Timestamp>,
    /// Why nothing is written, if so.
    stopped: Option<String>,
    /// Why nothing is released, if so.
    distrust: Option<String>,
    /// What was heard of Ironic's notifications, if it listens to any, in words.
    notifications: Option<String>,
}

impl Status {
    pub(super) fn of(shared: &Shared) -> Self {
        let status = shared.service.guard.status();
        Self {
            version: shared.service.version,
            nodes: status.nodes,
            open: status.open,
            held: status.held,
            last_look: status.last_look,
            last_sweep: status.last_sweep,
            stopped: status.stopped,
            distrust: status.distrust,
            notifications: status.events.map(|heard| heard.to_string()),
        }
    }
}

/// How this guard is: how many nodes are on their way, when it looked last, and whether anything stops it.
#[utoipa::path(get, path = "/v1/status", tag = "guard", responses((status = 200, body = Status)))]
pub(super) async fn status(state: State) -> Json<Status> {
    Json(Status::of(&state))
}
