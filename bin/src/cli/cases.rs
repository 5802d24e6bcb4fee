//! `unprovision cases`: what the journal has, without asking the cloud.

use std::process::ExitCode;
use std::sync::Arc;

use unprovision::journal::{Journal, JournalError, shown};
use unprovision::view::cases::COLUMNS;
use unprovision::view::{self, CaseRow, Told};

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

/// All that the journal has; nothing where there is none. One that cannot be read is an error: it may be the one.
pub(super) async fn read_all(journal: Option<&dyn Journal>) -> Result<Vec<Told>, JournalError> {
    match journal {
        Some(journal) => view::cases::read_all(journal).await,
        None => Ok(Vec::new()),
    }
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
    let told = match &journal {
        None => Vec::new(),
        Some(journal) if args.all => view::cases::read_all(&**journal).await?,
        Some(journal) => view::cases::read_open(&**journal).await?,
    };
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

fn table(rows: &[CaseRow]) -> String {
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
