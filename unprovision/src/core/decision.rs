//! What to do next.

use std::fmt;

use ironic_client::ProvisionState;
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use super::rules::{self, OnHeld};
use super::{Action, Case, Observation, Owner, check, doubt, guarded, nova, pace, tear_down};
use crate::strategy::Strategy;

/// What a strategy wants, given a node that passed the common rules.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// This write to Placement.
    Act(Action),
    /// The hold is in place: the node may be torn down. No strategy can build that write itself.
    TearDown,
    /// The hold is in place: wait for the node, and look at Placement again after a while.
    Wait(LookAgain),
    /// Nothing of ours is left.
    Done,
    /// It cannot keep its promise, and nothing was torn down: why.
    Blocked(&'static str),
}

/// How soon Placement is looked at again while the node does not change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LookAgain {
    /// Every minute: nobody takes away what holds the node.
    Seldom,
    /// Every five seconds: somebody else writes what holds the node.
    Often,
}

impl LookAgain {
    fn after(self) -> SignedDuration {
        match self {
            Self::Seldom => SignedDuration::from_secs(60),
            Self::Often => SignedDuration::from_secs(5),
        }
    }
}

/// What to do next: at most one write.
#[derive(Clone, Debug, PartialEq)]
pub enum Decision {
    /// This write, then look again.
    Act(Action),
    /// Nothing until the node changes, or until then.
    Wait(Wait),
    /// Nobody needs to work on the case any more, or can.
    End(Ending),
}

/// What is waited for, and until when at the latest.
#[derive(Clone, Debug, PartialEq)]
pub struct Wait {
    /// What is waited for.
    pub for_what: WaitFor,
    /// When to look again even if the node has not changed.
    pub until: Timestamp,
}

/// What is waited for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WaitFor {
    /// The node, on its way.
    Node(ProvisionState),
    /// The node's lock, held by this conductor.
    Lock(String),
    /// Somebody who ends the maintenance; the reason of the maintenance.
    Maintenance(String),
    /// A person who does something first; what, in words.
    Person(String),
    /// Anything else, in words.
    Other(String),
}

impl fmt::Display for WaitFor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Node(state) => write!(f, "the node is `{state}`"),
            Self::Lock(holder) => write!(f, "the node is locked by conductor {holder}"),
            Self::Maintenance(reason) => write!(
                f,
                "the node is in maintenance ({reason}); it goes on once that ends"
            ),
            Self::Person(words) | Self::Other(words) => f.write_str(words),
        }
    }
}

/// How a case ends, for good or for now.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ending {
    /// The outcome.
    pub outcome: Outcome,
    /// Why, and what to do next, in words.
    pub reason: String,
    /// Whether something of ours still holds the provider.
    pub held: bool,
}

/// The outcome of a case.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// The node is free and offered again.
    Returned,
    /// Something that only a person can change is in the way.
    Blocked,
    /// Tear-down or cleaning failed.
    Failed,
    /// The time was up.
    TimedOut,
    /// Ironic does not know the node any more.
    Gone,
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Returned => "returned",
            Self::Blocked => "blocked",
            Self::Failed => "failed",
            Self::TimedOut => "timed-out",
            Self::Gone => "gone",
        })
    }
}

/// Decides what to do next about a case: the common rules, the strategy, the veto.
pub fn decide(strategy: &dyn Strategy, case: &Case, seen: &Observation, now: Timestamp) -> Decision {
    let decision = match rules::common(case, seen, now) {
        rules::Verdict::Decided(decision) => decision,
        rules::Verdict::Pass(passed) => match strategy.decide(case, &passed) {
            Step::Act(Action::Release {
                whose: Owner::Instance,
                ..
            }) if case.is_guard() => guarded::leave_the_instances(case, &passed, now),
            Step::Act(action) => Decision::Act(action),
            Step::TearDown => tear_down::go_on(case, &passed, now),
            Step::Wait(look_again) => held(case, passed.on_held, look_again, now),
            Step::Done => rules::finish(case, &passed),
            Step::Blocked(why) => rules::blocked(case, seen, why.to_owned()),
        },
    };
    let paced = match nova::heeded(case, decision, seen, now) {
        Decision::Act(action) => pace::pace(case, action, seen, now),
        other => other,
    };
    let timed = within_deadline(case, paced, seen, now);
    let settled = doubt::settled(case, vetoed(case, timed, seen, now), seen, now);
    guarded::never_lets_go(case, settled, now)
}

fn held(case: &Case, on_held: OnHeld, look_again: LookAgain, now: Timestamp) -> Decision {
    match on_held {
        OnHeld::Wait(for_what) => Decision::Wait(Wait {
            for_what,
            until: now
                + match case.is_guard() {
                    true => guarded::SELDOM,
                    false => look_again.after(),
                },
        }),
        OnHeld::Act(action) => Decision::Act(action),
        OnHeld::End(outcome, reason) => Decision::End(Ending {
            outcome,
            reason,
            held: true,
        }),
        OnHeld::Text(reason) => {
            // Ironic may write the text of a failure seconds after the state.
            if case.seconds_in_state(now) < 5 {
                return Decision::Wait(Wait {
                    for_what: WaitFor::Other(reason),
                    until: now + SignedDuration::from_secs(1),
                });
            }
            Decision::End(Ending {
                outcome: Outcome::Failed,
                reason,
                held: true,
            })
        }
    }
}

/// A wait in which everything is looked at again soon.
pub(super) fn wait(for_what: WaitFor, now: Timestamp) -> Wait {
    Wait {
        for_what,
        until: now + LookAgain::Often.after(),
    }
}

/// Waiting ends at the deadline; a node that a person's maintenance stops is *blocked* then. Writes that make Placement right
/// are not stopped by it, only those that would start something on the node.
fn within_deadline(case: &Case, decision: Decision, seen: &Observation, now: Timestamp) -> Decision {
    let deadline = case.limits.deadline;
    let (outcome, reason) = match decision {
        Decision::Wait(mut wait) if now < deadline => {
            wait.until = wait.until.min(deadline);
            return Decision::Wait(wait);
        }
        Decision::Wait(wait) if matches!(wait.for_what, WaitFor::Maintenance(_)) => {
            (Outcome::Blocked, wait.for_what.to_string())
        }
        Decision::Wait(wait) => (
            Outcome::TimedOut,
            format!("the time was up; waited for: {}{}", wait.for_what, lock(seen)),
        ),
        Decision::Act(action) if now >= deadline && action.drives_the_node() => (
            Outcome::TimedOut,
            format!("the time was up before this could be sent: {action}"),
        ),
        other => return other,
    };
    let held = rules::something_is_held(case, seen);
    Decision::End(Ending {
        outcome,
        reason,
        held,
    })
}

/// Who may have died with the node in its hands.
fn lock(seen: &Observation) -> String {
    let holder = seen.node.as_ref().and_then(|node| node.reservation.as_deref());
    holder
        .map(|holder| format!("; conductor {holder} holds the node's lock"))
        .unwrap_or_default()
}

fn vetoed(case: &Case, decision: Decision, seen: &Observation, now: Timestamp) -> Decision {
    let Decision::Act(action) = &decision else {
        return decision;
    };
    match check::check(case, seen, action) {
        Ok(()) => decision,
        Err(veto) if case.is_guard() => guarded::stuck(format!("refused to {action}: {veto}"), now),
        Err(veto) => Decision::End(Ending {
            outcome: Outcome::Blocked,
            reason: format!("refused to {action}: {veto}"),
            held: rules::something_is_held(case, seen),
        }),
    }
}
