//! What each strategy does, for every stage, holder and reservation: the tables, written out.

use ironic_client::{Node, ProvisionState};
use placement_client::ConsumerUuid;
use unprovision::core::{Action, Decision, Outcome, Owner, ProviderView, decide};
use unprovision::strategy::{ALL, Strategy, by_name};

use crate::build::{
    ProviderExt, STRANGER, Story, at, guard, hand_over, in_use, instance, node, provider, refusal, reserve,
    seen, tagged, untag_node,
};

const IN_USE: &str = "in use";
const TRIED: &str = "in use again";
const RETURNING: &str = "returning";
const READY: &str = "ready";
const UNTAGGED: &str = "ready, and the node was untagged";

fn strategy(name: &str) -> &'static dyn Strategy {
    by_name(name).unwrap()
}

/// The node, and whether its tear-down was accepted before.
fn staged(stage: &str, story: Story) -> (Story, Node) {
    // Put into use anew after the first tear-down: only so may somebody else hold the provider by now.
    let again = Node {
        provision_updated_at: Some(at(100)),
        ..in_use()
    };
    match stage {
        IN_USE => (story, in_use()),
        TRIED => (story.torn_down(), again),
        RETURNING => (story.torn_down(), node(ProvisionState::Cleaning)),
        UNTAGGED => (
            story.torn_down().applied(1, untag_node()),
            node(ProvisionState::Available),
        ),
        _ => (story.torn_down(), node(ProvisionState::Available)),
    }
}

fn held(holder: &str, reserved: bool) -> ProviderView {
    let view = provider().with_traits(&["CUSTOM_RACK_7"]);
    let view = match holder {
        "instance" => view.held_by(instance()),
        "guard" => view.held_by(guard()),
        "other" => view.held_by(ConsumerUuid(STRANGER)),
        _ => view,
    };
    view.reserved(reserved.into())
}

fn word(decision: &Decision) -> &'static str {
    match decision {
        Decision::Act(Action::Unprovision { .. }) => "tear down",
        Decision::Act(Action::HandOver { giver: Some(_), .. }) => "hand over",
        Decision::Act(Action::HandOver { giver: None, .. }) => "claim",
        Decision::Act(Action::SetReserved { to: 0, .. }) => "lift the reservation",
        Decision::Act(Action::SetReserved { .. }) => "reserve",
        Decision::Act(Action::Release {
            whose: Owner::Guard, ..
        }) => "release ours",
        Decision::Act(Action::Release {
            whose: Owner::Instance,
            ..
        }) => "release the instance's",
        Decision::Act(Action::AddNodeTrait { .. }) => "tag the node",
        Decision::Act(Action::RemoveNodeTrait { .. }) => "untag the node",
        Decision::Act(Action::AddProviderTrait { .. }) => "tag the provider",
        Decision::Act(Action::RemoveProviderTrait { .. }) => "untag the provider",
        Decision::Act(_) => "something else",
        Decision::Wait(_) => "wait",
        Decision::End(ending) if ending.outcome == Outcome::Returned && !ending.held => "done",
        Decision::End(ending) if ending.outcome == Outcome::Blocked => "blocked",
        Decision::End(_) => "another end",
    }
}

type Row = (&'static str, &'static str, &'static str, &'static str);

fn assert_table(name: &str, story: &Story, rows: &[Row]) {
    assert_eq!(rows.len(), 4 * 4, "every stage with every holder");
    for (stage, holder, free, reserved) in rows {
        for (is_reserved, expected) in [(false, free), (true, reserved)] {
            let (story, node) = staged(stage, story.clone());
            let decision = decide(
                strategy(name),
                &story.case(),
                &seen(node, held(holder, is_reserved)),
                at(200),
            );
            assert_eq!(
                word(&decision),
                *expected,
                "{name}: {stage}, held by {holder}, reserved: {is_reserved}: {decision:?}"
            );
        }
    }
}

#[test]
fn hand_over_takes_the_unit_first_and_releases_it_last() {
    #[rustfmt::skip]
    assert_table("hand-over", &Story::tear_down(), &[
        // stage     holder      not reserved              reserved
        (IN_USE,    "instance", "hand over",              "hand over"),
        (IN_USE,    "guard",    "tear down",              "tear down"),
        (IN_USE,    "nobody",   "claim",                  "tear down"),
        (IN_USE,    "other",    "blocked",                "blocked"),
        (TRIED,     "instance", "hand over",              "hand over"),
        (TRIED,     "guard",    "tear down",              "tear down"),
        (TRIED,     "nobody",   "claim",                  "tear down"),
        (TRIED,     "other",    "tear down",              "tear down"),
        (RETURNING, "instance", "hand over",              "hand over"),
        (RETURNING, "guard",    "wait",                   "wait"),
        (RETURNING, "nobody",   "claim",                  "wait"),
        (RETURNING, "other",    "reserve",                "wait"),
        (READY,     "instance", "release the instance's", "release the instance's"),
        (READY,     "guard",    "release ours",           "release ours"),
        (READY,     "nobody",   "done",                   "done"),
        (READY,     "other",    "done",                   "done"),
    ]);
}

