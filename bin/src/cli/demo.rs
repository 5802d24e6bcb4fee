//! `unprovision demo`: the whole story on the embedded sandbox.
//!
//! Each way of tearing down gets a world of its own, and all worlds run side by side. First comes the baseline, in which Nova
//! without the fix deletes the servers and nobody guards the nodes; then each strategy, by the same orchestrator and clients
//! that work on a real cloud.

mod draw;
mod play;
mod sampler;
mod stage;
mod story;

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use unprovision::cloud::{Clock, SystemClock};
use unprovision::core::{DEFAULT_TAG, tag_name};
use unprovision::strategy;
use unprovision_testkit::sandbox::config::NovaRule;

use self::play::Player;
use self::stage::Stage;
use self::story::{Figures, Story};
use crate::output::{self, Format};

/// What the baseline is called.
const BASELINE: &str = "nova-unfixed";
/// What the time lines do not show.
const NOVA: &str = "\
Nova, with its rule from before 26.1, stands beside nova-unfixed only; the
others show what unprovision does alone.
";
const NEXT: &str = "
Next, with OS_CLOUD or OS_* set for a cloud of your own:
  unprovision delete NODE --instance UUID
or first on an embedded cloud that any client can use:
  unprovision sandbox --help";
/// How many times as long everything takes on the cloud that was measured.
const SLOWER: f64 = 10.0;

/// Options of `demo`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  unprovision demo -o json")]
pub(crate) struct Args {
    /// How the result is shown
    #[arg(short, long, value_enum, default_value_t = Format::Table)]
    output: Format,
    /// How many nodes each strategy tears down
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u16).range(1..=50))]
    nodes: u16,
}

/// Lines on standard error that show how far the demo is.
#[derive(Clone, Debug)]
struct Progress {
    clock: Arc<SystemClock>,
    began: Duration,
    quiet: bool,
}

impl Progress {
    fn new(quiet: bool) -> Self {
        let clock = Arc::new(SystemClock);
        let began = clock.elapsed();
        Self { clock, began, quiet }
    }

    fn say(&self, who: &str, what: &str) {
        if self.quiet {
            return;
        }
        let passed = self.clock.elapsed().saturating_sub(self.began).as_secs_f64();
        output::say(&format!("{passed:5.1} s  {who:<18} {what}"));
    }
}

