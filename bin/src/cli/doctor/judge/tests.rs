use ironic_client::Right as InIronic;
use jiff::Timestamp;
use placement_client::Right as InPlacement;
use unprovision::servers::ServersError;
use unprovision_session::{Microversion, Standing, VersionRange};

use super::super::advice::advise;
use super::super::facts::{BrokerState, JournalFound, JournalState};
use super::super::fleet::{Cleaning, Fleet, Provider};
use super::*;

fn side(service: Service, scope: TokenScope) -> Side {
    let v = |minor| Microversion::new(1, minor);
    Side {
        standing: Some(Standing {
            user: "admin".to_owned(),
            scope,
            roles: ["admin".to_owned()].into(),
        }),
        endpoint: Some("http://here/".to_owned()),
        versions: Some(VersionRange {
            min: v(0),
            max: v(115),
        }),
        spoken: Some(v(39)),
        ahead: Some(SignedDuration::ZERO),
        ..Side::new(service)
    }
}

/// A cloud with an old Nova, and nothing that is wrong.
fn good() -> Facts {
    let provider = Provider {
        novas: true,
        reserved: false,
        in_use: true,
        held: true,
    };
    Facts {
        ironic: side(Service::Ironic, TokenScope::System),
        placement: side(Service::Placement, TokenScope::Project("admin".to_owned())),
        in_ironic: [InIronic::ChangeStates, InIronic::SetTraits]
            .map(|right| (right, Tried::Allowed))
            .to_vec(),
        in_placement: [
            InPlacement::WriteAllocations,
            InPlacement::WriteInventories,
            InPlacement::WriteTraits,
        ]
        .map(|right| (right, Tried::Allowed))
        .to_vec(),
        fleet: Fleet {
            nodes: Some(Ok(4)),
            in_use: 2,
            providers: Some(Ok(4)),
            paired: 4,
            seen: vec![provider; 2],
            cleaning: Cleaning {
                asked: 4,
                ..Cleaning::default()
            },
            conductors: Some((2, 2)),
            ..Fleet::default()
        },
        broker: BrokerState::None,
        servers: Some(Ok(())),
        nova_required: false,
        journal: JournalState {
            place: "/j".to_owned(),
            found: JournalFound::Absent(Ok(())),
        },
        strategy: "hand-over".to_owned(),
    }
}

fn with(change: impl FnOnce(&mut Facts)) -> Facts {
    let mut facts = good();
    change(&mut facts);
    facts
}

/// What there is to say that is not as it should be.
fn told(facts: &Facts) -> Vec<(&'static str, Verdict, String)> {
    let mut checks = judge(facts);
    checks.retain(|check| check.verdict != Verdict::Fits && check.about != "broker");
    let all = checks.into_iter();
    all.map(|check| {
        let told = format!("{} -> {}", check.says, check.advice.unwrap_or_default());
        (check.about, check.verdict, told)
    })
    .collect()
}

/// This is told, and nothing else is.
fn assert_told(facts: &Facts, about: &str, verdict: Verdict, words: &str) {
    let all = told(facts);
    assert!(
        all.iter()
            .any(|(what, how, said)| *what == about && *how == verdict && said.contains(words)),
        "{about} {verdict:?} `{words}` in {all:#?}"
    );
}

fn forbidden() -> Tried {
    Tried::Forbidden("policy x [req-1]".to_owned())
}

#[test]
fn a_good_cloud_has_a_strategy_and_commands() {
    let facts = with(|facts| facts.fleet.seen.iter_mut().for_each(|one| one.reserved = true));
    assert_eq!(told(&facts), []);
    let advice = advise(&facts, &judge(&facts));
    assert_eq!(advice.strategy, Some("hand-over"));
    assert!(
        advice
            .commands
            .contains(&"unprovision guard --dry-run".to_owned()),
        "{advice:?}"
    );
}

#[test]
fn what_nova_does_decides_how_to_begin() {
    let old = advise(&good(), &judge(&good()));
    assert!(old.why.contains("takes a reservation back"), "{old:?}");
    let alone = with(|facts| {
        for one in &mut facts.fleet.seen {
            (one.novas, one.held) = (false, false);
        }
        facts.strategy = "trait-tagging".to_owned();
    });
    let advice = advise(&alone, &judge(&alone));
    assert_eq!(
        advice.commands,
        [
            "unprovision audit",
            "unprovision delete NODE --strategy hand-over"
        ]
    );
    assert!(advice.why.contains("Configured is trait-tagging"), "{advice:?}");
}

