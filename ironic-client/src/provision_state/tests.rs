use std::collections::{BTreeSet, HashSet};

use super::*;
use ProvisionState as S;

#[test]
fn every_word_reads_back_as_its_state() {
    let words: HashSet<_> = S::NAMED.iter().map(S::as_str).collect();
    assert_eq!(words.len(), S::NAMED.len());
    for state in S::NAMED {
        assert_eq!(S::from(state.as_str()), state);
        let json = serde_json::to_string(&state).unwrap();
        assert_eq!(json, format!("\"{state}\""));
        assert_eq!(serde_json::from_str::<S>(&json).unwrap(), state);
    }
}

#[test]
fn unknown_words_and_null_are_kept_and_never_available() {
    let read = |json: &str| serde_json::from_str::<S>(json).unwrap();
    assert_eq!(read("\"teleporting\""), S::Other("teleporting".into()));
    assert_eq!(read("null"), S::Other("null".into()));
    assert_eq!(read("\"Available\""), S::Other("Available".into()));
    assert_eq!(read("null").to_string(), "null");
    assert!(!read("null").accepts(Verb::Active));
    assert_eq!(serde_json::from_str::<Option<S>>("null").unwrap(), None);
}

#[test]
fn no_transition_stands_twice_and_none_stays() {
    let pairs: HashSet<_> = TRANSITIONS.iter().map(|t| (t.from.clone(), t.verb)).collect();
    assert_eq!(pairs.len(), TRANSITIONS.len());
    assert!(TRANSITIONS.iter().all(|t| t.from != t.to));
    assert!(
        TRANSITIONS
            .iter()
            .all(|t| !matches!((&t.from, &t.to), (S::Other(_), _) | (_, S::Other(_))))
    );
}

fn takers(verb: Verb) -> BTreeSet<&'static str> {
    TRANSITIONS
        .iter()
        .filter(|t| t.verb == verb)
        .map(|t| t.from.as_str())
        .collect()
}

#[test]
fn deleted_is_legal_exactly_where_ironic_takes_it() {
    let expected = [
        "active",
        "wait call-back",
        "deploy failed",
        "error",
        "rescue",
        "rescue wait",
        "rescue failed",
        "unrescue failed",
        "service wait",
        "service failed",
    ];
    assert_eq!(takers(Verb::Deleted), expected.into());
    assert!(
        TRANSITIONS
            .iter()
            .all(|t| t.verb != Verb::Deleted || t.to == S::Deleting)
    );
}

/// The legal states of each verb, as Ironic 39.0.0's state machine has them.
#[test]
fn other_verbs_are_legal_where_ironic_takes_them() {
    for (verb, expected) in [
        (
            Verb::Manage,
            "adopt failed, available, clean failed, enroll, inspect failed",
        ),
        (Verb::Provide, "manageable"),
        (Verb::Inspect, "inspect failed, manageable"),
        (
            Verb::Abort,
            "clean hold, clean wait, deploy hold, inspect wait, rescue wait, service failed, service hold, service wait, wait call-back",
        ),
        (Verb::Active, "available, deploy failed"),
        (Verb::Rebuild, "active, deploy failed, error"),
        (Verb::Adopt, "adopt failed, manageable"),
        (Verb::Clean, "manageable"),
        (
            Verb::Rescue,
            "active, rescue, rescue failed, service failed, unrescue failed",
        ),
        (Verb::Unrescue, "rescue, rescue failed, unrescue failed"),
        (Verb::Service, "active, service failed, service hold"),
        (Verb::Unhold, "clean hold, deploy hold, service hold"),
    ] {
        assert_eq!(
            takers(verb).into_iter().collect::<Vec<_>>().join(", "),
            expected,
            "{verb}"
        );
    }
    assert!(Verb::ALL.iter().all(|verb| !takers(*verb).is_empty()));
}

#[test]
fn verbs_are_written_as_their_words() {
    for verb in Verb::ALL {
        assert_eq!(serde_json::to_string(&verb).unwrap(), format!("\"{verb}\""));
    }
}