/// Runs the demo. It fails where a strategy of ours exposes a node, and where the baseline does not: then it shows nothing.
pub(crate) async fn run(args: Args, quiet: bool) -> anyhow::Result<ExitCode> {
    if !quiet {
        introduce(args.nodes);
    }
    let (figures, stories) = play_all(args.nodes.into(), quiet).await?;
    match args.output {
        Format::Json => output::print(&serde_json::to_string_pretty(&figures)?)?,
        Format::Table => output::print(&page(&figures, &stories))?,
    }
    let problems = problems(&figures);
    for problem in &problems {
        output::say(&format!("error: {problem}"));
    }
    Ok(if problems.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

fn introduce(nodes: u16) {
    output::say(&format!(
        "An embedded cloud for each way of tearing down, with {nodes} bare-metal nodes in use. All\n\
         goes {SLOWER} times as fast as on a real cloud: tear-down {:?}, cleaning {:?}, a pass\n\
         of Nova's resource tracker every {:?}.",
        stage::TEAR_DOWN,
        stage::CLEANING,
        stage::PASS
    ));
}

/// All worlds side by side, the baseline first.
async fn play_all(nodes: usize, quiet: bool) -> anyhow::Result<(Vec<Figures>, Vec<Story>)> {
    let baseline = (BASELINE, NovaRule::Old, Player::Nova);
    let ours = strategy::ALL
        .iter()
        .map(|strategy| (strategy.name(), NovaRule::Off, Player::Us(*strategy)));
    let tag = tag_name(DEFAULT_TAG)?;
    let progress = Progress::new(quiet);
    let plays = std::iter::once(baseline).chain(ours).map(|(name, nova, player)| {
        let stage = Stage::new(name, nodes, nova);
        let stage = match &player {
            Player::Us(strategy) if strategy.uses_tag() => stage.forbidding(tag.clone()),
            Player::Us(_) | Player::Nova => stage,
        };
        tokio::spawn(play::play(stage, player, progress.clone()))
    });
    let plays = plays.collect::<Vec<_>>();
    let (mut figures, mut stories) = (Vec::new(), Vec::new());
    for play in plays {
        let (row, story) = story::read(&play.await??);
        figures.push(row);
        stories.extend(story);
    }
    Ok((figures, stories))
}

fn page(figures: &[Figures], stories: &[Story]) -> String {
    let paint = draw::Paint::for_stdout();
    format!(
        "\n{}\n{NOVA}\n{}\n\n{}",
        draw::stories(stories, paint),
        draw::table(figures),
        closing(figures)
    )
}

/// What was seen, in plain words, and what to do next.
fn closing(figures: &[Figures]) -> String {
    let (baseline, ours): (Vec<_>, Vec<_>) = figures.iter().partition(|row| row.strategy == BASELINE);
    let slowed = |ms: u64| Duration::from_millis(ms).as_secs_f64() * SLOWER;
    let mut text = String::new();
    for row in baseline {
        text.push_str(&format!(
            "Without a guard, Placement offered nodes for {} ms while they were still being\n\
             cleaned (on a real cloud about {:.0} s; a server created meanwhile fails), and\n\
             offered them again {} ms after they were available.\n",
            row.exposed_ms,
            slowed(row.exposed_ms),
            row.offered_again_after_ms.unwrap_or_default()
        ));
    }
    for row in ours {
        text.push_str(&outcome(row));
    }
    text.push_str(NEXT);
    text
}

fn outcome(row: &Figures) -> String {
    let strategy = row.strategy;
    let early = match row.exposed_ms {
        0 => format!("With {strategy} no node was offered before it was available"),
        ms => format!("With {strategy} nodes were offered for {ms} ms although they were not free"),
    };
    let early = match row.exposed_samples_plain {
        Some(plain) => format!(
            "{early}\nto queries that forbid {DEFAULT_TAG} (others: in {plain} of\n{} samples)",
            row.samples
        ),
        None => early,
    };
    match row.offered_again_after_ms {
        Some(ms) => format!("{early},\nand half of them were offered again within {ms} ms after that.\n"),
        None => format!("{early},\nbut not all of them were offered again.\n"),
    }
}

/// Why the demo has failed; empty where it shows what it is to show.
fn problems(figures: &[Figures]) -> Vec<String> {
    let mut problems = Vec::new();
    for row in figures {
        let Figures {
            strategy,
            exposed_ms,
            exposed_samples,
            ..
        } = row;
        let exposed = *exposed_ms > 0 || *exposed_samples > 0;
        if *strategy == BASELINE && (*exposed_ms == 0 || *exposed_samples == 0) {
            problems.push(format!(
                "{strategy} should have exposed nodes: {exposed_ms} ms, {exposed_samples} samples"
            ));
        }
        if *strategy != BASELINE && exposed {
            problems.push(format!(
                "{strategy} exposed nodes: {exposed_ms} ms, {exposed_samples} samples"
            ));
        }
        if row.freed_after_ms.is_none() || row.offered_again_after_ms.is_none() {
            problems.push(format!("{strategy} did not bring all nodes back"));
        }
    }
    problems
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(strategy: &'static str, exposed_ms: u64, exposed_samples: u64) -> Figures {
        let after = Some(1);
        Figures {
            strategy,
            nodes: 1,
            samples: 10,
            exposed_samples,
            exposed_samples_plain: None,
            exposed_ms,
            freed_after_ms: after,
            offered_again_after_ms: after,
        }
    }

    #[test]
    fn the_demo_fails_where_it_does_not_show_what_it_is_to_show() {
        assert!(problems(&[row(BASELINE, 100, 2), row("hand-over", 0, 0)]).is_empty());
        assert_eq!(problems(&[row(BASELINE, 0, 0)]).len(), 1);
        assert_eq!(problems(&[row("hand-over", 1, 0)]).len(), 1);
        assert_eq!(problems(&[row("hand-over", 0, 1)]).len(), 1);
        let lost = Figures {
            offered_again_after_ms: None,
            ..row("hand-over", 0, 0)
        };
        assert_eq!(problems(&[lost]).len(), 1);
    }
}
