//! Exhaustive checking from the command line; `tests/check` builds and starts it.
//!
//! Standard output has one JSON object for each strategy, or with `--markdown` a section for `docs/checked.md`; standard error
//! what was searched, and with `--traces` the ways into what was found.

use std::fmt::Write as _;
use std::process::ExitCode;

use unprovision::strategy::{self, Strategy};
use unprovision_testkit::checker::{Report, Scope, Verdict, World, examine};
use unprovision_testkit::model::AsIs;

/// So many things go wrong beside Nova, and twice as many without it and to our own processes, unless said otherwise.
const DISTURBANCES: u8 = 1;
const USAGE: &str = "usage: check [--disturbances N] [--world TEXT] [--traces | --markdown] [STRATEGY...]";

struct Asked {
    disturbances: u8,
    /// Only the worlds that have this in their names.
    world: String,
    traces: bool,
    markdown: bool,
    strategies: Vec<&'static dyn Strategy>,
}

fn main() -> ExitCode {
    let asked = match asked(std::env::args().skip(1)) {
        Ok(asked) => asked,
        Err(wrong) => {
            eprintln!("{wrong}\n{USAGE}");
            return ExitCode::from(2);
        }
    };
    let mut good = true;
    for strategy in &asked.strategies {
        let mut worlds = Scope::all(asked.disturbances);
        worlds.retain(|scope| scope.name.contains(&asked.world));
        let verdict = examine(&AsIs, *strategy, &worlds, tell);
        match serde_json::to_string(&verdict) {
            Ok(_) if asked.markdown => print!("{}", markdown(&verdict)),
            Ok(line) => println!("{line}"),
            Err(error) => eprintln!("{error}"),
        }
        if asked.traces {
            eprint!("{}", traces(&verdict));
        }
        good &= verdict.is_good();
    }
    ExitCode::from(u8::from(!good))
}

fn asked(mut words: impl Iterator<Item = String>) -> Result<Asked, String> {
    let mut asked = Asked {
        disturbances: DISTURBANCES,
        world: String::new(),
        traces: false,
        markdown: false,
        strategies: Vec::new(),
    };
    while let Some(word) = words.next() {
        match word.as_str() {
            "--disturbances" => {
                let number = words.next().and_then(|number| number.parse().ok());
                asked.disturbances = number.ok_or("--disturbances needs a number from 0 to 255")?;
            }
            "--world" => asked.world = words.next().ok_or("--world needs a part of a name")?,
            "--traces" => asked.traces = true,
            "--markdown" => asked.markdown = true,
            option if option.starts_with('-') => return Err(format!("`{option}` is not known")),
            name => {
                let known = strategy::by_name(name);
                asked
                    .strategies
                    .push(known.ok_or_else(|| format!("no strategy is called `{name}`"))?);
            }
        }
    }
    if asked.strategies.is_empty() {
        asked.strategies = strategy::ALL.to_vec();
    }
    Ok(asked)
}

fn tell(report: &Report) {
    eprintln!(
        "  {}: {} states, {} moves, depth {}",
        report.scope.name, report.states, report.moves, report.depth
    );
}

/// The ways into what was found, for people.
fn traces(verdict: &Verdict) -> String {
    let mut text = String::new();
    for window in verdict.window.iter().chain(&verdict.further_windows) {
        let _ = writeln!(
            text,
            "\nwindow ({}), in the world `{}`:",
            window.beside, window.world
        );
        steps(&mut text, &window.trace);
    }
    for violation in &verdict.violated {
        let _ = writeln!(
            text,
            "\nVIOLATION ({} times), in the world `{}`: {}",
            violation.count, violation.world, violation.breach
        );
        steps(&mut text, &violation.trace);
    }
    text
}

fn steps(text: &mut String, trace: &[String]) {
    for (number, line) in trace.iter().enumerate() {
        let _ = writeln!(text, "{:>3}  {line}", number + 1);
    }
}

fn markdown(verdict: &Verdict) -> String {
    let Verdict {
        strategy,
        states,
        moves,
        violations,
        ..
    } = verdict;
    let mut text = format!(
        "\n## `{strategy}`\n\n{states} states, {moves} moves, {violations} violations\n\n\
         | world | may go wrong | states | moves | longest shortest way |\n| --- | --- | --- | --- | --- |\n"
    );
    for world in &verdict.worlds {
        let World {
            world,
            disturbances,
            states,
            moves,
            depth,
        } = world;
        let _ = writeln!(
            text,
            "| {world} | {disturbances} | {states} | {moves} | {depth} |"
        );
    }
    let ways = traces(verdict);
    if !ways.is_empty() {
        let _ = writeln!(text, "\n```text{ways}```");
    }
    text
}
