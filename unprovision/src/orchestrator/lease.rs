//! Our lease: that we are at work, who else is, and whether what was decided may still be sent (rule 16).

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::future::poll_fn;
use std::pin::pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::Poll;
use std::time::Duration;

use unprovision_session::Class;

use super::{Parts, RunError};
use crate::cloud::CloudError;
use crate::core::{Case, Claim, Event, Limits, Process, RefusalKind};
use crate::journal::{JournalError, Seq};
use crate::process;

/// How long a lease runs: so late, at most, another process takes up what a dead one has left.
const RUNS: Duration = Duration::from_secs(30);
/// How old it may become before it is renewed.
const RENEWED_AFTER: Duration = Duration::from_secs(8);
/// With an older one nothing is sent: what a process that stood still sends then could meet another one's work. The rest of the
/// time is for a request that has left.
const SENDS_WITHIN: Duration = Duration::from_secs(20);

/// The lease of this process.
#[derive(Debug)]
pub(crate) struct Lease {
    us: Process,
    state: Mutex<State>,
    /// A renewal and the end must not overtake each other on their way.
    on_its_way: tokio::sync::Mutex<()>,
    /// How many runs rely on it.
    runs: AtomicUsize,
}

#[derive(Debug, Default)]
struct State {
    /// When it was renewed last, by the clock that goes on while the process stands still.
    renewed: Option<Duration>,
    term: Term,
}

/// A time without a gap in the lease. Whoever was away for longer than it ran begins another one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Term(u64);

impl State {
    fn is_younger_than(&self, age: Duration, now: Duration) -> bool {
        self.renewed
            .is_some_and(|renewed| now.saturating_sub(renewed) < age)
    }
}

fn stood_still() -> CloudError {
    CloudError {
        class: Class::Unknown,
        kind: RefusalKind::Other,
        message: "the lease was not renewed for so long that others may have taken over".to_owned(),
        retry_after: None,
        source: None,
    }
}

impl Lease {
    pub(super) fn of(us: Process) -> Self {
        Self {
            us,
            state: Mutex::default(),
            on_its_way: tokio::sync::Mutex::default(),
            runs: AtomicUsize::new(0),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // No code that holds the lock can panic half-way through a change.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Parts {
    /// Renews the lease where it is not young any more.
    async fn keep_lease(&self) -> Result<(), JournalError> {
        if self.lease_is_young() {
            return Ok(());
        }
        let _alone = self.lease.on_its_way.lock().await;
        if self.lease_is_young() {
            return Ok(());
        }
        let asked = self.clock.elapsed();
        self.journal.keep_lease(&self.lease.us, RUNS).await?;
        let answered = self.clock.elapsed();
        let mut state = self.lease.state();
        // An answer that came while the last one still ran shows that nobody can have seen it run out.
        if !state.is_younger_than(SENDS_WITHIN, answered) {
            state.term = Term(state.term.0 + 1);
        }
        state.renewed = Some(asked);
        Ok(())
    }

    fn lease_is_young(&self) -> bool {
        let now = self.clock.elapsed();
        self.lease.state().is_younger_than(RENEWED_AFTER, now)
    }

    /// The time in which something is looked at, decided and sent.
    pub(crate) fn term(&self) -> Term {
        self.lease.state().term
    }

    /// Renews the lease, and whether it has run without a gap since this term began: a process that was away for longer looks and
    /// decides anew.
    pub(super) async fn goes_on(&self, term: Term) -> Result<bool, JournalError> {
        self.keep_lease().await?;
        Ok(self.may_send(term))
    }

    fn may_send(&self, term: Term) -> bool {
        let now = self.clock.elapsed();
        let state = self.lease.state();
        state.term == term && state.is_younger_than(SENDS_WITHIN, now)
    }

    /// Sends, unless the term is over. That is looked at before each step of the sending, so that what a process was about to do
    /// when it came to a stand is not done once it goes on. Whether something had left before is not known.
    pub(super) async fn within(
        &self,
        term: Term,
        sending: impl Future<Output = Result<(), CloudError>>,
    ) -> Result<(), CloudError> {
        let mut sending = pin!(sending);
        poll_fn(|context| match self.may_send(term) {
            true => sending.as_mut().poll(context),
            false => Poll::Ready(Err(stood_still())),
        })
        .await
    }

    /// Does some work, and renews the lease meanwhile. At its end the lease is ended as well, unless other work of this process
    /// relies on it; where this is dropped, others wait for it to run out.
    pub(crate) async fn under_lease<T>(&self, work: impl Future<Output = T>) -> T {
        let run = Run::begin(&self.lease.runs);
        // What is looked at first is looked at under it.
        self.try_keep().await;
        let done = tokio::select! {
            done = work => done,
            never = self.keep_for_ever() => match never {},
        };
        drop(run);
        self.leave().await;
        done
    }

    async fn leave(&self) {
        let _alone = self.lease.on_its_way.lock().await;
        if self.lease.runs.load(Ordering::Relaxed) > 0 {
            return;
        }
        self.lease.state().renewed = None;
        if let Err(error) = self.journal.end_lease(&self.lease.us).await {
            tracing::debug!(%error, "the lease could not be ended; it runs out by itself");
        }
    }

    async fn try_keep(&self) {
        if let Err(error) = self.keep_lease().await {
            tracing::warn!(%error, "the lease could not be renewed; nothing is sent once it is {SENDS_WITHIN:?} old");
        }
    }

    async fn keep_for_ever(&self) -> Infallible {
        loop {
            self.try_keep().await;
            self.clock.sleep(RENEWED_AFTER / 2).await;
        }
    }

    pub(crate) fn works_as(&mut self, us: Process) {
        self.lease = Lease::of(us);
    }

    /// This process.
    pub(crate) fn us(&self) -> &Process {
        &self.lease.us
    }

    /// Makes the case ours, unless somebody else works on it; where there are limits, it goes on with these. Of several who try that
    /// at the same time one succeeds.
    pub(crate) async fn take(
        &self,
        case: &mut Case,
        seq: &mut Seq,
        limits: Option<Limits>,
    ) -> Result<(), RunError> {
        self.keep_lease().await?;
        loop {
            // Who is at work is asked after the case was read: whoever came back since then has not written to it.
            let taken = match case.claim(self.us(), &self.at_work().await?) {
                Claim::Ours => None,
                Claim::Theirs(by) => return Err(RunError::Theirs { node: case.node, by }),
                Claim::Nobodys => Some(Event::Taken {
                    by: self.us().clone(),
                }),
            };
            let resumed = limits.map(|limits| Event::Resumed { limits });
            let events = taken.into_iter().chain(resumed);
            match self.record_all(case, seq, events).await {
                Err(RunError::Journal(JournalError::Fenced(_))) => (*case, *seq) = self.read(case.id).await?,
                recorded => return recorded,
            }
        }
    }

    /// The processes that are at work, as far as anybody can tell from here.
    pub(crate) async fn at_work(&self) -> Result<BTreeSet<Process>, JournalError> {
        let mut leases = self.journal.leases().await?;
        leases.retain(|other| !process::is_surely_gone(other, &self.lease.us));
        Ok(leases)
    }
}

/// Some work that relies on the lease, to its end.
struct Run<'a>(&'a AtomicUsize);

impl<'a> Run<'a> {
    fn begin(runs: &'a AtomicUsize) -> Self {
        runs.fetch_add(1, Ordering::Relaxed);
        Self(runs)
    }
}

impl Drop for Run<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}
