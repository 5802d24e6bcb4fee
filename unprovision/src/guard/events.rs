//! What an event-driven scheduler needs to know: which node is held, which is really free, and which needs somebody.
//!
//! An event is told once it is so: `held` when Placement has accepted the hold or a look has shown it, `released` only when the
//! case has ended after a look at a node that is free and offered. Nobody who follows the events can delay the guard: who is
//! too slow is told that it has missed some.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures::stream::{self, Stream};
use ironic_client::{NodeUuid, ProvisionState};
use jiff::Timestamp;
use placement_client::{ProviderUuid, ResourceClass};
use serde::{Serialize, Serializer};
use tokio::sync::watch;
use uuid::Uuid;

use super::{GuardObserver, Notice};
use crate::cloud::{Clock, CloudError};
use crate::core::{
    Action, ActionKind, Case, CaseId, Ending, Entry, Event, Observation, Outcome, WaitFor, is_free,
};
use crate::orchestrator::Observer;

/// So many events are kept for those who are behind.
pub const KEPT: usize = 4096;

/// What happened to a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NodeEventKind {
    /// Something of ours keeps Placement from offering it.
    Held,
    /// It is free, Placement offers it, and nothing of ours is left.
    Released,
    /// Nothing of ours is left, but it is not there to be had: in use again, gone, or somebody has it already.
    Ended,
    /// It stays held, or not to be had, until a person does something.
    Stuck,
}

impl NodeEventKind {
    /// Its name, wherever it is told.
    pub fn name(self) -> &'static str {
        match self {
            Self::Held => "held",
            Self::Released => "released",
            Self::Ended => "ended",
            Self::Stuck => "stuck",
        }
    }
}

impl Serialize for NodeEventKind {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

/// Something that happened to a node.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct NodeEvent {
    /// Its number: each is larger than all before it, also those of an earlier process while the clock goes forward.
    pub id: u64,
    /// When it was told.
    pub at: Timestamp,
    /// What happened.
    pub event: NodeEventKind,
    /// The node.
    pub node: NodeUuid,
    /// Its name.
    pub name: Option<String>,
    /// Its provider in Placement.
    pub provider: ProviderUuid,
    /// Its class in Placement.
    pub resource_class: Option<ResourceClass>,
    /// The instance that leaves, where anybody knows it.
    pub instance: Option<Uuid>,
    /// The state that it was seen in last.
    pub provision_state: Option<ProvisionState>,
    /// The strategy's name.
    pub strategy: String,
    /// The case, by which the events of one way back belong together.
    pub case: CaseId,
    /// When the guard took the node under its care.
    pub since: Timestamp,
    /// Why, in words.
    pub reason: String,
}

/// What somebody who follows is told.
#[derive(Clone, Debug, PartialEq)]
pub enum Told {
    /// An event.
    Event(Box<NodeEvent>),
    /// Events that are not kept any more; how many, unless they are of an earlier process.
    Missed(Option<u64>),
}

impl Serialize for Told {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Missed {
            event: &'static str,
            missed: Option<u64>,
        }
        match self {
            Self::Event(event) => event.serialize(serializer),
            Self::Missed(missed) => Missed {
                event: "missed",
                missed: *missed,
            }
            .serialize(serializer),
        }
    }
}

/// The events of one guard.
#[derive(Debug)]
pub struct Events {
    clock: Arc<dyn Clock>,
    kept: Arc<Mutex<Kept>>,
    latest: watch::Sender<u64>,
    cases: Mutex<BTreeMap<CaseId, Known>>,
}

/// The last events, and their numbers.
#[derive(Debug)]
struct Kept {
    /// The first number of this process.
    first: u64,
    next: u64,
    events: VecDeque<NodeEvent>,
}

/// What was told of a case, and what was seen since.
#[derive(Debug, Default)]
struct Known {
    intended: Option<Action>,
    held: bool,
    /// The last look showed a free node that Placement offers.
    is_free: bool,
    stuck: String,
}

