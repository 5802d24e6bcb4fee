//! Rule 10: when Nova is asked for a server, and what follows from its word.

use ironic_client::Node;
use placement_client::ConsumerUuid;
use unprovision::core::{
    Action, CannotOpen, Case, Decision, Event, NovaAnswer, NovaSays, Observation, Owner, ProviderView,
    Server, TearDownRequest, Veto, WaitFor, check, decide, open, whom_to_ask,
};
use unprovision::strategy::by_name;
use uuid::Uuid;

use crate::build::{
    INSTANCE, NODE, ProviderExt, STRANGER, Story, at, guard, hand_over, in_use, instance, limits, provider,
    seen,
};
use crate::guard_rules::{leaving, word};
use crate::vetoes::free;

/// One of Nova's own.
fn novas(view: ProviderView) -> ProviderView {
    view.with_traits(&["OWNER_NOVA"])
}

fn there(status: &str, task: Option<&str>, on: Option<Uuid>) -> NovaAnswer {
    NovaAnswer::Server(Server {
        status: status.to_owned(),
        task: task.map(str::to_owned),
        host: on.map(|on| on.to_string()),
    })
}

fn said(seen: Observation, answer: NovaAnswer) -> Observation {
    let server = INSTANCE;
    Observation {
        nova: Some(NovaSays { server, answer }),
        ..seen
    }
}

/// All that Nova may say, by name.
fn answers() -> [(&'static str, NovaAnswer); 9] {
    let here = Some(NODE.0);
    [
        ("active", there("ACTIVE", None, here)),
        ("deleting", there("ACTIVE", Some("deleting"), here)),
        ("soft-deleted", there("SOFT_DELETED", None, here)),
        ("error", there("ERROR", None, here)),
        ("elsewhere", there("ACTIVE", None, Some(STRANGER))),
        ("nowhere", there("SHELVED_OFFLOADED", None, None)),
        ("gone", NovaAnswer::NoServer),
        ("silent", NovaAnswer::Silent("HTTP 502".to_owned())),
        ("unreadable", NovaAnswer::Unreadable),
    ]
}

/// What is decided, in a word; a wait for a person is another one than a wait.
fn decided(case: &Case, seen: &Observation, now: i64) -> &'static str {
    let decision = decide(by_name("hand-over").unwrap(), case, seen, at(now));
    match &decision {
        Decision::Wait(wait) if matches!(wait.for_what, WaitFor::Person(_)) => "person",
        other => word(other),
    }
}

fn words(case: &Case, seen: &Observation, now: i64) -> String {
    match decide(by_name("hand-over").unwrap(), case, seen, at(now)) {
        Decision::Wait(wait) => {
            assert!(
                wait.until > at(now) && wait.until <= at(now + 60),
                "Nova is asked again soon"
            );
            wait.for_what.to_string()
        }
        other => panic!("{other:?}"),
    }
}

/// Our hold on a node that is in use again by the instance that was leaving.
fn in_use_again() -> (Case, Observation) {
    let node = Node {
        provision_updated_at: Some(at(100)),
        ..in_use()
    };
    let view = novas(provider().held_by(guard()));
    (leaving().applied(1, hand_over()).case(), seen(node, view))
}

fn available(story: Story) -> Case {
    let saw = Event::Saw {
        provision_state: "available".into(),
        maintenance: false,
    };
    story.then(10, saw).case()
}

/// The node is free, and the server's allocation is still there, longer than Nova takes for that.
fn allocation_stays() -> (Case, Observation) {
    let case = available(leaving());
    (case, seen(free(), novas(provider().held_by(instance()))))
}

/// Our hold on a free node.
fn to_release() -> (Case, Observation) {
    let case = available(leaving().applied(1, hand_over()));
    (case, seen(free(), novas(provider().held_by(guard()))))
}

fn table(what: &str, (case, seen): (Case, Observation), expected: &[(&str, &str)]) {
    for (name, answer) in answers() {
        let wanted = expected.iter().find(|(of, _)| *of == name).unwrap().1;
        let said = said(seen.clone(), answer);
        assert_eq!(decided(&case, &said, 300), wanted, "{what}: {name}");
        let decision = decide(by_name("hand-over").unwrap(), &case, &said, at(300));
        assert_eq!(
            whom_to_ask(&case, &said, &decision, true),
            None,
            "{what}, {name}: asked twice"
        );
    }
}

#[test]
fn a_unit_goes_back_only_to_a_server_that_is_there() {
    table(
        "in use again",
        in_use_again(),
        &[
            ("active", "hand back"),
            ("deleting", "wait"),
            ("soft-deleted", "hand back"),
            ("error", "hand back"),
            ("elsewhere", "person"),
            ("nowhere", "person"),
            ("gone", "person"),
            ("silent", "wait"),
            ("unreadable", "hand back"),
        ],
    );
    let (case, seen) = in_use_again();
    let told = words(&case, &said(seen, NovaAnswer::NoServer), 300);
    for part in [
        "Nova does not know server",
        "openstack baremetal node undeploy",
        "stays with us",
    ] {
        assert!(told.contains(part), "`{part}` in {told}");
    }
}

