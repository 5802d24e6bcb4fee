//! Samples in, windows out.

use ironic_client::{Node, NodeUuid, ProvisionState};
use jiff::SignedDuration;
use unprovision::core::NotFree;
use unprovision::watch::{Look, Phase, Sample, Span, is_back, resolution, spans};

use crate::build::{NODE, at};

const OTHER: NodeUuid = NodeUuid(uuid::Uuid::from_u128(99));

fn secs(secs: i64) -> SignedDuration {
    SignedDuration::from_secs(secs)
}

/// A look at this time: `e`xposed, `h`eld, `i`dle while free, `o`ffered; anything else failed.
fn sample(second: i64, phase: char) -> Sample {
    let look = |free, offered| {
        let state = if free {
            ProvisionState::Available
        } else {
            ProvisionState::Cleaning
        };
        let look = Look {
            not_free: (!free).then(|| NotFree::State(state.clone())),
            provision_state: Some(state),
            offered,
        };
        Some([(NODE, look)].into())
    };
    let looks = match phase {
        'e' => look(false, true),
        'h' => look(false, false),
        'i' => look(true, false),
        'o' => look(true, true),
        _ => None,
    };
    Sample {
        at: at(second),
        looks,
    }
}

/// One look each second.
fn samples(phases: &str) -> Vec<Sample> {
    (0..)
        .zip(phases.chars())
        .map(|(second, phase)| sample(second, phase))
        .collect()
}

/// Phase, from, to, whether the end was seen.
fn windows(samples: &[Sample]) -> Vec<(Phase, i64, i64, bool)> {
    let second = |time: jiff::Timestamp| time.duration_since(at(0)).as_secs();
    let tell = |span: Span<Phase>| (span.what, second(span.from), second(span.to), span.ended);
    spans(samples, NODE, Look::phase).into_iter().map(tell).collect()
}

#[test]
fn a_window_lasts_until_the_look_that_shows_something_else() {
    use Phase::{Exposed, Held, IdleWhileFree, Offered};
    assert_eq!(
        windows(&samples("hheeehiioo")),
        [
            (Held, 0, 2, true),
            (Exposed, 2, 5, true),
            (Held, 5, 6, true),
            (IdleWhileFree, 6, 8, true),
            (Offered, 8, 9, false),
        ]
    );
    assert_eq!(windows(&samples("e")), [(Exposed, 0, 0, false)]);
    assert_eq!(windows(&[]), []);
}

/// Nobody knows what was while nobody saw: no window reaches into a gap, also if both sides look the same.
#[test]
fn a_look_that_failed_is_a_gap_and_no_window() {
    use Phase::{Exposed, Held};
    assert_eq!(
        windows(&samples("hee..eh.")),
        [
            (Held, 0, 1, true),
            (Exposed, 1, 2, false),
            (Exposed, 5, 6, true),
            (Held, 6, 6, false),
        ]
    );
    assert_eq!(windows(&samples("....")), []);
    assert_eq!(
        windows(&samples(".e.e")),
        [(Exposed, 1, 1, false), (Exposed, 3, 3, false)]
    );
}

#[test]
fn a_window_knows_how_far_its_ends_may_be_off() {
    let seen = [(0, 'h'), (1, 'h'), (5, 'e'), (6, 'e'), (8, 'h'), (9, 'h')];
    let seen = seen.map(|(second, phase)| sample(second, phase));
    let resolutions = spans(&seen, NODE, Look::phase)
        .into_iter()
        .map(|span| span.resolution);
    assert_eq!(resolutions.collect::<Vec<_>>(), [secs(4), secs(4), secs(2)]);
    assert_eq!(resolution(&seen), secs(4));
    // What lies beside a gap is not known from looks.
    assert_eq!(resolution(&samples("h.hh")), secs(1));
    assert_eq!(resolution(&samples("h.h")), secs(0));
    assert_eq!(spans(&seen, NODE, Look::phase)[1].duration(), secs(3));
}

#[test]
fn a_node_is_back_once_it_was_away() {
    for (phases, back) in [
        ("", false),
        ("oooo", false),
        ("iioo", false),
        ("ho", true),
        ("hi", false),
        ("h.io", true),
        ("ho.", true),
        ("hoh", false),
        ("e", false),
        ("eo", true),
    ] {
        assert_eq!(is_back(&samples(phases), NODE), back, "{phases}");
    }
    assert!(!is_back(&samples("ho"), OTHER), "it was never looked at");
}

#[test]
fn a_look_uses_the_one_predicate_of_a_free_node() {
    let node = |change: fn(&mut Node)| {
        let value =
            serde_json::json!({"uuid": NODE, "provision_state": "available", "power_state": "power off"});
        let mut node: Node = serde_json::from_value(value).unwrap();
        change(&mut node);
        Look::new(Some(&node), true)
    };
    assert_eq!(node(|_| {}).phase(), Phase::Offered);
    assert_eq!(node(|node| node.maintenance = true).phase(), Phase::Exposed);
    assert_eq!(node(|node| node.retired = true).not_free, Some(NotFree::Retired));
    assert_eq!(
        Look::new(None, true).phase(),
        Phase::Exposed,
        "nobody could be sent there"
    );
    assert_eq!(Look::new(None, false).phase(), Phase::Held);
}
