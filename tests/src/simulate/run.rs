//! Many worlds, on all cores.

use std::cmp::Reverse;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use jiff::SignedDuration;
use unprovision::strategy::Strategy;

use super::dice::Dice;
use super::fleet::{Due, Fleet, Nature};
use super::tally::Tally;
use crate::model::Product;

/// After so long a world that has healed must have come to rest.
const REST: SignedDuration = SignedDuration::from_hours(24 * 21);

/// What is to be run.
#[derive(Clone, Copy, Debug)]
pub struct Plan<'a> {
    /// Whose decisions.
    pub product: &'a dyn Product,
    /// With which strategies, in turn.
    pub strategies: &'a [&'a dyn Strategy],
    /// The seed.
    pub seed: u64,
    /// How many cases at least.
    pub cases: u64,
    /// On how many threads.
    pub threads: usize,
}

/// What came of it.
#[derive(Clone, Debug)]
pub struct Report {
    /// How many worlds.
    pub worlds: u64,
    /// All of them together.
    pub tally: Tally,
}

/// Runs worlds until there are enough cases. The same plan brings the same report, on any number of threads.
pub fn run(plan: &Plan<'_>) -> Report {
    let (mut worlds, mut planned) = (0, 0);
    while planned < plan.cases {
        planned += Nature::of(&mut Dice::of(plan.seed, worlds)).nodes as u64;
        worlds += 1;
    }
    let next = AtomicU64::new(0);
    let total = Mutex::new(Tally::default());
    thread::scope(|scope| {
        for _ in 0..plan.threads.max(1) {
            scope.spawn(|| {
                let mut own = Tally::default();
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number >= worlds {
                        break;
                    }
                    own.add(play(plan, number, None).tally);
                }
                total
                    .lock()
                    .unwrap_or_else(std::sync::PoisonError::into_inner)
                    .add(own);
            });
        }
    });
    let mut tally = total
        .into_inner()
        .unwrap_or_else(std::sync::PoisonError::into_inner);
    tally
        .violations
        .sort_by_key(|found| (found.world, found.node, found.at));
    Report { worlds, tally }
}

/// Plays one world again, and returns what came of it with the time line of one of its nodes.
pub fn world(plan: &Plan<'_>, number: u64, node: usize) -> (Tally, Vec<String>) {
    let fleet = play(plan, number, Some(node));
    (fleet.tally, fleet.lines)
}

fn play<'a>(plan: &Plan<'a>, number: u64, traced: Option<usize>) -> Fleet<'a> {
    let mut fleet = Fleet::new(plan.product, plan.strategies, plan.seed, number);
    fleet.traced = traced;
    if let Some(node) = traced {
        let words = format!("{}, {:?}", fleet.strategy.name(), fleet.nature);
        fleet.tell(node, |_| words);
    }
    let end = fleet.begun + fleet.nature.disturbed + REST;
    while let Some(Reverse((at, _, due))) = fleet.queue.pop() {
        if at > end {
            break;
        }
        fleet.now = at;
        fleet.tally.steps += 1;
        match due {
            Due::Work(index, epoch) => fleet.work(index, epoch),
            Due::Late(index) => fleet.late(index),
            Due::Ironic(index, since) => fleet.ironic(index, since),
            Due::Unlock(index) => fleet.unlock(index),
            Due::Nova(index, what) => fleet.nova(index, what),
            Due::Schedule => fleet.schedule(),
            Due::Build(index) => fleet.build(index),
            Due::Edit(index) => fleet.edit(index),
            Due::Care(index) => fleet.care(index),
            Due::Process => fleet.process(),
            Due::TakeUp => (0..fleet.slots.len()).for_each(|index| fleet.take_up(index, false)),
        }
    }
    fleet.judge_the_end();
    let hours = fleet.now.duration_since(fleet.begun).as_hours();
    fleet.tally.simulated_hours += u64::try_from(hours).unwrap_or(0);
    fleet
}
