//! One node's way back, folded from its journal.

use std::collections::BTreeMap;

use ironic_client::{Node, NodeUuid, ProvisionState};
use jiff::{SignedDuration, Timestamp};
use placement_client::{ConsumerGeneration, ProviderUuid, Units};

use super::{
    Action, ActionKind, CaseId, Ending, Entry, Event, Found, Kind, Limits, Owner, Process, Refusal,
    RefusalKind,
};

/// How long a replica may lag behind an accepted write before the write is thought to be lost.
pub(super) const LAGGING: SignedDuration = SignedDuration::from_secs(60);

/// One node's way from a delete back to `available`: what is known of it from its journal alone.
#[derive(Clone, Debug, PartialEq)]
pub struct Case {
    /// Its identifier.
    pub id: CaseId,
    /// The node.
    pub node: NodeUuid,
    /// Who asked, and for what.
    pub kind: Kind,
    /// The strategy's name.
    pub strategy: String,
    /// When it was opened.
    pub opened_at: Timestamp,
    /// How long and how often.
    pub limits: Limits,
    /// What was there before anything was done.
    pub found: Found,
    /// The cloud that it was begun in, where that was said.
    pub cloud: Option<String>,
    /// Whether somebody works on it.
    pub state: CaseState,
    /// The write that was sent last and whose outcome is not on record.
    pub pending: Option<Action>,
    /// What became of the writes, by kind.
    pub attempts: BTreeMap<ActionKind, Attempts>,
    /// The provision state that was seen last, and since when.
    pub seen: Option<(ProvisionState, Timestamp)>,
    /// When the instance's allocation was released.
    pub freed_at: Option<Timestamp>,
    /// The process that works on it, or worked on it last without bringing it to an end.
    pub taken_by: Option<Process>,
}

/// Whether somebody works on a case.
#[derive(Clone, Debug, PartialEq)]
pub enum CaseState {
    /// Somebody does, or did when the process died.
    Open,
    /// Nobody does for now; what it holds stays held.
    Suspended(Ending),
    /// It has ended.
    Closed(Ending),
}

/// What became of the writes of one kind.
#[derive(Clone, Debug, PartialEq)]
pub struct Attempts {
    /// How many were accepted, or may have been.
    pub sent: u32,
    /// How many were refused since the last that was accepted.
    pub refused_in_row: u32,
    /// The last one.
    pub action: Action,
    /// When its outcome was recorded.
    pub at: Timestamp,
    /// Its outcome.
    pub last: LastAttempt,
    /// When the answer to one of them was lost last: it may arrive after later ones, and fit again by then.
    pub lost_at: Option<Timestamp>,
}

/// How often in a row a refusal that waiting does not cure is believed to be a passing one.
const BELIEVED: u32 = 3;

impl Attempts {
    /// Why the last one was refused, where sending it again is pointless.
    pub fn refused_for_good(&self) -> Option<&Refusal> {
        let LastAttempt::Refused(refusal) = &self.last else {
            return None;
        };
        let often = match refusal.kind {
            RefusalKind::Forbidden => 1,
            RefusalKind::Illegal | RefusalKind::Other => BELIEVED,
            _ => return None,
        };
        (self.refused_in_row >= often).then_some(refusal)
    }
}

/// The outcome of a write.
#[derive(Clone, Debug, PartialEq)]
pub enum LastAttempt {
    /// Accepted.
    Applied,
    /// Refused, and why.
    Refused(Refusal),
    /// Nobody knows.
    Unknown,
}

