//! What the journal has: cases of this guard, of others beside it, and tear-downs.

use axum::Json;
use axum::extract::rejection::{PathRejection, QueryRejection};
use axum::extract::{Path, Query};
use futures::TryStreamExt;
use serde::{Deserialize, Serialize};
use unprovision::core::{Case, CaseState, Entry};
use unprovision::journal::{Journal, JournalError};
use unprovision::view::cases::{CaseRow, Told, read_open};
use utoipa::openapi::Schema;
use utoipa::{IntoParams, ToSchema};
use uuid::Uuid;

use super::rows::{Field, Of};
use super::{State, pages, rows};
use crate::Shared;
use crate::problem::Problem;

/// Which cases are wanted.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct Wanted {
    /// `open`, `suspended`, `closed` or `all`; left out: `open` and `suspended`.
    state: Option<Which>,
    /// Only those of this node, by its name or UUID, its instance, or the case's own UUID.
    node: Option<String>,
    /// How many at most.
    #[param(minimum = 1, maximum = 1000, default = 100)]
    limit: Option<usize>,
    /// Only those after this one, in the order of their UUIDs.
    marker: Option<Uuid>,
}

/// A state of cases.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum Which {
    Open,
    Suspended,
    Closed,
    All,
}

/// A page of cases.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Cases {
    #[schema(schema_with = case_rows)]
    cases: Vec<CaseRow>,
    /// Where the next page is; nothing on the last one.
    next: Option<String>,
}

/// The whole story of a node.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Stories {
    #[schema(schema_with = stories)]
    cases: Vec<Story>,
}

/// A case with all of its entries.
#[derive(Debug, Serialize)]
struct Story {
    #[serde(flatten)]
    row: CaseRow,
    /// What would lift by hand what may still hold the provider.
    commands: Vec<String>,
    entries: Vec<Numbered>,
}

#[derive(Debug, Serialize)]
struct Numbered {
    seq: usize,
    #[serde(flatten)]
    entry: Entry,
}

const FIELDS: [Field; 14] = [
    ("case", Of::Uuid, false),
    ("kind", Of::Text, false),
    ("node", Of::Uuid, false),
    ("name", Of::Text, true),
    ("instance", Of::Uuid, true),
    ("strategy", Of::Text, false),
    ("state", Of::Text, false),
    ("outcome", Of::Text, true),
    ("opened_at", Of::Time, false),
    ("last_entry_at", Of::Time, true),
    ("provision_state", Of::Text, true),
    ("held", Of::Flag, false),
    ("reason", Of::Text, false),
    ("cloud", Of::Text, true),
];

fn case_rows() -> Schema {
    rows::list(&FIELDS, false)
}

fn stories() -> Schema {
    let entries = [("commands", Of::Texts, false), ("entries", Of::Anything, false)];
    rows::list(&[&FIELDS[..], &entries].concat(), false)
}

/// The cases of the journal, a page at a time, in the order of their UUIDs.
#[utoipa::path(get, path = "/v1/cases", tag = "cases", params(Wanted), responses(
    (status = 200, body = Cases),
    (status = 400, description = "A query that cannot be understood", body = Problem, content_type = "application/problem+json"),
    (status = 503, description = "The journal cannot be read", body = Problem, content_type = "application/problem+json"),
))]
pub(super) async fn cases(
    state: State,
    wanted: Result<Query<Wanted>, QueryRejection>,
) -> Result<Json<Cases>, Problem> {
    let Query(wanted) = wanted?;
    let limit = pages::limit(wanted.limit)?;
    let page = wanted.page(&state, limit.saturating_add(1)).await?;
    let mut cases = page.iter().map(Told::row).collect::<Vec<_>>();
    let more = cases.len() > limit;
    cases.truncate(limit);
    let next = cases.last().filter(|_| more).map(|last| {
        let which = wanted.state.and_then(|state| serde_json::to_value(state).ok());
        let which = which.and_then(|state| Some(state.as_str()?.to_owned()));
        let query = [("state", which), ("node", wanted.node.clone())];
        pages::next("/v1/cases", &query, limit, last.case.0)
    });
    Ok(Json(Cases { cases, next }))
}

