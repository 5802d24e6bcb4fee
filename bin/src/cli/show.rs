//! `unprovision show NODE`: the whole story of one node, from the journal alone, or with a look at what it is now.

mod look;

use std::collections::BTreeMap;
use std::process::ExitCode;

use anyhow::Context as _;
use serde::Serialize;
use unprovision::NodeUuid;
use unprovision::cloud::{Cloud as _, OpenStack, Reads};
use unprovision::core::{Case, Observation};
use unprovision::journal::shown;
use unprovision::orchestrator::RunError;
use unprovision::view::history::commands;
use unprovision::view::{Story, Told};
use unprovision_session::{did_you_mean, nearest};

use self::look::Look;
use super::{Global, cases, follow};
use crate::failure::{self, Usage};
use crate::observer;
use crate::output::{self, Format, plain};
use crate::stop::Signals;

/// Options of `show`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLE)]
pub(crate) struct Args {
    /// A node, by name or UUID; also by the instance's or the case's UUID
    #[arg(value_name = "NODE", value_parser = follow::node)]
    node: String,
    /// Also look at the node, its provider and its allocations now, and say what comes next; also of a node without a case
    #[arg(long)]
    look: bool,
    /// How it is shown on standard output
    #[arg(short, long, value_enum, value_name = "FORMAT", default_value = "table")]
    output: Format,
}

const EXAMPLE: &str = "\
Examples:
  unprovision show node-0001
  unprovision show node-0001 --look

Without --look only the journal is read: what was seen, decided, done and answered, and what it was at when something was \
written down last. With --look both services are asked as well; nothing is changed.";

/// A story, with what a look adds to it.
#[derive(Debug, Serialize)]
struct Shown<'a> {
    #[serde(flatten)]
    story: Story<'a>,
    #[serde(flatten)]
    now: Now<'a>,
}

/// What a look adds to a case; nothing where none was asked for.
#[derive(Debug, Default, Serialize)]
struct Now<'a> {
    /// Both services.
    #[serde(skip_serializing_if = "Option::is_none")]
    look: Option<&'a Look>,
    /// What comes next; nothing where it has ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
    /// Why the node was not looked at.
    #[serde(skip_serializing_if = "Option::is_none")]
    not_looked_at: Option<String>,
}

/// What was seen of the nodes, and of which cloud.
#[derive(Debug, Default)]
struct Seen {
    nodes: BTreeMap<NodeUuid, (Observation, Look)>,
    elsewhere: BTreeMap<NodeUuid, String>,
    /// Why the journal tells nothing.
    broken: Option<anyhow::Error>,
}

pub(super) async fn run(args: Args, global: Global) -> anyhow::Result<ExitCode> {
    let loaded = global.load([])?;
    let found = find(&args.node, &loaded.config.journal).await;
    if !args.look {
        return show(&found?, &Seen::default(), args.output);
    }
    let signals = Signals::new()?;
    let look = async {
        let (cloud, here) = global.located(&loaded).await?;
        match found {
            Ok(told) => Ok((Seen::of(&told, &cloud, &here).await?, told)),
            // A node need not have a case to be looked at.
            Err(unknown) if unknown.is::<Usage>() => match node_of(&args.node, &cloud).await? {
                Some(node) => {
                    let mut seen = Seen::default();
                    seen.look(node, &args.node, &[], &cloud).await?;
                    Ok((seen, Vec::new()))
                }
                None => Err(unknown.context("Ironic does not know it either, or does not show it")),
            },
            // Nor does a broken journal keep anybody from looking.
            Err(broken) => match node_of(&args.node, &cloud).await? {
                Some(node) => {
                    let mut seen = Seen::default();
                    seen.look(node, &args.node, &[], &cloud).await?;
                    seen.broken = Some(broken);
                    Ok((seen, Vec::new()))
                }
                None => Err(broken),
            },
        }
    };
    let (seen, told) = signals.before_anything(look).await?;
    let shown = show(&told, &seen, args.output)?;
    match &seen.broken {
        None => Ok(shown),
        Some(broken) => Ok(failure::tell(broken)),
    }
}