#[test]
fn a_missing_right_is_as_bad_as_what_it_is_needed_for() {
    let without = |ironic: usize| with(|facts| facts.in_ironic[ironic].1 = forbidden());
    assert_told(&without(0), "ironic", Verdict::Note, "`guard` does without it");
    assert_told(
        &without(1),
        "ironic",
        Verdict::Note,
        "only trait-tagging needs it",
    );
    let tags = with(|facts| {
        facts.in_ironic[1].1 = forbidden();
        facts.strategy = "trait-tagging".to_owned();
    });
    assert_told(
        &tags,
        "ironic",
        Verdict::Broken,
        "may NOT set traits of nodes: policy x [req-1]",
    );
    let held = with(|facts| facts.in_placement[0].1 = forbidden());
    assert_told(&held, "placement", Verdict::Broken, "nothing works without it");
    assert_eq!(advise(&held, &judge(&held)).strategy, None);
    let scope = with(|facts| {
        facts.placement = side(Service::Placement, TokenScope::System);
        facts.in_placement[0].1 = forbidden();
    });
    assert_told(&scope, "placement", Verdict::Broken, "set `placement.cloud`");
    let unclear = with(|facts| facts.in_ironic[0].1 = Tried::Unclear("no node".to_owned()));
    assert_told(
        &unclear,
        "ironic",
        Verdict::Unknown,
        "could not be tried: no node",
    );
    assert_eq!(
        advise(&unclear, &judge(&unclear)).strategy,
        Some("hand-over"),
        "what is not known does not forbid"
    );
}

#[test]
fn each_step_of_the_way_has_its_remedy() {
    for (step, words) in [
        (Step::Configuration, "`unprovision config`"),
        (Step::Login, "correct auth_url"),
        (Step::Endpoint, "`ironic.region`"),
        (Step::Answer, "is up"),
        (Step::Version, "too old"),
    ] {
        let facts = with(|facts| {
            facts.ironic.trouble = Some((step, "no".to_owned()));
            (facts.ironic.versions, facts.ironic.spoken) = (None, None);
        });
        assert_told(&facts, "ironic", Verdict::Broken, words);
        assert_eq!(advise(&facts, &judge(&facts)).strategy, None, "{step:?}");
    }
    let alone = with(|facts| facts.placement.trouble = Some((Step::Configuration, "no".to_owned())));
    assert_told(&alone, "placement", Verdict::Broken, "Ironic without Placement");
    assert_eq!(
        advise(&alone, &judge(&alone)).commands,
        ["openstack baremetal node undeploy NODE"]
    );
    for step in [Step::Login, Step::Answer, Step::Version] {
        let away = with(|facts| facts.placement.trouble = Some((step, "no".to_owned())));
        assert_eq!(
            advise(&away, &judge(&away)).commands,
            ["unprovision doctor"],
            "{step:?}"
        );
    }
}

#[test]
fn a_placement_that_cannot_reserve_is_too_old() {
    let facts = with(|facts| {
        let range = facts.placement.versions.as_mut().unwrap();
        range.max = Microversion::new(1, 25);
    });
    assert_told(
        &facts,
        "versions",
        Verdict::Broken,
        "reserve-on-delete lacks inventories that are reserved as a whole (API 1.26), generations of consumers (API 1.28)",
    );
    assert_eq!(advise(&facts, &judge(&facts)).strategy, None);
}

#[test]
fn what_the_lists_show_is_told() {
    type Change = fn(&mut Fleet);
    let cases: [(Change, &str, Verdict, &str); 9] = [
        (
            |f| f.nodes = Some(Ok(0)),
            "nodes",
            Verdict::Broken,
            "`system_scope: all`",
        ),
        (
            |f| f.nodes = Some(Err("403".into())),
            "nodes",
            Verdict::Broken,
            "reader",
        ),
        (
            |f| f.without_class = 1,
            "nodes",
            Verdict::Note,
            "--resource-class",
        ),
        (|f| f.paired = 3, "providers", Verdict::Note, "3 of 4"),
        (|f| f.paired = 0, "providers", Verdict::Broken, "provider create"),
        (|f| f.orphans = 9, "providers", Verdict::Broken, "hides nodes"),
        (
            |f| f.providers = Some(Err("403".into())),
            "providers",
            Verdict::Broken,
            "list providers",
        ),
        (
            |f| f.cleaning.off = 1,
            "cleaning",
            Verdict::Note,
            "1 of 4 nodes are not cleaned",
        ),
        (
            |f| f.conductors = Some((2, 1)),
            "conductors",
            Verdict::Note,
            "1 of 2",
        ),
    ];
    for (change, about, verdict, words) in cases {
        assert_told(&with(|facts| change(&mut facts.fleet)), about, verdict, words);
    }
}

