//! `unprovision audit`: what does not fit between Ironic's nodes and Placement's providers.

mod repair;
mod show;

use std::process::ExitCode;

use anyhow::Context as _;
use serde::Serialize;
use unprovision::audit::Finding;
use unprovision::cloud::{Asked, OpenStack, Survey};
use unprovision::core::Case;
use unprovision::guard::{Adapters, Settings};
use unprovision::scope::Scopes;
use unprovision_session::{did_you_mean, nearest};

use self::repair::{Fix, Repair};
use super::{Global, ask, guard};
use crate::config::{Config, HumanDuration, Loaded};
use crate::failure::{self, OTHER, Usage};
use crate::output;
use crate::progress::Progress;
use crate::shape::Shape;
use crate::stop::Signals;
use crate::wire::{self, IN_MEMORY};

/// Something does not fit.
const FOUND: u8 = 3;
/// Something did not fit, and all of it was repaired.
const REPAIRED: u8 = 4;

/// Options of `audit`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLE)]
pub(crate) struct Args {
    /// Also ask for the holders of each provider: one request for each, more where something looks wrong
    #[arg(long)]
    deep: bool,
    /// What is younger may be a change under way, and is no finding; nor is what has an open case in the journal. That a
    /// node is offered although it is not free always is one. With 0s everything counts, changes under way too
    #[arg(long, value_name = "DURATION", default_value_t = wire::GRACE)]
    grace: HumanDuration,
    /// Only the nodes of this scope of the configuration; a provider without a node is in none
    #[arg(long, value_name = "NAME")]
    scope: Option<String>,
    #[command(flatten)]
    fix: Fix,
    #[command(flatten)]
    shape: Shape,
}

const EXAMPLE: &str = "\
Examples:
  unprovision audit
  unprovision audit --deep -o json
  unprovision audit --scope rack-a
  unprovision audit -f value -c kind -c node
  unprovision audit --fix offered-not-free,free-not-offered --dry-run

Without --fix nothing is changed.

Exit status:
  0  all fits
  3  something does not
  4  something did not, and all of it was repaired
  1  an error: not everything could be read, or repaired as it should";

/// An error has the status that OpenStack's own audit gives it, whatever it is about; only what cannot be asked for is bad usage.
pub(super) async fn run(args: Args, global: Global) -> anyhow::Result<ExitCode> {
    match carry_out(args, global).await {
        Err(error) if !error.is::<Usage>() => {
            failure::tell(&error);
            Ok(ExitCode::from(OTHER))
        }
        done => done,
    }
}

async fn carry_out(args: Args, global: Global) -> anyhow::Result<ExitCode> {
    args.shape.check(&show::COLUMNS)?;
    let loaded = global.load([])?;
    args.check()?;
    let signals = Signals::saying(STOPPING)?;
    let scopes = args.scopes(&loaded.config)?;
    let cloud = global.audited(&loaded).await?;
    let open = open(&args.fix, &loaded.config).await?;
    let is_complete = open.is_some();
    let look = args.look(&cloud, &loaded, global.quiet, scopes, open.unwrap_or_default());
    let (asked, survey) = signals.before_anything(look).await?;
    let plans = survey
        .findings
        .iter()
        .map(|finding| args.fix.plan(finding, &survey));
    let plans = plans.collect::<Vec<_>>();
    let planned = survey.findings.iter().zip(&plans);
    let planned = planned.filter_map(|(finding, plan)| matches!(plan, Some(Ok(_))).then_some(finding));
    let planned = planned.collect::<Vec<_>>();
    let mut repairs = if planned.is_empty() || args.fix.dry_run {
        Vec::new()
    } else {
        let guards = guards(&global, &loaded, &planned).await?;
        if !args.fix.yes {
            signals
                .before_anything(ask::confirm(&show::question(&planned)))
                .await?;
        }
        let progress = Progress::new("repairing", "findings repaired", global.quiet);
        let tell = |done, all| progress.tell(done, all);
        let work = repair::repair(&cloud, guards, &planned, &asked.rules, signals.begin(), &tell);
        progress.during(work).await?
    }
    .into_iter();
    let repairs = plans.into_iter().map(|plan| match plan {
        None => None,
        Some(Err(why)) => Some(Repair::Left(why)),
        Some(Ok(words)) => Some(
            repairs
                .next()
                .unwrap_or_else(|| Repair::Left(format!("dry run; {words}"))),
        ),
    });
    let repairs = repairs.collect::<Vec<_>>();
    let code = if is_complete { code(&repairs) } else { OTHER };
    let rows = survey
        .findings
        .iter()
        .zip(repairs)
        .map(|(finding, repair)| Row { finding, repair });
    let rows = rows.collect::<Vec<_>>();
    args.shape.print(&rows, &show::COLUMNS, || {
        show::table(&survey, &rows, asked.rules.deep)
    })?;
    Ok(ExitCode::from(code))
}

