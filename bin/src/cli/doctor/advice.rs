//! Which strategy suits a cloud, why, and how to begin. Pure.

use serde::Serialize;
use unprovision::strategy::{self, Strategy};

use super::facts::{Facts, Step, Tried};
use super::fleet::Nova;
use super::judge::{Check, Verdict};

/// What to do now.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Advice {
    /// The strategy; nothing where none can work yet.
    pub(super) strategy: Option<&'static str>,
    /// Why.
    pub(super) why: String,
    /// How to begin.
    pub(super) commands: Vec<String>,
}

pub(super) fn advise(facts: &Facts, checks: &[Check]) -> Advice {
    let has_none = matches!(
        facts.placement.trouble,
        Some((Step::Configuration | Step::Endpoint, _))
    );
    if facts.ironic.works() && has_none {
        return Advice {
            strategy: None,
            why: "nothing says where a Placement is: if this cloud has one, first mend what is marked BROKEN; if it has none, nobody \
                  offers its nodes, and Ironic alone is enough"
                .to_owned(),
            commands: vec!["openstack baremetal node undeploy NODE".to_owned()],
        };
    }
    let nova = facts.fleet.nova();
    let suits = strategy::ALL
        .iter()
        .find(|strategy| suits(facts, **strategy, nova));
    let cannot_begin = checks.iter().any(Check::stops_everything);
    match suits.filter(|_| !cannot_begin) {
        Some(strategy) => Advice {
            strategy: Some(strategy.name()),
            why: why(facts, *strategy, nova),
            commands: commands(facts, strategy.name(), nova),
        },
        None => Advice {
            strategy: None,
            why: "first mend what is marked BROKEN, then ask again".to_owned(),
            commands: vec!["unprovision doctor".to_owned()],
        },
    }
}

impl Check {
    /// Whether no strategy can work as long as it is so.
    fn stops_everything(&self) -> bool {
        self.verdict == Verdict::Broken && ["ironic", "placement", "nodes", "providers"].contains(&self.about)
    }
}

fn suits(facts: &Facts, strategy: &dyn Strategy, nova: Nova) -> bool {
    let needs = strategy.needs();
    let is_forbidden = |tried: &Tried| matches!(tried, Tried::Forbidden(_));
    let speaks = facts
        .placement
        .versions
        .is_some_and(|range| needs.features.iter().all(|feature| feature.since() <= range.max));
    let in_placement = facts.in_placement.iter();
    let in_ironic = facts.in_ironic.iter();
    speaks
        && !in_placement
            .filter(|(right, _)| needs.in_placement.contains(right))
            .any(|(_, tried)| is_forbidden(tried))
        && (nova.is_there()
            || !in_ironic
                .filter(|(right, _)| needs.in_ironic.contains(right))
                .any(|(_, tried)| is_forbidden(tried)))
}

fn why(facts: &Facts, strategy: &dyn Strategy, nova: Nova) -> String {
    let beside = match nova {
        Nova::Old => {
            "; it holds by an allocation, which this Nova leaves alone, while it takes a reservation back"
        }
        Nova::Current => {
            "; this Nova covers most deletes by itself, but not those of servers that were claimed during a pass, and it \
             lifts its reservation only at the next pass"
        }
        Nova::Mixed | Nova::Untold => "; it holds by an allocation, which Nova of any version leaves alone",
        Nova::None | Nova::Others | Nova::Unknown => {
            "; no Nova is in the way, so `delete` does the whole of it"
        }
    };
    let configured = match facts.strategy == strategy.name() {
        true => String::new(),
        false => format!(". Configured is {}", facts.strategy),
    };
    format!("{}{beside}{configured}", strategy.promise())
}

fn commands(facts: &Facts, name: &str, nova: Nova) -> Vec<String> {
    let asked = match facts.strategy == name {
        true => String::new(),
        false => format!(" --strategy {name}"),
    };
    let mut commands = vec!["unprovision audit".to_owned()];
    match nova.is_there() {
        true => commands.extend([
            format!("unprovision guard --dry-run{asked}"),
            format!("unprovision guard{asked}"),
        ]),
        false => commands.push(format!("unprovision delete NODE{asked}")),
    }
    commands
}