#[test]
fn reserve_on_delete_reserves_first_and_releases_the_instance_meanwhile() {
    #[rustfmt::skip]
    assert_table("reserve-on-delete", &Story::tear_down(), &[
        // stage     holder      not reserved              reserved, not by us
        (IN_USE,    "instance", "reserve",                "tear down"),
        (IN_USE,    "guard",    "reserve",                "tear down"),
        (IN_USE,    "nobody",   "reserve",                "tear down"),
        (IN_USE,    "other",    "blocked",                "blocked"),
        (TRIED,     "instance", "reserve",                "tear down"),
        (TRIED,     "guard",    "reserve",                "tear down"),
        (TRIED,     "nobody",   "reserve",                "tear down"),
        (TRIED,     "other",    "reserve",                "tear down"),
        (RETURNING, "instance", "reserve",                "release the instance's"),
        (RETURNING, "guard",    "reserve",                "wait"),
        (RETURNING, "nobody",   "reserve",                "wait"),
        (RETURNING, "other",    "reserve",                "wait"),
        (READY,     "instance", "release the instance's", "release the instance's"),
        (READY,     "guard",    "release ours",           "release ours"),
        (READY,     "nobody",   "done",                   "done"),
        (READY,     "other",    "done",                   "done"),
    ]);
}

#[test]
fn reserve_on_delete_lifts_its_own_reservation_last() {
    #[rustfmt::skip]
    assert_table("reserve-on-delete", &Story::tear_down().applied(0, reserve()), &[
        // stage     holder      not reserved              reserved, by us
        (IN_USE,    "instance", "reserve",                "tear down"),
        (IN_USE,    "guard",    "reserve",                "tear down"),
        (IN_USE,    "nobody",   "reserve",                "tear down"),
        (IN_USE,    "other",    "blocked",                "blocked"),
        (TRIED,     "instance", "reserve",                "tear down"),
        (TRIED,     "guard",    "reserve",                "tear down"),
        (TRIED,     "nobody",   "reserve",                "tear down"),
        (TRIED,     "other",    "reserve",                "tear down"),
        (RETURNING, "instance", "reserve",                "release the instance's"),
        (RETURNING, "guard",    "reserve",                "wait"),
        (RETURNING, "nobody",   "reserve",                "wait"),
        (RETURNING, "other",    "reserve",                "wait"),
        (READY,     "instance", "release the instance's", "release the instance's"),
        (READY,     "guard",    "release ours",           "release ours"),
        (READY,     "nobody",   "done",                   "lift the reservation"),
        (READY,     "other",    "done",                   "lift the reservation"),
    ]);
}

#[test]
fn wait_for_available_writes_nothing_until_the_node_is_free() {
    #[rustfmt::skip]
    assert_table("wait-for-available", &Story::tear_down(), &[
        // stage     holder      not reserved              reserved
        (IN_USE,    "instance", "tear down",              "tear down"),
        (IN_USE,    "guard",    "tear down",              "tear down"),
        (IN_USE,    "nobody",   "blocked",                "tear down"),
        (IN_USE,    "other",    "blocked",                "blocked"),
        (TRIED,     "instance", "tear down",              "tear down"),
        (TRIED,     "guard",    "tear down",              "tear down"),
        (TRIED,     "nobody",   "tear down",              "tear down"),
        (TRIED,     "other",    "tear down",              "tear down"),
        (RETURNING, "instance", "wait",                   "wait"),
        (RETURNING, "guard",    "wait",                   "wait"),
        (RETURNING, "nobody",   "wait",                   "wait"),
        (RETURNING, "other",    "wait",                   "wait"),
        (READY,     "instance", "release the instance's", "release the instance's"),
        (READY,     "guard",    "release ours",           "release ours"),
        (READY,     "nobody",   "done",                   "done"),
        (READY,     "other",    "done",                   "done"),
    ]);
}

