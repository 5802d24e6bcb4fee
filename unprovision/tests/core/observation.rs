//! What Placement would offer of a provider, and whose it is.

use placement_client::{ConsumerUuid, Inventory, ResourceClass};
use unprovision::core::ProviderView;

use crate::build::{ProviderExt, STRANGER, class, guard, instance, other_class, provider};

fn with(change: impl FnOnce(&mut Inventory)) -> ProviderView {
    let mut view = provider();
    change(view.inventories.inventories.get_mut(&class()).unwrap());
    view
}

fn stranger() -> ConsumerUuid {
    ConsumerUuid(STRANGER)
}

/// Placement's own arithmetic: `(total - reserved) * allocation_ratio`, of which at least `min_unit` must be left.
#[test]
fn a_provider_is_offered_while_the_least_that_one_can_ask_for_is_left() {
    let doubled = || with(|all| all.allocation_ratio = 2.0);
    let pairs = || {
        with(|all| {
            all.total = 2;
            all.min_unit = 2;
        })
    };
    let unbounded = || with(|all| all.min_unit = 0);
    for (what, view, expected) in [
        ("free", provider(), true),
        ("held", provider().held_by(instance()), false),
        ("reserved", provider().reserved(1), false),
        ("reserved beyond what there is", provider().reserved(5), false),
        ("every unit twice, one held", doubled().held_by(instance()), true),
        (
            "every unit twice, both held",
            doubled().held_by(instance()).held_by(guard()),
            false,
        ),
        ("only as a pair", pairs(), true),
        ("only as a pair, one held", pairs().held_by(instance()), false),
        ("no least, free", unbounded(), true),
        ("no least, held", unbounded().held_by(instance()), false),
    ] {
        assert_eq!(view.offers(&class()), expected, "{what}");
    }
    assert!(!provider().offers(&other_class()), "it has none of these");
}

#[test]
fn a_reservation_covers_a_provider_from_its_last_unit_on() {
    let of = |total, reserved| {
        with(|all| {
            all.total = total;
            all.reserved = reserved;
        })
    };
    for (total, reserved, expected) in [(1, 0, false), (2, 1, false), (2, 2, true), (2, 3, true)] {
        let covered = of(total, reserved).is_reserved(&class());
        assert_eq!(covered, expected, "{reserved} of {total}");
    }
    assert!(!provider().reserved(1).is_reserved(&other_class()));
}

#[test]
fn units_in_use_are_those_of_all_holders_and_ours_is_told_by_its_mark() {
    let both = provider().held_by(instance()).held_by(stranger());
    let used = |view: &ProviderView, class: &ResourceClass| view.used(class);
    assert_eq!(used(&provider(), &class()), 0);
    assert_eq!(used(&both, &class()), 2);
    assert_eq!(used(&both, &other_class()), 0);
    assert_eq!(both.our_hold(), None);
    assert_eq!(both.held_by(guard()).our_hold(), Some(guard()));
}

#[test]
fn a_provider_is_novas_by_the_traits_that_only_nova_sets() {
    for (traits, expected) in [
        (&["OWNER_NOVA"][..], true),
        (&["CUSTOM_RACK_7", "COMPUTE_NODE"], true),
        (&["CUSTOM_RACK_7", "HW_CPU_X86_VMX"], false),
        (&[], false),
    ] {
        assert_eq!(provider().with_traits(traits).is_novas(), expected, "{traits:?}");
    }
    assert!(!provider().is_novas(), "nobody asked for its traits");
}
