//! The others: Ironic's conductors, Nova, schedulers, operators.

use ironic_client::{ProvisionState, Verb};
use jiff::{SignedDuration, Timestamp};
use placement_client::{ConsumerGeneration, ConsumerUuid};
use unprovision::core::CaseState;

use super::fleet::{Due, Fleet, Nova};
use super::ours::shown;
use crate::model::apply::{self, Services, Write};
use crate::model::judge::is_free;
use crate::model::nova::Wanted;
use crate::model::{AsIs, Author, Bay, Maintenance, Product};

impl Fleet<'_> {
    /// Something else than we changes a node or its provider.
    fn change(&mut self, index: usize, what: &str, change: impl FnOnce(&mut Bay, Timestamp)) {
        let now = self.now;
        let slot = &mut self.slots[index];
        let before = slot.bay.clone();
        change(&mut slot.bay, now);
        if slot.bay != before {
            self.tell(index, |slot| format!("{what}  [{}]", shown(slot)));
            self.keep_going(index, &before);
            self.stirred(index, &before, None);
        }
    }

    /// A node that has entered a state of Ironic's own work leaves it after a while.
    pub(super) fn keep_going(&mut self, index: usize, before: &Bay) {
        use ProvisionState as P;
        let node = &self.slots[index].bay.node;
        if node.since == before.node.since {
            return;
        }
        let (state, since) = (node.state.clone(), node.since);
        let after = match state {
            P::Deleting => self.dice.seconds(1, 300),
            P::Cleaning if self.dice.chance(100) => self.dice.seconds(3600, 48 * 3600),
            P::Cleaning | P::CleanWait => self.dice.seconds(5, 3600),
            P::Deploying => self.dice.seconds(30, 1200),
            P::Error | P::CleanFailed => self.dice.seconds(0, 20),
            _ => return,
        };
        self.later(after, Due::Ironic(index, since));
    }

    pub(super) fn ironic(&mut self, index: usize, since: Timestamp) {
        use ProvisionState as P;
        if self.slots[index].bay.node.since != since {
            return;
        }
        let fails = self.trouble(10);
        let waits = self.dice.chance(400);
        if fails {
            self.fault("tear-down or cleaning fails");
        }
        self.change(index, "Ironic goes on", |bay, now| {
            let node = &mut bay.node;
            match node.state.clone() {
                P::Deleting => {
                    node.instance = None;
                    node.enter(if fails { P::Error } else { P::Cleaning }, now);
                    node.locked = !fails;
                }
                state @ (P::Cleaning | P::CleanWait) if fails => {
                    if state == P::Cleaning {
                        node.maintenance = Maintenance::CleanFailure;
                    }
                    node.enter(P::CleanFailed, now);
                    node.locked = false;
                }
                P::Cleaning if waits => {
                    node.enter(P::CleanWait, now);
                    node.locked = false;
                }
                P::CleanWait => {
                    node.enter(P::Cleaning, now);
                    node.locked = true;
                }
                P::Cleaning => {
                    let next = if node.retired { P::Manageable } else { P::Available };
                    node.enter(next, now);
                    node.locked = false;
                }
                P::Deploying => {
                    node.enter(P::Active, now);
                    node.locked = false;
                }
                P::Error | P::CleanFailed => node.explained = true,
                _ => {}
            }
        });
    }

    pub(super) fn unlock(&mut self, index: usize) {
        use ProvisionState as P;
        self.change(index, "the lock is given back", |bay, _| {
            let works = matches!(bay.node.state, P::Deleting | P::Cleaning | P::Deploying);
            bay.node.locked &= works;
        });
    }

    pub(super) fn nova(&mut self, index: usize, what: Nova) {
        let Some(rule) = self.nature.nova else { return };
        let (instance, full) = (self.slots[index].instance, self.is_full());
        match what {
            Nova::Delete => self.nova_deletes(index, full),
            Nova::Look => {
                use ProvisionState as P;
                let node = &self.slots[index].bay.node;
                let off = matches!(
                    node.state,
                    P::Cleaning | P::CleanWait | P::CleanFailed | P::Available
                );
                let done = node.instance != Some(instance) || off;
                // After sixty looks Nova gives up; the server stays in error.
                self.slots[index].looks += 1;
                if !done && self.slots[index].looks > 60 {
                    return;
                }
                let (pause, next) = match done {
                    true => (self.dice.millis(100, 8_000), Nova::Release),
                    false => (self.dice.millis(2_000, 2_000), Nova::Look),
                };
                self.later(pause, Due::Nova(index, next));
            }
            Nova::Release => {
                let tracked = self.slots[index].tracked;
                self.change(index, "Nova drops the allocation", |bay, _| {
                    if tracked {
                        Wanted::of(&bay.node, rule).write(bay);
                    }
                    bay.provider.drop_consumer(ConsumerUuid(instance));
                });
            }
            Nova::PassBegins => {
                let slot = &mut self.slots[index];
                slot.pass = Some(Wanted::of(&slot.bay.node, rule));
                let pause = self.dice.millis(10, 7_000);
                self.later(pause, Due::Nova(index, Nova::PassWrites));
            }
            Nova::PassWrites => {
                let slot = &mut self.slots[index];
                slot.pass_due = false;
                let wanted = slot.pass.take();
                // It believes in its cache for up to five minutes.
                if self.dice.chance(250) {
                    self.slots[index].pass_due = true;
                    return self.later(SignedDuration::from_secs(60), Due::Nova(index, Nova::PassBegins));
                }
                if let Some(wanted) = wanted {
                    self.change(index, "a pass of Nova's tracker writes", |bay, _| {
                        wanted.write(bay)
                    });
                }
                let slot = &mut self.slots[index];
                if Wanted::of(&slot.bay.node, rule).differs(&slot.bay) && !slot.pass_due {
                    slot.pass_due = true;
                    self.later(SignedDuration::from_secs(60), Due::Nova(index, Nova::PassBegins));
                }
            }
        }
    }

    fn nova_deletes(&mut self, index: usize, full: bool) {
        let slot = &mut self.slots[index];
        if std::mem::replace(&mut slot.deletes, true) {
            return;
        }
        self.fault("Nova deletes the server too");
        let instance = self.slots[index].instance;
        self.change(index, "Nova sends `deleted`", |bay, now| {
            if bay.node.instance == Some(instance) && !full {
                let _ = bay.node.ask(Verb::Deleted, now);
            }
        });
        self.later(SignedDuration::from_secs(2), Due::Nova(index, Nova::Look));
    }

    /// Somebody wants a node, and gets the first that Placement offers.
    pub(super) fn schedule(&mut self) {
        let again = self.dice.seconds(20, 900);
        if self.is_disturbed() {
            self.later(again, Due::Schedule);
        }
        // Whoever schedules beside a strategy that tags forbids the tag.
        let offered = |slot: &super::slot::Slot| {
            let tag = slot.parties().tag;
            slot.bay.provider.is_offered_without(tag.as_ref())
        };
        let Some(index) = self.slots.iter().position(offered) else {
            return;
        };
        let next = ConsumerUuid(self.slots[index].next);
        self.change(index, "the scheduler claims it", |bay, _| {
            let claim = Write::of(next, ConsumerGeneration::New, true, false);
            let _ = apply::write(&mut bay.provider, &[claim], AsIs.sends(), Services::default());
        });
        let pause = self.dice.millis(500, 10_000);
        self.later(pause, Due::Build(index));
    }

    pub(super) fn build(&mut self, index: usize) {
        let next = self.slots[index].next;
        let deploys = is_free(&self.slots[index].bay.node);
        if !deploys {
            self.fault("a server was scheduled to a node that cannot be deployed");
        }
        self.change(index, "the scheduler deploys, or gives up", |bay, now| {
            if deploys {
                bay.node.enter(ProvisionState::Deploying, now);
                bay.node.instance = Some(next);
                bay.node.locked = true;
            } else {
                bay.provider.drop_consumer(ConsumerUuid(next));
            }
        });
    }

    /// Somebody does something that nobody asked for.
    pub(super) fn edit(&mut self, index: usize) {
        if !self.is_disturbed() {
            return;
        }
        let what = self.dice.below(6);
        let locked = self.slots[index].bay.node.locked;
        let opened = self.slots[index].case.is_some();
        let name = match what {
            0 | 1 => "an operator sets maintenance",
            2 => "an operator reserves",
            3 => "an operator manages",
            4 => "a conductor takes the lock",
            _ => "the power is lost",
        };
        self.fault(name);
        self.change(index, name, |bay, now| match what {
            0 | 1 if !locked && bay.node.maintenance == Maintenance::No => {
                bay.node.maintenance = Maintenance::Person;
            }
            2 if bay.provider.reserved == 0 => {
                let by = if opened { Author::Unclear } else { Author::Operator };
                bay.provider.reserve(1, by);
            }
            3 if bay.node.state == ProvisionState::Available => {
                let _ = bay.node.ask(Verb::Manage, now);
            }
            4 => bay.node.locked = true,
            5 => bay.node.powered = false,
            _ => {}
        });
        if what == 4 {
            let pause = self.dice.seconds(1, 7200);
            self.later(pause, Due::Unlock(index));
        }
        let again = self.dice.seconds(60, 24 * 3600);
        self.later(again, Due::Edit(index));
    }

    /// Somebody looks after a node that does not get on: the obstacle goes, the case is taken up.
    pub(super) fn care(&mut self, index: usize) {
        use ProvisionState as P;
        let again = self.dice.seconds(600, 8 * 3600);
        if !self.slots[index].is_closed() || self.is_disturbed() {
            self.later(again, Due::Care(index));
        }
        let full = self.is_full();
        self.change(index, "an operator cures", |bay, now| {
            let node = &mut bay.node;
            node.powered = true;
            if node.locked {
                return;
            }
            match node.state {
                P::CleanFailed => drop(node.ask(Verb::Manage, now)),
                P::Manageable => {
                    node.maintenance = Maintenance::No;
                    if !full {
                        let _ = node.ask(Verb::Provide, now);
                    }
                }
                P::Error if !full => drop(node.ask(Verb::Deleted, now)),
                _ => node.maintenance = Maintenance::No,
            }
        });
        let suspended = |case: &unprovision::core::Case| matches!(case.state, CaseState::Suspended(_));
        if self.slots[index].case.as_ref().is_some_and(suspended) {
            self.take_up(index, true);
        }
    }
}