impl Events {
    /// Numbers count on from the microseconds of now.
    pub(super) fn new(clock: Arc<dyn Clock>) -> Self {
        let first = u64::try_from(clock.now().as_microsecond()).unwrap_or_default();
        Self {
            clock,
            kept: Arc::new(Mutex::new(Kept {
                first,
                next: first,
                events: VecDeque::new(),
            })),
            latest: watch::Sender::new(first),
            cases: Mutex::default(),
        }
    }

    /// All events from now on, or all after this number. It ends with the guard.
    pub fn follow(&self, after: Option<u64>) -> impl Stream<Item = Told> + Send + use<> {
        let kept = Arc::clone(&self.kept);
        let news = self.latest.subscribe();
        let next = after.map_or_else(|| locked(&kept).next, |last| last.saturating_add(1));
        stream::unfold((kept, news, next), |(kept, mut news, next)| async move {
            loop {
                news.borrow_and_update();
                let told = locked(&kept).read(next);
                if let Some((told, next)) = told {
                    return Some((told, (kept, news, next)));
                }
                // Nobody can tell anything any more.
                news.changed().await.ok()?;
            }
        })
    }

    fn tell(&self, at: Timestamp, case: &Case, event: NodeEventKind, reason: String) {
        let mut kept = locked(&self.kept);
        let id = kept.next;
        kept.next += 1;
        kept.events.push_back(NodeEvent {
            id,
            at,
            event,
            node: case.node,
            name: case.found.name.clone(),
            provider: ProviderUuid(case.node.0),
            resource_class: case.found.class.clone(),
            instance: case.instance(),
            provision_state: case.seen.as_ref().map(|(state, _)| state.clone()),
            strategy: case.strategy.clone(),
            case: case.id,
            since: case.opened_at,
            reason,
        });
        if kept.events.len() > KEPT {
            kept.events.pop_front();
        }
        drop(kept);
        self.latest.send_replace(id);
    }

    fn entry(&self, case: &Case, entry: &Entry) {
        let mut cases = locked(&self.cases);
        let known = cases.entry(case.id).or_default();
        match &entry.event {
            Event::Intended { write } => known.intended = Some(write.clone()),
            Event::Applied => {
                let write = known.intended.take().filter(|write| holds(case, write));
                if let Some(write) = write.filter(|_| !known.held) {
                    known.held = true;
                    self.tell(entry.at, case, NodeEventKind::Held, write.to_string());
                }
            }
            Event::Refused { .. } | Event::Unknown { .. } => known.intended = None,
            Event::Closed { ending } => {
                let event = how_it_ended(known, ending);
                cases.remove(&case.id);
                self.tell(entry.at, case, event, ending.reason.clone());
            }
            Event::Opened { .. }
            | Event::Taken { .. }
            | Event::Saw { .. }
            | Event::Freed
            | Event::Suspended { .. }
            | Event::Resumed { .. } => {}
        }
    }

    /// A hold whose answer was lost, or that was there before this process, is told once it is seen.
    fn looked(&self, case: &Case, seen: &Observation) {
        let mut cases = locked(&self.cases);
        let known = cases.entry(case.id).or_default();
        let offered = case.found.class.as_ref().zip(seen.provider.as_ref());
        known.is_free = seen.node.as_ref().is_some_and(is_free)
            && offered.is_some_and(|(class, view)| view.offers(class));
        let holds = offered.is_some_and(|(class, view)| {
            case.holder_of_ours(view).is_some() || case.has_reserved(view, class)
        });
        if holds && !known.held && known.intended.is_none() {
            known.held = true;
            let reason = "it was seen to be held".to_owned();
            self.tell(seen.at, case, NodeEventKind::Held, reason);
        }
    }

    fn waiting(&self, case: &Case, for_what: &WaitFor) {
        let mut cases = locked(&self.cases);
        let known = cases.entry(case.id).or_default();
        let stuck = match for_what {
            WaitFor::Person(_) | WaitFor::Maintenance(_) => for_what.to_string(),
            WaitFor::Node(_) | WaitFor::Lock(_) | WaitFor::Other(_) => String::new(),
        };
        if !stuck.is_empty() && stuck != known.stuck {
            self.tell(self.clock.now(), case, NodeEventKind::Stuck, stuck.clone());
        }
        known.stuck = stuck;
    }
}

