//! What the others do to a state: Ironic's conductors, Nova, whoever schedules, operators.

use ironic_client::{ProvisionState, Verb};
use placement_client::ConsumerGeneration;
use unprovision::core::ActionKind;
use unprovision::strategy::Gap;

use super::moves::Move;
use super::state::{SECOND, State};
use super::step::Rules;
use crate::model::apply::{self, Services, Write};
use crate::model::judge::is_free;
use crate::model::nova::Wanted;
use crate::model::{Author, Bay, Maintenance, Product};

impl State {
    pub(super) fn ironic(&mut self, mv: Move) -> Option<()> {
        use ProvisionState as P;
        let node = &mut self.bay_mut().node;
        let at = node.next_moment();
        let works = matches!(node.state, P::Deleting | P::Cleaning | P::Deploying);
        match (mv, node.state.clone()) {
            (Move::IronicGoesOn, P::Deleting) => {
                node.instance = None;
                node.enter(P::Cleaning, at);
            }
            (Move::IronicGoesOn, P::CleanWait) if !node.locked => {
                node.enter(P::Cleaning, at);
                node.locked = true;
            }
            (Move::IronicGoesOn, P::Cleaning | P::Deploying) => {
                let next = if node.state == P::Cleaning {
                    P::Available
                } else {
                    P::Active
                };
                node.enter(next, at);
                node.locked = false;
            }
            (Move::IronicWaits, P::Cleaning) => {
                node.enter(P::CleanWait, at);
                node.locked = false;
            }
            (Move::Fails, P::Deleting) => {
                node.instance = None;
                node.enter(P::Error, at);
                node.locked = false;
            }
            (Move::Fails, P::Cleaning | P::CleanWait) => {
                if node.state == P::Cleaning {
                    node.maintenance = Maintenance::CleanFailure;
                }
                node.enter(P::CleanFailed, at);
                node.locked = false;
            }
            (Move::IronicExplains, P::Error | P::CleanFailed) if !node.explained => node.explained = true,
            (Move::Locks, _) if !node.locked => node.locked = true,
            (Move::IronicUnlocks, _) if node.locked && !works => node.locked = false,
            _ => return None,
        }
        Some(())
    }

    pub(super) fn nova(&mut self, mv: Move, rules: Rules<'_>) -> Option<()> {
        use ProvisionState as P;
        let rule = rules.scope.nova?;
        let node = &self.bay.node;
        let here = node.instance == Some(super::state::FIRST);
        match mv {
            Move::NovaDeletes if here && !self.nova.deletes => {
                if node.state != P::Deleting {
                    let at = node.next_moment();
                    self.bay_mut().node.ask(Verb::Deleted, at).ok()?;
                }
                self.nova.deletes = true;
            }
            Move::NovaReleases | Move::NovaReservesAndReleases if self.nova.deletes => {
                let off = matches!(
                    node.state,
                    P::Cleaning | P::CleanWait | P::CleanFailed | P::Available
                );
                if here && !off {
                    return None;
                }
                if mv == Move::NovaReservesAndReleases {
                    Wanted::of(&self.bay.node, rule).write(self.bay_mut());
                }
                self.bay_mut().provider.drop_consumer(Self::first());
                self.nova.deletes = false;
            }
            Move::PassBegins if self.nova.pass.is_none() => {
                self.nova.pass = Some(Wanted::of(&self.bay.node, rule));
            }
            Move::PassWrites => self.nova.pass.take()?.write(self.bay_mut()),
            _ => return None,
        }
        Some(())
    }

    pub(super) fn schedule(&mut self, mv: Move) -> Option<()> {
        let second = Self::second();
        let claimed = self.bay.provider.holders.contains_key(&second);
        // Whoever schedules beside a strategy that tags forbids the tag.
        let offered = self.bay.provider.is_offered_without(self.parties().tag.as_ref());
        let node = &self.bay.node;
        let free = is_free(node) && !node.locked;
        match mv {
            Move::Claims if !self.nova.deployed && !claimed && offered => {
                let claim = Write::of(second, ConsumerGeneration::New, true, false);
                let sent = crate::model::AsIs.sends();
                apply::write(&mut self.bay_mut().provider, &[claim], sent, Services::default()).ok()?;
            }
            Move::Deploys if claimed && free => {
                let at = node.next_moment();
                let node = &mut self.bay_mut().node;
                node.enter(ProvisionState::Deploying, at);
                node.instance = Some(SECOND);
                node.locked = true;
                self.nova.deployed = true;
            }
            Move::GivesUp if claimed && node.instance != Some(SECOND) && !free => {
                self.bay_mut().provider.drop_consumer(second);
            }
            _ => return None,
        }
        Some(())
    }

    pub(super) fn operate(&mut self, mv: Move, rules: Rules<'_>) -> Option<()> {
        use ProvisionState as P;
        // The strategy that an old tracker can undo is the one that holds by a reservation.
        let by_reservation = rules.strategy.gaps().contains(&Gap::OldTracker);
        let unclear = self.case.as_ref().is_some_and(|case| {
            let pending = case.pending.as_ref().map(unprovision::core::Action::kind);
            let kind = ActionKind::SetReserved;
            by_reservation || case.sent(kind) > 0 || pending == Some(kind)
        });
        let claimed = self.bay.provider.holders.contains_key(&Self::second());
        let Bay { node, provider } = self.bay_mut();
        if node.locked && mv != Move::OperatorReserves {
            return None;
        }
        let at = node.next_moment();
        match mv {
            Move::OperatorMaintains if node.maintenance == Maintenance::No => {
                node.maintenance = Maintenance::Person;
            }
            Move::OperatorEndsMaintenance if node.maintenance != Maintenance::No => {
                node.maintenance = Maintenance::No;
            }
            Move::OperatorReserves if provider.reserved == 0 && !(unclear && claimed) => {
                provider.reserve(
                    1,
                    if unclear {
                        Author::Unclear
                    } else {
                        Author::Operator
                    },
                );
            }
            Move::OperatorManages if node.state == P::Available => node.ask(Verb::Manage, at).ok()?,
            Move::OperatorCures if node.state == P::CleanFailed => node.ask(Verb::Manage, at).ok()?,
            Move::OperatorCures if node.state == P::Manageable && node.maintenance == Maintenance::No => {
                node.ask(Verb::Provide, at).ok()?;
            }
            Move::OperatorUndeploys if node.state == P::Error => node.ask(Verb::Deleted, at).ok()?,
            _ => return None,
        }
        Some(())
    }
}
