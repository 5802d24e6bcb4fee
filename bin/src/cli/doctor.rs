//! `unprovision doctor`: whether a cloud has what is needed, before it is used.

mod advice;
mod ask;
mod facts;
mod fleet;
mod journal;
mod judge;

use std::process::ExitCode;

use serde::Serialize;

use self::advice::Advice;
use self::judge::{Check, Verdict};
use super::Global;
use crate::output::{self, Format, plain};
use crate::progress::Progress;
use crate::stop::Signals;

/// Something is missing.
const BROKEN: u8 = 3;

/// Options of `doctor`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLE)]
pub(crate) struct Args {
    /// How the result is shown on standard output
    #[arg(short, long, value_enum, value_name = "FORMAT", default_value = "table")]
    output: Format,
}

const EXAMPLE: &str = "\
Examples:
  unprovision doctor
  unprovision --os-cloud prod doctor -o json

Nothing of the cloud is changed: rights are tried with requests that are refused in any case. No journal is made; where
one would be, an empty file is made and taken away again.

Exit status:
  0  all that is needed is there
  3  something is not
  1  an error";

/// All that there is to say.
#[derive(Debug, Serialize)]
struct Report {
    /// What was checked.
    checks: Vec<Check>,
    /// What suits this cloud.
    advice: Advice,
}

pub(super) async fn run(args: Args, global: Global) -> anyhow::Result<ExitCode> {
    let loaded = global.load([])?;
    let signals = Signals::new()?;
    let asked = async {
        let progress = Progress::waiting("asking both services", global.quiet);
        anyhow::Ok(
            progress
                .during(ask::everything(&loaded.config, &global.tls))
                .await,
        )
    };
    let facts = signals.before_anything(asked).await?;
    let checks = judge::judge(&facts);
    let advice = advice::advise(&facts, &checks);
    let broken = advice.strategy.is_none() || checks.iter().any(|check| check.verdict == Verdict::Broken);
    let report = Report { checks, advice };
    match args.output {
        Format::Json => output::print(&serde_json::to_string_pretty(&report)?)?,
        Format::Table => output::print(&text(&report))?,
    }
    Ok(ExitCode::from(if broken { BROKEN } else { 0 }))
}

/// A line for each check, what to do about it below it, and at the end what to do now.
fn text(report: &Report) -> String {
    let mut text = String::new();
    for check in &report.checks {
        let verdict = match check.verdict {
            Verdict::Fits => "ok     ",
            Verdict::Note => "note   ",
            Verdict::Unknown => "?      ",
            Verdict::Broken => "BROKEN ",
        };
        text.push_str(&format!("{verdict} {:<12} {}\n", check.about, plain(&check.says)));
        if let Some(advice) = &check.advice {
            text.push_str(&format!("{:21}-> {}\n", "", plain(advice)));
        }
    }
    let Advice {
        strategy,
        why,
        commands,
    } = &report.advice;
    let strategy = strategy.map_or_else(
        || "no strategy can work here yet".to_owned(),
        |name| format!("use {name}"),
    );
    text.push_str(&format!("\n{strategy}: {}", plain(why)));
    for command in commands {
        text.push_str(&format!("\n    {}", plain(command)));
    }
    text
}