impl Kept {
    /// What comes next for somebody who waits for this number, and for which one after that.
    fn read(&self, wanted: u64) -> Option<(Told, u64)> {
        let oldest = self.next - self.events.len() as u64;
        if wanted < oldest {
            let missed = (wanted >= self.first).then(|| oldest - wanted);
            return Some((Told::Missed(missed), oldest));
        }
        // A number that is not there yet is one of a clock that went back.
        let place = usize::try_from(wanted.min(self.next) - oldest).ok()?;
        let event = self.events.get(place)?;
        Some((Told::Event(Box::new(event.clone())), event.id + 1))
    }
}

fn how_it_ended(known: &Known, ending: &Ending) -> NodeEventKind {
    match ending.outcome {
        Outcome::Returned if known.is_free => NodeEventKind::Released,
        Outcome::Returned | Outcome::Blocked | Outcome::Failed | Outcome::TimedOut | Outcome::Gone => {
            NodeEventKind::Ended
        }
    }
}

/// Whether the write hides the node.
fn holds(case: &Case, write: &Action) -> bool {
    match write {
        Action::SetReserved { to, .. } => *to > case.found.reserved,
        write => write.kind() == ActionKind::HandOver,
    }
}

fn locked<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    // No code that holds the lock can panic half-way through a change.
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Tells somebody, and those who follow the events.
#[derive(Debug)]
pub(super) struct AlsoEvents {
    pub(super) observer: Arc<dyn GuardObserver>,
    pub(super) events: Arc<Events>,
}

impl Observer for AlsoEvents {
    fn entry(&self, case: &Case, entry: &Entry) {
        self.observer.entry(case, entry);
        self.events.entry(case, entry);
    }

    fn looked(&self, case: &Case, seen: &Observation) {
        self.observer.looked(case, seen);
        self.events.looked(case, seen);
    }

    fn waiting(&self, case: &Case, for_what: &WaitFor) {
        self.observer.waiting(case, for_what);
        self.events.waiting(case, for_what);
    }

    fn trouble(&self, case: &Case, error: &CloudError) {
        self.observer.trouble(case, error);
    }

    fn unchecked(&self, case: &Case, why: &str) {
        self.observer.unchecked(case, why);
    }
}

impl GuardObserver for AlsoEvents {
    fn notice(&self, notice: &Notice) {
        self.observer.notice(notice);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(id: u64) -> NodeEvent {
        NodeEvent {
            id,
            at: Timestamp::UNIX_EPOCH,
            event: NodeEventKind::Held,
            node: NodeUuid(Uuid::nil()),
            name: None,
            provider: ProviderUuid(Uuid::nil()),
            resource_class: None,
            instance: None,
            provision_state: None,
            strategy: "hand-over".to_owned(),
            case: CaseId(Uuid::nil()),
            since: Timestamp::UNIX_EPOCH,
            reason: String::new(),
        }
    }

    /// Numbers 100 to 109 were given in this process, and 105 to 109 are kept.
    #[test]
    fn whoever_is_behind_is_told_what_was_missed_and_goes_on() {
        let kept = Kept {
            first: 100,
            next: 110,
            events: (105..110).map(event).collect(),
        };
        let told = |id| Some((Told::Event(Box::new(event(id))), id + 1));
        assert_eq!(kept.read(105), told(105));
        assert_eq!(kept.read(109), told(109));
        assert_eq!(kept.read(102), Some((Told::Missed(Some(3)), 105)));
        assert_eq!(
            kept.read(7),
            Some((Told::Missed(None), 105)),
            "of an earlier process"
        );
        assert_eq!(kept.read(110), None, "not yet");
        assert_eq!(kept.read(500), None, "not yet");
    }

    #[test]
    fn an_event_is_one_flat_object() {
        let text = serde_json::to_string(&Told::Event(Box::new(event(7)))).unwrap();
        assert!(
            text.starts_with(r#"{"id":7,"at":"1970-01-01T00:00:00Z","event":"held","node":"#),
            "{text}"
        );
        let missed = serde_json::to_string(&Told::Missed(Some(3))).unwrap();
        assert_eq!(missed, r#"{"event":"missed","missed":3}"#);
    }
}