#[test]
fn scopes_clocks_and_the_journal_are_told() {
    let project = || TokenScope::Project("p".to_owned());
    let own = with(|facts| facts.ironic = side(Service::Ironic, project()));
    assert_told(&own, "scope", Verdict::Note, "only the nodes that it owns");
    let none = with(|facts| facts.placement = side(Service::Placement, TokenScope::Nothing));
    assert_told(&none, "scope", Verdict::Broken, "no scope");
    let skewed = with(|facts| facts.ironic.ahead = Some(SignedDuration::from_secs(-90)));
    assert_told(&skewed, "clock", Verdict::Note, "90 s behind ours");

    let opened = |elsewhere: &[&str], lately| JournalFound::Opened {
        cases: 3,
        open: 1,
        elsewhere: elsewhere.iter().map(|cloud| (*cloud).to_owned()).collect(),
        lately,
    };
    for (found, verdict, words) in [
        (JournalFound::InMemory, Verdict::Note, "set `journal` to a file"),
        (
            JournalFound::Absent(Err("read-only".to_owned())),
            Verdict::Broken,
            "read-only",
        ),
        (JournalFound::Broken("newer".to_owned()), Verdict::Broken, "newer"),
        (
            opened(&["http://there"], None),
            Verdict::Broken,
            "another cloud: http://there",
        ),
        (
            opened(&[], Some(Timestamp::UNIX_EPOCH)),
            Verdict::Note,
            "somebody works on them",
        ),
    ] {
        assert_told(
            &with(|facts| facts.journal.found = found),
            "journal",
            verdict,
            words,
        );
    }
    assert_eq!(
        told(&with(|facts| facts.journal.found = opened(&[], None))).len(),
        1,
        "only what Nova does"
    );
}

#[test]
fn a_broker_is_told_as_it_is_and_is_no_need() {
    for (state, verdict, words) in [
        (
            BrokerState::None,
            Verdict::Note,
            "the guard works, and finds nodes by looking",
        ),
        (
            BrokerState::Reached("RabbitMQ at amqp://r".to_owned()),
            Verdict::Fits,
            "RabbitMQ at amqp://r lets us in",
        ),
        (
            BrokerState::Trouble("it cannot be reached".to_owned()),
            Verdict::Note,
            "would hear nothing of it: it cannot be reached",
        ),
    ] {
        let facts = Facts {
            broker: state,
            ..good()
        };
        let checks = judge(&facts);
        let broker = checks.iter().find(|check| check.about == "broker").unwrap();
        assert_eq!(broker.verdict, verdict);
        assert!(broker.says.contains(words), "{}", broker.says);
    }
}

#[test]
fn a_nova_that_cannot_be_asked_is_a_note_unless_it_is_required() {
    let unreadable = || Some(Err(ServersError::Unreadable("HTTP 403".to_owned())));
    let note = with(|facts| facts.servers = unreadable());
    assert_told(&note, "servers", Verdict::Note, "HTTP 403");
    assert_told(
        &note,
        "servers",
        Verdict::Note,
        "not checked: whether a server is there",
    );
    let required = with(|facts| {
        facts.servers = unreadable();
        facts.nova_required = true;
    });
    assert_told(&required, "servers", Verdict::Broken, "`nova.cloud`");
    let away = with(|facts| facts.servers = Some(Err(ServersError::Away("HTTP 502".to_owned()))));
    assert_told(&away, "servers", Verdict::Unknown, "HTTP 502");
    assert_told(
        &with(|facts| facts.servers = None),
        "servers",
        Verdict::Note,
        "is not asked",
    );
    let good = judge(&good());
    let good = good.iter().find(|check| check.about == "servers").unwrap();
    assert_eq!(good.verdict, Verdict::Fits, "{}", good.says);
    let without = with(|facts| {
        facts.servers = None;
        facts.fleet.seen.clear();
    });
    assert!(
        judge(&without).iter().all(|check| check.about != "servers"),
        "no Nova"
    );
}
