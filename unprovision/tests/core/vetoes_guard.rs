//! The veto, for the guard: what it must leave alone on a node in use, and whose holds are its own.

use ironic_client::Node;
use placement_client::ConsumerUuid;
use unprovision::core::{Owner, ProviderView, Veto, check, guard_consumer};

use crate::build::{
    INSTANCE, LEAVING, NODE, ProviderExt, STRANGER, Story, every_state, guard, hand_over, instance, node,
    provider, reserve, seen,
};
use crate::vetoes::{assert_passes, assert_vetoed, free, release};

/// Rule 2, for every state: only a node that is leaving, or that nobody uses, is held.
#[test]
fn the_guard_holds_no_node_in_use_in_any_state() {
    let unused = [
        "available",
        "manageable",
        "enroll",
        "verifying",
        "inspecting",
        "inspect wait",
        "inspect failed",
        "moonwalking",
    ];
    let case = Story::guard().case();
    for state in every_state() {
        let word = state.as_str().to_owned();
        for carries in [None, Some(INSTANCE), Some(STRANGER)] {
            let now = Node {
                instance_uuid: carries,
                ..node(state.clone())
            };
            let is_leaving = LEAVING.contains(&word.as_str());
            let idle = unused.contains(&word.as_str()) && carries.is_none();
            let expected = if is_leaving || idle {
                Ok(())
            } else {
                Err(Veto::InUse)
            };
            for write in [hand_over(), reserve()] {
                let seen = seen(now.clone(), provider().held_by(instance()));
                assert_eq!(
                    check(&case, &seen, &write),
                    expected,
                    "{word} with {carries:?}: {write}"
                );
            }
        }
    }
}

/// A hold of another process of ours, for another departure of the node.
fn another() -> (ConsumerUuid, ProviderView) {
    let other = guard_consumer(NODE, STRANGER);
    let mut view = provider().held_by(other);
    view.holders.get_mut(&other).unwrap().ours = true;
    (other, view)
}

#[test]
fn the_guard_releases_any_hold_of_ours_and_a_tear_down_only_its_own() {
    let (other, view) = another();
    let (guards, tear_down) = (Story::guard().case(), Story::tear_down().torn_down().case());
    let of = |uuid| release(Owner::Guard, uuid);
    let marked = seen(free(), view);
    assert_passes("the guard, marked as ours", &guards, &marked, &of(other));
    assert_vetoed("a tear-down", &tear_down, &marked, &of(other), Veto::NotOurs);
    let strangers = seen(free(), provider().held_by(ConsumerUuid(STRANGER)));
    let of_stranger = of(ConsumerUuid(STRANGER));
    assert_vetoed("not marked", &guards, &strangers, &of_stranger, Veto::NotOurs);
    for case in [&guards, &tear_down] {
        assert_passes(
            "its own",
            case,
            &seen(free(), provider().held_by(guard())),
            &of(guard()),
        );
    }
}
