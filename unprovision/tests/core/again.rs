//! What a case may send again, and what its journal tells of that.

use ironic_client::{Node, ProvisionState};
use jiff::Timestamp;
use unprovision::core::{
    Action, ActionKind, Case, Decision, Event, Found, Kind, Limits, Owner, ProviderView, RefusalKind, Tag,
    decide,
};
use unprovision::strategy::WaitForAvailable;

use crate::build::{
    INSTANCE, ProviderExt, Story, at, class, found, guard, hand_over, in_use, instance, limits, node,
    provider, seen, tag, tag_node, tag_provider, tagged, unprovision, untag_node, untag_provider,
};

fn manage(since: impl Into<Option<Timestamp>>) -> Action {
    Action::Manage { since: since.into() }
}

fn provide(since: i64) -> Action {
    Action::Provide {
        since: Some(at(since)),
    }
}

fn release(whose: Owner) -> Action {
    let held = provider().held_by(instance()).held_by(guard());
    Action::release(&Story::tear_down().case(), &held, whose).unwrap()
}

fn hand_back() -> Action {
    Action::hand_back(&Story::tear_down().case(), &provider().held_by(guard())).unwrap()
}

fn allowing(retry_error: u32, reclean: u32) -> Limits {
    Limits {
        retry_error,
        reclean,
        ..limits()
    }
}

/// A replica may lag behind an accepted write for a minute.
#[test]
fn a_state_from_before_an_accepted_write_is_old_for_a_minute() {
    let since = |seconds: i64| Node {
        provision_updated_at: Some(at(seconds)),
        ..node(ProvisionState::CleanFailed)
    };
    let accepted = Story::tear_down().applied(100, manage(at(50)));
    let refused = Story::tear_down().refused(100, manage(at(50)), RefusalKind::Locked);
    let lost = Story::tear_down().unknown(100, manage(at(50)));
    let nowhen = Story::tear_down().applied(100, manage(None));
    for (what, story, node, now, expected) in [
        ("the very state", &accepted, since(50), 101, true),
        ("an earlier one", &accepted, since(49), 101, true),
        ("a later one", &accepted, since(51), 101, false),
        ("just before a minute is over", &accepted, since(50), 159, true),
        ("after a minute", &accepted, since(50), 160, false),
        ("long after", &accepted, since(50), 1000, false),
        ("it was refused", &refused, since(50), 101, false),
        ("nobody knows", &lost, since(50), 101, false),
        (
            "decided from a node without a time",
            &nowhen,
            since(50),
            101,
            false,
        ),
        ("nothing was sent", &Story::tear_down(), since(50), 101, false),
    ] {
        assert_eq!(story.case().has_moved_on(&node, at(now)), expected, "{what}");
    }
}

/// The first tear-down is no repetition, the first new cleaning is one.
#[test]
fn limits_count_from_where_they_were_given_last() {
    let repeated = |limits| {
        let again = Node {
            provision_updated_at: Some(at(50)),
            ..node(ProvisionState::Error)
        };
        Story::new(Kind::TearDown { instance: INSTANCE }, limits, found())
            .torn_down()
            .applied(60, unprovision(&again))
            .applied(70, provide(65))
    };
    let left = |case: Case| (case.remaining().retry_error, case.remaining().reclean);
    assert_eq!(left(Story::tear_down().torn_down().case()), (0, 0));
    assert_eq!(left(repeated(allowing(3, 4)).case()), (2, 3));
    assert_eq!(left(repeated(allowing(0, 0)).case()), (0, 0));
    let resumed = repeated(allowing(1, 1)).then(
        80,
        Event::Resumed {
            limits: allowing(5, 6),
        },
    );
    let case = resumed.case();
    assert_eq!((case.limits.retry_error, case.limits.reclean), (6, 7));
    assert_eq!(left(case), (5, 6));
}

#[test]
fn the_instance_is_off_its_unit_from_the_write_that_took_it_until_it_is_handed_back() {
    let claim = Action::hand_over(&Story::tear_down().case(), &provider(), &class()).unwrap();
    let story = Story::tear_down;
    let handed = || story().applied(5, hand_over());
    let opened = || story().entries.remove(0).event;
    for (what, story, expected) in [
        ("nothing was sent", story(), None),
        ("handed over", handed(), Some(5)),
        ("perhaps handed over", story().unknown(5, hand_over()), Some(5)),
        ("claimed from nobody", story().applied(5, claim), None),
        ("released", story().applied(5, release(Owner::Instance)), Some(5)),
        (
            "our own released",
            story().applied(5, release(Owner::Guard)),
            None,
        ),
        ("handed back", handed().applied(6, hand_back()), None),
        (
            "not handed back",
            handed().refused(6, hand_back(), RefusalKind::Conflict),
            Some(5),
        ),
        ("asked for again", handed().then(50, opened()), Some(50)),
        (
            "asked for again, and never freed",
            story().then(50, opened()),
            None,
        ),
    ] {
        assert_eq!(story.case().freed_at, expected.map(at), "{what}");
    }
}

