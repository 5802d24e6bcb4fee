//! What a tear-down does first in each provision state: the whole table, written out.

use std::collections::BTreeSet;

use ironic_client::{ProvisionState, Verb};
use unprovision::core::{Start, start_of};

const TABLE: &[(&str, &str)] = &[
    ("enroll", "never"),
    ("verifying", "never"),
    ("manageable", "never"),
    ("available", "never"),
    ("deploying", "wait"),
    ("wait call-back", "now"),
    ("deploy failed", "now"),
    ("deploy hold", "abort first"),
    ("active", "now"),
    ("deleting", "under way"),
    ("cleaning", "under way"),
    ("clean wait", "under way"),
    ("clean failed", "under way"),
    ("clean hold", "under way"),
    ("error", "now"),
    ("rebuild", "wait"),
    ("inspecting", "never"),
    ("inspect wait", "never"),
    ("inspect failed", "never"),
    ("adopting", "wait"),
    ("adopt failed", "never"),
    ("rescue", "now"),
    ("rescuing", "wait"),
    ("rescue wait", "now"),
    ("rescue failed", "now"),
    ("unrescuing", "wait"),
    ("unrescue failed", "now"),
    ("servicing", "wait"),
    ("service wait", "now"),
    ("service failed", "now"),
    ("service hold", "abort first"),
];

fn word(start: Start) -> &'static str {
    match start {
        Start::Now => "now",
        Start::Wait => "wait",
        Start::AbortFirst => "abort first",
        Start::UnderWay => "under way",
        Start::Never(_) => "never",
    }
}

#[test]
fn each_state_starts_as_the_table_says() {
    for (state, expected) in TABLE {
        assert_eq!(
            word(start_of(&ProvisionState::from(*state))),
            *expected,
            "{state}"
        );
    }
}

#[test]
fn the_table_misses_no_state() {
    let known = ProvisionState::NAMED.map(|state| state.to_string());
    let table = TABLE.iter().map(|(state, _)| (*state).to_owned());
    assert_eq!(table.collect::<BTreeSet<_>>(), BTreeSet::from(known));
    assert_eq!(TABLE.len(), ProvisionState::NAMED.len());
}

#[test]
fn nothing_is_sent_that_ironic_would_refuse() {
    for state in ProvisionState::NAMED {
        match start_of(&state) {
            Start::Now => assert!(state.accepts(Verb::Deleted), "{state}"),
            Start::AbortFirst => {
                let then = state.after(Verb::Abort).unwrap();
                assert!(then.accepts(Verb::Deleted), "{state} leads to {then}");
            }
            Start::Wait | Start::UnderWay | Start::Never(_) => {
                assert!(!state.accepts(Verb::Deleted), "{state}");
            }
        }
    }
}

#[test]
fn only_an_unknown_state_is_called_unknown_and_it_is_left_alone() {
    let called_unknown = |state: &ProvisionState| match start_of(state) {
        Start::Never(why) => why.contains("does not know"),
        _ => false,
    };
    for state in ProvisionState::NAMED {
        assert!(!called_unknown(&state), "{state}");
    }
    for state in ["moonwalking", "null", "", "Active"] {
        assert!(called_unknown(&state.into()), "{state}");
    }
}

#[test]
fn why_nothing_can_be_torn_down_fits_the_state() {
    for (state, words) in [
        ("available", "nothing to tear down"),
        ("adopt failed", "adopt it anew"),
        ("manageable", "not deployed"),
    ] {
        let start = start_of(&state.into());
        assert!(
            matches!(start, Start::Never(why) if why.contains(words)),
            "{start:?}"
        );
    }
}
