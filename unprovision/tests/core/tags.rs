//! What may begin with a strategy that tags, and what a tag does to the common rules.

use ironic_client::{Node, ProvisionState};
use placement_client::{ConsumerUuid, TraitName};
use unprovision::core::{
    Action, CannotOpen, Decision, Event, NotATag, Outcome, RefusalKind, Tag, TearDownRequest, decide, open,
    tag_name as parse,
};
use unprovision::strategy::{self, TraitTagging, by_name};

use crate::build::{
    INSTANCE, NODE, ProviderExt, STRANGER, Story, at, in_use, instance, limits, node, provider, seen, tag,
    tag_name, tag_node, tag_provider, tagged, unprovision, untag_node,
};

fn request(strategy: &str, tag: Option<TraitName>) -> TearDownRequest {
    TearDownRequest {
        node: NODE,
        instance: INSTANCE,
        strategy: strategy.to_owned(),
        tag,
        limits: limits(),
        nova_record_remains: true,
    }
}

/// What is found of the tag of this name.
fn opened(tag: Option<&str>, node: Node, traits: &[&str]) -> Result<Option<Tag>, CannotOpen> {
    let request = request("trait-tagging", tag.map(|name| name.parse().unwrap()));
    let view = provider().held_by(instance()).with_traits(traits);
    let entry = open(&request, &seen(node, view), at(0))?;
    match entry.event {
        Event::Opened { found, .. } => Ok(found.tag),
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_tag_and_where_it_was_before_are_recorded() {
    let plain = ["CUSTOM_RACK_7"];
    let both = ["CUSTOM_RACK_7", tag_name().as_str()].map(str::to_owned);
    let both = both.each_ref().map(String::as_str);
    assert_eq!(opened(None, in_use(), &plain).unwrap(), Some(tag()));
    let there = Tag {
        on_node: true,
        on_provider: true,
        ..tag()
    };
    assert_eq!(opened(None, tagged(in_use()), &both).unwrap(), Some(there));
    let own = Tag {
        name: "CUSTOM_DIRTY".parse().unwrap(),
        ..tag()
    };
    assert_eq!(opened(Some("CUSTOM_DIRTY"), in_use(), &plain).unwrap(), Some(own));
    for strategy in strategy::ALL.iter().filter(|strategy| !strategy.uses_tag()) {
        let view = provider().held_by(instance()).with_traits(&plain);
        let entry = open(&request(strategy.name(), None), &seen(in_use(), view), at(0)).unwrap();
        assert!(
            matches!(&entry.event, Event::Opened { found, .. } if found.tag.is_none()),
            "{}",
            strategy.name()
        );
    }
}

#[test]
fn only_custom_traits_can_be_the_tag() {
    assert!(parse("CUSTOM_DIRTY").is_ok());
    assert!(matches!(parse("COMPUTE_STATUS_DISABLED"), Err(NotATag::Novas(_))));
    assert!(matches!(parse("HW_CPU_X86_VMX"), Err(NotATag::Standard(_))));
    assert!(matches!(parse("custom_dirty"), Err(NotATag::Name(_))));
    assert!(matches!(parse(""), Err(NotATag::Name(_))));
    let refused = opened(Some("COMPUTE_STATUS_DISABLED"), in_use(), &[]).unwrap_err();
    assert!(refused.to_string().contains("Nova's own"), "{refused}");
}

/// Ironic allows 50.
#[test]
fn a_node_that_can_take_no_more_traits_is_refused() {
    let full = |n: usize| Node {
        traits: (0..n).map(|i| format!("CUSTOM_{i}")).collect(),
        ..in_use()
    };
    assert!(opened(None, full(49), &[]).is_ok());
    let refused = opened(None, full(50), &[]).unwrap_err();
    assert!(
        matches!(&refused, CannotOpen::TooManyTraits { tag, .. } if *tag == tag_name()),
        "{refused}"
    );
    assert!(
        opened(None, tagged(full(49)), &[]).is_ok(),
        "one of them is the tag"
    );
}

#[test]
fn what_nobody_holds_cannot_wait_for_available() {
    let request = request("wait-for-available", None);
    let begin = |view| open(&request, &seen(in_use(), view), at(0));
    assert!(begin(provider().held_by(instance())).is_ok());
    let refused = begin(provider()).unwrap_err();
    assert!(matches!(refused, CannotOpen::Strategy { .. }), "{refused}");
}

#[test]
fn the_guard_is_told_which_strategies_cannot_guard() {
    for strategy in strategy::ALL {
        let fit = matches!(strategy.name(), "hand-over" | "reserve-on-delete");
        assert_eq!(strategy.guards().is_ok(), fit, "{}", strategy.name());
    }
}

/// Refused for good: the tag goes, the node's first, and nothing is left.
#[test]
fn what_is_refused_is_untagged() {
    let mut story = Story::tagging().tagged();
    for second in 1..=3 {
        story = story.refused(second, unprovision(&in_use()), RefusalKind::Illegal);
    }
    let on = |story: &Story, node, view| decide(&TraitTagging, &story.case(), &seen(node, view), at(200));
    let held = || provider().held_by(instance());
    let node = on(&story, tagged(in_use()), held().tagged());
    assert!(
        matches!(node, Decision::Act(Action::RemoveNodeTrait { .. })),
        "{node:?}"
    );
    story = story.applied(4, untag_node());
    let placement = on(&story, in_use(), held().tagged());
    assert!(
        matches!(placement, Decision::Act(Action::RemoveProviderTrait { .. })),
        "{placement:?}"
    );
    match on(&story, in_use(), held().with_traits(&["CUSTOM_RACK_7"])) {
        Decision::End(ending) => assert_eq!((ending.outcome, ending.held), (Outcome::Blocked, false)),
        other => panic!("{other:?}"),
    }
}

/// The provider cannot be tagged, and the node is: that is undone, and nothing is torn down.
#[test]
fn a_provider_that_cannot_be_tagged_leaves_no_tag_on_the_node() {
    let story = Story::tagging().applied(0, tag_node());
    let refused = story.refused(1, tag_provider(), RefusalKind::Forbidden);
    let view = || provider().held_by(instance()).with_traits(&["CUSTOM_RACK_7"]);
    let on = |story: &Story, node| decide(&TraitTagging, &story.case(), &seen(node, view()), at(200));
    let first = on(&refused, tagged(in_use()));
    assert!(
        matches!(first, Decision::Act(Action::RemoveNodeTrait { .. })),
        "{first:?}"
    );
    // Nor may the node be untagged: then a person has to.
    let stuck = refused.refused(2, untag_node(), RefusalKind::Forbidden);
    match on(&stuck, tagged(in_use())) {
        Decision::End(ending) => assert_eq!((ending.outcome, ending.held), (Outcome::Blocked, true)),
        other => panic!("{other:?}"),
    }
}

/// Nothing else is begun where the hold cannot be put in place.
#[test]
fn no_node_is_tagged_or_torn_down_where_its_provider_cannot_be_tagged() {
    let view = || provider().held_by(instance()).with_traits(&["CUSTOM_RACK_7"]);
    let refused = Story::tagging().refused(1, tag_provider(), RefusalKind::Forbidden);
    for (story, words) in [
        (refused, "refused for good"),
        (Story::tear_down(), "begun without a tag"),
    ] {
        match decide(&TraitTagging, &story.case(), &seen(in_use(), view()), at(200)) {
            Decision::End(ending) => {
                assert_eq!((ending.outcome, ending.held), (Outcome::Blocked, false));
                assert!(ending.reason.contains(words), "{}", ending.reason);
            }
            other => panic!("{other:?}"),
        }
    }
}

/// The next tenant has come by a query that does not forbid the tag: the tag must not outlast the case.
#[test]
fn the_tag_is_taken_from_the_next_tenants_node_while_that_holds_it() {
    let story = Story::tagging().tagged().torn_down();
    let next = Node {
        instance_uuid: Some(STRANGER),
        ..node(ProvisionState::Active)
    };
    let held = provider().held_by(ConsumerUuid(STRANGER)).tagged();
    let on = |view| {
        decide(
            &TraitTagging,
            &story.case(),
            &seen(tagged(next.clone()), view),
            at(200),
        )
    };
    assert!(matches!(on(held), Decision::Act(Action::RemoveNodeTrait { .. })));
    match on(provider().tagged()) {
        Decision::End(ending) => assert!(ending.held, "{ending:?}"),
        other => panic!("{other:?}"),
    }
}

/// A lagging replica does not show the tag yet that we have just set: taking it away again does no harm where there is none.
#[test]
fn a_tag_that_was_set_is_taken_away_also_where_a_look_does_not_show_it() {
    let tagged_again = || Story::tagging().tagged().torn_down().applied(200, tag_node());
    let on = |story: Story| {
        let free = node(ProvisionState::Available);
        decide(
            &TraitTagging,
            &story.case(),
            &seen(free, provider().with_traits(&[])),
            at(300),
        )
    };
    let owed = on(tagged_again());
    assert!(
        matches!(owed, Decision::Act(Action::RemoveNodeTrait { .. })),
        "{owed:?}"
    );
    let in_doubt = on(tagged_again().unknown(210, untag_node()));
    assert!(
        matches!(in_doubt, Decision::Act(Action::RemoveNodeTrait { .. })),
        "{in_doubt:?}"
    );
    match on(tagged_again().applied(210, untag_node())) {
        Decision::End(ending) => assert_eq!((ending.outcome, ending.held), (Outcome::Returned, false)),
        other => panic!("{other:?}"),
    }
}

/// While a lock keeps the node from being tagged again, Placement is looked at as often as ever.
#[test]
fn a_lock_on_the_node_does_not_delay_the_look_at_the_provider() {
    let mut story = Story::tagging().tagged().torn_down();
    for second in 100..110 {
        story = story.refused(second, tag_node(), RefusalKind::Locked);
    }
    let cleaning = node(ProvisionState::Cleaning);
    let on = |view| {
        decide(
            &TraitTagging,
            &story.case(),
            &seen(cleaning.clone(), view),
            at(110),
        )
    };
    match on(provider().tagged()) {
        Decision::Wait(wait) => assert!(wait.until <= at(115), "{wait:?}"),
        other => panic!("{other:?}"),
    }
    let lost = on(provider().with_traits(&["CUSTOM_RACK_7"]));
    assert!(
        matches!(lost, Decision::Act(Action::AddProviderTrait { .. })),
        "{lost:?}"
    );
}

/// What Ironic refuses for good to put on the node does not end the case while the node is on its way.
#[test]
fn a_node_that_will_not_be_tagged_again_is_still_followed() {
    let mut story = Story::tagging().tagged().torn_down();
    for second in 100..103 {
        story = story.refused(second, tag_node(), RefusalKind::Other);
    }
    let cleaning = seen(node(ProvisionState::Cleaning), provider().tagged());
    let decision = decide(&TraitTagging, &story.case(), &cleaning, at(200));
    assert!(matches!(decision, Decision::Wait(_)), "{decision:?}");
}

/// Its instance's allocation is all that holds the node: whoever stops waiting has not let go of it.
#[test]
fn what_waits_for_available_is_held_by_the_instance() {
    let strategy = by_name("wait-for-available").unwrap();
    let story = Story::tear_down().torn_down();
    let late = limits().deadline;
    let view = provider().held_by(instance());
    match decide(
        strategy,
        &story.case(),
        &seen(node(ProvisionState::Cleaning), view),
        late,
    ) {
        Decision::End(ending) => assert_eq!((ending.outcome, ending.held), (Outcome::TimedOut, true)),
        other => panic!("{other:?}"),
    }
}
