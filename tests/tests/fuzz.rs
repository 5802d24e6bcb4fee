//! Some thousand inputs by chance for everything that reads; `tests/fuzz SECONDS` tries many more, led by coverage.
#![allow(clippy::expect_used, reason = "helpers of tests are tests")]

use unprovision_testkit::fuzz::{TARGETS, changed};
use unprovision_testkit::simulate::Dice;

const TRIES: u64 = 3000;

fn tried(name: &str) {
    let target = TARGETS.iter().find(|target| target.name == name);
    let target = target.expect("one of the targets");
    let seeds = (target.seeds)();
    assert!(!seeds.is_empty());
    seeds.iter().for_each(|seed| (target.read)(seed));
    for number in 0..TRIES {
        let input = changed(&mut Dice::of(20_261_130, number), &seeds);
        let read = std::panic::catch_unwind(|| (target.read)(&input));
        assert!(
            read.is_ok(),
            "{name}: input {number}: {:?}",
            String::from_utf8_lossy(&input)
        );
    }
}

#[test]
fn answers_of_ironic_are_read_or_refused() {
    tried("ironic");
}

#[test]
fn answers_of_placement_are_read_or_refused() {
    tried("placement");
}

#[test]
fn files_of_clouds_are_read_or_refused() {
    tried("clouds");
}

#[test]
fn notifications_are_read_or_refused() {
    tried("notifications");
}

#[test]
fn rows_of_the_journal_are_read_or_refused() {
    tried("journal");
}
