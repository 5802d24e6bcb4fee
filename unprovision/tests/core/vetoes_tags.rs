//! The veto, for tags: each bad write is refused, one row each; and its good neighbour passes.

use ironic_client::Node;
use placement_client::{ConsumerUuid, ProviderTraits};
use unprovision::core::{Action, Case, Found, Kind, Owner, ProviderView, Tag, Veto};

use crate::build::{
    INSTANCE, ProviderExt, STRANGER, Story, found, guard, in_use, instance, limits, provider, seen, tag,
    tag_name, tag_node, tag_provider, tagged, untag_node, untag_provider,
};
use crate::vetoes::{assert_passes, assert_vetoed, cleaning, free, of_a_stranger, release};

fn begun() -> Case {
    Story::tagging().tagged().case()
}

fn torn_down() -> Case {
    Story::tagging().tagged().torn_down().case()
}

/// The tag was there before, on both, and has been set again.
fn found_there() -> Case {
    let found = Found {
        tag: Some(Tag {
            on_node: true,
            on_provider: true,
            ..tag()
        }),
        ..found()
    };
    let story = Story::new(Kind::TearDown { instance: INSTANCE }, limits(), found);
    story.tagged().torn_down().case()
}

fn bare() -> ProviderView {
    provider().with_traits(&["CUSTOM_RACK_7"])
}

fn guarded() -> Kind {
    Kind::Guard {
        instance: Some(INSTANCE),
        since: None,
    }
}

fn other_name(action: &Action) -> Action {
    let name = "CUSTOM_OF_SOMEBODY_ELSE".parse().unwrap();
    match action.clone() {
        Action::AddNodeTrait { .. } => Action::AddNodeTrait { name },
        Action::RemoveNodeTrait { .. } => Action::RemoveNodeTrait { name },
        Action::AddProviderTrait { traits, .. } => Action::AddProviderTrait { name, traits },
        Action::RemoveProviderTrait { traits, .. } => Action::RemoveProviderTrait { name, traits },
        other => other,
    }
}

#[test]
fn only_the_tag_on_record_is_set_and_removed() {
    let (untagged, both) = (
        seen(in_use(), bare().held_by(instance())),
        seen(tagged(free()), provider().tagged()),
    );
    for (action, seen) in [
        (tag_node(), &untagged),
        (tag_provider(), &untagged),
        (untag_node(), &both),
        (untag_provider(), &both),
    ] {
        assert_passes("the tag", &torn_down(), seen, &action);
        let other = other_name(&action);
        assert_vetoed("another trait", &torn_down(), seen, &other, Veto::NotOurs);
        let untagging = Story::tear_down().torn_down().case();
        assert_vetoed("a case without a tag", &untagging, seen, &action, Veto::NotOurs);
    }
    let novas = Tag {
        name: "COMPUTE_STATUS_DISABLED".parse().unwrap(),
        ..tag()
    };
    let name = novas.name.clone();
    let found = Found {
        tag: Some(novas),
        ..found()
    };
    let case = Story::new(Kind::TearDown { instance: INSTANCE }, limits(), found).case();
    assert_vetoed(
        "Nova's own, whatever is on record",
        &case,
        &untagged,
        &Action::AddNodeTrait { name },
        Veto::NotOurs,
    );
}

#[test]
fn the_providers_other_traits_and_its_generation_stay() {
    type Spoil = fn(&mut ProviderTraits);
    let spoils: [(&str, Spoil); 3] = [
        ("a trait lost", |all| {
            all.traits.retain(|name| name.as_str() != "CUSTOM_RACK_7");
        }),
        ("a trait more", |all| {
            all.traits.insert("CUSTOM_MORE".parse().unwrap());
        }),
        ("an old generation", |all| all.generation.0 -= 1),
    ];
    for (what, spoil) in spoils {
        for (action, view) in [
            (tag_provider(), bare().held_by(instance())),
            (untag_provider(), provider().tagged()),
        ] {
            let (node, mut action) = (free(), action);
            if let Action::AddProviderTrait { traits, .. } | Action::RemoveProviderTrait { traits, .. } =
                &mut action
            {
                spoil(traits);
            }
            assert_vetoed(what, &torn_down(), &seen(node, view), &action, Veto::NotOurs);
        }
    }
    let unread = seen(free(), provider());
    assert_vetoed("unread", &torn_down(), &unread, &tag_provider(), Veto::NotOurs);
    let gone = seen(free(), None);
    assert_vetoed("gone", &torn_down(), &gone, &tag_provider(), Veto::NotOurs);
}

