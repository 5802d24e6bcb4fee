//! What every [`Journal`] must do.
#![allow(
    clippy::unwrap_used,
    reason = "these are the bodies of tests: a failure is told by panicking"
)]

use std::collections::BTreeSet;
use std::sync::Arc;

use futures::TryStreamExt;
use futures::future::join_all;
use ironic_client::{NodeUuid, ProvisionState};
use jiff::Timestamp;
use unprovision::core::{CaseId, Ending, Entry, Event, Found, Kind, Limits, Outcome};
use unprovision::journal::{Journal, JournalError, Seq};
use uuid::Uuid;

use super::leases;

const NODE: NodeUuid = NodeUuid(Uuid::from_u128(1));

/// Runs all of it; `make` gives an empty journal each time.
///
/// # Panics
///
/// With the first thing that the journal does wrong.
pub async fn run_all(make: impl AsyncFn() -> Arc<dyn Journal>) {
    entries_come_back_in_order(&*make().await).await;
    an_unknown_case_is_empty(&*make().await).await;
    a_wrong_number_is_fenced_and_changes_nothing(&*make().await).await;
    several_entries_are_one_append(&*make().await).await;
    cases_do_not_mix(&*make().await).await;
    cases_are_open_until_their_last_entry_closes_them(&*make().await).await;
    open_cases_come_in_the_order_of_their_identifiers(&*make().await).await;
    all_cases_are_listed_whether_open_or_not(&*make().await).await;
    open_cases_are_told_with_all_their_entries(&*make().await).await;
    appends_that_come_together_each_get_their_own_answer(&make().await).await;
    exactly_one_of_many_writers_wins_each_number(&make().await).await;
    appends_at_the_same_time_are_not_torn_apart(&make().await).await;
    cases_at_the_same_time_do_not_fence_each_other(&make().await).await;
    long_and_strange_texts_come_back(&*make().await).await;
    leases::run_all(make).await;
}

/// Two handles on the same entries behave as one journal.
///
/// # Panics
///
/// With the first thing that they do wrong.
pub async fn run_shared(one: Arc<dyn Journal>, other: Arc<dyn Journal>) {
    let case = case(1);
    one.append(case, Seq(0), &[opened()]).await.unwrap();
    assert_eq!(other.read(case).await.unwrap(), [opened()], "seen at once");
    assert_eq!(open(&*other).await, [case]);
    other.append(case, Seq(1), &[said("other")]).await.unwrap();
    assert_fenced(one.append(case, Seq(1), &[said("one")]).await, case);
    one.append(case, Seq(2), &[closed()]).await.unwrap();
    let expected = [opened(), said("other"), closed()];
    assert_eq!(other.read(case).await.unwrap(), expected);
    assert!(open(&*other).await.is_empty());

    let (race, handles) = (self::case(2), [one, other]);
    let writers = (0..8).map(|writer: usize| {
        let journal = Arc::clone(&handles[writer % 2]);
        tokio::spawn(async move { journal.append(race, Seq(0), &[said(&writer.to_string())]).await })
    });
    let won = join_all(writers)
        .await
        .into_iter()
        .filter(|result| matches!(result, Ok(Ok(_))));
    assert_eq!(won.count(), 1, "one of two handles wins");
    assert_eq!(handles[0].read(race).await.unwrap().len(), 1);
    leases::run_shared(&*handles[0], &*handles[1]).await;
}

async fn entries_come_back_in_order(journal: &dyn Journal) {
    let case = case(1);
    let entries = [opened(), said("a"), said("b"), said("c"), closed()];
    for (seq, entry) in (0..).zip(&entries) {
        let next = journal.append(case, Seq(seq), std::slice::from_ref(entry)).await;
        assert_eq!(next.unwrap(), Seq(seq + 1));
    }
    assert_eq!(journal.read(case).await.unwrap(), entries);
}

async fn an_unknown_case_is_empty(journal: &dyn Journal) {
    assert!(journal.read(case(1)).await.unwrap().is_empty());
    assert!(open(journal).await.is_empty());
    assert_eq!(journal.append(case(1), Seq(0), &[]).await.unwrap(), Seq(0));
    assert!(open(journal).await.is_empty(), "nothing was appended");
    assert_fenced(journal.append(case(1), Seq(1), &[opened()]).await, case(1));
    assert!(journal.read(case(1)).await.unwrap().is_empty());
}

async fn a_wrong_number_is_fenced_and_changes_nothing(journal: &dyn Journal) {
    let case = case(1);
    journal
        .append(case, Seq(0), &[opened(), said("a")])
        .await
        .unwrap();
    for seq in [0, 1, 3, 1_000_000, u64::from(u32::MAX), u64::MAX] {
        let late = [said("x"), closed()];
        assert_fenced(journal.append(case, Seq(seq), &late).await, case);
        assert_fenced(journal.append(case, Seq(seq), &[]).await, case);
    }
    assert_eq!(journal.read(case).await.unwrap(), [opened(), said("a")]);
    assert_eq!(open(journal).await, [case]);
}

