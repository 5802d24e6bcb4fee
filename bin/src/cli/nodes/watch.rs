//! `unprovision nodes -w`: the same again and again, on a terminal in its place, elsewhere as lines of what changed.

use std::collections::BTreeMap;
use std::io::{IsTerminal, stdout};
use std::process::ExitCode;
use std::time::Duration;

use serde_json::json;
use unprovision::cloud::{Clock, SystemClock};
use unprovision::view::NodeRow;
use unprovision_session::in_full;
use uuid::Uuid;

use super::{Args, Looker, name, offered, table};
use crate::config::{Loaded, LogFormat};
use crate::failure::Usage;
use crate::output::{self, plain};
use crate::stop::Signals;

/// Each look is a list of all nodes and of all providers: that is enough to ask of them.
const MOST_OFTEN: Duration = Duration::from_secs(1);

/// From the top left corner on, nothing.
const CLEAR: &str = "\u{1b}[H\u{1b}[2J";

/// Looks until a signal comes. The first look must succeed.
pub(super) async fn run(args: &Args, looker: &Looker, loaded: &Loaded) -> anyhow::Result<ExitCode> {
    let every = args.every.get();
    if every < MOST_OFTEN {
        return Err(Usage(format!("--every {}: write {MOST_OFTEN:?} or more", args.every)).into());
    }
    let (signals, clock) = (Signals::new()?, SystemClock);
    // A node may come into it later.
    if let Err(strange) = args.check(&[]) {
        output::say(&format!("be careful: {strange}"));
    }
    let mut told: Option<BTreeMap<Uuid, String>> = None;
    loop {
        let began = clock.elapsed();
        let looked = tokio::select! {
            () = signals.token().cancelled() => return Ok(ExitCode::SUCCESS),
            looked = looker.rows(args, &loaded.config) => looked,
        };
        match looked {
            Err(error) if told.is_none() => return Err(error),
            Err(error) => output::say(&format!(
                "{:.0} could not be looked at: {}",
                clock.now(),
                in_full(error.as_ref(), ": ")
            )),
            Ok(rows) if stdout().is_terminal() => {
                let foot = format!("{:.0}, every {}; Ctrl-C ends it", clock.now(), args.every);
                output::print(&format!("{CLEAR}{}\n{foot}", table(&rows)))?;
                told = Some(BTreeMap::new());
            }
            Ok(rows) => told = Some(tell(&rows, told, loaded.config.log.format)?),
        }
        let pause = every.saturating_sub(clock.elapsed().saturating_sub(began));
        tokio::select! {
            () = signals.token().cancelled() => return Ok(ExitCode::SUCCESS),
            () = clock.sleep(pause) => {}
        }
    }
}

/// A line for each node that looks otherwise than before, or is not there any more. The first time, for all.
fn tell(
    rows: &[NodeRow],
    before: Option<BTreeMap<Uuid, String>>,
    format: LogFormat,
) -> anyhow::Result<BTreeMap<Uuid, String>> {
    let mut before = before.unwrap_or_default();
    let at = SystemClock.now();
    let line = |node: Uuid, name: &str, words: &str| match format {
        LogFormat::Text => output::print(&format!("{at:.0} {name} {words}")),
        LogFormat::Json => {
            let line = json!({"timestamp": at, "node": node, "name": name, "message": words});
            output::print(&line.to_string())
        }
    };
    let mut now = BTreeMap::new();
    for row in rows {
        let words = words(row);
        if before.remove(&row.node).as_ref() != Some(&words) {
            line(row.node, &name(row), &words)?;
        }
        now.insert(row.node, words);
    }
    for node in before.into_keys() {
        line(node, &node.to_string(), "is not in the list any more")?;
    }
    Ok(now)
}

fn words(row: &NodeRow) -> String {
    let maintenance = if row.maintenance { ", in maintenance" } else { "" };
    let case = row.case.as_deref().map(|case| format!(", {case}"));
    format!(
        "is {}{maintenance}, offered: {}{}",
        plain(row.provision_state.as_str()),
        offered(row),
        plain(&case.unwrap_or_default())
    )
}