#[test]
fn a_free_node_whose_server_keeps_its_allocation_is_told_by_what_nova_knows() {
    table(
        "the allocation stays",
        allocation_stays(),
        &[
            ("active", "person"),
            ("deleting", "wait"),
            ("soft-deleted", "wait"),
            ("error", "person"),
            ("elsewhere", "person"),
            ("nowhere", "person"),
            ("gone", "closed"),
            ("silent", "wait"),
            ("unreadable", "closed"),
        ],
    );
    let (case, seen) = allocation_stays();
    let of = |answer| words(&case, &said(seen.clone(), answer), 300);
    let lives = of(there("ACTIVE", None, Some(NODE.0)));
    assert!(
        lives.contains("behind Nova's back") && lives.contains("openstack server delete"),
        "{lives}"
    );
    // To delete the whole allocation would take the other node from the server.
    let moved = of(there("ACTIVE", None, Some(STRANGER)));
    assert!(moved.contains(&format!("unset --provider {NODE}")), "{moved}");
    assert!(
        moved.contains(&format!("is on {STRANGER}")) && !moved.contains("allocation delete"),
        "{moved}"
    );
}

#[test]
fn nothing_is_released_while_a_server_is_there() {
    table(
        "to be released",
        to_release(),
        &[
            ("active", "person"),
            ("deleting", "release"),
            ("soft-deleted", "release"),
            ("error", "release"),
            ("elsewhere", "release"),
            ("nowhere", "release"),
            ("gone", "release"),
            ("silent", "wait"),
            ("unreadable", "release"),
        ],
    );
}

/// An ordinary delete raises no doubt; where there is some, Nova is asked once, if the provider is its.
#[test]
fn nova_is_asked_where_there_is_doubt_and_nowhere_else() {
    let ask = |(case, seen): &(Case, Observation), always| {
        let decision = decide(by_name("hand-over").unwrap(), case, seen, at(300));
        whom_to_ask(case, seen, &decision, always)
    };
    for (what, scene, on_doubt) in [
        ("in use again", in_use_again(), Some(INSTANCE)),
        ("the allocation stays", allocation_stays(), Some(INSTANCE)),
        ("to be released", to_release(), None),
    ] {
        assert_eq!(ask(&scene, false), on_doubt, "{what}");
        assert_eq!(ask(&scene, true), Some(INSTANCE), "{what}");
        let (case, mut seen) = scene;
        seen.provider.as_mut().unwrap().traits = None;
        assert_eq!(ask(&(case, seen), true), None, "{what}: another scheduler's");
    }
    let cleaning = Node {
        provision_state: "cleaning".into(),
        ..free()
    };
    let on_its_way = (to_release().0, seen(cleaning, novas(provider().held_by(guard()))));
    assert_eq!(ask(&on_its_way, true), None);
}

/// The veto needs no rule to be right: a hand-back or a release against Nova's word is not sent.
#[test]
fn what_nova_contradicts_is_vetoed() {
    let (case, seen) = in_use_again();
    let view = seen.provider.as_ref().unwrap();
    let back = Action::hand_back(&case, view).unwrap();
    for (name, answer) in answers() {
        let against = ["deleting", "elsewhere", "nowhere", "gone"].contains(&name);
        let expected = if against { Err(Veto::Nova) } else { Ok(()) };
        assert_eq!(
            check(&case, &said(seen.clone(), answer), &back),
            expected,
            "{name}"
        );
    }
    let (case, seen) = to_release();
    let view = seen.provider.as_ref().unwrap();
    let lifts = Action::release(&case, view, Owner::Guard).unwrap();
    for (name, answer) in answers() {
        let expected = if name == "active" { Err(Veto::Nova) } else { Ok(()) };
        assert_eq!(
            check(&case, &said(seen.clone(), answer), &lifts),
            expected,
            "{name}"
        );
    }
    // Of another server it is no word on this one.
    let other = Observation {
        nova: Some(NovaSays {
            server: STRANGER,
            answer: there("ACTIVE", None, Some(NODE.0)),
        }),
        ..seen.clone()
    };
    assert_eq!(check(&case, &other, &lifts), Ok(()));
    assert_eq!(decided(&case, &other, 300), "release");
}

/// Rule 4: Nova's own word is as good as the caller's.
#[test]
fn a_tear_down_may_begin_where_nova_lets_go() {
    let request = TearDownRequest {
        node: NODE,
        instance: INSTANCE,
        strategy: "hand-over".to_owned(),
        tag: None,
        limits: limits(),
        nova_record_remains: false,
    };
    let seen = seen(in_use(), novas(provider().held_by(ConsumerUuid(INSTANCE))));
    for (name, answer) in answers() {
        let opened = open(&request, &said(seen.clone(), answer), at(200));
        if ["deleting", "gone"].contains(&name) {
            assert!(opened.is_ok(), "{name}: {opened:?}");
        } else {
            let refused = opened.unwrap_err();
            assert!(
                matches!(refused, CannotOpen::NovaManages { .. }),
                "{name}: {refused}"
            );
            assert!(refused.to_string().contains("(Nova"), "{name}: {refused}");
        }
    }
}
