//! The orchestrator's loop without its runtime: the steps between which a process may die, freeze or be overtaken.
//!
//! It mirrors `unprovision::orchestrator`: the provider is read first and the node last, what is new is recorded, the
//! intent is on record before the write leaves and its outcome afterwards.

use std::sync::Arc;

use ironic_client::Node;
use jiff::Timestamp;
use placement_client::ProviderUuid;
use unprovision::core::{
    Action, Case, CaseState, Decision, Entry, Event, Limits, Observation, ProviderView, Refusal, RefusalKind,
    Tag,
};
use unprovision::strategy::Strategy;

use super::bay::{Bay, Machine, Maintenance};
use super::judge::is_free;
use super::product::Product;
use super::view;

/// Where a worker is.
#[derive(Clone, Debug, PartialEq)]
pub enum Phase {
    /// About to look, now or after a wait.
    Idle,
    /// Has read the provider; the node is read next.
    Half(Arc<ProviderView>),
    /// The intent is on record; the write has not left.
    Sends(Arc<Outgoing>),
    /// It knows what became of the write; the journal does not.
    Knows(Event),
}

/// A write that is about to leave.
#[derive(Clone, Debug, PartialEq)]
pub struct Outgoing {
    /// The write.
    pub action: Action,
    /// What the node was like when it was decided.
    pub saw: Saw,
}

/// What the node was like at a look, by the judge's own idea of that.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Saw {
    /// It was free.
    pub free: bool,
    /// It was in maintenance because a clean step had failed.
    pub clean_failure: bool,
    /// A reservation, or the tag of a strategy that tags, hid the provider.
    pub hidden: bool,
}

impl Saw {
    /// A look at it.
    pub fn of(node: &Machine, provider: &ProviderView, tag: Option<&Tag>) -> Self {
        let mut inventories = provider.inventories.inventories.values();
        let read = tag.zip(provider.traits.as_ref());
        let tagged = read.is_some_and(|(tag, read)| read.traits.contains(&tag.name));
        Self {
            free: is_free(node),
            clean_failure: node.maintenance == Maintenance::CleanFailure,
            hidden: tagged || inventories.any(|inventory| inventory.reserved >= inventory.total),
        }
    }
}

/// What follows a look.
#[derive(Clone, Debug, PartialEq)]
pub enum Thought {
    /// This write; the intent is on record.
    Send(Action),
    /// Nothing until then, or until the node changes.
    Wait(Timestamp),
    /// The case is suspended or closed.
    End,
}

/// Reads the provider.
pub fn read_provider(bay: &Bay, case: &Case) -> Arc<ProviderView> {
    Arc::new(view::provider(
        &bay.provider,
        ProviderUuid(bay.node.uuid.0),
        case.guard(),
    ))
}

/// Decides, and records what is new, what is intended, or how it ended. The entries are in the case already.
pub fn think(
    product: &dyn Product,
    strategy: &dyn Strategy,
    case: &mut Case,
    seen: &Observation,
    now: Timestamp,
) -> Thought {
    note(case, seen, now);
    match product.decide(strategy, case, seen, now) {
        Decision::Act(action) => {
            let write = action.clone();
            push(case, Event::Intended { write }, now);
            Thought::Send(action)
        }
        Decision::Wait(wait) => Thought::Wait(wait.until),
        Decision::End(ending) => {
            let event = match ending.held {
                true => Event::Suspended { ending },
                false => Event::Closed { ending },
            };
            push(case, event, now);
            Thought::End
        }
    }
}

/// Records what is new about the node.
fn note(case: &mut Case, seen: &Observation, now: Timestamp) {
    if let Some(node) = &seen.node
        && case
            .seen
            .as_ref()
            .is_none_or(|(state, _)| *state != node.provision_state)
    {
        push(case, saw(node), now);
    }
    let instance = case.instance_consumer();
    let holds = seen
        .provider
        .as_ref()
        .zip(instance)
        .is_some_and(|(view, instance)| view.holders.contains_key(&instance));
    if !holds && case.freed_at.is_none() && !case.found.units.is_empty() {
        push(case, Event::Freed, now);
    }
}

fn saw(node: &Node) -> Event {
    Event::Saw {
        provision_state: node.provision_state.clone(),
        maintenance: node.maintenance,
    }
}

/// A process takes the case up: its limits go on, and a write without an outcome may have been applied. Nothing
/// happens to a case that is closed.
pub fn take_up(case: &mut Case, limits: Limits, now: Timestamp) {
    if matches!(case.state, CaseState::Closed(_)) {
        return;
    }
    push(case, Event::Resumed { limits }, now);
    if case.pending.is_some() {
        push(case, unknown(), now);
    }
}

/// The entry for a write that was answered, or not.
pub fn answered(answer: Result<(), RefusalKind>) -> Event {
    match answer {
        Ok(()) => Event::Applied,
        Err(kind) => Event::Refused {
            refusal: Refusal {
                kind,
                message: String::new(),
                retry_after: None,
            },
        },
    }
}

/// The entry for a write whose answer was lost.
pub fn unknown() -> Event {
    Event::Unknown {
        message: String::new(),
    }
}

/// Adds an entry to the case, as from its journal.
pub fn push(case: &mut Case, event: Event, now: Timestamp) {
    case.push(&Entry { at: now, event });
}