async fn several_entries_are_one_append(journal: &dyn Journal) {
    let case = case(1);
    let many = (0..50).map(|n: u32| said(&n.to_string())).collect::<Vec<_>>();
    assert_eq!(journal.append(case, Seq(0), &many).await.unwrap(), Seq(50));
    assert_eq!(journal.append(case, Seq(50), &[]).await.unwrap(), Seq(50));
    assert_eq!(journal.read(case).await.unwrap(), many);
}

async fn cases_do_not_mix(journal: &dyn Journal) {
    for n in 1..=3 {
        journal.append(case(n), Seq(0), &[opened()]).await.unwrap();
    }
    journal.append(case(2), Seq(1), &[said("two")]).await.unwrap();
    assert_eq!(journal.read(case(1)).await.unwrap(), [opened()]);
    assert_eq!(journal.read(case(2)).await.unwrap(), [opened(), said("two")]);
    assert_eq!(journal.read(case(3)).await.unwrap(), [opened()]);
}

async fn cases_are_open_until_their_last_entry_closes_them(journal: &dyn Journal) {
    let resumed = || entry(Event::Resumed { limits: limits() });
    let suspended = || entry(Event::Suspended { ending: ending(true) });
    let cases = [
        (1, vec![opened()], true),
        (2, vec![opened(), closed()], false),
        (3, vec![opened(), suspended()], true),
        (4, vec![opened(), suspended(), resumed(), closed()], false),
        (5, vec![opened(), closed(), opened()], true),
        (6, vec![opened(), closed(), opened(), closed()], false),
        (7, vec![opened(), closed(), said("late")], true),
    ];
    for (n, entries, _) in &cases {
        journal.append(case(*n), Seq(0), entries).await.unwrap();
    }
    let expected = cases.iter().filter(|(.., is_open)| *is_open);
    let expected = expected.map(|(n, ..)| case(*n)).collect::<Vec<_>>();
    assert_eq!(open(journal).await, expected);
    journal.append(case(1), Seq(1), &[closed()]).await.unwrap();
    assert_eq!(
        open(journal).await,
        expected[1..],
        "closed by an append of its own"
    );
}

async fn all_cases_are_listed_whether_open_or_not(journal: &dyn Journal) {
    let listed = async || journal.cases().try_collect::<Vec<_>>().await.unwrap();
    assert!(listed().await.is_empty());
    for number in [3, 1, 2] {
        journal
            .append(case(number), Seq(0), &[opened(), said("one")])
            .await
            .unwrap();
    }
    journal.append(case(2), Seq(2), &[closed()]).await.unwrap();
    assert_eq!(listed().await, [1, 2, 3].map(case), "each once, in order");
    assert_eq!(open(journal).await, [1, 3].map(case));
}

async fn open_cases_come_in_the_order_of_their_identifiers(journal: &dyn Journal) {
    let numbers = [7, 0xffff_ffff_ffff_ffff_ffff, 3, 0x10, 0xa, 200];
    for n in numbers {
        journal.append(case(n), Seq(0), &[opened()]).await.unwrap();
    }
    let sorted = numbers.map(case).into_iter().collect::<BTreeSet<_>>();
    assert_eq!(open(journal).await, sorted.into_iter().collect::<Vec<_>>());
}

async fn open_cases_are_told_with_all_their_entries(journal: &dyn Journal) {
    let told = async || journal.open_entries().try_collect::<Vec<_>>().await.unwrap();
    assert!(told().await.is_empty());
    for n in [3, 1, 2] {
        let entries = [opened(), said(&n.to_string()), said("more")];
        journal.append(case(n), Seq(0), &entries).await.unwrap();
    }
    journal.append(case(2), Seq(3), &[closed()]).await.unwrap();
    let expected = [1, 3].map(|n: u128| (case(n), vec![opened(), said(&n.to_string()), said("more")]));
    assert_eq!(told().await, expected);
}

/// Of many appends at the same time, those with a wrong number are fenced, and no other.
async fn appends_that_come_together_each_get_their_own_answer(journal: &Arc<dyn Journal>) {
    let writers = (0..200_u64).map(|n| {
        let journal = Arc::clone(journal);
        tokio::spawn(async move {
            let case = case(u128::from(n));
            (
                n,
                journal.append(case, Seq(n % 2), &[opened(), said("one")]).await,
            )
        })
    });
    for done in join_all(writers).await {
        let (n, appended) = done.unwrap();
        let case = case(u128::from(n));
        match n % 2 {
            0 => assert_eq!(appended.unwrap(), Seq(2)),
            _ => assert_fenced(appended, case),
        }
        let expected = if n % 2 == 0 { 2 } else { 0 };
        assert_eq!(journal.read(case).await.unwrap().len(), expected, "{n}");
    }
}

