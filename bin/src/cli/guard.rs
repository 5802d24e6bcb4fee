//! `unprovision guard`: keeps Placement right while somebody else, usually Nova, tears nodes down.

use std::convert::Infallible;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;
use unprovision::cloud::{Clock as _, OpenStack, SystemClock};
use unprovision::guard::{Guard, Held, Pass, Settings};
use unprovision::journal::{Journal, MemoryJournal};
use unprovision::orchestrator::Progress as At;
use unprovision::strategy;

use super::Global;
use crate::config::{Ask, Config, Flag, set};
use crate::events::EventWriter;
use crate::failure::{OTHER, Usage, with_next};
use crate::output::{self, Format, Row, Subject};
use crate::progress::Progress;
use crate::stop::{Pauses, Signals};

/// Some node is held, stuck, or needs a person.
const HELD: u8 = 3;

/// Options of `guard`.
#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true, after_help = EXAMPLE)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Option<Command>,
    /// Make one full pass, then exit: 0 if nothing is held, on its way or wrongly offered, else 3
    #[arg(long)]
    once: bool,
    /// Say each write that would be sent, and send none
    #[arg(long)]
    dry_run: bool,
    /// How nodes are kept from being offered: hand-over or reserve-on-delete [default: guard.strategy, or strategy]
    #[arg(long, value_name = "NAME")]
    strategy: Option<String>,
    /// Write what happens to nodes (held, released, stuck) to this file, a JSON object on each line; `-`: standard output
    #[arg(long, value_name = "FILE")]
    events: Option<String>,
    /// Serve what the guard does over HTTP on this address of this machine, like 127.0.0.1:8784 [default: api.listen]
    #[arg(long, value_name = "ADDRESS:PORT", conflicts_with = "once")]
    listen: Option<String>,
    /// How the result of --once is shown on standard output
    #[arg(short, long, value_enum, value_name = "FORMAT", default_value = "table")]
    output: Format,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Release what is safe to release, and list the rest with the `openstack` commands that lift it
    StandDown(StandDown),
}

#[derive(Debug, clap::Args)]
#[command(after_help = STAND_DOWN)]
struct StandDown {
    /// How the list is shown on standard output
    #[arg(short, long, value_enum, value_name = "FORMAT", default_value = "table")]
    output: Format,
}

const EXAMPLE: &str = "\
Beside a Nova that deletes servers: it changes Placement only, never a node. It runs until SIGTERM or Ctrl-C; what is
held stays held, and the next start carries on. SIGUSR1 stops all writes, SIGUSR2 lets them go on.

Examples:
  unprovision guard --dry-run
  unprovision guard
  unprovision guard --once
  unprovision guard --events /var/log/unprovision/events.jsonl
  unprovision guard stand-down

Exit status:
  0  stopped by a signal; --once: nothing is held, on its way or wrongly offered; stand-down: nothing of ours holds a node
  1  the journal cannot be read; --once, stand-down: not everything could be looked at or carried on, also by a signal, or
     Ironic shows no node at all
  2  bad usage or configuration
  3  --once: a node is held or on its way, also where another process looks after it; all writes are stopped; or a person
     ought to look; stand-down: something of ours still holds a node, or another guard is to be stopped first";

const STAND_DOWN: &str = "\
Example:
  unprovision guard stand-down -o json

Exit status: 0 nothing of ours holds a node any more, 3 something does and is listed, 1 not everything could be looked at.";

