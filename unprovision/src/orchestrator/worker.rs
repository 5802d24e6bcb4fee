//! One case's loop.

use std::time::Duration;

use ironic_client::{Node, ProvisionState};
use jiff::Timestamp;
use tokio_util::sync::CancellationToken;
use unprovision_session::Class;

use super::gate::{Gate, Pass, Unheld};
use super::watcher::Watcher;
use super::{CaseReport, Parts, Progress, RunError, Until};
use crate::cloud::{CloudError, Reads};
use crate::core::{
    Action, ActionKind, Case, CaseId, CaseState, Decision, Ending, Entry, Event, LastAttempt, Observation,
    Outcome, RefusalKind, Wait, decide,
};
use crate::journal::Seq;
use crate::strategy::{self, Strategy};

/// How often in a row a look may fail for a reason that waiting does not cure.
const HOPELESS: u32 = 3;

/// The pauses before the looks that have to confirm that a node is gone.
const MISSING: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(15)];

pub(super) struct Worker<'a> {
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
    /// That the node is gone was confirmed; it holds until the node is seen again.
    is_gone: bool,
}

/// How a step of the loop ended.
enum Step {
    Again,
    Done(CaseReport),
}

/// What a look brought.
enum Look {
    Seen(Box<Observation>),
    GaveUp(Ending),
    Stopped,
}

impl<'a> Worker<'a> {
    /// Works on the case until it has ended or the waiting is stopped.
    pub(super) async fn begin(
        parts: &'a Parts,
        gate: &'a Gate,
        watcher: &'a Watcher,
        id: CaseId,
        until: Until,
        stop: &'a CancellationToken,
    ) -> Result<CaseReport, RunError> {
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
            is_gone: false,
        };
        worker.work().await
    }

    async fn work(&mut self) -> Result<CaseReport, RunError> {
        if let CaseState::Closed(ending) = &self.case.state {
            return Ok(self.report_end(&ending.clone()));
        }
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
        let seen = match self.look().await {
            Look::Seen(seen) => seen,
            Look::GaveUp(ending) => return self.end(ending).await,
            Look::Stopped => return Ok(Step::Done(self.stopped())),
        };
        self.note(&seen).await?;
        match decide(self.strategy, &self.case, &seen, self.now()) {
            // Whoever stops it in time does not want the node to be touched. Placement is still put right.
            Decision::Act(action) if action.is_to_ironic() && self.stop.is_cancelled() => {
                Ok(Step::Done(self.stopped()))
            }
            Decision::Act(action) if takes_a_place(&action) && self.pass.is_none() => {
                Ok(self.wait_for_pass().await)
            }
            Decision::Act(action) => {
                self.act(action).await?;
                Ok(Step::Again)
            }
            Decision::Wait(_) if self.is_accepted(&seen) => {
                let reason = "Ironic has accepted the tear-down; `unprovision resume` waits for the node and releases it";
                Ok(Step::Done(self.report(
                    Progress::Accepted,
                    reason.to_owned(),
                    self.case.may_hold(),
                )))
            }
            Decision::Wait(wait) => Ok(self.wait(wait, seen.node.as_ref()).await),
            Decision::End(ending) => self.end(ending).await,
        }
    }

    /// Looks until it succeeds, the time is up, or it is hopeless. A node that is not found is looked for again, at once and
    /// after a while; once for each time that it is lost, not at each look.
    async fn look(&mut self) -> Look {
        let (mut failed, mut missing) = (0, 0);
        loop {
            let looked = {
                let _place = self.parts.looks.acquire().await;
                self.parts
                    .cloud
                    .observe(self.case.node, Reads { traits: false })
                    .await
            };
            let pause = match looked {
                Ok(seen) if seen.node.is_some() || self.is_gone || missing >= MISSING.len() => {
                    self.is_gone = seen.node.is_none();
                    return Look::Seen(Box::new(seen));
                }
                Ok(_) => {
                    missing += 1;
                    MISSING[missing - 1]
                }
                Err(error) => {
                    failed += 1;
                    self.parts.observer.trouble(&self.case, &error);
                    if let Some(ending) = self.gives_up(&error, failed) {
                        return Look::GaveUp(ending);
                    }
                    self.spread(Duration::from_secs(1 << failed.min(5)))
                        .max(error.retry_after.unwrap_or_default())
                }
            };
            tokio::select! {
                () = self.stop.cancelled() => return Look::Stopped,
                () = self.parts.clock.sleep(pause) => {}
            }
        }
    }

    /// 0.5 to 1.5 times as long, by the case, so that many do not come back in step.
    fn spread(&self, pause: Duration) -> Duration {
        let share = f64::from((self.case.id.0.as_u64_pair().1 & 0xff) as u8) / 255.0;
        pause.mul_f64(0.5 + share)
    }

    fn gives_up(&self, error: &CloudError, failed: u32) -> Option<Ending> {
        let held = self.case.may_hold();
        if self.now() >= self.case.limits.deadline {
            let reason = format!("the time was up, and the cloud could not be looked at: {error}");
            return Some(Ending {
                outcome: Outcome::TimedOut,
                reason,
                held,
            });
        }
        let hopeless = matches!(error.class, Class::Refused | Class::Bug) && failed >= HOPELESS;
        hopeless.then(|| Ending {
            outcome: Outcome::Failed,
            reason: error.to_string(),
            held,
        })
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
    async fn act(&mut self, action: Action) -> Result<(), RunError> {
        self.record(Event::Intended {
            write: action.clone(),
        })
        .await?;
        let answer = {
            let _air = if takes_a_place(&action) {
                self.gate.air().await
            } else {
                None
            };
            let _place = self.parts.looks.acquire().await;
            self.parts.cloud.apply(self.case.node, &action).await
        };
        let event = match answer {
            Ok(()) => Event::Applied,
            // An answer that cannot be understood tells nothing about whether the write was applied, either.
            Err(error) if matches!(error.class, Class::Unknown | Class::Bug) => Event::Unknown {
                message: error.to_string(),
            },
            Err(error) => {
                if let (RefusalKind::Busy, Some(pass)) =
                    (error.kind, self.pass.take_if(|_| takes_a_place(&action)))
                {
                    pass.refused();
                }
                self.parts.observer.trouble(&self.case, &error);
                Event::Refused {
                    refusal: error.refusal(),
                }
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
        }
        let left = Duration::try_from(wait.until.duration_since(self.now())).unwrap_or_default();
        tokio::select! {
            () = self.stop.cancelled() => return Step::Done(self.stopped()),
            () = self.watcher.changed(self.case.node, node) => {}
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

    /// Appends to the journal first, to the case in memory second.
    async fn record(&mut self, event: Event) -> Result<(), RunError> {
        let entry = Entry {
            at: self.now(),
            event,
        };
        self.seq = self
            .parts
            .journal
            .append(self.case.id, self.seq, std::slice::from_ref(&entry))
            .await?;
        self.case.push(&entry);
        self.parts.observer.entry(&self.case, &entry);
        Ok(())
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
            true => "the waiting was stopped, the hold was not; `unprovision resume` goes on",
            false => "stopped before anything was held; `unprovision resume` goes on",
        };
        self.report(Progress::Stopped, reason.to_owned(), held)
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
