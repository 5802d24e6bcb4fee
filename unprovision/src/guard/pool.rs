//! One worker for each node on its way, side by side.

use std::collections::BTreeSet;
use std::sync::Arc;

use futures::StreamExt;
use futures::TryStreamExt;
use futures::stream::FuturesUnordered;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio_util::sync::CancellationToken;
use unprovision_session::in_full;

use super::assign::Assigned;
use super::{Attention, Guard, Notice, Pass};
use crate::NodeUuid;
use crate::cloud::Reads;
use crate::core::{Case, CaseId, CaseState, Entry, Event, Observation, Process, open_guard};
use crate::journal::{JournalError, Seq};
use crate::orchestrator::{CaseReport, First, Gate, Place, Progress, RunError, Until, Worker};

/// What became of a node; `None` where there was nothing to do.
type Cared = Result<Option<CaseReport>, RunError>;

impl Guard {
    /// Takes up what the journal has open.
    pub(super) async fn carry_on(&self, attention: &Attention) -> Result<(), RunError> {
        // Before the first write, not after the first look.
        self.heed_the_pause();
        let mut open = self.parts.journal.open_entries();
        let mut carried_on = 0;
        while let Some((id, entries)) = open.try_next().await? {
            let Some(case) = Case::fold(id, &entries).filter(Case::is_guard) else {
                continue;
            };
            if let Err(elsewhere) = self.parts.belongs_here(&case) {
                self.find(case.node, &elsewhere.to_string());
                continue;
            }
            carried_on += 1;
            self.memory.opened(case.node, case.id);
            self.brakes.holds(&case);
            // Nobody can be missing at the other end: it is there as long as the guard is.
            let _ = attention.send(case.node);
        }
        self.notice(&Notice::Starts { carried_on });
        let mut others = self.parts.at_work().await?;
        others.remove(self.parts.us());
        if !others.is_empty() {
            self.notice(&Notice::Beside(others));
        }
        Ok(())
    }

    /// Works on the nodes that want attention, until it is stopped, or nobody can want any more and all is done.
    pub(super) async fn tend(
        &self,
        wanted: UnboundedReceiver<NodeUuid>,
        until: Until,
        stop: &CancellationToken,
        pass: Option<&mut Pass>,
    ) {
        let working = self.work_on(wanted, until, stop, pass);
        self.parts.under_lease(working).await;
    }

    async fn work_on(
        &self,
        mut wanted: UnboundedReceiver<NodeUuid>,
        until: Until,
        stop: &CancellationToken,
        mut pass: Option<&mut Pass>,
    ) {
        let gate = Gate::new(0, None, Arc::clone(&self.parts.clock));
        let place = Place {
            parts: &self.parts,
            gate: &gate,
            watcher: &self.watcher,
            until,
            stop,
        };
        let mut busy = BTreeSet::new();
        let mut work = FuturesUnordered::new();
        let mut more = true;
        while more || !work.is_empty() {
            tokio::select! {
                Some(done) = work.next(), if !work.is_empty() => {
                    let (node, result): (NodeUuid, Cared) = done;
                    // A single pass comes to each node once.
                    if until != Until::Settled {
                        busy.remove(&node);
                        // Something was said of it while it was looked at.
                        if more && is_good(&result) && self.watcher.heeded(node) && busy.insert(node) {
                            work.push(self.named(node, place));
                        }
                    }
                    self.done(node, result, pass.as_deref_mut());
                }
                next = wanted.recv(), if more => match next {
                    Some(node) if busy.insert(node) => {
                        work.push(self.named(node, place));
                    }
                    Some(_) => {}
                    None => more = false,
                },
                () = stop.cancelled(), if more => more = false,
            }
        }
    }

    async fn named(&self, node: NodeUuid, place: Place<'_>) -> (NodeUuid, Cared) {
        // From here on it is looked at.
        self.watcher.heeded(node);
        (node, self.care_for(node, place).await)
    }

    /// What became of a node; only a single pass keeps it.
    fn done(&self, node: NodeUuid, result: Cared, pass: Option<&mut Pass>) {
        match result {
            Ok(None) => {}
            Ok(Some(report)) => {
                match report.outcome {
                    Progress::Ended(_) if !report.held => {
                        self.memory.ended(node);
                        self.brakes.ended(node);
                    }
                    Progress::Elsewhere => self.memory.failed(node, self.parts.clock.elapsed()),
                    _ => {}
                }
                if let Some(pass) = pass {
                    pass.reports.push(report);
                }
            }
            Err(error) => {
                self.memory.failed(node, self.parts.clock.elapsed());
                self.notice(&Notice::Trouble {
                    node,
                    why: in_full(&error, ": "),
                });
                if let Some(pass) = pass {
                    pass.failed.push((node, error));
                }
            }
        }
    }

