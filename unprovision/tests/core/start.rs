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
fn an_unknown_state_is_left_alone() {
    for state in ["moonwalking", "null", "", "Active"] {
        assert_eq!(word(start_of(&ProvisionState::from(state))), "never", "{state}");
    }
}
