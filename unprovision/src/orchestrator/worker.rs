//! One case's loop.

use std::time::Duration;

use ironic_client::{Node, ProvisionState};
use jiff::{SignedDuration, Timestamp};
use tokio_util::sync::CancellationToken;

mod ask;
mod look;

use self::look::Look;
use super::gate::{Gate, Pass, Unheld};
use super::watcher::Watcher;
use super::{CaseReport, Parts, Progress, RunError, Term, Until};
use crate::core::{
    Action, ActionKind, Case, CaseId, CaseState, Decision, Ending, Event, LastAttempt, NovaSays, Observation,
    RefusalKind, Wait, WaitFor, decide,
};
use crate::journal::Seq;
use crate::strategy::{self, Strategy};

/// How long what is withheld is waited for at most.
const WITHHELD: SignedDuration = SignedDuration::from_mins(10);
/// A wait that is not worth a mention: something is about to be tried again.
const SHORT: Duration = Duration::from_secs(5);

pub(crate) struct Worker<'a> {
    parts: &'a Parts,
    gate: &'a Gate,
    watcher: &'a Watcher,
    stop: &'a CancellationToken,
    until: Until,
    strategy: &'static dyn Strategy,
    case: Case,
    seq: Seq,
    unheld: Option<Unheld<'a>>,
    pass: Option<Pass<'a>>,
    waits_for: String,
    /// Since when, by the clock that only goes forward.
    waits_since: Duration,
    /// That the node is gone was confirmed; it holds until the node is seen again.
    is_gone: bool,
    first: Option<First>,
    /// What Nova has said since the last look.
    said: Option<NovaSays>,
}

/// What a worker is given.
#[derive(Clone, Copy)]
pub(crate) struct Place<'a> {
    pub(crate) parts: &'a Parts,
    pub(crate) gate: &'a Gate,
    pub(crate) watcher: &'a Watcher,
    pub(crate) until: Until,
    pub(crate) stop: &'a CancellationToken,
}

/// A look that was taken to open the case, and in which term: as good as one of its own.
pub(crate) type First = (Term, Box<Observation>);

/// How a step of the loop ended.
enum Step {
    Again,
    Done(CaseReport),
}

impl<'a> Worker<'a> {
    /// Works on the case until it has ended or the waiting is stopped.
    pub(crate) async fn begin(
        place: Place<'a>,
        id: CaseId,
        first: Option<First>,
    ) -> Result<CaseReport, RunError> {
        let Place {
            parts,
            gate,
            watcher,
            until,
            stop,
        } = place;
        let unheld = Some(gate.unheld());
        let (case, seq) = parts.read(id).await?;
        let strategy = strategy::by_name(&case.strategy).ok_or_else(|| RunError::NoStrategy {
            case: id,
            strategy: case.strategy.clone(),
        })?;
        let waits_for = String::new();
        let mut worker = Self {
            parts,
            gate,
            watcher,
            stop,
            until,
            strategy,
            case,
            seq,
            unheld,
            pass: None,
            waits_for,
            waits_since: Duration::ZERO,
            is_gone: false,
            first,
            said: None,
        };
        worker.work().await
    }

    async fn work(&mut self) -> Result<CaseReport, RunError> {
        if let CaseState::Closed(ending) = &self.case.state {
            return Ok(self.report_end(&ending.clone()));
        }
        let left = self.case.is_guard() && self.case.was_left(self.parts.us());
        let limits = left.then_some(self.case.limits);
        self.parts.take(&mut self.case, &mut self.seq, limits).await?;
        if self.case.pending.is_some() {
            let message = "the process ended before the answer came".to_owned();
            self.record(Event::Unknown { message }).await?;
        }
        loop {
            if let Step::Done(report) = self.step().await? {
                return Ok(report);
            }
        }
    }

