//! `unprovision delete`: tears instances down, and takes their nodes back to `available`.

use std::collections::BTreeSet;
use std::process::ExitCode;

use anyhow::Context as _;
use futures::stream::{self, StreamExt};
use unprovision::Node;
use unprovision::core::{Case, CaseId, Entry, Event, TearDownRequest, tag_name};
use unprovision::orchestrator::{Orchestrator, RunError};
use uuid::Uuid;

use super::follow::{self, Follow};
use super::{Global, ask};
use crate::config::{Config, Flag, Loaded};
use crate::failure::{Problems, Usage};
use crate::output::{self, Subject};
use crate::stop::Signals;
use crate::wire::Wired;

/// Options of `delete`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLE)]
pub(crate) struct Args {
    /// Nodes, by name or UUID
    #[arg(required = true, value_name = "NODE", value_parser = follow::node)]
    nodes: Vec<String>,
    /// The instance that the node must carry; once per node, in their order. Left out, it is the one that the node
    /// carries, and shown
    #[arg(long = "instance", value_name = "UUID")]
    instances: Vec<Uuid>,
    /// How a node is kept from being offered: hand-over, reserve-on-delete, wait-for-available,
    /// trait-tagging [default: the setting `strategy`, hand-over]
    #[arg(long, value_name = "NAME")]
    strategy: Option<String>,
    /// The trait that marks a node for `trait-tagging` [default: the setting `tag`]
    #[arg(long, value_name = "TRAIT")]
    tag: Option<String>,
    /// Do not ask
    #[arg(long, short)]
    yes: bool,
    /// Go on with a node that Nova manages: its record of the server remains, and is yours to delete
    #[arg(long)]
    nova_record_remains: bool,
    #[command(flatten)]
    follow: Follow,
}

const EXAMPLE: &str = "\
Examples:
  unprovision delete node-0001 --instance 6b1f3c1e-3a52-4a6e-9d1f-0f5a6c6f2b11
  unprovision delete node-0001 node-0002 --yes --no-wait -o json

Nothing is touched unless all nodes can be torn down. Everything on their disks is erased.";

/// A tear-down that was asked for, and what it is shown as.
#[derive(Debug)]
struct Target {
    node: Node,
    request: TearDownRequest,
    /// The case that was begun before and has not ended: it goes on as it was begun, whatever is asked for now.
    begun: Option<Case>,
}

pub(super) async fn run(args: Args, global: Global) -> anyhow::Result<ExitCode> {
    let flag = |flag, key, value: &Option<String>| value.clone().map(|value| Flag { flag, key, value });
    let flags = [
        flag("--strategy", "strategy", &args.strategy),
        flag("--tag", "tag", &args.tag),
    ];
    let loaded = global.load(flags.into_iter().flatten())?;
    args.check(&loaded.config)?;
    let signals = Signals::new()?;
    let (wired, targets, first) = signals.before_anything(args.prepare(&global, &loaded)).await?;
    let stop = signals.begin();
    let cases = open(&wired.orchestrator, &targets, first).await?;
    targets.iter().for_each(|target| target.tell(&wired));
    let subjects = targets.iter().map(Target::subject).collect::<Vec<_>>();
    let counting = wired.counting(cases.len(), args.follow.until());
    let results = wired.orchestrator.run(&cases, args.follow.until(), stop).await;
    drop(counting);
    args.follow.report(subjects, results)
}

impl Args {
    fn check(&self, config: &Config) -> Result<(), Usage> {
        self.follow.check(config)?;
        if let Some(node) = follow::twice(&self.nodes) {
            return Err(Usage(format!("node {node} is named twice")));
        }
        if let Some(instance) = follow::twice(&self.instances) {
            return Err(Usage(format!("instance {instance} is named twice")));
        }
        let (nodes, instances) = (self.nodes.len(), self.instances.len());
        if instances != 0 && instances != nodes {
            return Err(Usage(format!(
                "--instance is given once per node, in their order, or not at all: there are {nodes} nodes and {instances} instances"
            )));
        }
        if !self.yes && !ask::somebody() {
            return Err(Usage(
                "this erases the nodes' disks, and there is no terminal to ask on; say --yes to go on"
                    .to_owned(),
            ));
        }
        Ok(())
    }