async fn exactly_one_of_many_writers_wins_each_number(journal: &Arc<dyn Journal>) {
    let case = case(1);
    for seq in 0..20 {
        let writers = (0..8).map(|writer: u32| {
            let journal = Arc::clone(journal);
            let mine = said(&format!("{seq} by {writer}"));
            tokio::spawn(async move {
                (
                    journal.append(case, Seq(seq), std::slice::from_ref(&mine)).await,
                    mine,
                )
            })
        });
        let mut won = Vec::new();
        for done in join_all(writers).await {
            match done.unwrap() {
                (Ok(next), mine) => {
                    assert_eq!(next, Seq(seq + 1));
                    won.push(mine);
                }
                (lost, _) => assert_fenced(lost, case),
            }
        }
        assert_eq!(won.len(), 1, "number {seq}");
        assert_eq!(
            journal.read(case).await.unwrap().last(),
            won.last(),
            "number {seq}"
        );
    }
    assert_eq!(journal.read(case).await.unwrap().len(), 20);
}

/// Each of eight writers gets its ten groups of three in, some time; no group is interrupted.
async fn appends_at_the_same_time_are_not_torn_apart(journal: &Arc<dyn Journal>) {
    let case = case(1);
    let writers = (0..8).map(|writer: u32| {
        let journal = Arc::clone(journal);
        tokio::spawn(async move {
            for round in 0..10 {
                let group = [0, 1, 2].map(|part| said(&format!("{writer}.{round}.{part}")));
                loop {
                    let has = journal.read(case).await.unwrap().len() as u64;
                    match journal.append(case, Seq(has), &group).await {
                        Ok(_) => break,
                        lost => assert_fenced(lost, case),
                    }
                    tokio::task::yield_now().await;
                }
            }
        })
    });
    join_all(writers).await.into_iter().for_each(|done| done.unwrap());
    let entries = journal.read(case).await.unwrap();
    assert_eq!(entries.len(), 8 * 10 * 3);
    let text = |entry: &Entry| match &entry.event {
        Event::Unknown { message } => message.clone(),
        other => format!("{other:?}"),
    };
    for group in entries.chunks(3) {
        let texts = group.iter().map(text).collect::<Vec<_>>();
        let (first, _) = texts[0].rsplit_once('.').unwrap();
        let expected = [0, 1, 2].map(|part| format!("{first}.{part}"));
        assert_eq!(texts, expected, "torn apart");
    }
}

async fn cases_at_the_same_time_do_not_fence_each_other(journal: &Arc<dyn Journal>) {
    let writers = (1..=8).map(|n: u128| {
        let journal = Arc::clone(journal);
        tokio::spawn(async move {
            for seq in 0..20 {
                journal.append(case(n), Seq(seq), &[said("mine")]).await.unwrap();
            }
        })
    });
    join_all(writers).await.into_iter().for_each(|done| done.unwrap());
    for n in 1..=8 {
        assert_eq!(journal.read(case(n)).await.unwrap().len(), 20);
    }
}

async fn long_and_strange_texts_come_back(journal: &dyn Journal) {
    let texts = [
        String::new(),
        "größer, 漢字, 🛠, e\u{301}, \u{202e}right to left".to_owned(),
        "'; DROP TABLE entries; -- \"\\ %s ? $1".to_owned(),
        "line\nline\r\n\ttab \u{0}\u{1}\u{1b}[31m".to_owned(),
        "x".repeat(3_000_000),
    ];
    let entries = texts.map(|text| said(&text));
    journal.append(case(1), Seq(0), &entries).await.unwrap();
    let read = journal.read(case(1)).await.unwrap();
    assert!(read == entries, "a text came back changed");
}

async fn open(journal: &dyn Journal) -> Vec<CaseId> {
    journal.open_cases().try_collect().await.unwrap()
}

#[track_caller]
fn assert_fenced(result: Result<Seq, JournalError>, case: CaseId) {
    let fenced = matches!(&result, Err(JournalError::Fenced(fenced)) if *fenced == case);
    assert!(fenced, "{result:?}");
}

fn case(n: u128) -> CaseId {
    CaseId(Uuid::from_u128(n))
}

fn entry(event: Event) -> Entry {
    Entry {
        at: Timestamp::UNIX_EPOCH,
        event,
    }
}

fn said(message: &str) -> Entry {
    let message = message.to_owned();
    entry(Event::Unknown { message })
}

fn ending(held: bool) -> Ending {
    Ending {
        outcome: Outcome::Failed,
        reason: "it broke".to_owned(),
        held,
    }
}

fn closed() -> Entry {
    entry(Event::Closed {
        ending: ending(false),
    })
}

fn limits() -> Limits {
    Limits {
        deadline: Timestamp::MAX,
        retry_error: 0,
        reclean: 0,
        release_nova_reservations: false,
    }
}

fn opened() -> Entry {
    let found = Found {
        name: None,
        provision_state: ProvisionState::Active,
        provision_updated_at: None,
        class: None,
        reserved: 0,
        owner: None,
        units: Default::default(),
        nova: false,
        hold: None,
        tag: None,
    };
    entry(Event::Opened {
        node: NODE,
        kind: Kind::TearDown {
            instance: Uuid::from_u128(2),
        },
        strategy: "hand-over".to_owned(),
        limits: limits(),
        found: Box::new(found),
        cloud: None,
    })
}
