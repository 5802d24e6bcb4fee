//! `unprovision show NODE`: the whole story of one node, from the journal alone.

use std::process::ExitCode;

use serde::Serialize;
use unprovision::core::{Case, CaseState, Entry};
use unprovision::journal::shown;
use unprovision_session::{did_you_mean, nearest};

use super::cases::{self, Row, Told};
use super::{Global, follow};
use crate::failure::Usage;
use crate::observer;
use crate::output::{self, Format, plain};

/// Options of `show`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLE)]
pub(crate) struct Args {
    /// A node, by name or UUID; also by the instance's or the case's UUID
    #[arg(value_name = "NODE", value_parser = follow::node)]
    node: String,
    /// How it is shown on standard output
    #[arg(short, long, value_enum, value_name = "FORMAT", default_value = "table")]
    output: Format,
}

const EXAMPLE: &str = "\
Example:
  unprovision show node-0001

Only the journal is read: what was seen, decided, done and answered, and what it is at.";

/// A case with all of its entries.
#[derive(Debug, Serialize)]
struct Story<'a> {
    #[serde(flatten)]
    row: Row,
    /// What would lift by hand what may still hold the provider.
    commands: Vec<String>,
    /// All entries, as they are in the journal.
    entries: &'a [Entry],
}

pub(super) async fn run(args: Args, global: Global) -> anyhow::Result<ExitCode> {
    let loaded = global.load([])?;
    let told = find(&args.node, &loaded.config.journal).await?;
    match args.output {
        Format::Json => {
            let stories = told.iter().map(|told| Story {
                row: told.row(),
                commands: commands(&told.case),
                entries: &told.entries,
            });
            output::print(&serde_json::to_string_pretty(&stories.collect::<Vec<_>>())?)?;
        }
        Format::Table => {
            let stories = told.iter().map(story).collect::<Vec<_>>();
            output::print(&stories.join("\n\n"))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// All cases that are meant by this word; it is an error if there is none.
pub(super) async fn find(word: &str, place: &str) -> anyhow::Result<Vec<Told>> {
    let all = match cases::journal(place).await? {
        Some(journal) => cases::read_all(&*journal).await?,
        None => Vec::new(),
    };
    let names = all.iter().filter_map(|told| told.case.found.name.as_deref());
    let guess = did_you_mean(nearest(word, names));
    let unknown = format!("the journal {} has no case of {word}{guess}", shown(place));
    let meant = all
        .into_iter()
        .filter(|told| cases::is_meant(word, &told.case))
        .collect::<Vec<_>>();
    match meant.is_empty() {
        true => Err(Usage(unknown).into()),
        false => Ok(meant),
    }
}

fn commands(case: &Case) -> Vec<String> {
    let holds = case.may_hold() && !matches!(case.state, CaseState::Closed(_));
    if holds { case.by_hand() } else { Vec::new() }
}

/// A line for each entry, told as the case was at that time.
fn story(told: &Told) -> String {
    let case = &told.case;
    let name = output::node_name(case.found.name.as_deref(), case.node);
    let leaves = case
        .instance()
        .map_or_else(String::new, |instance| format!(", instance {instance}"));
    let mut text = format!("{name} ({}){leaves}\ncase {}", case.node, case.id);
    let mut then: Option<Case> = None;
    for entry in &told.entries {
        match &mut then {
            Some(case) => case.push(entry),
            None => then = Case::fold(case.id, [entry]),
        }
        let Some(case) = &then else { continue };
        text.push_str(&format!(
            "\n  {:.3} {}",
            entry.at,
            plain(&observer::words(case, entry))
        ));
    }
    let row = told.row();
    let state = match row.outcome {
        Some(outcome) => format!("{}, {outcome}", row.state),
        None => row.state.to_owned(),
    };
    let held = match row.held {
        true => "; something of ours may hold the provider",
        false => "",
    };
    text.push_str(&format!("\n  now: {state}{held}: {}", plain(&row.reason)));
    for command in commands(case) {
        text.push_str(&format!(
            "\n    once the node is free, by hand: {}",
            plain(&command)
        ));
    }
    text
}