    /// All that comes before the first write, of the journal too.
    async fn prepare(
        &self,
        global: &Global,
        loaded: &Loaded,
    ) -> anyhow::Result<(Wired, Vec<Target>, Vec<Entry>)> {
        let wired = global.connect(loaded).await?;
        let mut targets = self.targets(&wired, loaded).await?;
        let mut first = check(&wired.orchestrator, &loaded.config, &targets).await?;
        if !global.quiet {
            say_whom_it_protects(&targets, &first);
        }
        self.check_novas(&targets, &first)?;
        if !self.yes {
            confirm(&targets).await?;
            // While somebody reads and thinks, the world goes on, and so does the clock.
            for target in &mut targets {
                target.request.limits = self.limits(&wired, &loaded.config)?;
            }
            first = check(&wired.orchestrator, &loaded.config, &targets).await?;
        }
        Ok((wired, targets, first))
    }

    /// Behind Nova's back only what was named is torn down, not what happens to be on the node.
    fn check_novas(&self, targets: &[Target], first: &[Entry]) -> Result<(), Usage> {
        let is_novas = |entry: &Entry| matches!(&entry.event, Event::Opened { found, .. } if found.nova);
        match targets.iter().zip(first).find(|(_, entry)| is_novas(entry)) {
            Some((target, _)) if self.instances.is_empty() => Err(Usage(format!(
                "Nova manages node {}: name the instance with --instance (it carries {})",
                target.shown(),
                target.request.instance
            ))),
            _ => Ok(()),
        }
    }

    fn limits(&self, wired: &Wired, config: &Config) -> Result<unprovision::core::Limits, Usage> {
        let (retry_error, reclean) = (
            self.follow.retry_error.unwrap_or(0),
            self.follow.reclean.unwrap_or(0),
        );
        self.follow
            .limits(config, wired.clock.now(), retry_error, reclean)
    }

    /// Looks all nodes up.
    async fn targets(&self, wired: &Wired, loaded: &Loaded) -> anyhow::Result<Vec<Target>> {
        let config = &loaded.config;
        let limits = self.limits(wired, config)?;
        let looked = self.nodes.iter().enumerate().map(|(index, name)| async move {
            let node = wired
                .cloud
                .find(name)
                .await
                .with_context(|| format!("node {name} could not be looked up"))?;
            let unknown = || {
                Usage(format!(
                    "Ironic does not know node {name}, or does not show it to these credentials"
                ))
            };
            let node = node.ok_or_else(unknown)?;
            let without = || {
                Usage(format!(
                    "node {name} is `{}` and carries no instance; name the one that left it with --instance",
                    node.provision_state
                ))
            };
            let instance = self
                .instances
                .get(index)
                .copied()
                .or(node.instance_uuid)
                .ok_or_else(without)?;
            let request = TearDownRequest {
                node: node.uuid,
                instance,
                strategy: config.strategy.clone(),
                tag: Some(tag_name(&config.tag)?),
                limits,
                nova_record_remains: self.nova_record_remains,
            };
            let begun = wired.orchestrator.open_case(request.case()).await?;
            anyhow::Ok(Target { node, request, begun })
        });
        let found = stream::iter(looked)
            .buffered(config.concurrency.get())
            .collect::<Vec<_>>()
            .await;
        let targets = Problems::sort(found)?;
        let uuids = targets.iter().map(|target| target.node.uuid).collect::<Vec<_>>();
        match follow::twice(&uuids) {
            Some(uuid) => {
                Err(Usage(format!("node {uuid} is named twice, by its name and by its UUID")).into())
            }
            None => Ok(targets),
        }
    }
}

impl Target {
    fn shown(&self) -> String {
        self.node
            .name
            .clone()
            .unwrap_or_else(|| self.node.uuid.to_string())
    }

    /// The strategy that the node is torn down with.
    fn strategy(&self) -> &str {
        let begun = self.begun.as_ref();
        begun.map_or(&self.request.strategy, |case| &case.strategy)
    }

