//! Looking at the node, as often as it takes.

use std::time::Duration;

use unprovision_session::Class;

use super::Worker;
use crate::cloud::{CloudError, Reads};
use crate::core::{Ending, Observation, Outcome};
use crate::orchestrator::Term;

/// How often in a row a look may fail for a reason that waiting does not cure.
const HOPELESS: u32 = 3;

/// The pauses before the looks that have to confirm that a node is gone.
const MISSING: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(15)];

/// What a look brought.
pub(super) enum Look {
    /// The world, and the term of our lease in which it was seen.
    Seen(Term, Box<Observation>),
    GaveUp(Ending),
    Stopped,
}

impl Worker<'_> {
    /// Looks until it succeeds, the time is up, or it is hopeless. A node that is not found is looked for again, at once and
    /// after a while; once for each time that it is lost, not at each look.
    pub(super) async fn look(&mut self) -> Look {
        if let Some((term, first)) = self.first.take() {
            return Look::Seen(term, first);
        }
        // Whoever made a provider that was not there at the start is asked again.
        let reads = Reads {
            traits: self.strategy.uses_tag() || self.case.is_guard() && !self.case.found.nova,
            holder: self.case.holds_the_unit().then(|| self.case.guard()),
        };
        let (mut failed, mut missing) = (0, 0);
        loop {
            let term = self.parts.term();
            let looked = {
                let _place = self.parts.looks.acquire().await;
                self.parts.observe(self.case.node, reads).await
            };
            let pause = match looked {
                Ok(seen) if seen.node.is_some() || self.is_gone || missing >= MISSING.len() => {
                    self.is_gone = seen.node.is_none();
                    return Look::Seen(term, Box::new(seen));
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
        if self.case.is_guard() {
            return None;
        }
        let held = self.case.may_hold();
        if self.now() >= self.case.limits.deadline {
            let reason = format!("the time was up, and the cloud could not be looked at: {error}");
            return Some(Ending {
                outcome: Outcome::TimedOut,
                reason,
                held,
            });
        }
        // Keystone starts anew, or its keys are changed: for minutes it may know nobody.
        let passes = self.parts.let_in.was() && error.is_refused_login();
        let hopeless = matches!(error.class, Class::Refused | Class::Bug) && failed >= HOPELESS && !passes;
        hopeless.then(|| Ending {
            outcome: Outcome::Failed,
            reason: error.to_string(),
            held,
        })
    }
}
