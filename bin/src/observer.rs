//! One line on standard error for each thing that happens to a node.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};

use jiff::Timestamp;
use serde_json::json;
use unprovision::ProvisionState;
use unprovision::cloud::{Clock, CloudError};
use unprovision::core::{Action, ActionKind, Case, CaseId, Entry, Event, LastAttempt, WaitFor, by_hand};
use unprovision::guard::{GuardObserver, Notice};
use unprovision::orchestrator::{Observer, Until};
use unprovision_session::in_full;

use crate::config::LogFormat;
use crate::output::{self, Subject, plain};
use crate::progress::Progress;

/// Says on standard error what happens to each node.
#[derive(Debug)]
pub(crate) struct Lines {
    format: LogFormat,
    clock: Arc<dyn Clock>,
    states: Mutex<BTreeMap<CaseId, ProvisionState>>,
    count: Mutex<Option<Count>>,
}

/// How many nodes are done with.
#[derive(Debug)]
struct Count {
    progress: Progress,
    all: usize,
    done: BTreeSet<CaseId>,
    until: Until,
}

impl Lines {
    /// Lines in this format.
    pub(crate) fn new(format: LogFormat, clock: Arc<dyn Clock>) -> Self {
        Self {
            format,
            clock,
            states: Mutex::default(),
            count: Mutex::default(),
        }
    }

    /// From here on it is shown how many of all nodes are done with.
    pub(crate) fn count(&self, all: usize, until: Until) {
        let progress = Progress::new("nodes done with", "nodes done with", false);
        progress.tell(0, all);
        let count = Count {
            progress,
            all,
            done: BTreeSet::new(),
            until,
        };
        *self.count.lock().unwrap_or_else(PoisonError::into_inner) = Some(count);
    }

    /// It is not shown any more.
    pub(crate) fn counted(&self) {
        self.count.lock().unwrap_or_else(PoisonError::into_inner).take();
    }

    fn is_done_with(&self, case: &Case, event: &Event) {
        let mut count = self.count.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(count) = count.as_mut() else { return };
        let accepted = || {
            let sent = case.attempts.get(&ActionKind::Unprovision);
            count.until == Until::Accepted && sent.is_some_and(|sent| sent.last == LastAttempt::Applied)
        };
        let done = match event {
            Event::Suspended { .. } | Event::Closed { .. } => true,
            Event::Applied => accepted(),
            _ => false,
        };
        if done && count.done.insert(case.id) {
            count.progress.tell(count.done.len(), count.all);
        }
    }

    /// The work on a node begins, or goes on; with another strategy than was asked for, if so.
    pub(crate) fn tell(&self, subject: &Subject, what: &str, asked: Option<&str>) {
        let Subject {
            instance, strategy, ..
        } = subject;
        let asked = asked.map_or_else(String::new, |asked| format!(" (asked for: {asked})"));
        self.line(
            subject,
            self.clock.now(),
            &match instance {
                Some(instance) => format!("{what}: instance {instance}, {strategy}{asked}"),
                None => format!("{what}: {strategy}{asked}"),
            },
        );
    }

    fn line(&self, subject: &Subject, at: Timestamp, what: &str) {
        let Subject {
            node, name, instance, ..
        } = subject;
        match (self.format, name) {
            (LogFormat::Text, Some(name)) => output::say(&format!("{at:.3} {} {}", plain(name), plain(what))),
            (LogFormat::Text, None) => output::say(&format!("{at:.3} {node} {}", plain(what))),
            (LogFormat::Json, _) => output::say_object(&json!({
                "timestamp": at, "node": node, "name": name, "instance": instance, "message": what
            })),
        }
    }

    /// The change in words; the state before is known only from the second look on.
    fn change(&self, case: &Case, to: &ProvisionState, maintenance: bool) -> String {
        let mut states = self.states.lock().unwrap_or_else(PoisonError::into_inner);
        let from = states.insert(case.id, to.clone());
        let suffix = in_maintenance(maintenance);
        match from {
            Some(from) => format!("{from} -> {to}{suffix}"),
            None => format!("is {to}{suffix}"),
        }
    }
}