    fn subject(&self) -> Subject {
        Subject {
            node: self.request.node,
            name: self.node.name.clone(),
            instance: Some(self.request.instance),
            strategy: self.strategy().to_owned(),
        }
    }

    fn tell(&self, wired: &Wired) {
        let asked = &self.request.strategy;
        match &self.begun {
            None => wired.tell(&self.subject(), "begins"),
            Some(case) if case.strategy == *asked => wired.tell(&self.subject(), "is taken up again"),
            Some(_) => wired.tell_asked(&self.subject(), "is taken up again", asked),
        }
    }
}

/// Looks whether all tear-downs may begin, and tells everything that is wrong.
async fn check(
    orchestrator: &Orchestrator,
    config: &Config,
    targets: &[Target],
) -> anyhow::Result<Vec<Entry>> {
    let checks = targets.iter().map(|target| async move {
        match orchestrator.check(&target.request).await {
            // It names the node itself.
            Err(error @ RunError::CannotOpen(_)) if target.begun.is_some() => Err(error).with_context(|| {
                let node = target.shown();
                format!("the tear-down of node {node} is open already, and `unprovision resume {node}` carries it on")
            }),
            Err(error @ (RunError::CannotOpen(_) | RunError::OtherCloud { .. })) => Err(error.into()),
            checked => checked.with_context(|| format!("node {} could not be looked at", target.shown())),
        }
    });
    Problems::sort(
        stream::iter(checks)
            .buffered(config.concurrency.get())
            .collect::<Vec<_>>()
            .await,
    )
}

/// A tag protects only from whoever forbids it: that is said before anything is done.
fn say_whom_it_protects(targets: &[Target], first: &[Entry]) {
    let tags = targets.iter().zip(first).filter_map(|(target, entry)| {
        let found = match (&target.begun, &entry.event) {
            (Some(case), _) => &case.found,
            (None, Event::Opened { found, .. }) => found,
            (None, _) => return None,
        };
        Some((target.strategy(), &found.tag.as_ref()?.name))
    });
    // What begins now has one tag; what was begun before may have others.
    for (strategy, tag) in tags.collect::<BTreeSet<_>>() {
        output::say(&format!(
            "{strategy} protects queries that forbid {tag}; any other is offered a node as soon as its instance's allocation is \
             released"
        ));
    }
}

/// Shows what would be erased, and asks.
async fn confirm(targets: &[Target]) -> anyhow::Result<()> {
    let mut table = output::new_table(&["name", "uuid", "instance", "state", "maintenance", "strategy"]);
    for target in targets {
        let Target { node, request, .. } = target;
        table.add_row([
            output::plain(node.name.as_deref().unwrap_or_default()),
            node.uuid.to_string(),
            request.instance.to_string(),
            output::plain(&node.provision_state.to_string()),
            maintenance(node),
            target.strategy().to_owned(),
        ]);
    }
    let question = format!("{table}\nEverything on the disks of these nodes will be erased. Tear them down?");
    ask::confirm(&question).await
}

fn maintenance(node: &Node) -> String {
    match (node.maintenance, &node.maintenance_reason) {
        (false, _) => "no".to_owned(),
        (true, Some(reason)) if !reason.is_empty() => format!("yes: {}", output::plain(reason)),
        (true, _) => "yes".to_owned(),
    }
}

/// Records all tear-downs. Nothing was sent yet if that fails.
async fn open(
    orchestrator: &Orchestrator,
    targets: &[Target],
    first: Vec<Entry>,
) -> anyhow::Result<Vec<CaseId>> {
    let mut cases = Vec::with_capacity(targets.len());
    for (target, entry) in targets.iter().zip(first) {
        let opened = orchestrator.open(&target.request, entry).await.with_context(|| {
            let recorded = targets[..cases.len()]
                .iter()
                .map(Target::shown)
                .collect::<Vec<_>>()
                .join(", ");
            match recorded.as_str() {
                "" => format!("node {}: nothing was sent", target.shown()),
                _ => format!(
                    "node {}: nothing was sent, but `unprovision resume` would go on with {recorded}",
                    target.shown()
                ),
            }
        });
        cases.push(opened?);
    }
    Ok(cases)
}
