//! What does not fit between nodes and providers.

use std::collections::BTreeMap;
use std::time::Duration;

use axum::Json;
use axum::extract::Query;
use axum::extract::rejection::QueryRejection;
use serde::{Deserialize, Serialize};
use tokio::sync::Semaphore;
use unprovision::audit::Finding;
use unprovision::cloud::{Asked, Survey};
use unprovision::journal::read_open;
use utoipa::openapi::Schema;
use utoipa::{IntoParams, ToSchema};

use super::rows::{Field, Of};
use super::{State, rows};
use crate::Shared;
use crate::flight::Flight;
use crate::problem::Problem;

/// How long one answer serves all who ask.
const FRESH: Duration = Duration::from_secs(10);
/// The same for one that costs a request for each provider.
const DEEP: Duration = Duration::from_secs(60);

/// How closely is looked, and at what.
type Key = (bool, Option<String>);

/// The last audits: one of each kind for the whole cloud, and for each scope.
#[derive(Debug)]
pub(crate) struct Audits {
    flights: BTreeMap<Key, Flight<Survey>>,
    /// Deep ones come one after the other.
    deep: Semaphore,
}

impl Audits {
    pub(crate) fn new(asked: &Asked) -> Self {
        let scopes = asked.scopes.iter().map(|scope| Some(scope.name.clone()));
        let all = scopes.chain([None]);
        let flights = all.flat_map(|scope| {
            [(false, FRESH), (true, DEEP)].map(|(deep, fresh)| ((deep, scope.clone()), Flight::new(fresh)))
        });
        Self {
            flights: flights.collect(),
            deep: Semaphore::new(1),
        }
    }
}

/// How closely is looked, and at what.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct Wanted {
    /// Also who holds what: a request for each provider.
    #[serde(default)]
    deep: bool,
    /// Only the nodes of this scope of the configuration.
    scope: Option<String>,
}

/// What an audit has found.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Audit {
    #[schema(schema_with = finding_rows)]
    findings: Vec<Finding>,
    /// When both services were asked.
    #[schema(value_type = String, format = DateTime)]
    seen_at: jiff::Timestamp,
    /// How many nodes Ironic shows.
    nodes: usize,
    /// How many providers of theirs there are.
    providers: usize,
    /// How many that look wrong in the lists were not looked at closer.
    unconfirmed: usize,
    /// Why nothing may be concluded from a provider without a node, if so.
    doubt: Option<String>,
}

const FIELDS: [Field; 18] = [
    ("kind", Of::Text, false),
    ("node", Of::Uuid, false),
    ("name", Of::Text, true),
    ("provision_state", Of::Text, true),
    ("maintenance", Of::Flag, true),
    ("instance", Of::Uuid, true),
    ("resource_class", Of::Text, true),
    ("total", Of::Number, true),
    ("reserved", Of::Number, true),
    ("used", Of::Number, true),
    ("consumers", Of::Texts, true),
    ("traits", Of::Texts, true),
    ("tag", Of::Text, true),
    ("age_s", Of::Number, true),
    ("what", Of::Text, false),
    ("why", Of::Text, false),
    ("advice", Of::Text, false),
    ("commands", Of::Texts, false),
];

fn finding_rows() -> Schema {
    // What the program can do about it follows, with what that needs.
    rows::list(&[&FIELDS[..], &[("remedy", Of::Text, false)]].concat(), true)
}

/// All nodes joined with all providers: what does not fit, why it matters, and what to do. Nothing is changed. All who ask
/// within ten seconds (a minute with `deep`) are answered by the same look.
#[utoipa::path(get, path = "/v1/audit", tag = "nodes", params(Wanted), responses(
    (status = 200, body = Audit),
    (status = 400, description = "A query that cannot be understood", body = Problem, content_type = "application/problem+json"),
    (status = 404, description = "There is no such scope", body = Problem, content_type = "application/problem+json"),
    (status = 503, description = "Ironic, Placement or the journal cannot be read", body = Problem, content_type = "application/problem+json"),
))]
pub(super) async fn audit(
    state: State,
    wanted: Result<Query<Wanted>, QueryRejection>,
) -> Result<Json<Audit>, Problem> {
    let Query(Wanted { deep, scope }) = wanted?;
    let key = (deep, scope);
    let Some(flight) = state.audits.flights.get(&key) else {
        let scope = key.1.unwrap_or_default();
        return Err(Problem::not_found(format!(
            "the configuration has no scope `{scope}`"
        )));
    };
    let survey = flight.get(&*state.service.clock, look(&state, key)).await?;
    Ok(Json(Audit {
        findings: survey.what.findings.clone(),
        seen_at: survey.seen_at,
        nodes: survey.what.nodes,
        providers: survey.what.providers,
        unconfirmed: survey.what.unconfirmed,
        doubt: survey.what.hides_nodes(),
    }))
}

async fn look(shared: &Shared, (deep, only): Key) -> Result<Survey, Problem> {
    let _alone = match deep {
        true => Some(
            shared
                .audits
                .deep
                .acquire()
                .await
                .map_err(|_| Problem::internal())?,
        ),
        false => None,
    };
    let service = &shared.service;
    let open = read_open(&*service.journal).await;
    let open = open.map_err(|error| Problem::journal(&error))?;
    let mut asked = service.audit.clone();
    asked.rules.now = service.clock.now();
    asked.rules.open = open.into_iter().map(|case| (case.node, case.strategy)).collect();
    asked.rules.deep = deep;
    asked.only = only;
    let survey = service.cloud.audit(&asked).await;
    survey.map_err(|error| Problem::cloud("the audit is not complete, so nothing is said", &error))
}