/// Each stage with the tag nowhere, on one of them, on both: what is done, where the instance holds its unit and where nobody does.
#[test]
fn trait_tagging_tags_both_before_the_tear_down_and_untags_the_node_first() {
    #[rustfmt::skip]
    let rows = [
        // stage     on node  on provider  the instance holds it     nobody does
        (IN_USE,    false,   false,       "tag the node",           "tag the node"),
        (IN_USE,    false,   true,        "tag the node",           "tag the node"),
        (IN_USE,    true,    false,       "tag the provider",       "tag the provider"),
        (IN_USE,    true,    true,        "tear down",              "tear down"),
        (TRIED,     false,   false,       "tag the node",           "tag the node"),
        (TRIED,     false,   true,        "tag the node",           "tag the node"),
        (TRIED,     true,    false,       "tag the provider",       "tag the provider"),
        (TRIED,     true,    true,        "tear down",              "tear down"),
        (RETURNING, false,   false,       "tag the provider",       "tag the provider"),
        (RETURNING, false,   true,        "tag the node",           "tag the node"),
        (RETURNING, true,    false,       "tag the provider",       "tag the provider"),
        (RETURNING, true,    true,        "release the instance's", "wait"),
        (READY,     false,   false,       "release the instance's", "untag the node"),
        (READY,     false,   true,        "release the instance's", "untag the node"),
        (READY,     true,    false,       "release the instance's", "untag the node"),
        (READY,     true,    true,        "release the instance's", "untag the node"),
        (UNTAGGED,  false,   false,       "release the instance's", "done"),
        (UNTAGGED,  false,   true,        "release the instance's", "untag the provider"),
        (UNTAGGED,  true,    true,        "release the instance's", "untag the node"),
    ];
    for (stage, on_node, on_provider, by_instance, by_nobody) in rows {
        for (holder, expected) in [("instance", by_instance), ("nobody", by_nobody)] {
            let (story, node) = staged(stage, Story::tagging().tagged());
            let node = if on_node { tagged(node) } else { node };
            let view = held(holder, false);
            let view = if on_provider { view.tagged() } else { view };
            let decision = decide(
                strategy("trait-tagging"),
                &story.case(),
                &seen(node, view),
                at(200),
            );
            assert_eq!(
                word(&decision),
                expected,
                "{stage}, node {on_node}, provider {on_provider}, {holder}: {decision:?}"
            );
        }
    }
}

#[test]
fn without_a_provider_nothing_is_offered_and_nothing_is_written_to_placement() {
    for name in ["hand-over", "reserve-on-delete", "wait-for-available"] {
        for (stage, expected) in [
            (IN_USE, "tear down"),
            (TRIED, "tear down"),
            (RETURNING, "wait"),
            (READY, "done"),
        ] {
            let (story, node) = staged(stage, Story::tear_down());
            let decision = decide(strategy(name), &story.case(), &seen(node, None), at(200));
            assert_eq!(word(&decision), expected, "{name}, {stage}: {decision:?}");
        }
    }
}

/// Placement before 14.0.0 refuses the hand-over of a reserved unit: the reservation is adopted.
#[test]
fn hand_over_adopts_a_reservation_that_placement_does_not_let_it_replace() {
    let refused = || {
        let refusal = refusal(unprovision::core::RefusalKind::NoCapacity);
        Story::tear_down()
            .intended(0, hand_over())
            .then(0, unprovision::core::Event::Refused { refusal })
    };
    for (stage, expected) in [
        (IN_USE, "tear down"),
        (TRIED, "tear down"),
        (RETURNING, "release the instance's"),
    ] {
        let (story, node) = staged(stage, refused());
        let decision = decide(
            strategy("hand-over"),
            &story.case(),
            &seen(node, held("instance", true)),
            at(200),
        );
        assert_eq!(word(&decision), expected, "{stage}: {decision:?}");
    }
    // Once the reservation falls before the node is free, the hold is taken.
    let (story, node) = staged(RETURNING, refused());
    for (holder, expected) in [("instance", "hand over"), ("nobody", "claim")] {
        let decision = decide(
            strategy("hand-over"),
            &story.case(),
            &seen(node.clone(), held(holder, false)),
            at(200),
        );
        assert_eq!(word(&decision), expected, "{holder}: {decision:?}");
    }
}

/// Nova leaves its reservation for up to a minute; it is lifted in its stead only where it made the provider.
#[test]
fn novas_reservation_is_lifted_at_the_end_only_where_it_is_novas() {
    for name in ALL.iter().map(|strategy| strategy.name()) {
        for (nova, allowed, expected) in [
            (true, true, "lift the reservation"),
            (true, false, "done"),
            (false, true, "done"),
        ] {
            let mut story = Story::tear_down();
            if let unprovision::core::Event::Opened { found, limits, .. } = &mut story.entries[0].event {
                found.nova = nova;
                found.reserved = 1;
                limits.release_nova_reservations = allowed;
            }
            let (story, node) = staged(READY, story);
            let decision = decide(
                strategy(name),
                &story.case(),
                &seen(node, held("nobody", true)),
                at(200),
            );
            assert_eq!(
                word(&decision),
                expected,
                "{name}, {nova}, {allowed}: {decision:?}"
            );
        }
    }
}

#[test]
fn every_strategy_has_a_name_and_says_what_it_promises() {
    for strategy in ALL {
        assert_eq!(by_name(strategy.name()).unwrap().name(), strategy.name());
        assert!(!strategy.promise().is_empty() && !strategy.window().is_empty());
    }
    assert!(by_name("Hand-Over").is_none() && by_name("").is_none());
}
