//! Writes whose answer was lost, or that changed more than the node's own provider.

use ironic_client::{Node, ProvisionState};
use placement_client::{ConsumerGeneration, ConsumerUuid, ProviderUuid, Units};
use std::collections::BTreeMap;
use unprovision::core::{Action, Decision, Giver, Outcome, decide};
use unprovision::strategy::{HandOver, ReserveOnDelete};

use crate::build::{
    ELSEWHERE, ProviderExt, STRANGER, Story, at, guard, in_use, instance, node, one_unit, provider, reserve,
    seen, tenant, unprovision,
};

fn hand_over(rest: BTreeMap<ProviderUuid, Units>) -> Action {
    Action::HandOver {
        receiver: guard(),
        generation: ConsumerGeneration::New,
        units: one_unit(),
        giver: Some(Giver {
            uuid: instance(),
            generation: ConsumerGeneration::At(3),
            owner: tenant(),
            rest,
        }),
    }
}

/// Placement deletes a consumer that holds nothing any more; one that holds something else has moved by one.
#[test]
fn a_unit_goes_back_to_an_instance_as_the_hand_over_has_left_it() {
    let elsewhere: BTreeMap<_, _> = [(ELSEWHERE, one_unit())].into();
    for (rest, expected) in [
        (BTreeMap::new(), ConsumerGeneration::New),
        (elsewhere, ConsumerGeneration::At(4)),
    ] {
        let case = Story::tear_down().applied(1, hand_over(rest.clone())).case();
        let back = Action::hand_back(&case, &provider().held_by(guard()));
        let Some(Action::HandBack { to, .. }) = back else {
            panic!("{back:?}")
        };
        assert_eq!((to.generation, to.rest), (expected, rest));
    }
}

/// Somebody sets maintenance right after our release, and the next tenant has claimed the unit by then.
#[test]
fn a_reservation_does_not_outlast_the_next_tenants_deployment() {
    let next = Node {
        instance_uuid: Some(STRANGER),
        ..node(ProvisionState::Active)
    };
    let torn_down = || {
        Story::tear_down()
            .applied(1, reserve())
            .applied(2, unprovision(&in_use()))
    };
    let guarded = || Story::guard().applied(1, reserve());
    let seen = |view| seen(next.clone(), view);
    let held = || provider().held_by(ConsumerUuid(STRANGER));
    for story in [torn_down(), guarded()] {
        match decide(
            &ReserveOnDelete,
            &story.case(),
            &seen(held().reserved(1)),
            at(200),
        ) {
            Decision::Act(Action::SetReserved { to: 0, .. }) => {}
            other => panic!("{other:?}"),
        }
        match decide(&ReserveOnDelete, &story.case(), &seen(held()), at(200)) {
            Decision::End(ending) => assert_eq!((ending.outcome, ending.held), (Outcome::Returned, false)),
            other => panic!("{other:?}"),
        }
        // Whoever deployed it went around Placement: the reservation is all that hides it.
        let exposed = decide(
            &ReserveOnDelete,
            &story.case(),
            &seen(provider().reserved(1)),
            at(200),
        );
        assert!(!matches!(exposed, Decision::Act(_)), "{exposed:?}");
    }
}

#[test]
fn a_case_that_ends_with_the_node_held_does_not_wait_for_what_may_still_arrive() {
    let failed = Node {
        last_error: Some("it broke".to_owned()),
        ..node(ProvisionState::CleanFailed)
    };
    let case = Story::tear_down().torn_down().unknown(200, reserve()).case();
    let held = seen(failed, provider().reserved(1).held_by(guard()));
    let decision = decide(&HandOver, &case, &held, at(201));
    let Decision::End(ending) = decision else {
        panic!("{decision:?}")
    };
    assert_eq!((ending.outcome, ending.held), (Outcome::Failed, true));
}