    async fn step(&mut self) -> Result<Step, RunError> {
        let (term, mut seen) = match self.look().await {
            Look::Seen(term, seen) => (term, seen),
            Look::GaveUp(ending) => return self.end(ending).await,
            Look::Stopped => return Ok(Step::Done(self.stopped())),
        };
        seen.nova = self.said.take();
        self.note(&seen).await?;
        self.parts.observer.looked(&self.case, &seen);
        let decision = decide(self.strategy, &self.case, &seen, self.now());
        if let Some(server) = self.in_doubt(&seen, &decision) {
            return Ok(self.ask(server).await);
        }
        if matches!(decision, Decision::Act(_)) && !self.parts.goes_on(term).await? {
            return Ok(Step::Again);
        }
        match decision {
            // Whoever stops it in time does not want the node to be touched. Placement is still put right.
            Decision::Act(action) if action.drives_the_node() && self.stop.is_cancelled() => {
                Ok(Step::Done(self.stopped()))
            }
            Decision::Act(action) if takes_a_place(&action) && self.pass.is_none() => {
                Ok(self.wait_for_pass().await)
            }
            Decision::Act(action) => match self.parts.admission.admits(&self.case, &action) {
                Ok(()) => {
                    self.act(action, term).await?;
                    Ok(Step::Again)
                }
                Err(why) => {
                    let words = format!("not sent: {action}; {why}");
                    Ok(self.wait(self.withheld(words), seen.node.as_ref()).await)
                }
            },
            Decision::Wait(_) if self.is_accepted(&seen) => {
                let reason = "Ironic has accepted the tear-down; `unprovision resume` waits for the node and releases it";
                Ok(Step::Done(self.report(
                    Progress::Accepted,
                    reason.to_owned(),
                    self.case.may_hold(),
                )))
            }
            Decision::Wait(wait) => Ok(self.wait(wait, seen.node.as_ref()).await),
            Decision::End(ending) => match self.parts.admission.closes(&self.case, &ending) {
                Ok(()) => self.end(ending).await,
                Err(why) => {
                    let words = format!("not closed ({}); {why}", ending.reason);
                    Ok(self.wait(self.withheld(words), seen.node.as_ref()).await)
                }
            },
        }
    }

    /// Whoever withholds something wakes the worker when that is over.
    fn withheld(&self, words: String) -> Wait {
        Wait {
            for_what: WaitFor::Other(words),
            until: self.now() + WITHHELD,
        }
    }

    /// Records what is new about the node.
    async fn note(&mut self, seen: &Observation) -> Result<(), RunError> {
        if let Some(node) = &seen.node {
            let known = self
                .case
                .seen
                .as_ref()
                .is_some_and(|(state, _)| *state == node.provision_state);
            if !known {
                let provision_state = node.provision_state.clone();
                // Only a change gives the place back: a tear-down that is sent again begins in such a state.
                if has_left_cleaning(&provision_state) {
                    self.pass = None;
                }
                self.record(Event::Saw {
                    provision_state,
                    maintenance: node.maintenance,
                })
                .await?;
            }
        }
        let instance = self.case.instance_consumer();
        let holds = seen
            .provider
            .as_ref()
            .zip(instance)
            .is_some_and(|(view, instance)| view.holders.contains_key(&instance));
        if !holds && self.case.freed_at.is_none() && !self.case.found.units.is_empty() {
            self.record(Event::Freed).await?;
        }
        Ok(())
    }

    /// Intent on disk, the write, its outcome on disk.
    async fn act(&mut self, action: Action, term: Term) -> Result<(), RunError> {
        self.record(Event::Intended {
            write: action.clone(),
        })
        .await?;
        let sending = async {
            let _air = if takes_a_place(&action) {
                self.gate.air().await
            } else {
                None
            };
            let _place = self.parts.looks.acquire().await;
            self.parts.cloud.apply(self.case.node, &action).await
        };
        let event = match self.parts.within(term, sending).await {
            Ok(()) => Event::Applied,
            Err(error) if error.leaves_in_doubt() => error.outcome(),
            Err(error) => {
                if let (RefusalKind::Busy, Some(pass)) =
                    (error.kind, self.pass.take_if(|_| takes_a_place(&action)))
                {
                    pass.refused();
                }
                self.parts.observer.trouble(&self.case, &error);
                error.outcome()
            }
        };
        self.record(event).await
    }

