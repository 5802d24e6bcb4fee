//! `unprovision watch`: looks at nodes from outside, and tells when they were offered and when they were free.

mod lines;
mod result;
mod svg;

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::str::FromStr;
use std::time::Duration;

use anyhow::Context as _;
use placement_client::ResourceClass;
use unprovision::cloud::{Clock, Lookout, SystemClock};
use unprovision::watch::{Phase, Sample, is_back};
use unprovision::{Node, NodeUuid};

use self::lines::Lines;
use self::result::Story;
use super::candidates::{Asked, FALSE_OFFER};
use super::{Global, follow};
use crate::config::HumanDuration;
use crate::failure::{OTHER, Problems, Usage};
use crate::output;
use crate::stop::Signals;

/// More often than this only costs.
const MOST_OFTEN: Duration = Duration::from_millis(100);

/// Options of `watch`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLE)]
pub(crate) struct Args {
    /// Nodes, by name or UUID
    #[arg(required = true, value_name = "NODE", value_parser = follow::node)]
    nodes: Vec<String>,
    /// How long: until all nodes have been away (in use, or on their way) and are back, free and offered; or so long
    #[arg(long, value_name = "available|DURATION", default_value = "available")]
    until: Until,
    /// How often both services are looked at
    #[arg(long, value_name = "DURATION", default_value = "1s")]
    every: HumanDuration,
    #[command(flatten)]
    asked: Asked,
    /// How the result is shown on standard output
    #[arg(short, long, value_enum, value_name = "FORMAT", default_value = "table")]
    output: Format,
}

const EXAMPLE: &str = "\
Examples:
  unprovision watch node-0001                     # and delete its server meanwhile, in whatever way
  unprovision watch node-0001 node-0002 --until 10m -o svg > ticket.svg

Nothing is changed. Ctrl-C ends it with the result so far. Exit status 3: a node was offered although it was not free.";

/// How long is watched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Until {
    /// Until all nodes were away and are back.
    Available,
    /// So long.
    For(HumanDuration),
}

impl FromStr for Until {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "available" => Ok(Self::Available),
            _ => text
                .parse()
                .map(Self::For)
                .map_err(|error| format!("{error}, or `available`")),
        }
    }
}

/// How the result is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    /// For people.
    Table,
    /// A list of objects.
    Json,
    /// A picture.
    Svg,
}

/// A node that is watched.
#[derive(Clone, Debug)]
struct Watched {
    node: NodeUuid,
    name: String,
    class: ResourceClass,
}

pub(super) async fn run(args: Args, global: Global) -> anyhow::Result<ExitCode> {
    let loaded = global.load([])?;
    if args.every.get() < MOST_OFTEN {
        return Err(Usage(format!("--every {}: write {MOST_OFTEN:?} or more", args.every)).into());
    }
    let signals = Signals::new()?;
    let lookout = global.lookout(&loaded).await?;
    let watched = signals.before_anything(find(&lookout, &args.nodes)).await?;
    let lines = Lines::new(loaded.config.log.format, global.quiet);
    lines.begin(SystemClock.now(), &args);
    let samples = watch(&args, &lookout, &watched, lines, &signals).await?;
    if !samples.iter().any(|sample| sample.looks.is_some()) {
        output::say("no look has succeeded; there is nothing to tell");
        return Ok(ExitCode::from(OTHER));
    }
    let stories = watched
        .iter()
        .map(|watched| Story::read(watched, &samples))
        .collect::<Vec<_>>();
    output::print(&match args.output {
        Format::Table => result::table(&stories),
        Format::Json => serde_json::to_string_pretty(&stories)?,
        Format::Svg => svg::draw(&stories)?,
    })?;
    let exposed = stories
        .iter()
        .any(|story| story.windows.iter().any(|window| window.what == Phase::Exposed));
    Ok(ExitCode::from(if exposed { FALSE_OFFER } else { 0 }))
}

/// Looks the nodes up, and tells everything that is wrong.
async fn find(lookout: &Lookout, nodes: &[String]) -> anyhow::Result<Vec<Watched>> {
    let mut found = Vec::with_capacity(nodes.len());
    for name in nodes {
        let node = lookout
            .find(name)
            .await
            .with_context(|| format!("node {name} could not be looked up"))?;
        found.push(watched(name, node));
    }
    let found = Problems::sort(found)?;
    match follow::twice(&found.iter().map(|watched| watched.node).collect::<Vec<_>>()) {
        Some(uuid) => Err(Usage(format!("node {uuid} is named twice")).into()),
        None => Ok(found),
    }
}

fn watched(name: &str, node: Option<Node>) -> anyhow::Result<Watched> {
    let unknown = || {
        Usage(format!(
            "Ironic does not know node {name}, or does not show it to these credentials"
        ))
    };
    let node = node.ok_or_else(unknown)?;
    let none = || {
        Usage(format!(
            "node {name} has no resource class, so Placement cannot offer it"
        ))
    };
    let class = node.resource_class.as_deref().ok_or_else(none)?;
    Ok(Watched {
        node: node.uuid,
        class: ResourceClass::of_node_class(class).map_err(|_| none())?,
        name: node.name.unwrap_or_else(|| name.to_owned()),
    })
}

/// Looks until it is time to stop. The first look must succeed: otherwise something is wrong that waiting does not cure.
async fn watch(
    args: &Args,
    lookout: &Lookout,
    watched: &[Watched],
    mut lines: Lines,
    signals: &Signals,
) -> anyhow::Result<Vec<Sample>> {
    let clock = SystemClock;
    let (required, forbidden) = (args.asked.required(), args.asked.forbidden());
    let classes = watched
        .iter()
        .map(|one| (one.node, one.class.clone()))
        .collect::<BTreeMap<_, _>>();
    let began = clock.elapsed();
    let mut samples: Vec<Sample> = Vec::new();
    loop {
        let look_at = clock.elapsed();
        let looked = tokio::select! {
            () = signals.token().cancelled() => return Ok(samples),
            looked = lookout.sample(&classes, &required, &forbidden) => looked,
        };
        let sample = match looked {
            Ok(sample) => sample,
            Err(error) if samples.is_empty() => return Err(error.into()),
            Err(error) => {
                lines.failed(clock.now(), &error);
                Sample {
                    at: clock.now(),
                    looks: None,
                }
            }
        };
        lines.tell(watched, &sample);
        samples.push(sample);
        let left = match args.until {
            Until::Available if watched.iter().all(|one| is_back(&samples, one.node)) => Duration::ZERO,
            Until::Available => Duration::MAX,
            Until::For(duration) => duration.get().saturating_sub(clock.elapsed() - began),
        };
        if left.is_zero() {
            return Ok(samples);
        }
        let pause = args
            .every
            .get()
            .saturating_sub(clock.elapsed() - look_at)
            .min(left);
        tokio::select! {
            () = signals.token().cancelled() => return Ok(samples),
            () = clock.sleep(pause) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_is_a_state_or_a_duration() {
        assert_eq!("available".parse(), Ok(Until::Available));
        assert_eq!("10m".parse(), Ok(Until::For("10m".parse().unwrap())));
        let said = "soon".parse::<Until>().unwrap_err();
        assert!(
            said.contains("such as 90s") && said.contains("`available`"),
            "{said}"
        );
    }
}
