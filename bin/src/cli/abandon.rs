//! `unprovision abandon NODE`: an operator's signed end of a case.

use std::process::ExitCode;

use anyhow::Context as _;
use jiff::SignedDuration;
use serde::Serialize;
use unprovision::NodeUuid;
use unprovision::cloud::Reads;
use unprovision::core::{CaseId, CaseState};
use unprovision::journal::Seq;
use unprovision::view::Told;

use super::{Global, ask, follow, show};
use crate::failure::Usage;
use crate::output::{self, Format, plain};
use crate::stop::Signals;
use crate::wire::Wired;

/// Whoever works on a case may have written something so lately.
const LATELY: SignedDuration = SignedDuration::from_secs(10);

/// Options of `abandon`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLE)]
pub(crate) struct Args {
    /// A node with an open case, by name or UUID; also by the instance's or the case's UUID
    #[arg(value_name = "NODE", value_parser = follow::node)]
    node: String,
    /// Why; the journal keeps it, with who said so and when
    #[arg(long, value_name = "TEXT", value_parser = reason)]
    reason: String,
    /// Also undo exactly what the case has set, whatever the node is: it may be offered although it is not free
    #[arg(long)]
    undo: bool,
    /// Do not ask
    #[arg(long, short)]
    yes: bool,
    /// How the result is shown on standard output
    #[arg(short, long, value_enum, value_name = "FORMAT", default_value = "table")]
    output: Format,
}

const EXAMPLE: &str = "\
Example:
  unprovision abandon node-0001 --reason 'the rack is sold' --undo

Stop the guard, or whatever works on the case, first. Without --undo all stays in Placement as it is.";

/// What became of one case.
#[derive(Debug, Serialize)]
struct Row {
    /// The case.
    case: CaseId,
    /// The node.
    node: NodeUuid,
    /// Its name.
    name: Option<String>,
    /// What the journal keeps.
    signed: String,
    /// What was undone.
    undone: Vec<String>,
    /// What of ours is left, as the commands that lift it.
    left: Vec<String>,
}

pub(super) async fn run(args: Args, global: Global) -> anyhow::Result<ExitCode> {
    let loaded = global.load([])?;
    if !args.yes && !ask::somebody() {
        let words = "this ends the case for good, and there is no terminal to ask on; say --yes to go on";
        return Err(Usage(words.to_owned()).into());
    }
    let signals = Signals::saying(STOPPING)?;
    let (wired, open) = signals
        .before_anything(async {
            let mut told = show::find(&args.node, &loaded.config.journal).await?;
            told.retain(|told| !matches!(told.case.state, CaseState::Closed(_)));
            anyhow::ensure!(
                !told.is_empty(),
                Usage(format!("no case of {} is open", args.node))
            );
            let wired = global.connect(&loaded).await?;
            args.check(&wired, &told).await?;
            Ok((wired, told))
        })
        .await?;
    signals.begin();
    let signed = format!("abandoned by {}: {}", who(), args.reason);
    let mut rows = Vec::with_capacity(open.len());
    for told in open {
        let after = Seq(told.entries.len() as u64);
        let done = wired
            .orchestrator
            .abandon(told.case.id, after, &signed, args.undo)
            .await;
        let done = done.with_context(|| {
            let node = output::node_name(told.case.found.name.as_deref(), told.case.node);
            format!(
                "the case of node {node} is not ended; `unprovision show {node} --look` shows how far it is"
            )
        })?;
        rows.push(Row {
            case: told.case.id,
            node: told.case.node,
            name: told.case.found.name,
            signed: signed.clone(),
            undone: done.undone.iter().map(ToString::to_string).collect(),
            left: done.left,
        });
    }
    match args.output {
        Format::Json => output::print(&serde_json::to_string_pretty(&rows)?)?,
        Format::Table => output::print(&rows.iter().map(text).collect::<Vec<_>>().join("\n"))?,
    }
    Ok(ExitCode::SUCCESS)
}

const STOPPING: &str = "stopping as soon as this case is done with; once more to stop at once";

impl Args {
    /// Refuses a case that somebody works on, as far as that can be told; says what is left, and asks.
    async fn check(&self, wired: &Wired, open: &[Told]) -> anyhow::Result<()> {
        let mut question = String::new();
        for Told { case, entries } in open {
            wired.orchestrator.belongs_here(case)?;
            let since = entries
                .last()
                .map(|entry| wired.clock.now().duration_since(entry.at));
            if matches!(case.state, CaseState::Open) && since.is_some_and(|since| since < LATELY) {
                let words = "somebody seems to work on the case: something was written down a moment ago; stop that first";
                return Err(Usage(words.to_owned()).into());
            }
            let node = output::node_name(case.found.name.as_deref(), case.node);
            let seen = wired.cloud.observe(case.node, Reads::everything()).await;
            let seen =
                seen.with_context(|| format!("node {node} could not be looked at; nothing was touched"))?;
            let state = seen.node.as_ref().map(|node| node.provision_state.to_string());
            let state = state.unwrap_or_else(|| "not known to Ironic".to_owned());
            question.push_str(&format!("{} is {}; of ours is left:", node, plain(&state)));
            let left = case.left_behind(&seen);
            match left.is_empty() {
                true => question.push_str(" nothing\n"),
                false => question.push_str(&format!("\n  {}\n", left.join("\n  "))),
            }
        }
        question.push_str(match self.undo {
            true => {
                "Undo that, also where the node is then offered although it is not free, and end the case?"
            }
            false => "Leave that as it is, and end the case?",
        });
        match self.yes {
            true => Ok(()),
            false => ask::confirm(&question).await,
        }
    }
}

/// Whoever runs this, on this machine.
fn who() -> String {
    let user = ["USER", "LOGNAME"]
        .into_iter()
        .find_map(|name| std::env::var(name).ok());
    let user = user.filter(|name| !name.is_empty());
    user.unwrap_or_else(|| format!("user {}", rustix::process::getuid().as_raw()))
}

fn reason(text: &str) -> Result<String, String> {
    match text.trim() {
        "" => Err("say why".to_owned()),
        text => Ok(text.to_owned()),
    }
}

fn text(row: &Row) -> String {
    let name = output::node_name(row.name.as_deref(), row.node);
    let mut text = format!("{name}: {}", plain(&row.signed));
    for undone in &row.undone {
        text.push_str(&format!("\n  undone: {}", plain(undone)));
    }
    for left in &row.left {
        text.push_str(&format!("\n  left, once the node is free: {}", plain(left)));
    }
    text
}