pub(super) async fn run(args: Args, global: Global) -> anyhow::Result<ExitCode> {
    let own = [
        ("--strategy", "guard.strategy", &args.strategy),
        ("--listen", "api.listen", &args.listen),
    ];
    let own = own.into_iter().filter_map(|(flag, key, value)| {
        let value = value.clone()?;
        Some(Flag { flag, key, value })
    });
    // First of all: until somebody hears them, these signals kill.
    let pauses = Pauses::new()?;
    let signals = Signals::saying(STOPPING)?;
    let mut loaded = global.load(own)?;
    if args.dry_run {
        // A guard that runs beside it goes on to hear everything.
        loaded.config.notifications.queue.push_str("-dry-run");
    }
    let settings = settings(&loaded.config, args.dry_run)?;
    let (mut adapters, cloud) = global.guard_adapters(&loaded).await?;
    if args.dry_run {
        // What did not happen is nothing to remember.
        adapters.journal = Arc::new(MemoryJournal::new()) as Arc<dyn Journal>;
    }
    let journal = Arc::clone(&adapters.journal);
    let guard = Guard::new(adapters, settings);
    let events = args.events(&guard)?;
    pauses.obeyed_by(Arc::clone(guard.brakes()));
    let stop = signals.begin();
    match args.command {
        Some(Command::StandDown(stand_down)) => {
            let (pass, held) = guard.stand_down(stop).await?;
            let incomplete = incomplete(&pass, stop);
            show_held(&held, incomplete.as_deref(), stand_down.output)?;
            Ok(code(incomplete.is_some(), !held.is_empty()))
        }
        None if args.once => {
            let pass = tokio::select! {
                pass = guard.once(stop) => pass?,
                never = first_sweep(&guard, global.quiet) => match never {},
            };
            drop(guard);
            events.into_iter().for_each(EventWriter::finish);
            let incomplete = incomplete(&pass, stop);
            if let Some(why) = &incomplete {
                output::say(&format!("this pass is not complete: {why}"));
            }
            if let Some(why) = &pass.stopped {
                output::say(&format!("nothing was written: {why}"));
            }
            let code = code(incomplete.is_some(), needs_somebody(&pass));
            show(pass, args.output)?;
            Ok(code)
        }
        None => {
            let guard = Arc::new(guard);
            run_and_serve(&guard, &loaded.config, (journal, cloud), stop, global.quiet).await?;
            output::say(&format!("guard stopped: {}", guard.status()));
            drop(guard);
            events.into_iter().for_each(EventWriter::finish);
            Ok(ExitCode::SUCCESS)
        }
    }
}

/// What is read for those who ask, beside the guard.
type Behind = (Arc<dyn Journal>, Arc<OpenStack>);

/// Guards, and serves what is to be known of it, until it is stopped.
async fn run_and_serve(
    guard: &Arc<Guard>,
    config: &Config,
    behind: Behind,
    stop: &CancellationToken,
    quiet: bool,
) -> anyhow::Result<()> {
    let ended = stop.child_token();
    let serving = serve(guard, config, behind, &ended).await?;
    let guarding = async {
        let result = tokio::select! {
            ended = guard.run(stop) => ended,
            never = first_sweep(guard, quiet) => match never {},
        };
        ended.cancel();
        result
    };
    let (result, ()) = tokio::join!(guarding, serving);
    Ok(result?)
}

/// What serves, once the address is taken; nothing where there is none.
#[cfg(feature = "service")]
async fn serve<'a>(
    guard: &'a Arc<Guard>,
    config: &'a Config,
    behind: Behind,
    stop: &'a CancellationToken,
) -> anyhow::Result<impl Future<Output = ()> + use<'a>> {
    let listening = crate::api::listen(config).await?;
    Ok(async move {
        if let Some(listening) = listening {
            listening.serve(guard, behind, config, stop).await;
        }
    })
}

#[cfg(not(feature = "service"))]
async fn serve(
    _: &Arc<Guard>,
    config: &Config,
    _: Behind,
    _: &CancellationToken,
) -> anyhow::Result<impl Future<Output = ()> + use<>> {
    let why = "api.listen: this program was built without the feature `service`";
    match config.api.listen.is_empty() {
        true => Ok(std::future::ready(())),
        false => Err(Usage(why.to_owned()).into()),
    }
}

/// Shows that the first look at everything goes on, which takes its time in a large cloud. It never ends.
async fn first_sweep(guard: &Guard, quiet: bool) -> Infallible {
    let progress = Progress::waiting("looking at all nodes for the first time", quiet);
    let swept = async {
        while guard.status().last_sweep.is_none() {
            SystemClock.sleep(Duration::from_millis(100)).await;
        }
    };
    progress.during(swept).await;
    drop(progress);
    std::future::pending().await
}

