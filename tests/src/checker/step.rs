//! What a move does to a state.

use std::sync::Arc;

use jiff::SignedDuration;
use unprovision::core::{ActionKind, Case, CaseState, Observation, open};
use unprovision::strategy::Strategy;

use super::moves::{Fuss, Move};
use super::scope::{Budget, Scope};
use super::state::{Frozen, State};
use crate::model::apply::{self, Services};
use crate::model::judge::{self, Breach, something_is_left};
use crate::model::worker::{self, Outgoing, Phase, Saw, Thought};
use crate::model::{Bay, Product, key, view};

/// What is searched: whose decisions, in which world.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rules<'a> {
    pub(super) product: &'a dyn Product,
    pub(super) strategy: &'a dyn Strategy,
    pub(super) scope: &'a Scope,
}

impl State {
    /// The state after a move, and what it has broken; `None` where the move is not possible now.
    pub(super) fn after(&self, mv: Move, rules: Rules<'_>) -> Option<(Self, Option<Breach>)> {
        if !self.may(mv) {
            return None;
        }
        let mut next = self.clone();
        next.pay(mv)?;
        let broken = match mv {
            Move::Open | Move::Resume | Move::ReadProvider | Move::ReadNode | Move::Record => {
                next.work(mv, rules).map(|()| None)
            }
            Move::Crash | Move::TakeOver | Move::TimePasses | Move::TimeIsUp => {
                next.disturb(mv).map(|()| None)
            }
            Move::Send
            | Move::FrozenSends
            | Move::LosesAnswer
            | Move::LosesWrite
            | Move::DelaysWrite
            | Move::Refuses(_) => next.send(mv, rules),
            Move::IronicGoesOn
            | Move::IronicWaits
            | Move::IronicUnlocks
            | Move::IronicExplains
            | Move::Fails
            | Move::Locks => next.ironic(mv).map(|()| None),
            Move::NovaDeletes
            | Move::NovaReleases
            | Move::NovaReservesAndReleases
            | Move::PassBegins
            | Move::PassWrites => next.nova(mv, rules).map(|()| None),
            Move::Claims | Move::Deploys | Move::GivesUp => next.schedule(mv).map(|()| None),
            Move::OperatorMaintains
            | Move::OperatorReserves
            | Move::OperatorManages
            | Move::OperatorEndsMaintenance
            | Move::OperatorCures
            | Move::OperatorUndeploys => next.operate(mv, rules).map(|()| None),
        }?;
        let shown = next.look();
        let broken = match broken {
            Some(Breach::OfferedBlindly) => shown.or(broken),
            _ => broken.or(shown),
        };
        let by = |breach| match breach {
            // Neither is ever excused, or made, by who was late.
            Breach::Wiped | Breach::ExposedToPlainQueries => breach,
            _ => Breach::ByFrozenWriter,
        };
        let broken = if next.overtaken { broken.map(by) } else { broken };
        Some((next, broken))
    }

    /// What most moves fail on, before the state is copied for them.
    fn may(&self, mv: Move) -> bool {
        let phase = self.worker.as_ref();
        match mv {
            Move::Open | Move::Resume => phase.is_none(),
            Move::ReadProvider => phase == Some(&Phase::Idle),
            Move::ReadNode => matches!(phase, Some(Phase::Half(_))),
            Move::Record => matches!(phase, Some(Phase::Knows(_))),
            Move::Send
            | Move::TakeOver
            | Move::LosesAnswer
            | Move::LosesWrite
            | Move::DelaysWrite
            | Move::Refuses(_) => matches!(phase, Some(Phase::Sends(_))),
            Move::FrozenSends => self.frozen.is_some(),
            Move::Crash => phase.is_some(),
            _ => true,
        }
    }

    pub(super) fn bay_mut(&mut self) -> &mut Bay {
        Arc::make_mut(&mut self.bay)
    }

