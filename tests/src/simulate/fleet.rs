//! A world of many nodes, and its queue of what happens next.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use ironic_client::ProvisionState;
use jiff::{SignedDuration, Timestamp};
use unprovision::strategy::{Gap, Strategy};

use super::dice::Dice;
use super::slot::Slot;
use super::tally::{Tally, Violation};
use crate::checker::breach_of;
use crate::model::nova::Rule;
use crate::model::worker::Phase;
use crate::model::{Author, Bay, Breach, Product, judge};

/// What a world is like; drawn from its dice.
#[derive(Clone, Debug)]
pub struct Nature {
    /// How many nodes.
    pub nodes: usize,
    /// The tracker's rule; `None`: another scheduler.
    pub nova: Option<Rule>,
    /// Placement from before 14.0.0.
    pub old_placement: bool,
    /// How many nodes Ironic cleans at once.
    pub limit: usize,
    /// How long a replica of Ironic's database lags behind.
    pub lag: SignedDuration,
    /// How often a write's answer is lost, a step fails, somebody edits: in a thousand.
    pub trouble: u64,
    /// How long chance and people disturb; afterwards the world heals.
    pub disturbed: SignedDuration,
}

impl Nature {
    pub(super) fn of(dice: &mut Dice) -> Self {
        let nodes = 5 + dice.below(26);
        let nova = match dice.below(3) {
            0 => None,
            1 => Some(Rule::Old),
            _ => Some(Rule::Current),
        };
        Self {
            nodes: usize::try_from(nodes).unwrap_or(5),
            nova,
            old_placement: dice.chance(250),
            limit: 2 + usize::try_from(dice.below(nodes)).unwrap_or(0),
            lag: if dice.chance(400) {
                dice.millis(100, 20_000)
            } else {
                SignedDuration::ZERO
            },
            trouble: [0, 10, 40, 120][usize::try_from(dice.below(4)).unwrap_or(0)],
            disturbed: dice.seconds(4 * 3600, 72 * 3600),
        }
    }
}

/// Something that is due.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Due {
    /// A node's worker goes on; only the worker of this number.
    Work(usize, u32),
    /// What was held back is sent.
    Late(usize),
    /// Ironic goes on with a node, if it is still in the state of that time.
    Ironic(usize, Timestamp),
    /// A conductor gives the lock back.
    Unlock(usize),
    /// Nova comes to a node: what it does next.
    Nova(usize, Nova),
    /// Somebody takes what is offered.
    Schedule,
    /// A claim becomes a deployment, or is given up.
    Build(usize),
    /// Somebody does something to a node.
    Edit(usize),
    /// Somebody looks after a node that does not get on.
    Care(usize),
    /// The process dies or stands still.
    Process,
    /// A process takes all open cases up.
    TakeUp,
}

/// What Nova does next with a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Nova {
    Delete,
    Look,
    Release,
    PassBegins,
    PassWrites,
}

/// A world.
#[derive(Debug)]
pub struct Fleet<'a> {
    pub(super) product: &'a dyn Product,
    pub(super) strategy: &'a dyn Strategy,
    pub(super) nature: Nature,
    pub(super) dice: Dice,
    pub(super) now: Timestamp,
    pub(super) begun: Timestamp,
    pub(super) slots: Vec<Slot>,
    pub(super) queue: BinaryHeap<Reverse<(Timestamp, u64, Due)>>,
    pub(super) counter: u64,
    /// Neither service is reached, or no token is valid, until then.
    pub(super) away_until: Timestamp,
    /// The process stands still until then.
    pub(super) still_until: Timestamp,
    pub(super) number: u64,
    pub(super) tally: Tally,
    /// The node whose time line is wanted, and the lines.
    pub(super) traced: Option<usize>,
    pub(super) lines: Vec<String>,
}

