//! `unprovision nodes`: all nodes, as both services see them.

mod watch;

use std::process::ExitCode;

use anyhow::Context as _;
use ironic_client::ProvisionState;
use unprovision::cloud::OpenStack;
use unprovision::view::nodes::COLUMNS;
use unprovision::view::{self, NodeRow};
use unprovision::watch::Phase;
use unprovision_session::{did_you_mean, nearest};

use super::Global;
use crate::config::{Config, HumanDuration};
use crate::failure::{self, Usage};
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

/// What looks at all nodes.
#[derive(Debug)]
struct Looker(OpenStack);

impl Looker {
    /// All nodes that are asked for, by name.
    async fn rows(&self, args: &Args, config: &Config) -> anyhow::Result<Vec<NodeRow>> {
        let open = match wire::open_cases(&config.journal).await {
            Ok(open) => open,
            Err(error) => {
                let why = failure::chain(&error, ": ");
                output::say(&format!(
                    "be careful: {why}; which nodes have an open case is not known"
                ));
                Vec::new()
            }
        };
        let rows = view::nodes::gather(&self.0, &open).await;
        let mut rows = rows.context("the nodes could not be listed")?;
        rows.retain(|row| {
            args.state.is_empty() || args.state.iter().any(|word| row.provision_state.as_str() == word)
        });
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
    args.check(&rows)?;
    args.shape.print(&rows, &COLUMNS, || table(&rows))?;
    Ok(ExitCode::SUCCESS)
}

impl Args {
    /// Refuses a state that nobody knows. Of an Ironic that is newer than this program, a node is in it.
    fn check(&self, rows: &[NodeRow]) -> Result<(), Usage> {
        let names = || ProvisionState::NAMED.iter().map(ProvisionState::as_str);
        let is_known = |word: &str| {
            names().any(|name| name == word) || rows.iter().any(|row| row.provision_state.as_str() == word)
        };
        let Some(word) = self.state.iter().find(|word| !is_known(word)) else {
            return Ok(());
        };
        let guess = did_you_mean(nearest(word, names()));
        let all = names().collect::<Vec<_>>().join(", ");
        Err(Usage(format!(
            "`--state {word}`: no node is in it, and it is none of the states that are known{guess}; there are: {all}"
        )))
    }
}

fn name(row: &NodeRow) -> String {
    output::node_name(row.name.as_deref(), row.node)
}

/// Whether Placement offers it, and whether that is right.
fn offered(row: &NodeRow) -> &'static str {
    match (row.provider, row.phase) {
        (false, _) => "no provider",
        (true, Phase::Exposed) => "YES, NOT FREE",
        (true, Phase::IdleWhileFree) => "no, though free",
        (true, Phase::Offered | Phase::Held) if row.offered => "yes",
        (true, Phase::Offered | Phase::Held) => "no",
    }
}

fn table(rows: &[NodeRow]) -> String {
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
