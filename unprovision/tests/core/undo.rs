//! What an operator's signed end of a case may undo: exactly what the case has set, and nothing of others.

use ironic_client::ProvisionState;
use placement_client::ConsumerUuid;
use unprovision::core::{Action, Owner, undo};

use crate::build::{
    NODE, ProviderExt, STRANGER, Story, class, guard, hand_over, in_use, instance, node, provider, reserve,
    seen, tagged, untag_node,
};

#[test]
fn a_hold_of_ours_goes_back_to_the_instance_or_to_nobody() {
    let case = Story::tear_down().applied(1, hand_over()).case();
    let held = || provider().held_by(guard());
    let back = undo(&case, &seen(in_use(), held()));
    assert!(
        matches!(&back, Some(Action::HandBack { to, .. }) if to.uuid == instance()),
        "{back:?}"
    );
    for node in [
        Some(node(ProvisionState::Cleaning)),
        Some(node(ProvisionState::Available)),
        None,
    ] {
        let released = undo(&case, &seen(node, held()));
        let ours = |consumer: ConsumerUuid| consumer == guard();
        assert!(
            matches!(&released, Some(Action::Release { whose: Owner::Guard, consumer }) if ours(consumer.uuid)),
            "{released:?}"
        );
    }
    let left = case.left_behind(&seen(in_use(), held()));
    assert_eq!(
        left,
        [format!(
            "openstack resource provider allocation delete {}",
            guard()
        )]
    );
}

#[test]
fn a_reservation_goes_back_to_what_was_found_and_only_if_it_is_ours() {
    let reserved = seen(node(ProvisionState::Cleaning), provider().reserved(1));
    let case = Story::tear_down().applied(1, reserve()).case();
    let lifted = undo(&case, &reserved);
    assert!(
        matches!(lifted, Some(Action::SetReserved { to: 0, .. })),
        "{lifted:?}"
    );
    let amend = format!(
        "openstack resource provider inventory set {NODE} --amend --resource {}:reserved=0",
        class()
    );
    assert_eq!(case.left_behind(&reserved), [amend]);
    let innocent = Story::tear_down().case();
    assert_eq!(undo(&innocent, &reserved), None);
    assert!(innocent.left_behind(&reserved).is_empty());
}

#[test]
fn a_tag_of_ours_goes_and_what_others_hold_stays() {
    let case = Story::tagging().tagged().case();
    let node = tagged(node(ProvisionState::Cleaning));
    assert_eq!(undo(&case, &seen(node, provider().tagged())), Some(untag_node()));
    let case = Story::tear_down().applied(1, hand_over()).case();
    for holder in [instance(), ConsumerUuid(STRANGER)] {
        assert_eq!(undo(&case, &seen(in_use(), provider().held_by(holder))), None);
    }
    assert_eq!(undo(&case, &seen(in_use(), None)), None);
}