impl<'a> Fleet<'a> {
    /// A world by its number.
    pub(super) fn new(
        product: &'a dyn Product,
        strategies: &[&'a dyn Strategy],
        seed: u64,
        number: u64,
    ) -> Self {
        let mut dice = Dice::of(seed, number);
        let nature = Nature::of(&mut dice);
        let which = usize::try_from(number).unwrap_or(0) % strategies.len().max(1);
        let begun = Timestamp::UNIX_EPOCH + SignedDuration::from_hours(24 * 365 * 30);
        let slots = (0..nature.nodes).map(|index| Slot::new(index, begun, &nature, &mut dice));
        let slots: Vec<_> = slots.collect();
        let mut fleet = Self {
            product,
            strategy: strategies[which],
            nature,
            dice,
            now: begun,
            begun,
            slots,
            queue: BinaryHeap::new(),
            counter: 0,
            away_until: begun,
            still_until: begun,
            number,
            tally: Tally::default(),
            traced: None,
            lines: Vec::new(),
        };
        fleet.prepare();
        fleet
    }

    /// What is due from the beginning.
    fn prepare(&mut self) {
        for slot in 0..self.slots.len() {
            let asked = self.dice.seconds(1, 7200);
            self.later(asked, Due::Work(slot, 0));
            if self.nature.nova.is_some() && self.dice.chance(300) {
                let at = self.dice.seconds(1, 9000);
                self.later(at, Due::Nova(slot, Nova::Delete));
            }
            if self.dice.chance(self.nature.trouble * 4) {
                let at = self.dice.seconds(1, 36 * 3600);
                self.later(at, Due::Edit(slot));
            }
            let care = self.dice.seconds(3600, 12 * 3600);
            self.later(care, Due::Care(slot));
        }
        self.later(SignedDuration::from_secs(60), Due::Schedule);
        if self.nature.trouble > 0 {
            let first = self.dice.seconds(60, 6 * 3600);
            self.later(first, Due::Process);
        }
    }

    /// Whether chance and people still disturb.
    pub(super) fn is_disturbed(&self) -> bool {
        self.now < self.begun + self.nature.disturbed
    }

    /// Whether a trouble of this weight happens now.
    pub(super) fn trouble(&mut self, times: u64) -> bool {
        let odds = self.nature.trouble * times / 10;
        self.is_disturbed() && self.dice.chance(odds)
    }

    pub(super) fn later(&mut self, after: SignedDuration, due: Due) {
        self.at(self.now + after, due);
    }

    /// A node's worker goes on then, and not before.
    pub(super) fn wake(&mut self, index: usize, at: Timestamp) {
        let slot = &mut self.slots[index];
        slot.epoch += 1;
        slot.due = Some(at);
        let epoch = slot.epoch;
        self.at(at, Due::Work(index, epoch));
    }

    pub(super) fn at(&mut self, at: Timestamp, due: Due) {
        self.counter += 1;
        self.queue.push(Reverse((at, self.counter, due)));
    }

    pub(super) fn fault(&mut self, kind: &'static str) {
        self.tally.fault(kind);
    }

    /// A line for the time line, if it is wanted.
    pub(super) fn tell(&mut self, slot: usize, line: impl FnOnce(&Slot) -> String) {
        if self.traced == Some(slot)
            && let Some(slot) = self.slots.get(slot)
        {
            self.lines.push(format!("{} {}", self.now, line(slot)));
        }
    }

    /// How many nodes Ironic counts against its limit.
    pub(super) fn is_full(&self) -> bool {
        use ProvisionState as P;
        let busy = |slot: &&Slot| matches!(slot.bay.node.state, P::Deleting | P::Cleaning | P::CleanWait);
        self.slots.iter().filter(busy).count() >= self.nature.limit
    }

    /// What follows any change of a bay: the judge looks, and whoever waits for it wakes up.
    pub(super) fn stirred(&mut self, index: usize, before: &Bay, broken: Option<Breach>) {
        let slot = &mut self.slots[index];
        let node_changed = slot.bay.node != before.node;
        if node_changed && !self.nature.lag.is_zero() {
            slot.old = Some((before.node.clone(), self.now + self.nature.lag));
        }
        let parties = slot.parties();
        let shown = slot.watch.look(&slot.bay, &parties);
        let before = std::mem::replace(&mut slot.exposed, shown);
        let shown = shown.filter(|_| shown != before);
        let broken = match broken {
            Some(Breach::OfferedBlindly) => shown.or(broken),
            _ => broken.or(shown),
        };
        self.digest(index);
        if let Some(breach) = broken {
            self.judged(index, breach);
        }
        let slot = &self.slots[index];
        let waits = matches!(slot.phase, Some(Phase::Idle))
            .then_some(slot.patience)
            .flatten();
        let told = !(node_changed && self.loses_word());
        if let Some(patience) = waits.filter(|_| told) {
            let soon = if node_changed { 1000 } else { patience.as_millis() };
            let soon = self.dice.millis(0, i64::try_from(soon).unwrap_or(1000));
            self.slots[index].in_vain = 0;
            let next = self.now + soon;
            if self.slots[index].due.is_none_or(|due| next < due) {
                self.wake(index, next);
            }
        }
        if self.nature.nova.is_some() && !std::mem::replace(&mut self.slots[index].pass_due, true) {
            let pass = self.dice.millis(0, 60_000);
            self.later(pass, Due::Nova(index, Nova::PassBegins));
        }
    }

    /// In every fourth world half of what is told of nodes is lost: whoever waits looks when it would have looked anyway.
    fn loses_word(&mut self) -> bool {
        let lost = self.number / 4 % 4 == 1 && self.is_disturbed() && self.dice.chance(500);
        if lost {
            self.fault("word of a change is lost");
        }
        lost
    }

    fn digest(&mut self, index: usize) {
        let bay = &self.slots[index].bay;
        let provider = &bay.provider;
        let word = provider.holders.len() as u64 + u64::from(provider.reserved) * 8;
        let moment = u64::try_from(self.now.as_millisecond()).unwrap_or(0);
        let mixed = (moment ^ self.tally.digest.rotate_left(7)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        self.tally.digest = mixed ^ word ^ (index as u64) << 32 ^ self.tally.steps;
    }

    /// A breach is a window where the strategy declares it, and a violation otherwise.
    pub(super) fn judged(&mut self, index: usize, breach: Breach) {
        let gaps = self.strategy.gaps();
        let declared = self.slots[index].overtaken && gaps.contains(&Gap::FrozenWriter)
            || gaps
                .iter()
                .any(|gap| self.has(*gap, index) && breach_of(*gap) == breach);
        self.tell(index, |_| format!("BREACH: {breach}; declared: {declared}"));
        if declared {
            self.tally.windows += 1;
            return;
        }
        let (world, node, at) = (self.number, index, self.now);
        self.tally.violations.push(Violation {
            world,
            node,
            at,
            breach,
        });
    }

    fn has(&self, gap: Gap, index: usize) -> bool {
        match gap {
            Gap::OldTracker => self.nature.nova == Some(Rule::Old),
            Gap::Tracker => self.nature.nova.is_some(),
            Gap::NovaDeletes => self.slots[index].deletes,
            Gap::AdoptedReservation => self.nature.nova == Some(Rule::Old) && self.nature.old_placement,
            Gap::PlainQueries => true,
            Gap::FrozenWriter => false,
        }
    }

    /// Judges what must hold at the end, when all has healed.
    pub(super) fn judge_the_end(&mut self) {
        for index in 0..self.slots.len() {
            let slot = &self.slots[index];
            if slot.case.is_none() {
                continue;
            }
            if !slot.is_closed() {
                self.judged(index, Breach::Stuck);
                continue;
            }
            let parties = slot.parties();
            let provider = &slot.bay.provider;
            let hidden = judge::is_free(&slot.bay.node)
                && !provider.is_offered()
                && provider.holders.is_empty()
                && provider.by != Author::Operator
                && provider.by != Author::Unclear;
            if judge::something_is_left(&slot.bay, &parties) {
                self.judged(index, Breach::LeftBehind);
            } else if hidden {
                self.judged(index, Breach::Stuck);
            }
        }
    }
}