#[test]
fn a_tag_that_is_not_ours_stays() {
    let both = seen(tagged(free()), provider().tagged());
    let copied = Story::tagging().applied(0, tag_node()).torn_down().case();
    assert_passes("Nova's copy of ours", &copied, &both, &untag_provider());
    let alone = Story::tagging().applied(0, tag_provider()).torn_down().case();
    assert_passes("only the provider's", &alone, &both, &untag_provider());
    assert_vetoed("not the node's", &alone, &both, &untag_node(), Veto::NotOurs);
    let never = Story::tagging().torn_down().case();
    for action in [untag_node(), untag_provider()] {
        assert_vetoed("it was there", &found_there(), &both, &action, Veto::NotOurs);
        assert_vetoed("never set", &never, &both, &action, Veto::NotOurs);
    }
}

#[test]
fn the_tag_stays_until_the_node_may_be_offered() {
    let stranger = || ConsumerUuid(STRANGER);
    let maintained = Node {
        maintenance: true,
        ..free()
    };
    for action in [untag_node(), untag_provider()] {
        for (what, node, view) in [
            ("free", free(), provider().tagged()),
            ("handed back", in_use(), provider().tagged().held_by(instance())),
            (
                "the next tenant's",
                of_a_stranger(),
                provider().tagged().held_by(stranger()),
            ),
        ] {
            assert_passes(what, &torn_down(), &seen(tagged(node), view), &action);
        }
        for (what, node, view) in [
            ("cleaning", cleaning(), provider().tagged()),
            (
                "cleaning, held by the instance",
                cleaning(),
                provider().tagged().held_by(instance()),
            ),
            ("in maintenance", maintained.clone(), provider().tagged()),
            ("in use, and nobody holds it", in_use(), provider().tagged()),
            (
                "another's, and nobody holds it",
                of_a_stranger(),
                provider().tagged(),
            ),
        ] {
            assert_vetoed(
                what,
                &torn_down(),
                &seen(tagged(node), view),
                &action,
                Veto::NotFree,
            );
        }
    }
    let gone = seen(None, provider().tagged());
    assert_vetoed("gone", &torn_down(), &gone, &untag_provider(), Veto::NotFree);
    assert_vetoed("gone", &torn_down(), &gone, &untag_node(), Veto::OtherInstance);
    // It never held anything: so it is as it was.
    let found = Found {
        units: Default::default(),
        owner: None,
        tag: Some(tag()),
        ..found()
    };
    let unheld = Story::new(Kind::TearDown { instance: INSTANCE }, limits(), found).tagged();
    let seen = seen(tagged(in_use()), provider().tagged());
    assert_passes("as it was found", &unheld.case(), &seen, &untag_node());
}

/// The instance's allocation may go early behind the tag of this very case, and our own hold never.
#[test]
fn behind_the_tag_only_the_instances_allocation_is_released() {
    let own = release(Owner::Instance, instance());
    let behind = seen(tagged(cleaning()), provider().tagged().held_by(instance()));
    assert_passes("tagged", &torn_down(), &behind, &own);
    let bare = seen(tagged(cleaning()), bare().held_by(instance()));
    assert_vetoed("only the node is", &torn_down(), &bare, &own, Veto::NotFree);
    let untagging = Story::tear_down().torn_down().case();
    assert_vetoed("another case's tag", &untagging, &behind, &own, Veto::NotFree);
    let ours = release(Owner::Guard, guard());
    let held = seen(tagged(cleaning()), provider().tagged().held_by(guard()));
    assert_vetoed("our own hold", &torn_down(), &held, &ours, Veto::NotFree);
}

#[test]
fn no_tag_is_put_on_another_instances_node_or_by_the_guard() {
    let others = seen(of_a_stranger(), bare());
    assert_vetoed("another's", &begun(), &others, &tag_node(), Veto::OtherInstance);
    let found = Found {
        tag: Some(tag()),
        ..found()
    };
    let guards = Story::new(guarded(), limits(), found).case();
    assert_eq!(guards.found.tag.as_ref().map(|tag| &tag.name), Some(&tag_name()));
    for action in [tag_node(), untag_node()] {
        assert_vetoed("guard", &guards, &seen(in_use(), bare()), &action, Veto::NotAsked);
    }
}
