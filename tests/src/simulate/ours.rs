//! Our side of a world: workers, and what happens to their process.

use std::sync::Arc;

use jiff::SignedDuration;
use placement_client::ProviderUuid;
use unprovision::core::{ActionKind, Case, CaseState, Limits, Observation, RefusalKind, open};

use super::fleet::{Due, Fleet};
use crate::model::apply::{self, Services};
use crate::model::worker::{self, Outgoing, Phase, Saw, Thought};
use crate::model::{judge, view};

impl Fleet<'_> {
    fn limits(&mut self) -> Limits {
        let retry = |number: u64| u32::try_from(number).unwrap_or(0);
        Limits {
            deadline: self.now + self.dice.seconds(3600, 4 * 24 * 3600),
            retry_error: retry(self.dice.below(3)),
            reclean: retry(self.dice.below(3)),
            release_nova_reservations: true,
        }
    }

    fn observe(&self, index: usize, stale: bool) -> Observation {
        let slot = &self.slots[index];
        let uuid = ProviderUuid(slot.bay.node.uuid.0);
        Observation {
            at: self.now,
            node: Some(view::node(slot.read_node(self.now, stale))),
            provider: Some(view::provider(&slot.bay.provider, uuid, slot.parties().guard)),
            nova: None,
        }
    }

    /// A node's worker takes its next step.
    pub(super) fn work(&mut self, index: usize, epoch: u32) {
        let slot = &self.slots[index];
        if slot.epoch != epoch {
            return;
        }
        if self.now < self.still_until {
            return self.at(self.still_until, Due::Work(index, epoch));
        }
        if slot.case.is_none() {
            return self.begin(index);
        }
        match self.slots[index].phase.take() {
            None => {}
            Some(Phase::Idle) => self.read_provider(index),
            Some(Phase::Half(provider)) => {
                let stale = self.dice.chance(300);
                let mut seen = self.observe(index, stale);
                seen.provider = Some(Arc::unwrap_or_clone(provider));
                self.think(index, &seen, stale);
            }
            Some(Phase::Sends(outgoing)) => self.send(index, outgoing),
            Some(Phase::Knows(event)) => {
                let now = self.now;
                if let Some(case) = &mut self.slots[index].case {
                    worker::push(case, event, now);
                }
                self.slots[index].in_vain = 0;
                self.go_on(index, Phase::Idle, SignedDuration::ZERO);
            }
        }
    }

    fn begin(&mut self, index: usize) {
        let stale = self.dice.chance(100);
        let limits = self.limits();
        let seen = self.observe(index, stale);
        let request = self.slots[index].request(self.strategy.name(), limits);
        self.tally.cases += 1;
        match open(&request, &seen, self.now) {
            Ok(entry) => {
                let slot = &mut self.slots[index];
                slot.case = Case::fold(slot.id(), [&entry]);
                let pause = self.dice.millis(1, 2000);
                self.go_on(index, Phase::Idle, pause);
            }
            // Nova has been faster; nothing was begun, so nothing is promised.
            Err(_) => self.tally.fault("came too late"),
        }
    }

    fn go_on(&mut self, index: usize, phase: Phase, pause: SignedDuration) {
        let slot = &mut self.slots[index];
        slot.phase = Some(phase);
        slot.patience = None;
        self.wake(index, self.now + pause);
    }

    fn read_provider(&mut self, index: usize) {
        if self.now < self.away_until {
            self.fault("look failed");
            let pause = self.dice.seconds(2, 32);
            return self.go_on(index, Phase::Idle, pause);
        }
        let slot = &self.slots[index];
        if let Some(case) = &slot.case {
            let read = worker::read_provider(&slot.bay, case);
            let pause = self.latency();
            self.go_on(index, Phase::Half(read), pause);
        }
    }

    fn latency(&mut self) -> SignedDuration {
        if self.trouble(1) {
            return self.dice.seconds(1, 60);
        }
        self.dice.millis(5, 400)
    }

    fn think(&mut self, index: usize, seen: &Observation, stale: bool) {
        let (product, strategy, now) = (self.product, self.strategy, self.now);
        let slot = &mut self.slots[index];
        let (Some(case), Some(provider)) = (&mut slot.case, &seen.provider) else {
            return;
        };
        let node = match &slot.old {
            Some((old, until)) if stale && now < *until => old,
            _ => &slot.bay.node,
        };
        let saw = Saw::of(node, provider, case.found.tag.as_ref());
        let thought = worker::think(product, strategy, case, seen, now);
        match thought {
            Thought::Send(action) => {
                self.tell(index, |_| format!("decides: {action}"));
                let pause = self.latency();
                self.go_on(index, Phase::Sends(Arc::new(Outgoing { action, saw })), pause);
            }
            Thought::Wait(until) => {
                let slot = &mut self.slots[index];
                slot.phase = Some(Phase::Idle);
                let patience = until.duration_since(now);
                // Looks at a world that has not moved bring nothing but the passing of time: they become rare. Whatever
                // stirs it wakes the worker as soon as the next look would have come.
                let factor = 1_i32 << (slot.in_vain / 3).min(9);
                slot.patience = Some(patience);
                slot.in_vain += 1;
                let pause = (patience * factor).max(patience);
                let deadline = slot.case.as_ref().map_or(now, |case| case.limits.deadline);
                let at = match deadline > now {
                    true => (now + pause).min(deadline),
                    false => now + pause,
                };
                self.wake(index, at);
            }
            Thought::End => self.ended(index),
        }
    }

    fn ended(&mut self, index: usize) {
        let slot = &mut self.slots[index];
        slot.phase = None;
        slot.patience = None;
        if let Some(CaseState::Closed(ending) | CaseState::Suspended(ending)) =
            slot.case.as_ref().map(|case| case.state.clone())
        {
            let slot = &mut self.slots[index];
            let (parties, closed) = (slot.parties(), slot.is_closed());
            slot.watch.rest(&slot.bay, &parties, closed);
            self.tell(index, |_| format!("ends: {}: {}", ending.outcome, ending.reason));
            let outcome = self.tally.ended.entry(ending.outcome.to_string());
            *outcome.or_insert(0) += 1;
        }
    }

    fn send(&mut self, index: usize, outgoing: Arc<Outgoing>) {
        let refused = |kind| worker::answered(Err(kind));
        let event = if self.now < self.away_until {
            self.fault("write refused: away");
            refused(RefusalKind::Away)
        } else if self.trouble(2) {
            self.fault("write refused: busy");
            refused(RefusalKind::Busy)
        } else if outgoing.action.kind() == ActionKind::Unprovision && self.trouble(1) {
            self.fault("tear-down forbidden");
            refused(RefusalKind::Forbidden)
        } else if self.trouble(3) {
            self.lose(index, outgoing);
            worker::unknown()
        } else {
            worker::answered(self.arrives(index, &outgoing))
        };
        let pause = self.latency();
        self.go_on(index, Phase::Knows(event), pause);
    }

    /// The answer is lost: the write is applied, is not, or will be.
    fn lose(&mut self, index: usize, outgoing: Arc<Outgoing>) {
        match self.dice.below(3) {
            0 => {
                self.fault("answer lost, applied");
                let _ = self.arrives(index, &outgoing);
            }
            1 => self.fault("answer lost, not applied"),
            _ if self.slots[index].late.is_some() || outgoing.action.is_to_ironic() => {
                self.fault("answer lost, not applied");
            }
            _ => {
                self.fault("answer lost, applied later");
                self.slots[index].late = Some((outgoing, false));
                let after = self.dice.millis(10, 4_900);
                self.later(after, Due::Late(index));
            }
        }
    }

    pub(super) fn late(&mut self, index: usize) {
        if let Some((outgoing, frozen)) = self.slots[index].late.take() {
            let applied = self.arrives(index, &outgoing).is_ok();
            self.slots[index].overtaken |= frozen && applied;
        }
    }

    /// A write reaches its service.
    fn arrives(&mut self, index: usize, outgoing: &Outgoing) -> Result<(), RefusalKind> {
        let services = Services {
            old_placement: self.nature.old_placement,
            busy: self.is_full(),
        };
        let (sent, now) = (self.product.sends(), self.now);
        let slot = &mut self.slots[index];
        let before = slot.bay.clone();
        let answer = apply::apply(&mut slot.bay, &outgoing.action, sent, services, now);
        self.tell(index, |slot| {
            format!("sent: {}: {answer:?}  [{}]", outgoing.action, shown(slot))
        });
        if answer == Err(RefusalKind::Busy) {
            self.fault("limit of cleanings reached");
        }
        if answer.is_ok() {
            let slot = &mut self.slots[index];
            let parties = slot.parties();
            slot.watch.begin(&before, &parties);
            let broken = judge::of_a_write(&before, &slot.bay, &outgoing.action, outgoing.saw, &parties);
            self.keep_going(index, &before);
            self.stirred(index, &before, broken);
        }
        answer
    }

    /// The process dies, or stands still for a while and may be overtaken meanwhile.
    pub(super) fn process(&mut self) {
        if !self.is_disturbed() {
            return;
        }
        let again = self.dice.seconds(600, 12 * 3600);
        self.later(again, Due::Process);
        match self.dice.below(4) {
            0 => {
                self.fault("crash");
                for index in 0..self.slots.len() {
                    self.drop_worker(index, None);
                }
                let restart = self.dice.seconds(1, 900);
                self.later(restart, Due::TakeUp);
            }
            1 => {
                self.fault("token expired or services away");
                self.away_until = self.now + self.dice.seconds(1, 600);
            }
            2 => {
                self.fault("process stands still");
                self.still_until = self.now + self.dice.seconds(1, 3600);
            }
            _ => {
                self.fault("process stands still and is overtaken");
                let thaw = self.dice.seconds(1, 2 * 3600);
                for index in 0..self.slots.len() {
                    self.drop_worker(index, Some(thaw));
                }
                self.later(SignedDuration::from_secs(1), Due::TakeUp);
            }
        }
    }

    /// A worker is gone. What it was about to send is lost, on its way, or comes when its process goes on.
    fn drop_worker(&mut self, index: usize, thaw: Option<SignedDuration>) {
        let in_the_air = self.dice.chance(500).then(|| self.dice.millis(10, 4_000));
        let slot = &mut self.slots[index];
        slot.epoch += 1;
        slot.patience = None;
        if let Some(Phase::Sends(outgoing)) = slot.phase.take()
            && slot.late.is_none()
            && let Some(after) = thaw.or(in_the_air.filter(|_| !outgoing.action.is_to_ironic()))
        {
            slot.late = Some((outgoing, thaw.is_some()));
            self.later(after, Due::Late(index));
        }
        if self.slots[index].case.is_none() {
            let pause = self.dice.seconds(1, 3600);
            self.wake(index, self.now + pause);
        }
    }

    /// A process takes up whatever nobody works on.
    pub(super) fn take_up(&mut self, index: usize, anew: bool) {
        let fresh = self.limits();
        let now = self.now;
        let slot = &mut self.slots[index];
        let Some(case) = slot.case.as_mut().filter(|_| slot.phase.is_none()) else {
            return;
        };
        let suspended = matches!(case.state, CaseState::Suspended(_));
        if matches!(case.state, CaseState::Closed(_)) || (suspended && !anew) {
            return;
        }
        let limits = match anew {
            true => fresh,
            false => case.remaining(),
        };
        worker::take_up(case, limits, now);
        self.tell(index, |_| "is taken up".to_owned());
        self.go_on(index, Phase::Idle, SignedDuration::ZERO);
    }
}

/// The world of a node, in a line.
pub(super) fn shown(slot: &super::slot::Slot) -> String {
    let (node, provider) = (&slot.bay.node, &slot.bay.provider);
    format!(
        "{}, carries {:?}, {:?}, locked {}, reserved {:?}, holders {:?}, offered {}",
        node.state,
        node.instance,
        node.maintenance,
        node.locked,
        provider.by,
        provider.holders.keys().collect::<Vec<_>>(),
        provider.is_offered()
    )
}