    /// Carries the node's case on, or opens one where there is a reason to.
    async fn care_for(&self, node: NodeUuid, place: Place<'_>) -> Cared {
        let (case, first) = match self.memory.case_of(node) {
            Some(case) => (case, None),
            None => match self.open(node).await? {
                Some((case, seen)) => (case, Some(seen)),
                None => return Ok(None),
            },
        };
        match Worker::begin(place, case, first).await {
            Err(RunError::Theirs { by, .. }) => self.theirs(case, &by).await.map(Some),
            worked => worked.map(Some),
        }
    }

    /// How far a case is that another process looks after.
    async fn theirs(&self, id: CaseId, by: &Process) -> Result<CaseReport, RunError> {
        let entries = self.parts.journal.read(id).await?;
        let case = Case::fold(id, &entries).ok_or(RunError::NoCase(id))?;
        // What others hold counts, too (rule 14).
        self.brakes.holds(&case);
        let (why, now) = (format!("{by} looks after it"), self.parts.clock.now());
        Ok(CaseReport::new(
            &case,
            Progress::Elsewhere,
            why,
            case.may_hold(),
            now,
        ))
    }

    async fn open(&self, node: NodeUuid) -> Result<Option<(CaseId, First)>, RunError> {
        let term = self.parts.term();
        let seen = {
            let _place = self.parts.looks.acquire().await;
            self.parts.cloud.observe(node, Reads::everything()).await?
        };
        let policy = match seen.node.as_ref().map(|node| self.assigned(node)) {
            None => self.policy(),
            Some(Assigned::Guarded(scope, policy)) => {
                self.brakes.belongs(node, scope);
                policy
            }
            Some(Assigned::AuditOnly(scope)) => {
                let would = self.would_write(&seen, scope);
                self.finds(node, would.as_deref(), seen);
                return Ok(None);
            }
            Some(Assigned::Outside) => {
                self.finds(node, None, seen);
                return Ok(None);
            }
        };
        let now = self.parts.clock.now();
        let (id, mut first) = match open_guard(&seen, self.memory.instance_of(node), &policy, now) {
            Ok(opened) => opened,
            Err(why) => {
                let what = self.finding(&seen, &why).await;
                self.finds(node, what.as_deref(), seen);
                return Ok(None);
            }
        };
        if let Event::Opened { cloud, .. } = &mut first.event {
            cloud.clone_from(&self.parts.identity);
        }
        self.record(id, &first).await?;
        self.memory.opened(node, id);
        Ok(Some((id, (term, Box::new(seen)))))
    }

    /// The case's first entry, also where it was closed before. One that is open already, by another process, goes on as it was.
    async fn record(&self, id: CaseId, first: &Entry) -> Result<(), RunError> {
        let mut entries = self.parts.journal.read(id).await?;
        let open = Case::fold(id, &entries).is_some_and(|case| !matches!(case.state, CaseState::Closed(_)));
        if open {
            return Ok(());
        }
        let has = Seq(entries.len() as u64);
        let appended = self
            .parts
            .journal
            .append(id, has, std::slice::from_ref(first))
            .await;
        match appended {
            // Another guard was faster: whose the case is, is found out next.
            Err(JournalError::Fenced(_)) => return Ok(()),
            appended => appended?,
        };
        entries.push(first.clone());
        if let Some(case) = Case::fold(id, &entries) {
            self.parts.observer.entry(&case, first);
            self.brakes.holds(&case);
        }
        Ok(())
    }

    /// What there is to tell of a node for which nothing is begun as it is now.
    fn finds(&self, node: NodeUuid, what: Option<&str>, seen: Observation) {
        match what {
            Some(what) => self.find(node, what),
            None => self.memory.finds_nothing(node),
        }
        if let Some(seen) = seen.node {
            self.memory.settles(seen, self.parts.clock.elapsed());
        }
    }

    pub(super) fn find(&self, node: NodeUuid, what: &str) {
        if self.memory.finds(node, what) {
            self.notice(&Notice::Finding {
                node,
                what: what.to_owned(),
            });
        }
    }
}

/// Whether there was nothing in the way of the work.
fn is_good(result: &Cared) -> bool {
    match result {
        Ok(report) => report
            .as_ref()
            .is_none_or(|report| report.outcome != Progress::Elsewhere),
        Err(_) => false,
    }
}