    /// What the world shows after a move.
    fn look(&mut self) -> Option<Breach> {
        let left =
            || self.is_closed() && self.frozen.is_none() && something_is_left(&self.bay, &self.parties());
        let left = left().then_some(Breach::LeftBehind);
        let parties = self.parties();
        self.watch.look(&self.bay, &parties).or(left)
    }

    /// Disturbances are counted.
    fn pay(&mut self, mv: Move) -> Option<()> {
        let budget = &mut self.budget;
        let purse: fn(&mut Budget) -> &mut u8 = match mv {
            Move::Crash => |b| &mut b.crashes,
            Move::TakeOver => |b| &mut b.takeovers,
            Move::LosesAnswer | Move::LosesWrite | Move::DelaysWrite => |b| &mut b.lost,
            Move::Refuses(_) => |b| &mut b.refused,
            Move::Fails => |b| &mut b.failures,
            Move::Locks => |b| &mut b.locks,
            Move::OperatorMaintains | Move::OperatorReserves | Move::OperatorManages => |b| &mut b.edits,
            Move::TimeIsUp => |b| &mut b.late,
            Move::NovaDeletes => |b| &mut b.deletes,
            _ => return Some(()),
        };
        budget.all = budget.all.checked_sub(1)?;
        let purse = purse(budget);
        *purse = purse.checked_sub(1)?;
        budget.cap();
        Some(())
    }

    fn case_mut(&mut self) -> Option<&mut Case> {
        self.case.as_mut().map(Arc::make_mut)
    }

    fn work(&mut self, mv: Move, rules: Rules<'_>) -> Option<()> {
        let now = self.now;
        match (mv, self.worker.take()) {
            (Move::Open, None) if self.case.is_none() => {
                let seen = self.observe();
                let entry = open(&self.request(rules.strategy.name()), &seen, now).ok()?;
                self.case = Some(Arc::new(Case::fold(Self::id(), [&entry])?));
                self.worker = Some(Phase::Idle);
            }
            (Move::Resume, None) => self.resume()?,
            (Move::ReadProvider, Some(Phase::Idle)) => {
                self.worker = Some(Phase::Half(worker::read_provider(&self.bay, self.case.as_ref()?)));
            }
            (Move::ReadNode, Some(Phase::Half(provider))) => {
                let tag = self.case.as_ref()?.found.tag.as_ref();
                let saw = Saw::of(&self.bay.node, &provider, tag);
                let seen = Observation {
                    at: now,
                    node: Some(view::node(&self.bay.node)),
                    provider: Some(Arc::unwrap_or_clone(provider)),
                    nova: None,
                };
                let case = self.case_mut()?;
                self.worker = match worker::think(rules.product, rules.strategy, case, &seen, now) {
                    Thought::Send(action) => Some(Phase::Sends(Arc::new(Outgoing { action, saw }))),
                    Thought::Wait(_) => Some(Phase::Idle),
                    Thought::End => None,
                };
                let (parties, closed) = (self.parties(), self.is_closed());
                self.watch.rest(&self.bay, &parties, closed);
            }
            (Move::Record, Some(Phase::Knows(event))) => {
                worker::push(self.case_mut()?, event, now);
                self.worker = Some(Phase::Idle);
            }
            _ => return None,
        }
        Some(())
    }

    fn observe(&self) -> Observation {
        let uuid = placement_client::ProviderUuid(self.bay.node.uuid.0);
        Observation {
            at: self.now,
            node: Some(view::node(&self.bay.node)),
            provider: Some(view::provider(&self.bay.provider, uuid, self.parties().guard)),
            nova: None,
        }
    }

    fn resume(&mut self) -> Option<()> {
        let case = self.case.as_ref()?;
        if matches!(case.state, CaseState::Closed(_)) {
            return None;
        }
        let (limits, now) = (self.limits_of(case), self.now);
        worker::take_up(self.case_mut()?, limits, now);
        self.worker = Some(Phase::Idle);
        Some(())
    }

