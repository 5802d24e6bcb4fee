//! `unprovision nodes`: all nodes, as both services see them.

use std::collections::{BTreeMap, BTreeSet};
use std::process::ExitCode;

use anyhow::Context as _;
use ironic_client::ProvisionState;
use serde::Serialize;
use unprovision::NodeUuid;
use unprovision::audit::{Subject, join};
use unprovision::watch::{Look, Phase};
use uuid::Uuid;

use super::Global;
use crate::output::{self, Format, plain};
use crate::wire;

/// Options of `nodes`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLE)]
pub(crate) struct Args {
    /// Only nodes in this provision state; may be given several times
    #[arg(long, value_name = "STATE")]
    state: Vec<String>,
    /// How the list is shown on standard output
    #[arg(short, long, value_enum, value_name = "FORMAT", default_value = "table")]
    output: Format,
}

const EXAMPLE: &str = "\
Examples:
  unprovision nodes
  unprovision nodes --state cleaning --state 'clean wait'

Two lists and one for each resource class are read; nothing is changed. `unprovision audit` says what does not fit.";

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

pub(super) async fn run(args: Args, global: Global) -> anyhow::Result<ExitCode> {
    let loaded = global.load([])?;
    let cloud = global.audited(&loaded).await?;
    let open = wire::open_cases(&loaded.config.journal).await?;
    let open = open
        .into_iter()
        .map(|case| (case.node, case.strategy))
        .collect::<BTreeMap<_, _>>();
    let lists = cloud
        .lists(&BTreeSet::new())
        .await
        .context("the nodes could not be listed")?;
    let mut rows = join(lists)
        .into_iter()
        .filter_map(|subject| row(subject, &open))
        .collect::<Vec<_>>();
    rows.retain(|row| {
        args.state.is_empty() || args.state.iter().any(|word| row.provision_state.as_str() == word)
    });
    rows.sort_by(|one, other| (&one.name, one.node).cmp(&(&other.name, other.node)));
    match args.output {
        Format::Json => output::print(&serde_json::to_string_pretty(&rows)?)?,
        Format::Table if rows.is_empty() => output::print("there is no such node")?,
        Format::Table => output::print(&table(&rows))?,
    }
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

fn table(rows: &[Row]) -> String {
    let mut table = output::new_table(&["node", "state", "maint.", "instance", "class", "offered", "case"]);
    for row in rows {
        let yes = |is: bool| if is { "yes" } else { "no" }.to_owned();
        let offered = match (row.provider, row.phase) {
            (false, _) => "no provider".to_owned(),
            (true, Phase::Exposed) => "YES, NOT FREE".to_owned(),
            (true, Phase::IdleWhileFree) => "no, though free".to_owned(),
            (true, Phase::Offered | Phase::Held) => yes(row.offered),
        };
        let or_dash = |text: Option<String>| text.map_or_else(|| "-".to_owned(), |text| plain(&text));
        table.add_row([
            output::node_name(row.name.as_deref(), row.node),
            plain(row.provision_state.as_str()),
            yes(row.maintenance),
            or_dash(row.instance.map(|instance| instance.to_string())),
            or_dash(row.resource_class.clone()),
            offered,
            or_dash(row.case.clone()),
        ]);
    }
    format!("{table}\n{} nodes", rows.len())
}
