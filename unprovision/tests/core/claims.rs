//! Whose a case is: one process works on it at a time (rule 16).

use std::collections::BTreeSet;

use unprovision::core::{Claim, Ending, Event, Outcome, Process};

use crate::build::{Story, limits, process};

fn taken(story: Story, seconds: i64, by: u32) -> Story {
    story.then(seconds, Event::Taken { by: process(by) })
}

fn ending(held: bool) -> Ending {
    Ending {
        outcome: Outcome::Blocked,
        reason: "somebody has to look".to_owned(),
        held,
    }
}

#[test]
fn a_case_is_theirs_while_they_are_at_work() {
    let begun = Story::tear_down;
    let suspended = || Event::Suspended { ending: ending(true) };
    let closed = || Event::Closed {
        ending: ending(false),
    };
    let opened = || Story::tear_down().entries.remove(0).event;
    #[rustfmt::skip]
    let rows = [
        ("nobody's yet", begun(), vec![1, 2], Claim::Nobodys),
        ("ours", taken(begun(), 1, 1), vec![1, 2], Claim::Ours),
        ("ours, although our lease has run out", taken(begun(), 1, 1), vec![], Claim::Ours),
        ("theirs", taken(begun(), 1, 2), vec![1, 2], Claim::Theirs(process(2))),
        ("theirs, whose lease has run out", taken(begun(), 1, 2), vec![1, 3], Claim::Nobodys),
        ("ours, then theirs", taken(taken(begun(), 1, 1), 2, 2), vec![1, 2], Claim::Theirs(process(2))),
        ("theirs, then ours", taken(taken(begun(), 1, 2), 2, 1), vec![1, 2], Claim::Ours),
        ("suspended by them", taken(begun(), 1, 2).then(2, suspended()), vec![1, 2], Claim::Nobodys),
        ("taken up by them again", taken(begun().then(1, suspended()), 2, 2).then(3, Event::Resumed { limits: limits() }), vec![2], Claim::Theirs(process(2))),
        ("ended by them", taken(begun(), 1, 2).then(2, closed()), vec![2], Claim::Nobodys),
        ("begun anew after their end", taken(begun(), 1, 2).then(2, closed()).then(3, opened()), vec![2], Claim::Nobodys),
        ("asked for again while they work", taken(begun(), 1, 2).then(2, opened()), vec![2], Claim::Theirs(process(2))),
    ];
    for (what, story, at_work, expected) in rows {
        let at_work: BTreeSet<Process> = at_work.into_iter().map(process).collect();
        assert_eq!(story.case().claim(&process(1), &at_work), expected, "{what}");
    }
}

/// A number is given again, to a process that knows nothing of the first one's case.
#[test]
fn a_process_is_told_from_another_of_the_same_number() {
    let again = Process {
        started: 1,
        ..process(2)
    };
    let case = taken(Story::tear_down(), 1, 2).case();
    assert_eq!(case.claim(&process(1), &[again].into()), Claim::Nobodys);
    assert_eq!(process(2).to_string(), "process 2 on controller-1");
}