    fn disturb(&mut self, mv: Move) -> Option<()> {
        match mv {
            Move::Crash => drop(self.worker.take()?),
            Move::TakeOver => {
                let Some(Phase::Sends(outgoing)) = self.worker.take() else {
                    return None;
                };
                self.freeze(outgoing, true)?;
                self.resume()?;
            }
            // A look takes less time than everything else that time is about.
            Move::TimePasses if matches!(self.worker, Some(Phase::Half(_))) => return None,
            Move::TimePasses => {
                let (case, now) = (self.case.as_ref()?, self.now);
                let attempts = case.attempts.values().map(|attempts| attempts.at);
                let mut recent = attempts.chain(case.seen.iter().map(|(_, at)| *at));
                recent.find(|at| now.duration_since(*at) < key::LEAP)?;
                self.pass(key::LEAP);
            }
            _ => {
                let case = self.case.as_ref()?;
                if case.state != CaseState::Open || case.limits.deadline <= self.now {
                    return None;
                }
                self.pass(self.to_the_deadline());
            }
        }
        Some(())
    }

    /// What the net still held back is lost by then.
    fn pass(&mut self, how_long: SignedDuration) {
        self.now += how_long;
        self.frozen.take_if(|frozen| !frozen.sender);
    }

    fn freeze(&mut self, outgoing: Arc<Outgoing>, sender: bool) -> Option<()> {
        if self.frozen.is_some() {
            return None;
        }
        self.frozen = Some(Frozen { outgoing, sender });
        Some(())
    }

    fn send(&mut self, mv: Move, rules: Rules<'_>) -> Option<Option<Breach>> {
        if mv == Move::FrozenSends {
            let Frozen { outgoing, sender } = self.frozen.take()?;
            let (answer, broken) = self.arrives(&outgoing, rules);
            self.overtaken |= sender && answer.is_ok();
            return Some(broken);
        }
        let Some(Phase::Sends(outgoing)) = self.worker.take() else {
            return None;
        };
        let (answer, broken) = match mv {
            Move::Send => {
                let (answer, broken) = self.arrives(&outgoing, rules);
                (worker::answered(answer), broken)
            }
            Move::LosesAnswer => (worker::unknown(), self.arrives(&outgoing, rules).1),
            Move::LosesWrite => (worker::unknown(), None),
            // What is forbidden stays so, and does not heal; of the tear-down that is a reason to hand back.
            Move::Refuses(Fuss::Forbidden) if outgoing.action.kind() != ActionKind::Unprovision => {
                return None;
            }
            Move::Refuses(fuss) => (worker::answered(Err(fuss.kind())), None),
            // What is sent to Ironic is applied while its sender waits, or not at all (`LOST` in `core/pace.rs`).
            _ if outgoing.action.is_to_ironic() => return None,
            _ => {
                self.freeze(outgoing, false)?;
                (worker::unknown(), None)
            }
        };
        self.worker = Some(Phase::Knows(answer));
        Some(broken)
    }

    /// A write reaches its service.
    fn arrives(
        &mut self,
        outgoing: &Outgoing,
        rules: Rules<'_>,
    ) -> (Result<(), unprovision::core::RefusalKind>, Option<Breach>) {
        let before = Arc::clone(&self.bay);
        let services = Services {
            old_placement: rules.scope.old_placement,
            busy: false,
        };
        let (sent, at) = (rules.product.sends(), self.bay.node.next_moment());
        let answer = apply::apply(self.bay_mut(), &outgoing.action, sent, services, at);
        if answer.is_err() {
            return (answer, None);
        }
        let parties = self.parties();
        self.watch.begin(&before, &parties);
        let action = &outgoing.action;
        let broken = judge::of_a_write(&before, &self.bay, action, outgoing.saw, &parties);
        (answer, broken)
    }
}
