//! The journal's format: what one version has written, the next must read.

use std::time::Duration;

use ironic_client::ProvisionState;
use placement_client::{ConsumerGeneration, ConsumerUuid};
use unprovision::core::{
    Action, Ending, Entry, Event, Found, Giver, Kind, Limits, Outcome, Owner, Refusal, RefusalKind,
    guard_owner,
};

use crate::build::{
    ELSEWHERE, Story, at, found, guard, hand_over, in_use, instance, limits, one_unit, process, reserve,
    tag_node, tag_provider, tenant, unprovision, untag_node, untag_provider,
};

/// One of each write.
fn every_action() -> Vec<Action> {
    let since = Some(at(1));
    let giver = |uuid: ConsumerUuid, generation| Giver {
        uuid,
        generation,
        owner: tenant(),
        rest: [(ELSEWHERE, one_unit())].into(),
    };
    let ours = Giver {
        owner: guard_owner(),
        rest: Default::default(),
        ..giver(guard(), ConsumerGeneration::At(1))
    };
    vec![
        unprovision(&in_use()),
        Action::Unprovision {
            carries: None,
            since: None,
            from: ProvisionState::Error,
        },
        Action::Abort {
            since,
            from: ProvisionState::DeployHold,
        },
        Action::Manage { since },
        Action::ClearMaintenance { since },
        Action::Provide { since },
        reserve(),
        hand_over(),
        Action::HandOver {
            receiver: guard(),
            generation: ConsumerGeneration::At(0),
            units: one_unit(),
            giver: None,
        },
        Action::HandBack {
            from: guard(),
            generation: ConsumerGeneration::At(1),
            units: one_unit(),
            to: giver(instance(), ConsumerGeneration::New),
        },
        Action::Release {
            whose: Owner::Guard,
            consumer: ours,
        },
        Action::Release {
            whose: Owner::Instance,
            consumer: giver(instance(), ConsumerGeneration::At(3)),
        },
    ]
}

fn every_event() -> Vec<Event> {
    let mut events = vec![
        Story::tear_down().entries.remove(0).event,
        Story::guard().entries.remove(0).event,
        Event::Saw {
            provision_state: ProvisionState::DeployWait,
            maintenance: true,
        },
        Event::Saw {
            provision_state: "moonwalking".into(),
            maintenance: false,
        },
        Event::Freed,
        Event::Applied,
        Event::Unknown {
            message: "timed out".to_owned(),
        },
        Event::Resumed { limits: limits() },
        refused(RefusalKind::Busy, Some(Duration::from_millis(1500))),
    ];
    events.extend(every_action().into_iter().map(|write| Event::Intended { write }));
    events.extend(every_refusal());
    events.extend(every_ending());
    events.push(of_an_unknown_instance());
    events.push(opened_in("https://keystone.example.org:5000/v3 (region north)"));
    // New ones go to the end, so that the lines of the version before are compared with themselves.
    events.push(Story::tagging().entries.remove(0).event);
    let tags = [tag_node(), untag_node(), tag_provider(), untag_provider()];
    events.extend(tags.map(|write| Event::Intended { write }));
    events.push(Event::Taken { by: process(1) });
    events
}

/// The guard knows neither the instance nor an end.
fn of_an_unknown_instance() -> Event {
    let kind = Kind::Guard {
        instance: None,
        since: Some(at(1)),
    };
    let limits = Limits {
        deadline: jiff::Timestamp::MAX,
        ..limits()
    };
    let found = Found {
        hold: Some(guard()),
        ..found()
    };
    Story::new(kind, limits, found).entries.remove(0).event
}

fn opened_in(place: &str) -> Event {
    let mut event = Story::tear_down().entries.remove(0).event;
    if let Event::Opened { cloud, .. } = &mut event {
        *cloud = Some(place.to_owned());
    }
    event
}

fn refused(kind: RefusalKind, retry_after: Option<Duration>) -> Event {
    let refusal = Refusal {
        kind,
        message: "locked by conductor-1 [req-1]".to_owned(),
        retry_after,
    };
    Event::Refused { refusal }
}

fn every_refusal() -> impl Iterator<Item = Event> {
    use RefusalKind as R;
    let kinds = [
        R::Locked,
        R::Busy,
        R::NoConductor,
        R::Away,
        R::Conflict,
        R::NoCapacity,
        R::Illegal,
        R::Forbidden,
        R::NotFound,
        R::Other,
    ];
    kinds.into_iter().map(|kind| refused(kind, None))
}

fn every_ending() -> impl Iterator<Item = Event> {
    let outcomes = [
        Outcome::Returned,
        Outcome::Blocked,
        Outcome::Failed,
        Outcome::TimedOut,
        Outcome::Gone,
    ];
    outcomes.into_iter().flat_map(|outcome| {
        let ending = Ending {
            outcome,
            reason: "words, \"quoted\" – größer".to_owned(),
            held: outcome != Outcome::Returned,
        };
        let suspended = Event::Suspended {
            ending: ending.clone(),
        };
        [suspended, Event::Closed { ending }]
    })
}

fn every_entry() -> Vec<Entry> {
    let entry = |(second, event)| Entry {
        at: at(second),
        event,
    };
    (0..).zip(every_event()).map(entry).collect()
}

#[test]
fn every_entry_reads_back_as_it_was_written() {
    for entry in every_entry() {
        let text = serde_json::to_string(&entry).unwrap();
        let back: Entry = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{text}: {error}"));
        assert_eq!(back, entry, "{text}");
    }
}

/// A new version writes more fields; an old one that still runs beside it reads the entry all the same.
#[test]
fn fields_of_a_newer_version_are_passed_over() {
    for entry in every_entry() {
        let mut value = serde_json::to_value(&entry).unwrap();
        value["by_a_newer_version"] = serde_json::json!({ "a": [1, null] });
        assert_eq!(serde_json::from_value::<Entry>(value).unwrap(), entry);
    }
}

/// An event that nobody knows must not be passed over in silence.
#[test]
fn an_unknown_event_is_an_error() {
    for text in [
        r#"{"at":"2027-01-15T08:00:00Z","event":"danced"}"#,
        r#"{"at":"2027-01-15T08:00:00Z","event":"intended","write":{"action":"explode"}}"#,
        r#"{"at":"2027-01-15T08:00:00Z"}"#,
    ] {
        assert!(serde_json::from_str::<Entry>(text).is_err(), "{text}");
    }
}

/// If this fails, a journal of the version before can no longer be read, or the one after would be surprised: think of
/// both before the file is written anew (`UPDATE_GOLDEN=1`).
#[test]
fn the_format_is_the_one_on_file() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/core/journal.golden.jsonl");
    let lines = every_entry()
        .into_iter()
        .map(|entry| serde_json::to_string(&entry).unwrap() + "\n");
    let text = lines.collect::<String>();
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(path, &text).unwrap();
    }
    let golden = std::fs::read_to_string(path).unwrap();
    for (line, (is, was)) in (1..).zip(text.lines().zip(golden.lines())) {
        assert_eq!(is, was, "line {line}");
    }
    assert_eq!(text.lines().count(), golden.lines().count());
}
