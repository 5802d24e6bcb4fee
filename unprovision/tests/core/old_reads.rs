//! An `available` from before the departure decides nothing (rule 12), and one that is news does.

use ironic_client::{Node, ProvisionState};
use jiff::Timestamp;
use unprovision::core::{Action, Decision, Found, Kind, decide};
use unprovision::strategy::HandOver;

use crate::build::{
    INSTANCE, ProviderExt, Story, at, found, guard, in_use, limits, node, provider, seen, unprovision,
};

fn opened(kind: Kind, state: ProvisionState, since: Option<Timestamp>) -> Story {
    let found = Found {
        provision_state: state,
        provision_updated_at: since,
        ..found()
    };
    Story::new(kind, limits(), found)
}

/// Whether our hold is released, seeing an `available` since then.
fn releases(story: &Story, since: Option<Timestamp>, now: i64) -> bool {
    let available = Node {
        provision_updated_at: since,
        ..node(ProvisionState::Available)
    };
    let held = seen(available, provider().held_by(guard()));
    match decide(&HandOver, &story.case(), &held, at(now)) {
        Decision::Act(Action::Release { .. }) => true,
        Decision::Wait(_) => false,
        other => panic!("{other:?}"),
    }
}

/// Some databases keep whole seconds: an equal time is news once the tear-down was accepted two seconds ago.
#[test]
fn an_available_is_news_if_it_is_newer_than_what_was_found_or_surely_from_after_the_tear_down() {
    let story = || {
        let kind = Kind::TearDown { instance: INSTANCE };
        opened(kind, ProvisionState::Active, Some(at(-1000)))
    };
    let write = || unprovision(&in_use());
    let timeless = opened(
        Kind::TearDown { instance: INSTANCE },
        ProvisionState::Active,
        None,
    );
    let before = opened(
        Kind::TearDown { instance: INSTANCE },
        ProvisionState::Available,
        Some(at(-1000)),
    );
    for (what, story, since, now, expected) in [
        ("newer", story(), Some(at(-999)), 200, true),
        ("older", story().applied(0, write()), Some(at(-1001)), 200, false),
        ("equal, nothing sent", story(), Some(at(-1000)), 200, false),
        (
            "equal, perhaps sent",
            story().unknown(0, write()),
            Some(at(-1000)),
            200,
            false,
        ),
        (
            "equal, just accepted",
            story().applied(198, write()),
            Some(at(-1000)),
            200,
            false,
        ),
        (
            "equal, accepted before",
            story().applied(197, write()),
            Some(at(-1000)),
            200,
            true,
        ),
        ("without a time", story(), None, 200, true),
        ("found without a time", timeless, Some(at(-1000)), 200, true),
        ("it was `available` already", before, Some(at(-1000)), 200, true),
    ] {
        assert_eq!(releases(&story, since, now), expected, "{what}");
    }
}

#[test]
fn the_guard_believes_an_equal_time_two_seconds_after_it_saw_the_node_leave() {
    let kind = Kind::Guard {
        instance: Some(INSTANCE),
        since: Some(at(0)),
    };
    let story = opened(kind, ProvisionState::Deleting, Some(at(0)));
    for (since, now, expected) in [(0, 2, false), (0, 3, true), (-1, 3000, false), (1, 0, true)] {
        assert_eq!(releases(&story, Some(at(since)), now), expected, "{since}, {now}");
    }
}
