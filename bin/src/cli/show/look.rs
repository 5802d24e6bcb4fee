//! `show --look`: the node as both services show it now, beside what the journal has.

use std::collections::BTreeMap;

use jiff::Timestamp;
use placement_client::{ConsumerUuid, ResourceClass, TraitName};
use serde::Serialize;
use unprovision::core::{Case, CaseState, Decision, HeldBy, Observation, ProviderView, decide, why_not_free};
use unprovision::{Node, NodeUuid, strategy};

use crate::output::{self, plain};

/// What a look shows.
#[derive(Debug, Serialize)]
pub(super) struct Look {
    /// When it ended.
    at: Timestamp,
    /// The node, by its UUID.
    uuid: NodeUuid,
    /// The node, as Ironic shows it; nothing where it does not know it, or hides it from these credentials.
    node: Option<Node>,
    /// Why the node is not free; nothing where it is.
    not_free: Option<String>,
    /// Its provider; nothing where Placement does not know it.
    provider: Option<Provider>,
}

/// A provider.
#[derive(Debug, Serialize)]
struct Provider {
    /// Whether Placement offers a unit of the node's class; without a node, of any class.
    offered: bool,
    /// What it has.
    inventories: BTreeMap<ResourceClass, Units>,
    /// Who holds something of it.
    consumers: Vec<Consumer>,
    /// Its traits.
    traits: Vec<TraitName>,
}

/// The units of a class.
#[derive(Debug, Serialize)]
struct Units {
    total: u32,
    reserved: u32,
    used: u32,
}

/// Somebody who holds something.
#[derive(Debug, Serialize)]
struct Consumer {
    consumer: ConsumerUuid,
    /// Whose it is, in words.
    whose: String,
    /// What it holds of the provider.
    units: BTreeMap<ResourceClass, u32>,
}

impl Look {
    /// What was seen, of a node that had these cases.
    pub(super) fn new(uuid: NodeUuid, seen: &Observation, cases: &[&Case]) -> Self {
        let node = seen.node.as_ref();
        let view = seen.provider.as_ref();
        Self {
            at: seen.at,
            uuid,
            node: node.cloned(),
            not_free: match node {
                Some(node) => why_not_free(node).map(|why| why.to_string()),
                None => {
                    Some("Ironic does not know the node, or does not show it to these credentials".to_owned())
                }
            },
            provider: view.map(|view| Provider::new(view, node, cases)),
        }
    }

    /// For people.
    pub(super) fn text(&self) -> String {
        let name = self.node.as_ref().and_then(|node| node.name.as_deref());
        let mut text = format!(
            "{} at {:.0}, as both services show it:",
            output::node_name(name, self.uuid),
            self.at
        );
        if let Some(node) = &self.node {
            text.push_str(&format!("\n  node: {}", plain(&state(node))));
        }
        match &self.not_free {
            Some(why) => text.push_str(&format!("\n  not free: {}", plain(why))),
            None => text.push_str("\n  free"),
        }
        match &self.provider {
            None => {
                text.push_str("\n  provider: Placement has none of this UUID, so nothing is offered or held")
            }
            Some(provider) => provider.tell(&mut text),
        }
        text
    }
}

impl Provider {
    fn new(view: &ProviderView, node: Option<&Node>, cases: &[&Case]) -> Self {
        let classes = &view.inventories.inventories;
        let own = node.and_then(|node| ResourceClass::of_node_class(node.resource_class.as_deref()?).ok());
        let offered = match &own {
            Some(class) => view.offers(class),
            None => classes.keys().any(|class| view.offers(class)),
        };
        let units = classes.iter().map(|(class, inventory)| {
            let units = Units {
                total: inventory.total,
                reserved: inventory.reserved,
                used: view.used(class),
            };
            (class.clone(), units)
        });
        let consumers = view.holders.iter().map(|(consumer, held)| Consumer {
            consumer: *consumer,
            whose: whose(*consumer, held, node, cases),
            units: held.units.clone(),
        });
        let traits = view.traits.iter().flat_map(|read| read.traits.iter().cloned());
        Self {
            offered,
            inventories: units.collect(),
            consumers: consumers.collect(),
            traits: traits.collect(),
        }
    }