impl Args {
    /// Who writes the events, where that was asked for.
    fn events(&self, guard: &Guard) -> anyhow::Result<Option<EventWriter>> {
        let Some(place) = &self.events else {
            return Ok(None);
        };
        if self.once && place == "-" {
            let words = "--events -: standard output has the result of --once; name a file";
            return Err(Usage(words.to_owned()).into());
        }
        Ok(Some(EventWriter::start(place, guard.events().follow(None))?))
    }
}

const STOPPING: &str = "stopping as soon as the requests under way are answered; what is held stays held, and the next start \
                        carries on; once more to stop at once";

pub(super) fn settings(config: &Config, dry_run: bool) -> Result<Settings, Usage> {
    let guard = &config.guard;
    let name = config.guards_strategy();
    let scopes = config.scopes().map_err(|problem| Usage(problem.to_string()))?;
    if scopes.is_empty() {
        strategy::by_name(name)
            .ok_or("there is no such strategy")
            .and_then(|strategy| strategy.guards())
            .map_err(|why| Usage(format!("`guard.strategy` = `{name}`: {why}")))?;
    }
    Ok(Settings {
        strategy: name.to_owned(),
        scopes,
        look: guard.look.get(),
        sweep: guard.sweep.get(),
        concurrency: config.concurrency,
        release_nova_reservations: config.release_nova_reservations,
        max_held_share: guard.max_held_share,
        max_held_floor: guard.max_held_floor,
        max_releases_at_start: guard.max_releases_at_start,
        min_nodes_share: guard.min_nodes_share,
        pause_file: set(&guard.pause_file).map(Into::into),
        silence: config.notifications.silence.get(),
        nova_required: config.nova.ask == Ask::Required,
        dry_run,
    })
}

/// Why a pass does not tell everything, if so.
fn incomplete(pass: &Pass, stop: &CancellationToken) -> Option<String> {
    if stop.is_cancelled() {
        return Some("stopped before everything was looked at".to_owned());
    }
    if let Some(why) = pass.sees_nothing {
        return Some(why.to_owned());
    }
    let failed = pass.failed.iter();
    let failed = failed.map(|(node, error)| format!("\n  node {node}: {}", with_next(error)));
    let failed = failed.collect::<Vec<_>>();
    let words = || {
        format!(
            "{} nodes could not be looked at, or carried on{}",
            failed.len(),
            failed.concat()
        )
    };
    (!failed.is_empty()).then(words)
}

/// Whether some node is held or stuck, or has to be looked at by a person.
fn needs_somebody(pass: &Pass) -> bool {
    let open = |progress: At| !matches!(progress, At::Ended(_));
    let mut reports = pass.reports.iter();
    reports.any(|report| report.held || open(report.outcome))
        || !pass.findings.is_empty()
        || pass.stopped.is_some()
}

fn code(incomplete: bool, held: bool) -> ExitCode {
    ExitCode::from(match (incomplete, held) {
        (true, _) => OTHER,
        (false, true) => HELD,
        (false, false) => 0,
    })
}

fn show(pass: Pass, format: Format) -> anyhow::Result<()> {
    let rows = pass.reports.into_iter().map(|report| {
        let subject = Subject {
            node: report.node,
            name: report.name.clone(),
            instance: report.instance,
            strategy: report.strategy.clone(),
        };
        Row::new(subject, Ok(report))
    });
    output::print_rows(&rows.collect::<Vec<_>>(), format)
}

fn show_held(held: &[Held], incomplete: Option<&str>, format: Format) -> anyhow::Result<()> {
    if let Some(why) = incomplete {
        output::say(&format!("this list is not complete: {why}"));
    }
    match format {
        Format::Json => output::print(&serde_json::to_string_pretty(held)?),
        Format::Table if held.is_empty() && incomplete.is_some() => Ok(()),
        Format::Table if held.is_empty() => output::print("nothing of ours holds a node any more"),
        Format::Table => {
            let mut text =
                String::from("Still held. Once the node is `available`, without instance and maintenance:\n");
            for one in held {
                let name = one.name.clone().unwrap_or_else(|| one.node.to_string());
                text.push_str(&format!("\n{name} ({}): {}\n", one.node, one.why));
                one.commands
                    .iter()
                    .for_each(|command| text.push_str(&format!("  {command}\n")));
            }
            output::print(text.trim_end())
        }
    }
}
