//! Why a case may not be closed yet, although nothing of ours is seen: a hold may still arrive, or be there unseen.

use jiff::Timestamp;

use super::case::LAGGING;
use super::pace::LOST;
use super::{
    Action, ActionKind, Attempts, Case, Decision, LastAttempt, Observation, Owner, ProviderView, Wait,
    WaitFor, decision,
};

/// The kinds of write that keep a node from being offered.
const HOLDS: [ActionKind; 4] = [
    ActionKind::HandOver,
    ActionKind::SetReserved,
    ActionKind::AddNodeTrait,
    ActionKind::AddProviderTrait,
];

/// Waits instead of closing a case over a hold of its own.
pub(super) fn settled(case: &Case, decision: Decision, seen: &Observation, now: Timestamp) -> Decision {
    match &decision {
        Decision::End(ending) if !ending.held => {}
        _ => return decision,
    }
    if let Some((action, until)) = in_the_air(case, seen) {
        let for_what = WaitFor::Other(format!("to see whether this is still applied: {action}"));
        let until = until.max(now);
        return Decision::Wait(Wait { for_what, until });
    }
    match unseen(case, seen) {
        Some(action) => {
            let words = format!("a reply of Placement that is from after this: {action}");
            Decision::Wait(decision::wait(WaitFor::Other(words), now))
        }
        None => decision,
    }
}

/// A hold whose answer was lost, and that the service may have applied only after this look, and until when. Later ones of its
/// kind change nothing about that: once they are undone, it may fit again.
fn in_the_air<'a>(case: &'a Case, seen: &Observation) -> Option<(&'a Action, Timestamp)> {
    let attempts = HOLDS.iter().filter_map(|kind| case.attempts.get(kind));
    attempts
        .filter_map(|attempts| Some((&attempts.action, attempts.lost_at? + LOST)))
        .filter(|(_, until)| seen.at < *until)
        .max_by_key(|(_, until)| *until)
}

/// A hold that was set lately and not lifted since, but that this look does not show: it comes from a lagging replica, unless it
/// is known to be newer.
fn unseen<'a>(case: &'a Case, seen: &Observation) -> Option<&'a Action> {
    let view = seen.provider.as_ref()?;
    let attempts = HOLDS.iter().filter_map(|kind| case.attempts.get(kind));
    let mut unseen = attempts.filter(|attempts| {
        let set = !matches!(attempts.last, LastAttempt::Refused(_));
        let lately = seen.at.duration_since(attempts.at) < LAGGING;
        set && lately && is_older(case, view, attempts)
    });
    unseen.next().map(|attempts| &attempts.action)
}

/// Whether the look may be older than this hold, which is still in place.
fn is_older(case: &Case, view: &ProviderView, hold: &Attempts) -> bool {
    match &hold.action {
        Action::HandOver { .. } => case.holder_of_ours(view).is_none() && !has_let_go(case, hold),
        Action::SetReserved { to, inventories, .. } => {
            *to > case.found.reserved && view.inventories.generation <= inventories.generation
        }
        Action::AddProviderTrait { traits, .. } => {
            let read = view.traits.as_ref();
            let lifted = case.attempts.contains_key(&ActionKind::RemoveProviderTrait);
            read.is_some_and(|read| read.generation <= traits.generation) && !lifted
        }
        // A node is untagged whether or not the tag is seen.
        _ => false,
    }
}

/// Whether the unit has left our consumer again since.
fn has_let_go(case: &Case, hold: &Attempts) -> bool {
    let since = |kind| {
        let lift = case.attempts.get(&kind);
        lift.filter(|lift| lift.last == LastAttempt::Applied && lift.at >= hold.at)
    };
    let released = since(ActionKind::Release).is_some_and(|lift| {
        matches!(
            lift.action,
            Action::Release {
                whose: Owner::Guard,
                ..
            }
        )
    });
    released || since(ActionKind::HandBack).is_some()
}