    /// Everything is held: wait until all others are, and for a place. The world is looked at anew afterwards.
    async fn wait_for_pass(&mut self) -> Step {
        self.unheld = None;
        tokio::select! {
            () = self.stop.cancelled() => return Step::Done(self.stopped()),
            pass = self.gate.pass() => self.pass = Some(pass),
        }
        Step::Again
    }

    async fn wait(&mut self, wait: Wait, node: Option<&Node>) -> Step {
        if self.case.may_hold() || node.is_none_or(|node| node.instance_uuid.is_none()) {
            self.unheld = None;
        }
        let words = wait.for_what.to_string();
        if words != self.waits_for {
            self.parts.observer.waiting(&self.case, &wait.for_what);
            self.waits_for = words;
            self.waits_since = self.parts.clock.elapsed();
        }
        let left = Duration::try_from(wait.until.duration_since(self.now())).unwrap_or_default();
        // Many short waits for the same thing are a long one.
        let waited = self.parts.clock.elapsed().saturating_sub(self.waits_since);
        if self.until == Until::Settled && left.max(waited) > SHORT {
            let held = self.case.may_hold();
            return Step::Done(self.report(Progress::Waits, self.waits_for.clone(), held));
        }
        let covered = self.case.holds_the_unit();
        tokio::select! {
            () = self.stop.cancelled() => return Step::Done(self.stopped()),
            () = self.watcher.changed(self.case.node, node, covered) => {}
            () = self.parts.clock.sleep(left) => {}
        }
        Step::Again
    }

    async fn end(&mut self, ending: Ending) -> Result<Step, RunError> {
        self.unheld = None;
        let event = match ending.held {
            true => Event::Suspended {
                ending: ending.clone(),
            },
            false => Event::Closed {
                ending: ending.clone(),
            },
        };
        self.record(event).await?;
        Ok(Step::Done(self.report_end(&ending)))
    }

    async fn record(&mut self, event: Event) -> Result<(), RunError> {
        self.parts.record(&mut self.case, &mut self.seq, event).await
    }

    fn is_accepted(&self, seen: &Observation) -> bool {
        let left = seen
            .node
            .as_ref()
            .is_some_and(|node| node.instance_uuid.is_none());
        let sent = self.case.attempts.get(&ActionKind::Unprovision);
        self.until == Until::Accepted && (left || sent.is_some_and(|sent| sent.last == LastAttempt::Applied))
    }

    fn stopped(&self) -> CaseReport {
        let held = self.case.may_hold();
        let reason = match held {
            true => "the waiting was stopped, the hold was not",
            false => "stopped before anything was held",
        };
        let next = if self.case.is_guard() { "guard" } else { "resume" };
        let reason = format!("{reason}; `unprovision {next}` goes on");
        self.report(Progress::Stopped, reason, held)
    }

    fn report_end(&self, ending: &Ending) -> CaseReport {
        self.report(
            Progress::Ended(ending.outcome),
            ending.reason.clone(),
            ending.held,
        )
    }

    fn report(&self, progress: Progress, reason: String, held: bool) -> CaseReport {
        CaseReport::new(&self.case, progress, reason, held, self.now())
    }

    fn now(&self) -> Timestamp {
        self.parts.clock.now()
    }
}

/// Whether the write puts a node among those that Ironic counts against its limit.
fn takes_a_place(action: &Action) -> bool {
    matches!(action.kind(), ActionKind::Unprovision | ActionKind::Provide)
}

fn has_left_cleaning(state: &ProvisionState) -> bool {
    use ProvisionState as P;
    matches!(state, P::Available | P::CleanFailed | P::Error)
}