async fn node_of(word: &str, cloud: &OpenStack) -> anyhow::Result<Option<NodeUuid>> {
    let found = cloud.find(word).await;
    let found = found.with_context(|| format!("node {word} could not be looked up"))?;
    Ok(found.map(|node| node.uuid))
}

impl Seen {
    async fn of(told: &[Told], cloud: &OpenStack, here: &str) -> anyhow::Result<Self> {
        let mut seen = Self::default();
        for Told { case, .. } in told {
            let begun = case.cloud.as_deref().filter(|begun| *begun != here);
            if let Some(begun) = begun {
                let other = RunError::OtherCloud {
                    node: case.node,
                    begun: begun.to_owned(),
                    here: here.to_owned(),
                };
                seen.elsewhere.insert(case.node, other.to_string());
            } else if !seen.nodes.contains_key(&case.node) {
                let of_node = told.iter().map(|told| &told.case);
                let cases = of_node
                    .filter(|other| other.node == case.node)
                    .collect::<Vec<_>>();
                let name = output::node_name(case.found.name.as_deref(), case.node);
                seen.look(case.node, &name, &cases, cloud).await?;
            }
        }
        Ok(seen)
    }

    async fn look(
        &mut self,
        node: NodeUuid,
        name: &str,
        cases: &[&Case],
        cloud: &OpenStack,
    ) -> anyhow::Result<()> {
        let seen = cloud.observe(node, Reads::everything()).await;
        let seen = seen.with_context(|| {
            format!("node {name} could not be looked at; without --look the journal alone is shown")
        })?;
        let look = Look::new(node, &seen, cases);
        self.nodes.insert(node, (seen, look));
        Ok(())
    }

    fn now(&self, case: &Case) -> Now<'_> {
        let seen = self.nodes.get(&case.node);
        Now {
            look: seen.map(|(_, look)| look),
            next: seen.and_then(|(seen, _)| look::next(case, seen)),
            not_looked_at: self.elsewhere.get(&case.node).cloned(),
        }
    }
}

fn show(told: &[Told], seen: &Seen, format: Format) -> anyhow::Result<ExitCode> {
    let looks = seen.nodes.values().map(|(_, look)| look);
    match format {
        Format::Json if told.is_empty() => {
            let looks = looks.map(|look| Now {
                look: Some(look),
                ..Now::default()
            });
            output::print(&serde_json::to_string_pretty(&looks.collect::<Vec<_>>())?)?;
        }
        Format::Json => {
            let stories = told.iter().map(|told| Shown {
                story: Story::from(told),
                now: seen.now(&told.case),
            });
            output::print(&serde_json::to_string_pretty(&stories.collect::<Vec<_>>())?)?;
        }
        Format::Table => {
            let stories = told.iter().map(|told| story(told, &seen.now(&told.case)));
            let all = stories.chain(looks.map(Look::text)).collect::<Vec<_>>();
            output::print(&all.join("\n\n"))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// All cases that are meant by this word; it is an error if there is none.
pub(super) async fn find(word: &str, place: &str) -> anyhow::Result<Vec<Told>> {
    let journal = cases::journal(place).await?;
    let all = cases::read_all(journal.as_deref()).await?;
    let names = all.iter().filter_map(|told| told.case.found.name.as_deref());
    let guess = did_you_mean(nearest(word, names));
    let unknown = match journal {
        Some(_) => format!("the journal {} has no case of {word}{guess}", shown(place)),
        None => format!("no case of {word} is known: {}", cases::no_journal(place)),
    };
    let meant = all
        .into_iter()
        .filter(|told| told.is_meant(word))
        .collect::<Vec<_>>();
    match meant.is_empty() {
        true => Err(Usage(unknown).into()),
        false => Ok(meant),
    }
}

/// A line for each entry, told as the case was at that time.
fn story(told: &Told, now: &Now<'_>) -> String {
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
    for words in now.next.iter().chain(&now.not_looked_at) {
        text.push_str(&format!("\n  {}", plain(words)));
    }
    for command in commands(case) {
        text.push_str(&format!(
            "\n    once the node is free, by hand: {}",
            plain(&command)
        ));
    }
    text
}
