//! `unprovision resume`: carries on what a crash, Ctrl-C, a time-out or `--no-wait` has left.

use std::process::ExitCode;

use jiff::Timestamp;
use unprovision::core::{Case, Limits};

use super::Global;
use super::follow::{self, Follow};
use crate::config::Config;
use crate::failure::Usage;
use crate::output::{self, Subject};
use crate::stop;
use crate::wire::Wired;

/// Options of `resume`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLE)]
pub(crate) struct Args {
    /// Only these nodes, by name or UUID [default: all that the journal has open]
    #[arg(value_name = "NODE", value_parser = follow::node)]
    nodes: Vec<String>,
    #[command(flatten)]
    follow: Follow,
}

const EXAMPLE: &str = "\
Examples:
  unprovision resume
  unprovision resume node-0001 --reclean 1 --wait=4h";

pub(super) async fn run(args: Args, global: Global) -> anyhow::Result<ExitCode> {
    let loaded = global.load([])?;
    args.follow.check(&loaded.config)?;
    let wired = global.connect(&loaded).await?;
    let cases = args.choose(&wired).await?;
    if cases.is_empty() {
        output::say("nothing is open in the journal; nothing to do");
    }
    let now = wired.clock.now();
    let limits = cases
        .iter()
        .map(|case| Ok((case.id, args.limits(case, &loaded.config, now)?)))
        .collect::<Result<Vec<_>, Usage>>()?;
    let subjects = cases.iter().map(Subject::from).collect::<Vec<_>>();
    let stop = stop::on_signals()?;
    wired.begins(&subjects);
    let until = args.follow.until();
    let results = wired.orchestrator.resume(&limits, until, &stop).await;
    args.follow.report(subjects, results)
}

impl Args {
    /// The open cases that are meant.
    async fn choose(&self, wired: &Wired) -> anyhow::Result<Vec<Case>> {
        let open = wired.orchestrator.open_cases().await?;
        if self.nodes.is_empty() {
            return Ok(open);
        }
        let names = |node: &str, case: &Case| {
            node.parse() == Ok(case.node) || case.found.name.as_deref() == Some(node)
        };
        for node in self
            .nodes
            .iter()
            .filter(|node| !open.iter().any(|case| names(node, case)))
        {
            output::say(&format!("node {node}: nothing is open in the journal"));
        }
        Ok(open
            .into_iter()
            .filter(|case| self.nodes.iter().any(|node| names(node, case)))
            .collect())
    }

    /// What a case may still do. Unless told otherwise, that is what is left of what was allowed at the start.
    fn limits(&self, case: &Case, config: &Config, now: Timestamp) -> Result<Limits, Usage> {
        let left = case.remaining();
        let retry_error = self.follow.retry_error.unwrap_or(left.retry_error);
        let reclean = self.follow.reclean.unwrap_or(left.reclean);
        self.follow.limits(config, now, retry_error, reclean)
    }
}
