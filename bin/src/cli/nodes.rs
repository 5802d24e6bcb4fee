//! `unprovision nodes`: all nodes, as both services see them.

mod watch;

use std::collections::{BTreeMap, BTreeSet};
use std::process::ExitCode;

use anyhow::Context as _;
use ironic_client::ProvisionState;
use serde::Serialize;
use unprovision::NodeUuid;
use unprovision::audit::{Subject, join};
use unprovision::cloud::OpenStack;
use unprovision::watch::{Look, Phase};
use uuid::Uuid;

use super::Global;
use crate::config::{Config, HumanDuration};
use crate::output::{self, plain};
use crate::progress::Progress;
use crate::shape::Shape;
use crate::wire;

/// Options of `nodes`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLE)]
pub(crate) struct Args {
    /// Only nodes in this provision state; may be given several times
    #[arg(long, value_name = "STATE")]
    state: Vec<String>,
    /// Look again and again: on a terminal the table is drawn anew, elsewhere there is a line for each node that has changed
    #[arg(short, long, conflicts_with_all = ["output", "columns"])]
    watch: bool,
    /// How often is looked with --watch
    #[arg(long, value_name = "DURATION", default_value = "5s", requires = "watch")]
    every: HumanDuration,
    #[command(flatten)]
    shape: Shape,
}

const EXAMPLE: &str = "\
Examples:
  unprovision nodes
  unprovision nodes --state cleaning --state 'clean wait'
  unprovision nodes -f value -c name -c provision_state
  unprovision nodes --watch --every 2s

Two lists and one for each resource class are read; nothing is changed. `unprovision audit` says what does not fit.";

/// The columns, which are the keys of the JSON.
const COLUMNS: [&str; 11] = [
    "node",
    "name",
    "provision_state",
    "maintenance",
    "instance",
    "resource_class",
    "provider",
    "offered",
    "phase",
    "reason",
    "case",
];

/// A node, as both services see it.
#[derive(Debug, Serialize)]
struct Row {
    /// The node.
    node: Uuid,
    /// Its name.
    name: Option<String>,
    /// Its state.
    provision_state: ProvisionState,
    /// Whether it is in maintenance.
    maintenance: bool,
    /// The instance that it carries.
    instance: Option<Uuid>,
    /// Its class, as Placement calls it.
    resource_class: Option<String>,
    /// Whether Placement has a provider for it.
    provider: bool,
    /// Whether Placement offers it.
    offered: bool,
    /// What it is to those who might get it.
    phase: Phase,
    /// Why it is not free.
    reason: Option<String>,
    /// The strategy of its open case.
    case: Option<String>,
}

/// What looks at all nodes.
#[derive(Debug)]
struct Looker(OpenStack);

impl Looker {
    /// All nodes that are asked for, by name.
    async fn rows(&self, args: &Args, config: &Config) -> anyhow::Result<Vec<Row>> {
        let open = wire::open_cases(&config.journal).await?;
        let open = open
            .into_iter()
            .map(|case| (case.node, case.strategy))
            .collect::<BTreeMap<_, _>>();
        let lists = self.0.lists(&BTreeSet::new(), None).await;
        let lists = lists.context("the nodes could not be listed")?;
        let mut rows = join(lists)
            .into_iter()
            .filter_map(|subject| row(subject, &open))
            .collect::<Vec<_>>();
        rows.retain(|row| {
            args.state.is_empty() || args.state.iter().any(|word| row.provision_state.as_str() == word)
        });
        rows.sort_by(|one, other| (&one.name, one.node).cmp(&(&other.name, other.node)));
        Ok(rows)
    }
}

pub(super) async fn run(args: Args, global: Global) -> anyhow::Result<ExitCode> {
    args.shape.check(&COLUMNS)?;
    let loaded = global.load([])?;
    let looker = Looker(global.audited(&loaded).await?);
    if args.watch {
        return watch::run(&args, &looker, &loaded).await;
    }
    let progress = Progress::waiting("listing nodes and providers", global.quiet);
    let rows = progress.during(looker.rows(&args, &loaded.config)).await?;
    drop(progress);
    args.shape.print(&rows, &COLUMNS, || table(&rows))?;
    Ok(ExitCode::SUCCESS)
}

fn row(subject: Subject, open: &BTreeMap<NodeUuid, String>) -> Option<Row> {
    let class = subject.class();
    let node = subject.node?;
    let look = Look::new(Some(&node), !subject.offered.is_empty());
    Some(Row {
        node: subject.uuid,
        phase: look.phase(),
        reason: look.not_free.as_ref().map(ToString::to_string),
        offered: look.offered,
        resource_class: class.map(|class| class.to_string()),
        provider: subject.provider.is_some(),
        case: open.get(&node.uuid).cloned(),
        name: node.name,
        provision_state: node.provision_state,
        maintenance: node.maintenance,
        instance: node.instance_uuid,
    })
}

fn name(row: &Row) -> String {
    output::node_name(row.name.as_deref(), row.node)
}

/// Whether Placement offers it, and whether that is right.
fn offered(row: &Row) -> &'static str {
    match (row.provider, row.phase) {
        (false, _) => "no provider",
        (true, Phase::Exposed) => "YES, NOT FREE",
        (true, Phase::IdleWhileFree) => "no, though free",
        (true, Phase::Offered | Phase::Held) if row.offered => "yes",
        (true, Phase::Offered | Phase::Held) => "no",
    }
}

fn table(rows: &[Row]) -> String {
    if rows.is_empty() {
        return "there is no such node".to_owned();
    }
    let mut table = output::new_table(&["node", "state", "maint.", "instance", "class", "offered", "case"]);
    for row in rows {
        let yes = |is: bool| if is { "yes" } else { "no" }.to_owned();
        let or_dash = |text: Option<String>| text.map_or_else(|| "-".to_owned(), |text| plain(&text));
        table.add_row([
            name(row),
            plain(row.provision_state.as_str()),
            yes(row.maintenance),
            or_dash(row.instance.map(|instance| instance.to_string())),
            or_dash(row.resource_class.clone()),
            offered(row).to_owned(),
            or_dash(row.case.clone()),
        ]);
    }
    format!("{table}\n{} nodes", rows.len())
}