/// The whole history of a node: all of its cases, each with all of its entries, as they are in the journal.
#[utoipa::path(get, path = "/v1/cases/{node}", tag = "cases", params(
    ("node" = String, Path, description = "The node's name or UUID, its instance's UUID, or the UUID of a case"),
), responses(
    (status = 200, body = Stories),
    (status = 400, description = "A name that cannot be understood", body = Problem, content_type = "application/problem+json"),
    (status = 404, description = "The journal has no case of it", body = Problem, content_type = "application/problem+json"),
    (status = 503, description = "The journal cannot be read", body = Problem, content_type = "application/problem+json"),
))]
pub(super) async fn history(
    state: State,
    node: Result<Path<String>, PathRejection>,
) -> Result<Json<Stories>, Problem> {
    let Path(node) = node?;
    let all = Wanted {
        state: Some(Which::All),
        node: Some(node.clone()),
        limit: None,
        marker: None,
    };
    let mut told = all.page(&state, usize::MAX).await?;
    if told.is_empty() {
        let words = format!("the journal has no case of {node}");
        return Err(Problem::not_found(words).next("/v1/cases?state=all lists those that it has"));
    }
    told.sort_by_key(|told| (told.case.opened_at, told.case.id));
    let cases = told.into_iter().map(Story::from).collect();
    Ok(Json(Stories { cases }))
}

impl Wanted {
    /// So many of those that are meant, after the marker.
    async fn page(&self, shared: &Shared, most: usize) -> Result<Vec<Told>, Problem> {
        // Whoever reads all reads for long; a few of them are enough for a journal that the guard needs as well.
        let place = shared.readers.acquire().await;
        let _place = place.map_err(|_| Problem::internal())?;
        let journal = &*shared.service.journal;
        let page = match self.state {
            Some(Which::Closed | Which::All) => self.of_all(journal, most).await,
            None | Some(Which::Open | Which::Suspended) => self.of_open(journal, most).await,
        };
        page.map_err(|error| Problem::journal(&error))
    }

    async fn of_open(&self, journal: &dyn Journal, most: usize) -> Result<Vec<Told>, JournalError> {
        let mut told = read_open(journal).await?;
        told.retain(|told| self.is_meant(told));
        told.sort_by_key(|told| told.case.id);
        told.truncate(most);
        Ok(told)
    }

    async fn of_all(&self, journal: &dyn Journal, most: usize) -> Result<Vec<Told>, JournalError> {
        let mut ids = journal.cases().try_collect::<Vec<_>>().await?;
        ids.sort();
        let mut page = Vec::new();
        for id in ids
            .into_iter()
            .filter(|id| self.marker.is_none_or(|marker| id.0 > marker))
        {
            if page.len() == most {
                break;
            }
            let entries = journal.read(id).await?;
            let told = Case::fold(id, &entries).map(|case| Told { case, entries });
            page.extend(told.filter(|told| self.is_meant(told)));
        }
        Ok(page)
    }

    fn is_meant(&self, told: &Told) -> bool {
        let state = match self.state {
            None => !told.is_closed(),
            Some(Which::All) => true,
            Some(Which::Open) => matches!(told.case.state, CaseState::Open),
            Some(Which::Suspended) => matches!(told.case.state, CaseState::Suspended(_)),
            Some(Which::Closed) => told.is_closed(),
        };
        let after = self.marker.is_none_or(|marker| told.case.id.0 > marker);
        state && after && self.node.as_deref().is_none_or(|word| told.is_meant(word))
    }
}

impl From<Told> for Story {
    fn from(told: Told) -> Self {
        let entries = told.entries.iter().cloned().enumerate();
        Self {
            row: told.row(),
            commands: unprovision::view::history::commands(&told.case),
            entries: entries
                .map(|(index, entry)| Numbered {
                    seq: index + 1,
                    entry,
                })
                .collect(),
        }
    }
}
