//! The repairs of `unprovision audit --fix`.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use serde::Serialize;
use tokio_util::sync::CancellationToken;
use unprovision::NodeUuid;
use unprovision::audit::{Finding, FindingKind, Remedy, Rules};
use unprovision::cloud::{Mended, OpenStack, Survey};
use unprovision::guard::{Adapters, Guard, Pass, Settings};
use unprovision::journal::read_open;
use unprovision_session::Class;

use crate::failure::{Usage, with_next};

/// Which findings may be repaired, and whether it is only said.
#[derive(Clone, Debug, clap::Args)]
pub(super) struct Fix {
    /// Repair findings of these kinds
    #[arg(long, value_name = "KIND", num_args = 1.., value_delimiter = ',', value_parser = kinds(), conflicts_with = "fix_all")]
    fix: Vec<FindingKind>,
    /// Repair all that is safe: offered-not-free, and free-not-offered where Nova made the provider. An allocation or a provider
    /// is only deleted, and a hold, tag or reservation that nobody explains only lifted, where --fix names the kind
    #[arg(long)]
    fix_all: bool,
    /// Do not ask
    #[arg(long, short)]
    pub(super) yes: bool,
    /// Say what would be repaired, and repair nothing
    #[arg(long)]
    pub(super) dry_run: bool,
}

/// What became of a finding.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Repair {
    /// It was repaired, and how.
    Done(String),
    /// It was not, and why.
    Left(String),
    /// It was tried in vain, and why.
    Failed(String),
}

impl fmt::Display for Repair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Done(words) => write!(f, "repaired: {words}"),
            Self::Left(words) => write!(f, "left: {words}"),
            Self::Failed(words) => write!(f, "FAILED: {words}"),
        }
    }
}

impl Fix {
    /// Whether anything is to be repaired.
    pub(super) fn is_asked_for(&self) -> bool {
        self.fix_all || !self.fix.is_empty()
    }

    /// Whether a kind was named that only a look at each provider shows.
    pub(super) fn needs_deep(&self) -> bool {
        self.fix.iter().any(|kind| kind.is_deep())
    }

    /// Refuses what cannot be done as it was asked for.
    pub(super) fn check(&self) -> Result<(), Usage> {
        let by_hand = self.fix.iter().find(|kind| !kind.is_repairable());
        if let Some(kind) = by_hand {
            return Err(Usage(format!(
                "`--fix {kind}`: a person has to decide about these; the audit says what to do for each"
            )));
        }
        if (self.yes || self.dry_run) && !self.is_asked_for() {
            return Err(Usage("--yes and --dry-run go with --fix or --fix-all".to_owned()));
        }
        Ok(())
    }

    /// What would be done to the finding; `None` where nothing was asked for, or why nothing is done.
    pub(super) fn plan(&self, finding: &Finding, survey: &Survey) -> Option<Result<&'static str, String>> {
        if !self.is_asked_for() {
            return None;
        }
        let Some(needs) = finding.remedy.needs(finding.kind) else {
            return Some(Err("a person has to decide".to_owned()));
        };
        let named = match self.fix_all {
            true => !needs.must_be_named(),
            false => self.fix.contains(&needs),
        };
        if !named {
            return Some(Err(format!("only with --fix {needs}")));
        }
        if let Some(why) = survey.unguarded.get(&finding.node) {
            return Some(Err(why.clone()));
        }
        match (finding.kind, survey.hides_nodes()) {
            (FindingKind::ProviderOrphaned, Some(why)) => Some(Err(why)),
            _ => Some(Ok(finding.remedy.words())),
        }
    }
}

/// The kinds that can be completed by a shell; one that a person has to decide about is refused with its reason later.
fn kinds() -> impl TypedValueParser<Value = FindingKind> {
    let names = FindingKind::ALL.map(|kind| PossibleValue::new(kind.name()).hide(!kind.is_repairable()));
    PossibleValuesParser::new(names).try_map(|name| name.parse::<FindingKind>())
}

/// Whether the guard's rules repair it.
pub(super) fn is_guards(finding: &Finding) -> bool {
    matches!(finding.remedy, Remedy::Guard | Remedy::Release)
}

/// Repairs these findings, and tells how many are done with. What became of each, by its place in the list.
pub(super) async fn repair(
    cloud: &OpenStack,
    guards: Option<(Adapters, Settings)>,
    planned: &[&Finding],
    rules: &Rules,
    stop: &CancellationToken,
    tell: &dyn Fn(usize, usize),
) -> anyhow::Result<Vec<Repair>> {
    let mut rules = rules.clone();
    let nodes = planned.iter().filter(|finding| is_guards(finding));
    let nodes = nodes
        .map(|finding| NodeUuid(finding.node))
        .collect::<BTreeSet<_>>();
    let pass = match guards {
        Some((adapters, settings)) => {
            let journal = adapters.journal.clone();
            let guard = Guard::new(adapters, settings);
            let pass = guard
                .attend_to(&nodes.into_iter().collect::<Vec<_>>(), stop)
                .await?;
            let open = read_open(&*journal).await?.into_iter();
            rules.open.extend(open.map(|case| (case.node, case.strategy)));
            pass
        }
        None => Pass::default(),
    };
    let words = words(&pass);
    let mut became = Vec::with_capacity(planned.len());
    for (done, finding) in planned.iter().enumerate() {
        tell(done, planned.len());
        became.push(match is_guards(finding) {
            _ if stop.is_cancelled() => Repair::Left("stopped".to_owned()),
            true => checked(cloud, finding, &rules, words.get(&finding.node)).await,
            false => match cloud.mend(finding, &rules).await {
                Ok(Mended::Done) => checked(cloud, finding, &rules, None).await,
                Ok(Mended::Left(why)) => Repair::Left(why),
                // Placement has refused it for what somebody did since the look.
                Err(error) if error.class == Class::Conflict => Repair::Left(with_next(&error)),
                Err(error) => Repair::Failed(with_next(&error)),
            },
        });
    }
    Ok(became)
}

/// What the guard says of each node.
fn words(pass: &Pass) -> BTreeMap<uuid::Uuid, Result<String, String>> {
    let mut words = BTreeMap::new();
    for (node, why) in &pass.findings {
        words.insert(node.0, Err(why.clone()));
    }
    for (node, error) in &pass.failed {
        words.insert(node.0, Err(with_next(error)));
    }
    for report in &pass.reports {
        words.insert(
            report.node.0,
            Ok(format!("{}: {}", report.outcome, report.reason)),
        );
    }
    words
}

/// Whether it was repaired is not taken from what was answered, but looked at.
async fn checked(
    cloud: &OpenStack,
    finding: &Finding,
    rules: &Rules,
    said: Option<&Result<String, String>>,
) -> Repair {
    match (cloud.is_still_so(finding, rules).await, said) {
        (Err(error), _) => Repair::Failed(with_next(&error)),
        (Ok(true), Some(Err(why))) => Repair::Failed(why.clone()),
        (Ok(true), Some(Ok(words))) => Repair::Left(format!("it is still so: {words}")),
        (Ok(true), None) => Repair::Left(format!("it is still so, although {}", finding.remedy.done())),
        (Ok(false), Some(Ok(words) | Err(words))) => Repair::Done(words.clone()),
        (Ok(false), None) => Repair::Done(finding.remedy.done()),
    }
}
