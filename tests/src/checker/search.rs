//! The search: breadth first over all states, then backwards from the good ends.

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap, VecDeque};

use unprovision::strategy::Strategy;

use super::moves::Move;
use super::scope::Scope;
use super::state::State;
use super::step::Rules;
use super::trace::Trace;
use crate::model::{Breach, Key, Product};

/// What a search has found.
#[derive(Clone, Debug)]
pub struct Report {
    /// The world.
    pub scope: Scope,
    /// How many different states there are.
    pub states: usize,
    /// How many moves lead from one to another.
    pub moves: usize,
    /// The longest of the shortest ways to a state.
    pub depth: usize,
    /// What was broken: how often, and the shortest way there.
    pub broken: BTreeMap<Breach, (usize, Trace)>,
}

/// The states that were found, by number.
#[derive(Debug, Default)]
struct Found {
    numbers: HashMap<u128, u32>,
    /// How each was reached first.
    parents: Vec<(u32, Move)>,
    depths: Vec<u16>,
    good: Vec<u32>,
    /// Moves that may be relied upon: to, from.
    reliable: Vec<(u32, u32)>,
}

impl Found {
    /// The number of a state, and whether it is new.
    fn number(&mut self, key: u128, from: u32, mv: Move) -> (u32, bool) {
        let next = u32::try_from(self.parents.len()).unwrap_or(u32::MAX);
        match self.numbers.entry(key) {
            Entry::Occupied(entry) => (*entry.get(), false),
            Entry::Vacant(entry) => {
                entry.insert(next);
                let depth = self.depths.get(from as usize).map_or(0, |depth| depth + 1);
                self.depths.push(depth);
                self.parents.push((from, mv));
                (next, true)
            }
        }
    }

    /// The moves that lead to a state.
    fn way_to(&self, mut state: u32) -> Vec<Move> {
        let mut way = Vec::new();
        while state != 0 {
            let (from, mv) = self.parents[state as usize];
            way.push(mv);
            state = from;
        }
        way.reverse();
        way
    }

    /// A state from which no reliable way leads to a good end: the one that is reached soonest, and how many there are.
    fn stuck(&mut self) -> Option<(u32, usize)> {
        self.reliable.sort_unstable();
        let mut reaches = vec![false; self.parents.len()];
        let mut queue = std::mem::take(&mut self.good);
        queue.iter().for_each(|good| reaches[*good as usize] = true);
        while let Some(to) = queue.pop() {
            let first = self.reliable.partition_point(|(other, _)| *other < to);
            for (_, from) in self.reliable[first..]
                .iter()
                .take_while(|(other, _)| *other == to)
            {
                if !std::mem::replace(&mut reaches[*from as usize], true) {
                    queue.push(*from);
                }
            }
        }
        let count = reaches.iter().filter(|reaches| !**reaches).count();
        let first = reaches.iter().position(|reaches| !reaches)?;
        Some((u32::try_from(first).ok()?, count))
    }
}

/// Searches a world.
pub fn check(product: &dyn Product, strategy: &dyn Strategy, scope: &Scope) -> Report {
    check_until(product, strategy, scope, None)
}

/// Searches a world until a rule is broken: a product that is broken on purpose may have no end of states.
pub fn check_until(
    product: &dyn Product,
    strategy: &dyn Strategy,
    scope: &Scope,
    until: Option<Breach>,
) -> Report {
    let rules = Rules {
        product,
        strategy,
        scope,
    };
    let (mut found, mut key) = (Found::default(), Key::default());
    let (mut broken, mut moves) = (BTreeMap::new(), 0);
    let begin = State::begin(scope);
    found.number(begin.key(&mut key), 0, Move::Open);
    let mut queue = VecDeque::from([(0_u32, begin, None)]);
    while let Some((number, state, exposed)) = queue.pop_front() {
        if until.is_some_and(|breach| broken.contains_key(&breach)) {
            break;
        }
        if state.is_good() {
            found.good.push(number);
        }
        for mv in Move::ALL {
            let Some((next, breach)) = state.after(*mv, rules) else {
                continue;
            };
            moves += 1;
            let (to, new) = found.number(next.key(&mut key), number, *mv);
            if mv.is_reliable() {
                found.reliable.push((to, number));
            }
            // A window is counted where it opens.
            let open = matches!(breach, Some(Breach::Exposed | Breach::ExposedToPlainQueries));
            if let Some(breach) = breach.filter(|breach| exposed != Some(*breach)) {
                let first = || (0, Trace::of(&found.way_to(number), *mv, rules));
                broken.entry(breach).or_insert_with(first).0 += 1;
            }
            if new {
                queue.push_back((to, next, breach.filter(|_| open)));
            }
        }
    }
    if until.is_none()
        && let Some((state, count)) = found.stuck()
    {
        let mut way = found.way_to(state);
        let last = way.pop().unwrap_or(Move::Open);
        broken.insert(Breach::Stuck, (count, Trace::of(&way, last, rules)));
    }
    Report {
        scope: *scope,
        states: found.parents.len(),
        moves,
        depth: found.depths.iter().copied().max().unwrap_or(0).into(),
        broken,
    }
}