/// The cases that are open; nothing where the journal cannot be read, which is told. Nothing is repaired then: who works on a node
/// would not be known.
async fn open(fix: &Fix, config: &Config) -> anyhow::Result<Option<Vec<Case>>> {
    match wire::open_cases(&config.journal).await {
        Err(error) if !fix.is_asked_for() => {
            output::say(&format!(
                "be careful: {}; what has an open case may be among the findings",
                failure::chain(&error, ": ")
            ));
            Ok(None)
        }
        open => open.map(Some),
    }
}

const STOPPING: &str = "stopping as soon as the requests under way are answered; what is held stays held; once more to stop at once";

/// A finding, and what became of it.
#[derive(Debug, Serialize)]
struct Row<'a> {
    #[serde(flatten)]
    finding: &'a Finding,
    /// Nothing where no repair was asked for.
    repair: Option<Repair>,
}

/// What the guard's rules need, where they are needed.
async fn guards(
    global: &Global,
    loaded: &Loaded,
    planned: &[&Finding],
) -> anyhow::Result<Option<(Adapters, Settings)>> {
    if !planned.iter().any(|finding| repair::is_guards(finding)) {
        return Ok(None);
    }
    if &*loaded.config.journal == IN_MEMORY {
        let words = format!(
            "what is held must outlive this process, and `{IN_MEMORY}` does not; set `journal` to a file"
        );
        return Err(Usage(words).into());
    }
    let settings = guard::settings(&loaded.config, false)?;
    let (adapters, _) = global.guard_adapters(loaded).await?;
    Ok(Some((adapters, settings)))
}

fn code(repairs: &[Option<Repair>]) -> u8 {
    let is = |fits: fn(&Repair) -> bool| move |repair: &Option<Repair>| repair.as_ref().is_some_and(fits);
    if repairs
        .iter()
        .any(is(|repair| matches!(repair, Repair::Failed(_))))
    {
        OTHER
    } else if repairs.is_empty() {
        0
    } else if repairs.iter().all(is(|repair| matches!(repair, Repair::Done(_)))) {
        REPAIRED
    } else {
        FOUND
    }
}

impl Args {
    fn check(&self) -> Result<(), Usage> {
        self.fix.check()?;
        let asks = self.fix.is_asked_for() && !self.fix.yes && !self.fix.dry_run;
        if asks && !ask::somebody() {
            let words = "this changes Placement, and there is no terminal to ask on; say --yes to go on";
            return Err(Usage(words.to_owned()));
        }
        Ok(())
    }

    /// The scopes of the configuration; the one that was asked for must be among them.
    fn scopes(&self, config: &Config) -> Result<Scopes, Usage> {
        let scopes = config.scopes().map_err(|problem| Usage(problem.to_string()))?;
        let Some(asked) = &self.scope else {
            return Ok(scopes);
        };
        if scopes.named(asked).is_some() {
            return Ok(scopes);
        }
        let names = scopes.iter().map(|scope| scope.name.as_str()).collect::<Vec<_>>();
        let guess = did_you_mean(nearest(asked, names.iter().copied()));
        Err(Usage(match names.is_empty() {
            true => format!("`--scope {asked}`: the configuration has no `[[scope]]`"),
            false => format!(
                "`--scope {asked}`: there is no such scope{guess}; there are: {}",
                names.join(", ")
            ),
        }))
    }

    /// All that comes before the first write.
    async fn look(
        &self,
        cloud: &OpenStack,
        loaded: &Loaded,
        quiet: bool,
        scopes: Scopes,
        open: Vec<Case>,
    ) -> anyhow::Result<(Asked, Survey)> {
        let asked = self.asked(&loaded.config, scopes, open)?;
        let progress = Progress::new("listing nodes and providers", "providers looked at", quiet);
        let tell = |done, all| progress.tell(done, all);
        let survey = progress.during(cloud.audit_telling(&asked, &tell)).await;
        drop(progress);
        let survey = survey.context("the audit is not complete, so nothing is said")?;
        if let Some(why) = survey.hides_nodes() {
            anyhow::ensure!(survey.nodes > 0, "{why}");
            output::say(&format!("be careful: {why}"));
        }
        Ok((asked, survey))
    }

    fn asked(&self, config: &Config, scopes: Scopes, open: Vec<Case>) -> anyhow::Result<Asked> {
        let mut asked = wire::asked(config, scopes, self.grace)?;
        let strategy = |case: Case| (case.node, case.strategy);
        asked.rules.open = open.into_iter().map(strategy).collect();
        asked.rules.deep = self.deep || self.fix.needs_deep();
        asked.only.clone_from(&self.scope);
        Ok(asked)
    }
}
