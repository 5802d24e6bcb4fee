//! The commands that lift a hold without this program (rule 15).

use unprovision::core::{Action, Found, Kind, Owner, RefusalKind};

use crate::build::{
    INSTANCE, NODE, ProviderExt, Story, class, found, guard, hand_over, limits, provider, reserve,
};

fn found_reserved(units: u32) -> Story {
    let found = Found {
        reserved: units,
        ..found()
    };
    Story::new(Kind::TearDown { instance: INSTANCE }, limits(), found)
}

#[test]
fn every_hold_on_record_has_its_command_and_nothing_else_has() {
    let consumer = format!("openstack resource provider allocation delete {}", guard());
    let inventory = |to| {
        format!(
            "openstack resource provider inventory set {NODE} --amend --resource CUSTOM_BAREMETAL:reserved={to}"
        )
    };
    let case = Story::tear_down().case();
    let released = Action::release(&case, &provider().held_by(guard()), Owner::Guard).unwrap();
    let lifted = Action::set_reserved(&provider().reserved(1), &class(), 0).unwrap();
    let two = Action::set_reserved(&provider(), &class(), 2).unwrap();
    for (what, story, expected) in [
        ("nothing was sent", Story::tear_down(), vec![]),
        (
            "handed over",
            Story::tear_down().applied(1, hand_over()),
            vec![consumer.clone()],
        ),
        (
            "released",
            Story::tear_down().applied(1, hand_over()).applied(2, released),
            vec![],
        ),
        (
            "reserved",
            Story::tear_down().applied(1, reserve()),
            vec![inventory(0)],
        ),
        (
            "perhaps reserved",
            Story::tear_down().unknown(1, reserve()),
            vec![inventory(0)],
        ),
        (
            "not reserved",
            Story::tear_down().refused(1, reserve(), RefusalKind::Conflict),
            vec![],
        ),
        (
            "lifted",
            Story::tear_down().applied(1, reserve()).applied(2, lifted),
            vec![],
        ),
        (
            "more than was found",
            found_reserved(1).applied(1, two),
            vec![inventory(1)],
        ),
        ("as it was found", found_reserved(1).applied(1, reserve()), vec![]),
        (
            "both",
            Story::tear_down().applied(1, hand_over()).applied(2, reserve()),
            vec![consumer, inventory(0)],
        ),
    ] {
        assert_eq!(story.case().by_hand(), expected, "{what}");
    }
}
