//! The simulation, short: some hundred cases, twice the same, and the worlds in which it once found something.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "helpers of tests are tests"
)]

use unprovision::strategy;
use unprovision_testkit::model::AsIs;
use unprovision_testkit::simulate::{Plan, run, world};

fn plan(seed: u64, cases: u64, threads: usize) -> Plan<'static> {
    Plan {
        product: &AsIs,
        strategies: strategy::ALL,
        seed,
        cases,
        threads,
    }
}

#[test]
fn nothing_goes_wrong_in_some_hundred_cases() {
    let report = run(&plan(20_261_130, 200, 2));
    let tally = &report.tally;
    assert!(tally.violations.is_empty(), "{:?}", tally.violations);
    assert!(tally.cases >= 200);
    assert!(tally.faults.len() > 6, "{:?}", tally.faults);
    assert!(tally.ended["returned"] > 80, "{:?}", tally.ended);
}

#[test]
fn the_same_seed_is_the_same_run() {
    let (one, other) = (run(&plan(7, 60, 1)), run(&plan(7, 60, 2)));
    assert_eq!(one.tally.digest, other.tally.digest);
    assert_eq!(one.tally.steps, other.tally.steps);
    assert_eq!(one.tally.faults, other.tally.faults);
    assert_ne!(run(&plan(8, 60, 1)).tally.digest, one.tally.digest);
    let lines = |node| world(&plan(7, 1, 1), 0, node).1;
    assert!(!lines(0).is_empty());
    assert_eq!(lines(0), lines(0));
}

#[test]
fn what_was_found_once_stays_mended() {
    let seeds = include_str!("../simulate-seeds.txt").lines();
    let mut played = 0;
    for line in seeds.filter(|line| !line.starts_with('#') && !line.is_empty()) {
        let numbers: Vec<u64> = line.split(' ').map(|number| number.parse().unwrap()).collect();
        let (tally, _) = world(&plan(numbers[0], 1, 1), numbers[1], 0);
        assert!(tally.violations.is_empty(), "{line}: {:?}", tally.violations);
        played += 1;
    }
    assert!(played >= 5);
}