impl Case {
    /// Folds a journal. `None` for an empty one, or one that does not begin with [`Event::Opened`].
    pub fn fold<'a>(id: CaseId, entries: impl IntoIterator<Item = &'a Entry>) -> Option<Self> {
        let mut entries = entries.into_iter();
        let mut case = Self::opened(id, entries.next()?)?;
        entries.for_each(|entry| case.push(entry));
        Some(case)
    }

    fn opened(id: CaseId, entry: &Entry) -> Option<Self> {
        let Event::Opened {
            node,
            kind,
            strategy,
            limits,
            found,
            cloud,
        } = &entry.event
        else {
            return None;
        };
        Some(Self {
            id,
            node: *node,
            kind: *kind,
            strategy: strategy.clone(),
            opened_at: entry.at,
            limits: *limits,
            found: (**found).clone(),
            cloud: cloud.clone(),
            state: CaseState::Open,
            pending: None,
            attempts: BTreeMap::new(),
            seen: None,
            freed_at: None,
            taken_by: None,
        })
    }

    /// Adds one entry.
    pub fn push(&mut self, entry: &Entry) {
        match &entry.event {
            Event::Opened { .. } => self.reopen(entry),
            Event::Saw { provision_state, .. } => self.see(provision_state, entry.at),
            Event::Freed => self.free(entry.at),
            Event::Intended { write } => self.intend(write, entry.at),
            Event::Applied => self.conclude(LastAttempt::Applied, entry.at),
            Event::Refused { refusal } => self.conclude(LastAttempt::Refused(refusal.clone()), entry.at),
            Event::Unknown { .. } => self.conclude(LastAttempt::Unknown, entry.at),
            Event::Taken { by } => self.taken_by = Some(by.clone()),
            Event::Suspended { ending } => self.end(CaseState::Suspended(ending.clone())),
            Event::Resumed { limits } => self.take_up(limits),
            Event::Closed { ending } => self.end(CaseState::Closed(ending.clone())),
        }
    }

    /// How many writes of this kind were accepted, or may have been.
    pub fn sent(&self, kind: ActionKind) -> u32 {
        self.attempts.get(&kind).map_or(0, |attempts| attempts.sent)
    }

    /// How many of them count against a limit, given the node as it is: one whose answer was lost and that was decided from
    /// this very node was not applied, and may be sent again.
    pub fn spent(&self, kind: ActionKind, node: &Node) -> u32 {
        let in_doubt = self.attempts.get(&kind).is_some_and(|attempts| {
            let since = attempts.action.since();
            attempts.last == LastAttempt::Unknown && since.is_some() && since == node.provision_updated_at
        });
        self.sent(kind) - u32::from(in_doubt)
    }

    /// Whether a write that was decided from this state of the node, or from a later one, has been accepted lately: then a
    /// read that still shows the state comes from a lagging replica.
    pub fn has_moved_on(&self, node: &Node, now: Timestamp) -> bool {
        self.attempts.values().any(|attempts| {
            attempts.last == LastAttempt::Applied
                && attempts
                    .action
                    .since()
                    .is_some_and(|since| node.provision_updated_at <= Some(since))
                && now.duration_since(attempts.at) < LAGGING
        })
    }

    /// The limits without what is used up: with these, it goes on as if it had never been interrupted.
    pub fn remaining(&self) -> Limits {
        let (retries, recleans) = self.sent_again();
        Limits {
            retry_error: self.limits.retry_error.saturating_sub(retries),
            reclean: self.limits.reclean.saturating_sub(recleans),
            ..self.limits
        }
    }

    /// How many tear-downs and cleanings were sent again.
    fn sent_again(&self) -> (u32, u32) {
        (
            self.sent(ActionKind::Unprovision).saturating_sub(1),
            self.sent(ActionKind::Provide),
        )
    }

    /// Why the last write of this kind was refused, where it was.
    pub fn refusal(&self, kind: ActionKind) -> Option<&Refusal> {
        match &self.attempts.get(&kind)?.last {
            LastAttempt::Refused(refusal) => Some(refusal),
            LastAttempt::Applied | LastAttempt::Unknown => None,
        }
    }

    /// What the instance's consumer is at since its unit was handed over: one further where it holds something else, and
    /// gone otherwise.
    pub(super) fn handed_over_generation(&self) -> ConsumerGeneration {
        let attempts = self.attempts.get(&ActionKind::HandOver);
        match attempts.map(|attempts| &attempts.action) {
            Some(Action::HandOver {
                giver: Some(giver), ..
            }) if !giver.rest.is_empty() => match giver.generation {
                ConsumerGeneration::At(before) => ConsumerGeneration::At(before + 1),
                ConsumerGeneration::New => ConsumerGeneration::New,
            },
            _ => ConsumerGeneration::New,
        }
    }

    /// What the instance held of other providers when its unit was handed over.
    pub fn handed_over_rest(&self) -> BTreeMap<ProviderUuid, Units> {
        match self
            .attempts
            .get(&ActionKind::HandOver)
            .map(|attempts| &attempts.action)
        {
            Some(Action::HandOver {
                giver: Some(giver), ..
            }) => giver.rest.clone(),
            _ => BTreeMap::new(),
        }
    }

    /// How long the node has been in the state it was last seen in, in seconds.
    pub fn seconds_in_state(&self, now: Timestamp) -> i64 {
        self.seen
            .as_ref()
            .map_or(0, |(_, since)| now.duration_since(*since).as_secs())
    }

    /// A write whose outcome was never recorded, because the process died: it may have been applied.
    fn intend(&mut self, write: &Action, at: Timestamp) {
        if self.pending.is_some() {
            self.conclude(LastAttempt::Unknown, at);
        }
        self.pending = Some(write.clone());
    }

    fn conclude(&mut self, last: LastAttempt, at: Timestamp) {
        let Some(action) = self.pending.take() else { return };
        let before = self.attempts.get(&action.kind());
        let (sent, refused_in_row) = before.map_or((0, 0), |before| (before.sent, before.refused_in_row));
        // Decided from the very same world again: of the two, one at most can have been applied.
        let again =
            before.is_some_and(|before| before.last == LastAttempt::Unknown && before.action == action);
        let refused = matches!(last, LastAttempt::Refused(_));
        let lost_at = match last {
            LastAttempt::Unknown => Some(at),
            _ => before.and_then(|before| before.lost_at),
        };
        if !refused && frees(&action) {
            self.free(at);
        }
        if !refused && action.kind() == ActionKind::HandBack {
            self.freed_at = None;
        }
        // What is set anew is there, whatever was lifted before.
        if let Some(lifted) = lifted_by(action.kind()).filter(|_| !refused) {
            self.attempts.remove(&lifted);
        }
        let attempts = Attempts {
            sent: match (again, refused) {
                // Ironic would not have taken the second in the same state; Placement's generations tell nothing of that
                // kind: the first may have come in between.
                (true, true) if action.is_to_ironic() => sent - 1,
                (true, _) => sent,
                (false, refused) => sent + u32::from(!refused),
            },
            refused_in_row: if refused { refused_in_row + 1 } else { 0 },
            action,
            at,
            last,
            lost_at,
        };
        self.attempts.insert(attempts.action.kind(), attempts);
    }

    fn see(&mut self, state: &ProvisionState, at: Timestamp) {
        if self.seen.as_ref().is_none_or(|(last, _)| last != state) {
            self.seen = Some((state.clone(), at));
        }
    }

    fn end(&mut self, state: CaseState) {
        self.state = state;
        self.taken_by = None;
    }

    fn free(&mut self, at: Timestamp) {
        self.freed_at.get_or_insert(at);
    }

    /// New limits count from now on, and what was refused for good before may be accepted now.
    fn take_up(&mut self, limits: &Limits) {
        let (retries, recleans) = self.sent_again();
        self.limits = Limits {
            retry_error: retries.saturating_add(limits.retry_error),
            reclean: recleans.saturating_add(limits.reclean),
            ..*limits
        };
        self.state = CaseState::Open;
        self.attempts
            .values_mut()
            .for_each(|attempts| attempts.refused_in_row = 0);
    }

    /// The same tear-down is asked for again. While the case has not ended, it goes on as it was begun: what was found and sent
    /// before still counts, and only the strategy that set a hold knows how to lift it.
    fn reopen(&mut self, entry: &Entry) {
        let Event::Opened { limits, cloud, .. } = &entry.event else {
            return;
        };
        if let (CaseState::Closed(_), Some(anew)) = (&self.state, Self::opened(self.id, entry)) {
            *self = anew;
            return;
        }
        self.cloud = self.cloud.take().or_else(|| cloud.clone());
        self.opened_at = entry.at;
        self.freed_at = self.freed_at.map(|_| entry.at);
        self.take_up(limits);
    }
}

/// The kind of write that lifts what one of this kind sets.
fn lifted_by(kind: ActionKind) -> Option<ActionKind> {
    match kind {
        ActionKind::HandOver => Some(ActionKind::Release),
        ActionKind::AddNodeTrait => Some(ActionKind::RemoveNodeTrait),
        ActionKind::AddProviderTrait => Some(ActionKind::RemoveProviderTrait),
        _ => None,
    }
}

/// Whether the write takes the provider from the instance.
fn frees(action: &Action) -> bool {
    matches!(
        action,
        Action::HandOver { giver: Some(_), .. }
            | Action::Release {
                whose: Owner::Instance,
                ..
            }
    )
}
