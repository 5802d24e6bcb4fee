//! How soon a write may follow an earlier one of its kind.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use placement_client::ConsumerGeneration;

use super::case::LAGGING;
use super::{
    Action, ActionKind, Attempts, Case, Decision, Ending, LastAttempt, Observation, Outcome, Refusal,
    RefusalKind, Wait, WaitFor,
};

/// How long after a lost answer the service may still be about to apply the write.
pub(super) const LOST: SignedDuration = SignedDuration::from_secs(5);
/// How long a lock on the node keeps Placement from being looked at, where a tag has to be on both.
const LOCKED: SignedDuration = SignedDuration::from_secs(5);
/// How soon a write to Placement that was surely not applied is sent again.
const IN_VAIN: SignedDuration = SignedDuration::from_secs(2);

/// Lets the write through, or waits until it may be sent.
pub(super) fn pace(case: &Case, action: Action, seen: &Observation, now: Timestamp) -> Decision {
    let Some(before) = case.attempts.get(&action.kind()) else {
        return Decision::Act(action);
    };
    if let Some(refusal) = before.refused_for_good() {
        return match case.is_guard() {
            true => ask_again(action, before, refusal, now),
            false => give_up(case, action, refusal, seen, now),
        };
    }
    let until = match &before.last {
        LastAttempt::Refused(refusal) if refusal.kind == RefusalKind::Conflict && before.action == action => {
            return conflict_without_change(case, action, before, refusal, now);
        }
        LastAttempt::Refused(refusal) => before.at + patience(case, before, refusal),
        LastAttempt::Applied if still_there(&action, before) && action.drives_the_node() => {
            before.at + LAGGING
        }
        // A mark that is gone again, or a lagging replica.
        LastAttempt::Applied if still_there(&action, before) => before.at + LOST,
        LastAttempt::Unknown if still_there(&action, before) => before.at + LOST,
        // Its generation has not moved, so it was not applied; a service that is broken is not to be hammered.
        LastAttempt::Unknown if action == before.action => before.at + IN_VAIN,
        LastAttempt::Applied | LastAttempt::Unknown => return Decision::Act(action),
    };
    if until <= now {
        return Decision::Act(action);
    }
    let marks_the_node = action.is_to_ironic() && !action.drives_the_node();
    Decision::Wait(Wait {
        for_what: reason(before, seen),
        until: if marks_the_node {
            until.min(now + LOCKED)
        } else {
            until
        },
    })
}

/// Waiting cures nothing: before the tear-down that is a reason not to begin, afterwards one to stay held.
fn give_up(case: &Case, action: Action, refusal: &Refusal, seen: &Observation, now: Timestamp) -> Decision {
    let begun = case.sent(ActionKind::Unprovision) > 0;
    // One of the two is tagged, and the other cannot be.
    let tags = matches!(
        action.kind(),
        ActionKind::AddNodeTrait | ActionKind::AddProviderTrait
    );
    if let (false, true, Some(node)) = (begun, tags, &seen.node)
        && let Some(untag) = Action::untag(case, node, seen.provider.as_ref())
    {
        return pace(case, untag, seen, now);
    }
    let outcome = if begun { Outcome::Failed } else { Outcome::Blocked };
    let reason = format!("this was refused for good: {action}: {refusal}");
    Decision::End(Ending {
        outcome,
        reason,
        held: case.may_hold(),
    })
}

/// The guard goes on for ever: somebody may give it the right that it lacks.
fn ask_again(action: Action, before: &Attempts, refusal: &Refusal, now: Timestamp) -> Decision {
    let until = before.at + LAGGING;
    if until <= now {
        return Decision::Act(action);
    }
    let words = format!("this is refused, and tried again every minute: {action}: {refusal}");
    Decision::Wait(Wait {
        for_what: WaitFor::Other(words),
        until,
    })
}

/// The very same write would rest on the very same generations. Where our consumer was to be new, a crash may have left
/// it without allocations: Placement then shows nothing, but expects generation 0. That is tried once.
fn conflict_without_change(
    case: &Case,
    action: Action,
    before: &Attempts,
    refusal: &Refusal,
    now: Timestamp,
) -> Decision {
    if let Action::HandOver {
        receiver,
        generation: ConsumerGeneration::New,
        units,
        giver,
    } = action
    {
        let generation = ConsumerGeneration::At(0);
        return Decision::Act(Action::HandOver {
            receiver,
            generation,
            units,
            giver,
        });
    }
    let (base, cap) = (Duration::from_secs(2), Duration::from_secs(30));
    let until = before.at + jittered(base, before.refused_in_row, cap, case);
    if until <= now {
        return Decision::Act(action);
    }
    let words = format!("it was refused, although nothing seems to have changed: {refusal}");
    Decision::Wait(Wait {
        for_what: WaitFor::Other(words),
        until,
    })
}

/// Whether the write would be decided from the very node that an earlier one of its kind was decided from. Placement's writes
/// carry generations and may be repeated at once.
fn still_there(action: &Action, before: &Attempts) -> bool {
    action.is_to_ironic() && *action == before.action
}

/// How long a refusal is waited out. It grows with every refusal in a row, is spread so that many nodes do not come
/// back in step, and is never shorter than the server asked for.
fn patience(case: &Case, before: &Attempts, refusal: &Refusal) -> SignedDuration {
    let secs = Duration::from_secs;
    let n = before.refused_in_row;
    let own = match refusal.kind {
        RefusalKind::Conflict if n <= 3 => SignedDuration::ZERO,
        RefusalKind::Conflict => jittered(Duration::from_millis(100), n - 3, secs(5), case),
        RefusalKind::Locked | RefusalKind::Away => jittered(secs(2), n, secs(20), case),
        RefusalKind::Busy => jittered(secs(5), n, secs(60), case),
        RefusalKind::NoConductor | RefusalKind::NoCapacity | RefusalKind::NotFound => {
            jittered(secs(5), n, secs(30), case)
        }
        RefusalKind::Illegal | RefusalKind::Forbidden | RefusalKind::Other => {
            jittered(secs(2), n, secs(30), case)
        }
    };
    let asked = refusal
        .retry_after
        .and_then(|asked| SignedDuration::try_from(asked).ok())
        .unwrap_or_default();
    own.max(asked)
}

/// `base` doubled per refusal up to `cap`, times 0.5 to 1.5 by the case's identifier and the count.
fn jittered(base: Duration, refused: u32, cap: Duration, case: &Case) -> SignedDuration {
    let doubled = base
        .saturating_mul(1 << refused.saturating_sub(1).min(10))
        .min(cap);
    let spread = (case.id.0.as_u64_pair().1 ^ u64::from(refused)).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 40;
    let factor = 0.5 + f64::from(u32::try_from(spread).unwrap_or(0)) / f64::from(1_u32 << 24);
    SignedDuration::try_from(doubled.mul_f64(factor)).unwrap_or(SignedDuration::MAX)
}

fn reason(before: &Attempts, seen: &Observation) -> WaitFor {
    let lock = seen.node.as_ref().and_then(|node| node.reservation.clone());
    match (&before.last, lock) {
        (LastAttempt::Refused(refusal), Some(holder)) if refusal.kind == RefusalKind::Locked => {
            WaitFor::Lock(holder)
        }
        (LastAttempt::Refused(refusal), _) => WaitFor::Other(format!("it was refused for now: {refusal}")),
        _ => WaitFor::Other(format!("to see the effect of: {}", before.action)),
    }
}
