//! `unprovision resume`: carries on what a crash, Ctrl-C, a time-out or `--no-wait` has left.

use std::process::ExitCode;

use futures::future::join_all;
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
    let groups = args.groups(cases, &loaded.config, wired.clock.now())?;
    let subjects = groups
        .iter()
        .flat_map(|(_, cases)| cases)
        .map(Subject::from)
        .collect::<Vec<_>>();
    let stop = stop::on_signals()?;
    wired.begins(&subjects);
    let until = args.follow.until();
    let resumed = groups
        .iter()
        .map(|(limits, cases)| wired.orchestrator.resume(cases, *limits, until, &stop));
    let results = join_all(resumed).await.into_iter().flatten().collect();
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

    /// The cases by their limits. Unless told otherwise, what was allowed at the start still is.
    fn groups(
        &self,
        cases: Vec<Case>,
        config: &Config,
        now: Timestamp,
    ) -> Result<Vec<(Limits, Vec<Case>)>, Usage> {
        let mut groups: Vec<(Limits, Vec<Case>)> = Vec::new();
        for case in cases {
            let retry_error = self.follow.retry_error.unwrap_or(case.limits.retry_error);
            let reclean = self.follow.reclean.unwrap_or(case.limits.reclean);
            let limits = self.follow.limits(config, now, retry_error, reclean)?;
            match groups.iter_mut().find(|(of, _)| *of == limits) {
                Some((_, group)) => group.push(case),
                None => groups.push((limits, vec![case])),
            }
        }
        Ok(groups)
    }
}
