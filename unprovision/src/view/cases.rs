//! The cases of a journal, without asking the cloud.

use ironic_client::{NodeUuid, ProvisionState};
use jiff::Timestamp;
use serde::Serialize;
use uuid::Uuid;

use crate::core::{Case, CaseId, CaseState, Ending, Entry, Outcome};
#[cfg(feature = "orchestrator")]
use crate::journal::{Journal, JournalError};

/// A case as the journal has it.
#[derive(Clone, Debug)]
pub struct Told {
    /// What its entries amount to.
    pub case: Case,
    /// All of them, in order.
    pub entries: Vec<Entry>,
}

/// What is known of a case in one line.
#[derive(Clone, Debug, Serialize)]
pub struct CaseRow {
    /// The case.
    pub case: CaseId,
    /// `tear-down`, or `guard` where somebody else tears down.
    pub kind: &'static str,
    /// The node.
    pub node: NodeUuid,
    /// Its name, when the case was opened.
    pub name: Option<String>,
    /// The instance that leaves, where anybody knows it.
    pub instance: Option<Uuid>,
    /// The strategy's name.
    pub strategy: String,
    /// `open`, `suspended` (nobody works on it until `resume`) or `closed`.
    pub state: &'static str,
    /// How it ended, for good or for now.
    pub outcome: Option<Outcome>,
    /// When it was opened.
    pub opened_at: Timestamp,
    /// When something was written down last.
    pub last_entry_at: Option<Timestamp>,
    /// The node's state when it was seen last.
    pub provision_state: Option<ProvisionState>,
    /// Whether something of ours may hold the provider.
    pub held: bool,
    /// Why it ended, or what it is at.
    pub reason: String,
    /// The cloud that it was begun in.
    pub cloud: Option<String>,
}

/// The columns, which are the keys of the JSON.
pub const COLUMNS: [&str; 14] = [
    "case",
    "kind",
    "node",
    "name",
    "instance",
    "strategy",
    "state",
    "outcome",
    "opened_at",
    "last_entry_at",
    "provision_state",
    "held",
    "reason",
    "cloud",
];

impl Told {
    /// Whether it has ended for good.
    pub fn is_closed(&self) -> bool {
        matches!(self.case.state, CaseState::Closed(_))
    }

    /// Whether the word means this case: by its node's name or UUID, its instance, or its own UUID.
    pub fn is_meant(&self, word: &str) -> bool {
        is_meant(word, &self.case)
    }

    /// The case in one line.
    pub fn row(&self) -> CaseRow {
        let case = &self.case;
        let (state, ending) = match &case.state {
            CaseState::Open => ("open", None),
            CaseState::Suspended(ending) => ("suspended", Some(ending)),
            CaseState::Closed(ending) => ("closed", Some(ending)),
        };
        CaseRow {
            case: case.id,
            kind: if case.is_guard() { "guard" } else { "tear-down" },
            node: case.node,
            name: case.found.name.clone(),
            instance: case.instance(),
            strategy: case.strategy.clone(),
            state,
            outcome: ending.map(|ending| ending.outcome),
            opened_at: case.opened_at,
            last_entry_at: self.entries.last().map(|entry| entry.at),
            provision_state: case.seen.as_ref().map(|(state, _)| state.clone()),
            held: ending.map_or_else(|| case.may_hold(), |ending| ending.held),
            reason: self.at(ending),
            cloud: case.cloud.clone(),
        }
    }

    /// Why it ended, or what it is at. What a worker waits for just now only the worker knows.
    fn at(&self, ending: Option<&Ending>) -> String {
        let refused = self.case.attempts.values().max_by_key(|attempts| attempts.at);
        let refused = refused.and_then(|attempts| {
            let refusal = self.case.refusal(attempts.action.kind())?;
            Some(format!("refused: {}: {refusal}", attempts.action))
        });
        let sent = self.case.pending.as_ref();
        let sent = sent.map(|write| format!("about to {write}; what became of it is not on record"));
        let seen = self.case.seen.as_ref();
        let seen = seen.map(|(state, since)| format!("the node is `{state}` since {since:.0}"));
        let ended = ending.map(|ending| ending.reason.clone());
        let first = [ended, sent, refused, seen].into_iter().flatten().next();
        first.unwrap_or_else(|| "the node was not seen yet".to_owned())
    }
}

/// Whether the word means this case: by its node's name or UUID, its instance, or its own UUID.
pub fn is_meant(word: &str, case: &Case) -> bool {
    let uuid = word.parse::<Uuid>().ok();
    let by_uuid = |uuid| [case.node.0, case.id.0].contains(&uuid) || case.instance() == Some(uuid);
    case.found.name.as_deref() == Some(word) || uuid.is_some_and(by_uuid)
}

/// All that the journal has, in the order in which it began.
///
/// # Errors
///
/// Where one of them cannot be read: it may be the one.
#[cfg(feature = "orchestrator")]
pub async fn read_all(journal: &dyn Journal) -> Result<Vec<Told>, JournalError> {
    use futures::TryStreamExt;

    let ids = journal.cases().try_collect::<Vec<_>>().await?;
    let mut all = Vec::with_capacity(ids.len());
    for id in ids {
        let entries = journal.read(id).await?;
        all.extend(Case::fold(id, &entries).map(|case| Told { case, entries }));
    }
    Ok(in_order(all))
}

/// The same, of those that have not ended.
///
/// # Errors
///
/// The same.
#[cfg(feature = "orchestrator")]
pub async fn read_open(journal: &dyn Journal) -> Result<Vec<Told>, JournalError> {
    use futures::TryStreamExt;

    let open = journal.open_entries();
    let told = open.try_filter_map(async |(id, entries)| {
        let case = Case::fold(id, &entries);
        Ok(case.map(|case| Told { case, entries }))
    });
    Ok(in_order(told.try_collect().await?))
}

#[cfg(feature = "orchestrator")]
fn in_order(mut all: Vec<Told>) -> Vec<Told> {
    all.sort_by_key(|told| (told.case.opened_at, told.case.id));
    all
}