#[test]
fn a_tag_that_is_set_again_may_be_left_again() {
    let untagged = || Story::tagging().tagged().applied(2, untag_node());
    let both = || untagged().applied(3, untag_provider());
    for (what, story, expected) in [
        ("both gone", both(), false),
        ("the node's again", both().applied(4, tag_node()), true),
        ("the provider's again", both().applied(4, tag_provider()), true),
        (
            "refused",
            both().refused(4, tag_node(), RefusalKind::Locked),
            false,
        ),
        (
            "only ever the node's, and gone",
            Story::tagging().applied(1, tag_node()).applied(2, untag_node()),
            false,
        ),
        ("perhaps the node's again", both().unknown(4, tag_node()), true),
    ] {
        assert_eq!(story.case().may_hold(), expected, "{what}");
    }
}

/// What was there before is not ours, also where it has been set again; what Nova copied from the node is.
#[test]
fn a_tag_is_taken_away_only_where_it_may_be_ours() {
    let finding = |on_node, on_provider| {
        let tag = Some(Tag {
            on_node,
            on_provider,
            ..tag()
        });
        let found = Found { tag, ..found() };
        Story::new(Kind::TearDown { instance: INSTANCE }, limits(), found)
    };
    let both = |story: Story| story.applied(1, tag_node()).applied(1, tag_provider());
    let untagged = |story: &Story| {
        let free = node(ProvisionState::Available);
        let view = provider().tagged();
        let first = Action::untag(&story.case(), &tagged(free.clone()), Some(&view));
        let then = story.clone().applied(2, untag_node()).case();
        let second = Action::untag(&then, &free, Some(&view));
        [first, second].map(|write| write.map(|write| write.kind()))
    };
    let (node, provider) = (
        Some(ActionKind::RemoveNodeTrait),
        Some(ActionKind::RemoveProviderTrait),
    );
    #[rustfmt::skip]
    let rows = [
        ("set on both", both(finding(false, false)), [node, provider]),
        ("set on the node", finding(false, false).applied(1, tag_node()), [node, provider]),
        ("set on the provider", finding(false, false).applied(1, tag_provider()), [provider, provider]),
        ("never set", finding(false, false), [None, None]),
        ("there on both, and set again", both(finding(true, true)), [None, None]),
        ("there on the node, and set again", both(finding(true, false)), [provider, provider]),
        ("there on the provider, and set again", both(finding(false, true)), [node, None]),
    ];
    for (what, story, expected) in rows {
        assert_eq!(untagged(&story), expected, "{what}");
    }
}

#[test]
fn a_case_that_ends_is_held_by_a_tag_of_its_own_only() {
    let late = limits().deadline;
    let held = |story: &Story, node: Node, view: ProviderView| {
        let seen = seen(node, view.held_by(instance()));
        match decide(&WaitForAvailable, &story.case(), &seen, late) {
            Decision::End(ending) => ending.held,
            other => panic!("{other:?}"),
        }
    };
    let (none, node, provider_too) = (
        Story::tagging(),
        Story::tagging().applied(1, tag_node()),
        Story::tagging().tagged(),
    );
    let alone = Story::tagging().applied(1, tag_provider());
    let (bare, marked) = (|| provider().with_traits(&[]), || provider().tagged());
    #[rustfmt::skip]
    let rows = [
        ("on the node", &node, tagged(in_use()), bare(), true),
        ("on the provider", &alone, in_use(), marked(), true),
        ("a copy on the provider", &node, in_use(), marked(), true),
        ("on both", &provider_too, tagged(in_use()), marked(), true),
        ("on neither any more", &provider_too, in_use(), bare(), false),
        ("on both, and not ours", &none, tagged(in_use()), marked(), false),
        ("on the node, and not ours", &alone, tagged(in_use()), bare(), false),
    ];
    for (what, story, node, view, expected) in rows {
        assert_eq!(held(story, node, view), expected, "{what}");
    }
}
