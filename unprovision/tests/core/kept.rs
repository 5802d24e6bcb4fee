//! What may still hold the provider, as far as the journal tells: one row for each reason why, and why not.

use unprovision::core::{Action, Event, Found, Kind, Owner, RefusalKind};

use crate::build::{
    INSTANCE, ProviderExt, Story, class, found, guard, hand_over, instance, limits, provider, reserve,
};

fn release(whose: Owner) -> Action {
    let held = provider().held_by(instance()).held_by(guard());
    Action::release(&Story::tear_down().case(), &held, whose).unwrap()
}

fn finding(change: impl FnOnce(&mut Found)) -> Story {
    let mut found = found();
    change(&mut found);
    Story::new(Kind::TearDown { instance: INSTANCE }, limits(), found)
}

/// After a tear-down of ours nobody else releases what the instance holds.
#[test]
fn a_torn_down_instances_allocation_is_left_until_it_was_surely_released() {
    let torn_down = || Story::tear_down().torn_down();
    let theirs = || release(Owner::Instance);
    let freed = || torn_down().then(2, Event::Freed);
    let nothing = finding(|found| found.units.clear());
    #[rustfmt::skip]
    let rows = [
        ("not torn down", Story::tear_down(), false),
        ("torn down", torn_down(), true),
        ("torn down, and it held nothing", nothing.torn_down(), false),
        ("torn down by somebody else", Story::guard(), false),
        ("released", torn_down().applied(2, theirs()), false),
        ("perhaps released", torn_down().unknown(2, theirs()), true),
        ("not released", torn_down().refused(2, theirs(), RefusalKind::Conflict), true),
        ("seen to be gone", freed(), false),
        ("seen to be gone, and our own perhaps released", freed().unknown(3, release(Owner::Guard)), false),
        ("released, and our own perhaps too", torn_down().applied(2, theirs()).unknown(3, release(Owner::Guard)), false),
    ];
    for (what, story, expected) in rows {
        assert_eq!(story.case().may_hold(), expected, "{what}");
    }
}

#[test]
fn a_reservation_is_ours_as_far_as_it_is_more_than_was_found() {
    let reserved = || Story::tear_down().applied(1, reserve());
    let no_more = || finding(|found| found.reserved = 1).applied(1, reserve());
    let refused = || Story::tear_down().refused(1, reserve(), RefusalKind::Conflict);
    let lost = || Story::tear_down().unknown(1, reserve());
    for (what, story, may_hold, with_it, without_it) in [
        ("nothing was sent", Story::tear_down(), false, false, false),
        ("reserved", reserved(), true, true, false),
        ("perhaps reserved", lost(), true, true, false),
        ("refused", refused(), false, false, false),
        ("as it was found", no_more(), false, false, false),
    ] {
        let case = story.case();
        let has = |units| case.has_reserved(&provider().reserved(units), &class());
        assert_eq!(
            (case.may_hold(), has(1), has(0)),
            (may_hold, with_it, without_it),
            "{what}"
        );
    }
}

#[test]
fn a_hold_that_was_found_is_held_until_it_is_released() {
    let found = || finding(|found| found.hold = Some(guard()));
    assert!(found().case().holds_the_unit());
    let released = found().applied(1, release(Owner::Guard));
    assert!(!released.case().holds_the_unit());
    let refused = Story::tear_down().refused(1, hand_over(), RefusalKind::Conflict);
    assert!(!refused.case().holds_the_unit());
    let theirs = Story::tear_down()
        .applied(1, hand_over())
        .applied(2, release(Owner::Instance));
    assert!(theirs.case().holds_the_unit(), "the instance's is another one");
}

#[test]
fn nova_made_the_provider_if_anybody_has_ever_seen_so() {
    let novas = || provider().with_traits(&["OWNER_NOVA"]);
    let (plain, found) = (Story::tear_down(), finding(|found| found.nova = true));
    assert!(!plain.case().is_novas(&provider()) && plain.case().is_novas(&novas()));
    assert!(found.case().is_novas(&provider()) && found.case().is_novas(&novas()));
}
