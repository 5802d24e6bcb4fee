//! `unprovision cases`: what the journal has, without asking the cloud.

use std::process::ExitCode;
use std::sync::Arc;

use futures::TryStreamExt;
use ironic_client::ProvisionState;
use jiff::Timestamp;
use serde::Serialize;
use unprovision::NodeUuid;
use unprovision::core::{Case, CaseId, CaseState, Ending, Entry, Outcome};
use unprovision::journal::{Journal, shown};
use uuid::Uuid;

use super::Global;
use crate::failure::Usage;
use crate::output::{self, plain};
use crate::shape::Shape;
use crate::wire;

/// Options of `cases`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLE)]
pub(crate) struct Args {
    /// Also those that have ended
    #[arg(long)]
    all: bool,
    #[command(flatten)]
    shape: Shape,
}

const EXAMPLE: &str = "\
Examples:
  unprovision cases
  unprovision cases --all -o json
  unprovision cases -f value -c name -c reason

Only the journal is read. `unprovision show NODE` tells the whole story of one node.";

/// The columns, which are the keys of the JSON.
const COLUMNS: [&str; 14] = [
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

/// A case as the journal has it.
#[derive(Debug)]
pub(super) struct Told {
    pub(super) case: Case,
    pub(super) entries: Vec<Entry>,
}

/// What is known of a case in one line.
#[derive(Debug, Serialize)]
pub(super) struct Row {
    /// The case.
    case: CaseId,
    /// `tear-down`, or `guard` where somebody else tears down.
    kind: &'static str,
    /// The node.
    node: NodeUuid,
    /// Its name, when the case was opened.
    name: Option<String>,
    /// The instance that leaves, where anybody knows it.
    instance: Option<Uuid>,
    /// The strategy's name.
    strategy: String,
    /// `open`, `suspended` (nobody works on it until `resume`) or `closed`.
    pub(super) state: &'static str,
    /// How it ended, for good or for now.
    pub(super) outcome: Option<Outcome>,
    /// When it was opened.
    opened_at: Timestamp,
    /// When something was written down last.
    last_entry_at: Option<Timestamp>,
    /// The node's state when it was seen last.
    provision_state: Option<ProvisionState>,
    /// Whether something of ours may hold the provider.
    pub(super) held: bool,
    /// Why it ended, or what it is at.
    pub(super) reason: String,
    /// The cloud that it was begun in.
    cloud: Option<String>,
}

impl Told {
    pub(super) fn row(&self) -> Row {
        let case = &self.case;
        let (state, ending) = match &case.state {
            CaseState::Open => ("open", None),
            CaseState::Suspended(ending) => ("suspended", Some(ending)),
            CaseState::Closed(ending) => ("closed", Some(ending)),
        };
        Row {
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
pub(super) fn is_meant(word: &str, case: &Case) -> bool {
    let uuid = word.parse::<Uuid>().ok();
    let by_uuid = |uuid| [case.node.0, case.id.0].contains(&uuid) || case.instance() == Some(uuid);
    case.found.name.as_deref() == Some(word) || uuid.is_some_and(by_uuid)
}

/// All that the journal has, in the order in which it began; nothing where there is none. One that cannot be read is an error: it may
/// be the one.
pub(super) async fn read_all(journal: Option<&dyn Journal>) -> anyhow::Result<Vec<Told>> {
    let Some(journal) = journal else {
        return Ok(Vec::new());
    };
    let ids = journal.cases().try_collect::<Vec<_>>().await?;
    let mut all = Vec::with_capacity(ids.len());
    for id in ids {
        let entries = journal.read(id).await?;
        all.extend(Case::fold(id, &entries).map(|case| Told { case, entries }));
    }
    all.sort_by_key(|told| (told.case.opened_at, told.case.id));
    Ok(all)
}

/// The journal that is only read, and made by nobody.
pub(super) async fn journal(place: &str) -> anyhow::Result<Option<Arc<dyn Journal>>> {
    if place == wire::IN_MEMORY {
        let words = format!("the journal `{place}` is gone with each process: there is nothing to read");
        return Err(Usage(words).into());
    }
    wire::journal_if_any(place).await
}

pub(super) async fn run(args: Args, global: Global) -> anyhow::Result<ExitCode> {
    args.shape.check(&COLUMNS)?;
    let loaded = global.load([])?;
    let place = &loaded.config.journal;
    let journal = journal(place).await?;
    let mut told = read_all(journal.as_deref()).await?;
    told.retain(|told| args.all || !matches!(told.case.state, CaseState::Closed(_)));
    let rows = told.iter().map(Told::row).collect::<Vec<_>>();
    if journal.is_none() {
        output::say(&no_journal(place));
    }
    args.shape.print(&rows, &COLUMNS, || match rows.is_empty() {
        true => {
            let open = if args.all { "" } else { "open " };
            format!("there is no {open}case in the journal {}", shown(place))
        }
        false => table(&rows),
    })?;
    Ok(ExitCode::SUCCESS)
}

/// Said where nothing is known because there is no journal: that is not the same as nothing being held.
pub(super) fn no_journal(place: &str) -> String {
    format!(
        "there is no journal {} yet; if something was begun before, `journal` or the user is another one than then",
        shown(place)
    )
}

fn table(rows: &[Row]) -> String {
    let mut table = output::new_table(&[
        "node", "kind", "strategy", "state", "outcome", "seen", "held", "since",
    ]);
    let mut reasons = String::new();
    for row in rows {
        let name = output::node_name(row.name.as_deref(), row.node);
        reasons.push_str(&format!("\n{name}: {}", plain(&row.reason)));
        table.add_row([
            name,
            row.kind.to_owned(),
            plain(&row.strategy),
            row.state.to_owned(),
            row.outcome
                .map_or_else(|| "-".to_owned(), |outcome| outcome.to_string()),
            row.provision_state
                .as_ref()
                .map_or_else(|| "-".to_owned(), |state| plain(&state.to_string())),
            if row.held { "yes" } else { "no" }.to_owned(),
            format!("{:.0}", row.opened_at),
        ]);
    }
    format!("{table}{reasons}")
}
