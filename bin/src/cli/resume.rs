//! `unprovision resume`: carries on what a crash, Ctrl-C, a time-out or `--no-wait` has left.

use std::process::ExitCode;

use jiff::Timestamp;
use unprovision::core::{Case, Limits};
use unprovision::journal;
use unprovision::view::cases::is_meant;
use unprovision_session::{did_you_mean, nearest};

use super::Global;
use super::follow::{self, Follow};
use crate::config::{Config, Loaded};
use crate::failure::{Problems, Usage};
use crate::output::{self, Subject};
use crate::stop::Signals;
use crate::wire::Wired;

/// Options of `resume`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLE)]
pub(crate) struct Args {
    /// Only these nodes, by name or UUID; also by the instance's or the case's UUID [default: all that the journal has
    /// open of this cloud]
    #[arg(value_name = "NODE", value_parser = follow::node)]
    nodes: Vec<String>,
    /// Go on although the journal names another cloud: this one is the same, and its address has changed
    #[arg(long, requires = "nodes")]
    cloud_moved: bool,
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
    let signals = Signals::new()?;
    let (wired, cases) = signals.before_anything(args.prepare(&global, &loaded)).await?;
    if cases.is_empty() {
        output::say(&match wired.orchestrator.guards_cases().await?.len() {
            0 => "nothing is open in the journal; nothing to do".to_owned(),
            guards => format!(
                "no tear-down is open in the journal; nothing to do here ({})",
                carried_on(guards)
            ),
        });
    }
    let now = wired.clock.now();
    let limits = cases
        .iter()
        .map(|case| Ok((case.id, args.limits(case, &loaded.config, now)?)))
        .collect::<Result<Vec<_>, Usage>>()?;
    let subjects = cases.iter().map(Subject::from).collect::<Vec<_>>();
    let stop = signals.begin();
    subjects
        .iter()
        .for_each(|subject| wired.tell(subject, "is taken up again"));
    let until = args.follow.until();
    let counting = wired.counting(subjects.len(), until);
    let results = wired.orchestrator.resume(&limits, until, stop).await;
    drop(counting);
    args.follow.report(subjects, results)
}

impl Args {
    /// All that comes before the first write, of the journal too.
    async fn prepare(&self, global: &Global, loaded: &Loaded) -> anyhow::Result<(Wired, Vec<Case>)> {
        let wired = match self.cloud_moved {
            true => global.connect_moved(loaded).await?,
            false => global.connect(loaded).await?,
        };
        let open = wired.orchestrator.open_cases().await?;
        let cases = match self.nodes.as_slice() {
            [] => ours(&wired, open)?,
            named => {
                let guards = wired.orchestrator.guards_cases().await?;
                chosen(
                    &wired,
                    open,
                    &guards,
                    named,
                    &journal::shown(&loaded.config.journal),
                )?
            }
        };
        Ok((wired, cases))
    }

    /// What a case may still do. Unless told otherwise, that is what is left of what was allowed at the start.
    fn limits(&self, case: &Case, config: &Config, now: Timestamp) -> Result<Limits, Usage> {
        let left = case.remaining();
        let retry_error = self.follow.retry_error.unwrap_or(left.retry_error);
        let reclean = self.follow.reclean.unwrap_or(left.reclean);
        self.follow.limits(config, now, retry_error, reclean)
    }
}

/// The open cases that are meant. What the journal does not have, or has of another cloud, is an error.
fn chosen(
    wired: &Wired,
    open: Vec<Case>,
    guards: &[Case],
    named: &[String],
    journal: &str,
) -> anyhow::Result<Vec<Case>> {
    let known = match (open.as_slice(), guards.len()) {
        ([], 0) => "nothing".to_owned(),
        ([], guards) => format!("no tear-down; {}", carried_on(guards)),
        (open, _) => open.iter().map(shown).collect::<Vec<_>>().join(", "),
    };
    Problems::sort(named.iter().map(|word| {
        let found = open.iter().filter(|case| is_meant(word, case)).collect::<Vec<_>>();
        if found.is_empty() && guards.iter().any(|case| is_meant(word, case)) {
            let problem =
                format!("the case of {word} in the journal {journal} is the guard's: `unprovision guard` carries it on");
            return Err(Usage(problem).into());
        }
        if found.is_empty() {
            let guess = did_you_mean(nearest(
                word,
                open.iter().filter_map(|case| case.found.name.as_deref()),
            ));
            let problem =
                format!("nothing is open for {word} in the journal {journal} (open: {known}){guess}");
            return Err(Usage(problem).into());
        }
        found
            .into_iter()
            .try_for_each(|case| wired.orchestrator.belongs_here(case))?;
        Ok(())
    }))?;
    Ok(open
        .into_iter()
        .filter(|case| named.iter().any(|word| is_meant(word, case)))
        .collect())
}

/// The open cases of this cloud. Those of others are named and left alone; it is an error if there are no more than those.
fn ours(wired: &Wired, open: Vec<Case>) -> anyhow::Result<Vec<Case>> {
    let (mut ours, mut others) = (Vec::new(), Vec::new());
    for case in open {
        match wired.orchestrator.belongs_here(&case) {
            Ok(()) => ours.push(case),
            Err(error) => others.push(error),
        }
    }
    if ours.is_empty() && !others.is_empty() {
        Problems::sort(others.into_iter().map(|error| Err::<(), _>(error.into())))?;
        return Ok(ours);
    }
    for error in others {
        output::say(&format!("left alone: {error}"));
    }
    Ok(ours)
}

fn carried_on(guards: usize) -> String {
    match guards {
        1 => "1 case is the guard's: `unprovision guard` carries it on".to_owned(),
        guards => format!("{guards} cases are the guard's: `unprovision guard` carries them on"),
    }
}

fn shown(case: &Case) -> String {
    case.found.name.clone().unwrap_or_else(|| case.node.to_string())
}
