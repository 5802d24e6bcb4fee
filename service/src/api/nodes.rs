//! All nodes, as both services see them.

use axum::Json;
use axum::extract::Query;
use axum::extract::rejection::QueryRejection;
use serde::{Deserialize, Serialize};
use unprovision::journal::read_open;
use unprovision::view::nodes::{NodeRow, gather};
use utoipa::openapi::Schema;
use utoipa::{IntoParams, ToSchema};
use uuid::Uuid;

use super::rows::{Field, Of};
use super::{State, pages, rows};
use crate::Shared;
use crate::problem::Problem;

/// Which nodes are wanted.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct Wanted {
    /// Only those in this provision state.
    state: Option<String>,
    /// How many at most.
    #[param(minimum = 1, maximum = 1000, default = 100)]
    limit: Option<usize>,
    /// Only those after this one, in the order of their UUIDs.
    marker: Option<Uuid>,
}

/// A page of nodes.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Nodes {
    #[schema(schema_with = node_rows)]
    nodes: Vec<NodeRow>,
    /// When both services were asked.
    #[schema(value_type = String, format = DateTime)]
    seen_at: jiff::Timestamp,
    /// Where the next page is; nothing on the last one.
    next: Option<String>,
}

const FIELDS: [Field; 11] = [
    ("node", Of::Uuid, false),
    ("name", Of::Text, true),
    ("provision_state", Of::Text, false),
    ("maintenance", Of::Flag, false),
    ("instance", Of::Uuid, true),
    ("resource_class", Of::Text, true),
    ("provider", Of::Flag, false),
    ("offered", Of::Flag, false),
    ("phase", Of::Text, false),
    ("reason", Of::Text, true),
    ("case", Of::Text, true),
];

fn node_rows() -> Schema {
    rows::list(&FIELDS, false)
}

/// All nodes that Ironic shows, with what Placement has of each, a page at a time. All who ask within a few seconds are
/// answered by the same look at both services.
#[utoipa::path(get, path = "/v1/nodes", tag = "nodes", params(Wanted), responses(
    (status = 200, body = Nodes),
    (status = 400, description = "A query that cannot be understood", body = Problem, content_type = "application/problem+json"),
    (status = 503, description = "Ironic, Placement or the journal cannot be read", body = Problem, content_type = "application/problem+json"),
))]
pub(super) async fn nodes(
    state: State,
    wanted: Result<Query<Wanted>, QueryRejection>,
) -> Result<Json<Nodes>, Problem> {
    let Query(wanted) = wanted?;
    let limit = pages::limit(wanted.limit)?;
    let seen = state.nodes.get(&*state.service.clock, look(&state)).await?;
    let mut meant = seen.what.iter().filter(|row| wanted.is_meant(row));
    let nodes = meant.by_ref().take(limit).cloned().collect::<Vec<_>>();
    let more = meant.next().is_some();
    let next = nodes.last().filter(|_| more).map(|last| {
        let query = [("state", wanted.state.clone())];
        pages::next("/v1/nodes", &query, limit, last.node)
    });
    Ok(Json(Nodes {
        nodes,
        seen_at: seen.seen_at,
        next,
    }))
}

async fn look(shared: &Shared) -> Result<Vec<NodeRow>, Problem> {
    let service = &shared.service;
    let open = read_open(&*service.journal).await;
    let open = open.map_err(|error| Problem::journal(&error))?;
    let mut rows = gather(&service.cloud, &open)
        .await
        .map_err(|error| Problem::cloud("the nodes could not be listed", &error))?;
    rows.sort_by_key(|row| row.node);
    Ok(rows)
}

impl Wanted {
    fn is_meant(&self, row: &NodeRow) -> bool {
        let state = self.state.as_deref();
        self.marker.is_none_or(|marker| row.node > marker)
            && state.is_none_or(|state| row.provision_state.as_str() == state)
    }
}