    fn tell(&self, text: &mut String) {
        let classes = self.inventories.iter().map(|(class, units)| {
            let Units {
                total,
                reserved,
                used,
            } = units;
            format!("{class}: {total} in all, {reserved} reserved, {used} used")
        });
        let classes = classes.collect::<Vec<_>>().join("; ");
        let has = if classes.is_empty() {
            "it has nothing"
        } else {
            &classes
        };
        let offered = if self.offered { "OFFERED" } else { "not offered" };
        text.push_str(&format!("\n  provider: {offered}; {has}"));
        if self.consumers.is_empty() {
            text.push_str("\n  held by nobody");
        }
        for Consumer { consumer, whose, .. } in &self.consumers {
            text.push_str(&format!("\n  held by {consumer}: {}", plain(whose)));
        }
        let traits = self.traits.iter().map(TraitName::as_str).collect::<Vec<_>>();
        if !traits.is_empty() {
            text.push_str(&format!("\n  traits: {}", traits.join(", ")));
        }
    }
}

fn whose(consumer: ConsumerUuid, held: &HeldBy, node: Option<&Node>, cases: &[&Case]) -> String {
    let owner = held.all.consumer.as_ref();
    if held.ours {
        return match cases.iter().find(|case| case.guard() == consumer) {
            Some(case) => format!("ours, of case {}", case.id),
            None => "ours, of no case of this node in this journal".to_owned(),
        };
    }
    if node.and_then(|node| node.instance_uuid) == Some(consumer.0) {
        return "the instance that the node carries".to_owned();
    }
    if cases.iter().any(|case| case.instance() == Some(consumer.0)) {
        return "the instance that leaves, or has left".to_owned();
    }
    let project = owner.map_or("nobody knows which", |owner| &owner.project_id);
    format!("somebody else, of project {project}")
}

fn state(node: &Node) -> String {
    let mut text = node.provision_state.to_string();
    if let Some(since) = node.provision_updated_at {
        text.push_str(&format!(" since {since:.0}"));
    }
    match node.instance_uuid {
        Some(instance) => text.push_str(&format!(", carries instance {instance}")),
        None => text.push_str(", carries no instance"),
    }
    if node.maintenance {
        let why = node.maintenance_reason.as_deref().unwrap_or("no reason is given");
        text.push_str(&format!(", in maintenance ({why})"));
    }
    for (is, word) in [(node.protected, "protected"), (node.retired, "retired")] {
        if is {
            text.push_str(&format!(", {word}"));
        }
    }
    let power = node.power_state.clone().map(String::from);
    text.push_str(&format!(", {}", power.as_deref().unwrap_or("power unknown")));
    if let Some(conductor) = &node.reservation {
        text.push_str(&format!(", locked by conductor {conductor}"));
    }
    if let Some(error) = &node.last_error {
        text.push_str(&format!(", last error: {error}"));
    }
    text
}

/// What whoever works on the case would do now, by the same rules; nothing where it has ended.
pub(super) fn next(case: &Case, seen: &Observation) -> Option<String> {
    let when = match case.state {
        CaseState::Open => "next",
        CaseState::Suspended(_) => "next, with `unprovision resume`",
        CaseState::Closed(_) => return None,
    };
    let Some(strategy) = strategy::by_name(&case.strategy) else {
        return Some(format!(
            "{when}: this version does not have the strategy `{}`",
            case.strategy
        ));
    };
    Some(match decide(strategy, case, seen, seen.at) {
        Decision::Act(action) => format!("{when}: {action}"),
        Decision::Wait(wait) => format!("{when}: it waits: {}", wait.for_what),
        Decision::End(ending) => format!("{when}: it ends, {}: {}", ending.outcome, ending.reason),
    })
}