impl Observer for Lines {
    fn entry(&self, case: &Case, entry: &Entry) {
        self.is_done_with(case, &entry.event);
        let what = match &entry.event {
            Event::Saw {
                provision_state,
                maintenance,
            } => self.change(case, provision_state, *maintenance),
            Event::Applied | Event::Taken { .. } => return,
            _ => words(case, entry),
        };
        self.line(&case.into(), entry.at, &what);
    }

    fn waiting(&self, case: &Case, for_what: &WaitFor) {
        // That a node is on its way was said when it was seen.
        if !matches!(for_what, WaitFor::Node(_)) {
            self.line(&case.into(), self.clock.now(), &format!("waits: {for_what}"));
        }
    }

    fn trouble(&self, case: &Case, error: &CloudError) {
        // What a write met is said when it is recorded.
        if case.pending.is_none() {
            self.line(
                &case.into(),
                self.clock.now(),
                &format!("could not be looked at, tried again: {}", in_full(error, ": ")),
            );
        }
    }

    fn unchecked(&self, case: &Case, why: &str) {
        let words = format!("Nova cannot be asked, decided without it from now on: {why}");
        self.line(&case.into(), self.clock.now(), &words);
    }
}

/// What an entry says; the case has it already.
pub(crate) fn words(case: &Case, entry: &Entry) -> String {
    match &entry.event {
        Event::Opened { strategy, .. } => format!("begins with {strategy}"),
        Event::Saw {
            provision_state,
            maintenance,
        } => format!("is {provision_state}{}", in_maintenance(*maintenance)),
        Event::Freed => "the instance's allocation is released".to_owned(),
        Event::Intended { write } => match lifted_by(case, write) {
            Some(command) => format!("{write}; once it is free, by hand: `{command}`"),
            None => write.to_string(),
        },
        Event::Applied => "accepted".to_owned(),
        Event::Refused { refusal } => format!("refused: {refusal}"),
        Event::Unknown { message } => {
            format!("nobody knows whether that was applied, looking: {message}")
        }
        Event::Suspended { ending } => format!("stops, still held, {}: {}", ending.outcome, ending.reason),
        Event::Taken { by } => format!("is worked on by {by}"),
        Event::Resumed { .. } => "is taken up again".to_owned(),
        Event::Closed { ending } => format!("{}: {}", ending.outcome, ending.reason),
    }
}

fn in_maintenance(is: bool) -> &'static str {
    if is { ", in maintenance" } else { "" }
}

/// What lifts the hold that this write takes, for the case that nobody is there to do it (rule 15).
fn lifted_by(case: &Case, write: &Action) -> Option<String> {
    let commands = match write {
        Action::HandOver { receiver, .. } => by_hand(case.node, Some(*receiver), None),
        Action::SetReserved { class, to, .. } if *to > case.found.reserved => {
            by_hand(case.node, None, Some((class, case.found.reserved)))
        }
        _ => return None,
    };
    case.is_guard().then(|| commands.join("; "))
}

impl GuardObserver for Lines {
    fn notice(&self, notice: &Notice) {
        let at = self.clock.now();
        match self.format {
            LogFormat::Text => output::say(&format!("{at:.3} {notice}")),
            LogFormat::Json => output::say_object(&json!({
                "timestamp": at, "alarm": notice.is_alarm(), "message": notice.to_string()
            })),
        }
    }
}

/// Says only what somebody has to act upon, and that nothing is seen.
#[derive(Debug)]
pub(crate) struct Alarms(pub(crate) Lines);

impl Observer for Alarms {}

impl GuardObserver for Alarms {
    fn notice(&self, notice: &Notice) {
        if notice.is_alarm() || matches!(notice, Notice::Blind { .. } | Notice::SeesNothing) {
            self.0.notice(notice);
        }
    }
}
