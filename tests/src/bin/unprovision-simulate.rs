//! Seeded simulation from the command line; `tests/simulate` builds and starts it.
//!
//! Standard error has the time lines of violations, the last line of standard output one JSON object.

use std::process::ExitCode;
use std::thread;

use serde_json::json;
use unprovision::cloud::{Clock, SystemClock};
use unprovision::strategy::{self, Strategy};
use unprovision_testkit::model::AsIs;
use unprovision_testkit::simulate::{Plan, Report, run, world};

const USAGE: &str = "usage: simulate --cases N [--seed S] [--strategy NAME] [--world W --node N]";
/// So many violations are shown with their time lines.
const SHOWN: usize = 3;

struct Asked {
    cases: u64,
    seed: u64,
    strategies: Vec<&'static dyn Strategy>,
    world: Option<u64>,
    node: usize,
}

fn main() -> ExitCode {
    let asked = match asked(std::env::args().skip(1)) {
        Ok(asked) => asked,
        Err(wrong) => {
            eprintln!("{wrong}\n{USAGE}");
            return ExitCode::from(2);
        }
    };
    let plan = Plan {
        product: &AsIs,
        strategies: &asked.strategies,
        seed: asked.seed,
        cases: asked.cases,
        threads: thread::available_parallelism().map_or(1, Into::into),
    };
    if let Some(number) = asked.world {
        let (tally, lines) = world(&plan, number, asked.node);
        lines.iter().for_each(|line| println!("{line}"));
        return ExitCode::from(u8::from(!tally.violations.is_empty()));
    }
    let clock = SystemClock;
    let begun = clock.elapsed();
    let report = run(&plan);
    let took = clock.elapsed().saturating_sub(begun).as_secs_f64();
    for found in report.tally.violations.iter().take(SHOWN) {
        eprintln!(
            "\nVIOLATION: {}, seed {}, world {}, node {}",
            found.breach, asked.seed, found.world, found.node
        );
        world(&plan, found.world, found.node)
            .1
            .iter()
            .for_each(|line| eprintln!("  {line}"));
    }
    println!("{}", line(&report, asked.seed, took));
    ExitCode::from(u8::from(!report.tally.violations.is_empty()))
}

fn line(report: &Report, seed: u64, took: f64) -> serde_json::Value {
    let tally = &report.tally;
    json!({
        "cases": tally.cases,
        "violations": tally.violations.len(),
        "cases_per_s": (tally.cases as f64 / took.max(1e-9)).round(),
        "simulated_hours": tally.simulated_hours,
        "faults": tally.faults,
        "windows": tally.windows,
        "ended": tally.ended,
        "worlds": report.worlds,
        "steps": tally.steps,
        "seed": seed,
        "digest": format!("{:016x}", tally.digest),
    })
}

fn asked(mut words: impl Iterator<Item = String>) -> Result<Asked, String> {
    let mut asked = Asked {
        cases: 0,
        seed: 1,
        strategies: Vec::new(),
        world: None,
        node: 0,
    };
    while let Some(word) = words.next() {
        let mut value = || words.next().ok_or_else(|| format!("{word} needs a value"));
        let number = |value: String| {
            let number = value.parse::<u64>();
            number.map_err(|_| format!("{word} needs a number, not `{value}`"))
        };
        match word.as_str() {
            "--cases" => asked.cases = number(value()?)?,
            "--seed" => asked.seed = number(value()?)?,
            "--world" => asked.world = Some(number(value()?)?),
            "--node" => asked.node = usize::try_from(number(value()?)?).unwrap_or(0),
            "--strategy" => {
                let name = value()?;
                let known = strategy::by_name(&name);
                asked
                    .strategies
                    .push(known.ok_or_else(|| format!("no strategy is called `{name}`"))?);
            }
            _ => return Err(format!("`{word}` is not known")),
        }
    }
    if asked.cases == 0 && asked.world.is_none() {
        return Err("--cases needs a number above 0".to_owned());
    }
    if asked.strategies.is_empty() {
        asked.strategies = strategy::ALL.to_vec();
    }
    Ok(asked)
}
