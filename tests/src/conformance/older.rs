//! A journal that an older version has written is taken as it is.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "these are the bodies of tests: a failure is told by panicking"
)]

use std::time::Duration;

use futures::TryStreamExt;
use jiff::Timestamp;
use unprovision::core::{CaseId, CaseState, Entry, Event};
use unprovision::journal::{Journal, JournalError, Seq, read_open};
use unprovision::process;
use uuid::Uuid;

/// A case that was held, and is open.
const OPEN: CaseId = CaseId(Uuid::from_u128(0x0a));
/// One that has ended.
const CLOSED: CaseId = CaseId(Uuid::from_u128(0x0b));

const OPENED: &str = r#"{"at":"2026-11-01T08:00:00Z","event":"opened","node":"00000000-0000-0000-0000-00000000000a","kind":{"kind":"tear_down","instance":"00000000-0000-0000-0000-000000000001"},"strategy":"hand-over","limits":{"deadline":"2026-11-04T08:00:00Z","retry_error":0,"reclean":0,"release_nova_reservations":true},"found":{"name":"node-1","provision_state":"active","provision_updated_at":"2026-10-15T07:43:20Z","class":"CUSTOM_BAREMETAL","reserved":0,"owner":{"project_id":"project","user_id":"user","consumer_type":null},"units":{"CUSTOM_BAREMETAL":1},"nova":false}}"#;
const INTENDED: &str = r#"{"at":"2026-11-01T08:00:01Z","event":"intended","write":{"action":"hand_over","receiver":"cb6fd689-793d-55bd-ac84-75d8cde4b243","generation":null,"units":{"CUSTOM_BAREMETAL":1},"giver":{"uuid":"00000000-0000-0000-0000-000000000001","generation":3,"owner":{"project_id":"project","user_id":"user","consumer_type":null},"rest":{}}}}"#;
const APPLIED: &str = r#"{"at":"2026-11-01T08:00:02Z","event":"applied"}"#;
const ENDED: &str = r#"{"at":"2026-11-01T09:00:00Z","event":"closed","ending":{"outcome":"returned","reason":"größer, 'free'","held":false}}"#;

/// What layout 1 had of these two cases, as statements that any of the databases takes.
pub fn entries_of_layout_1() -> Vec<String> {
    let insert = |case: CaseId, seq: usize, body: &str| {
        let (closes, body) = (i32::from(body == ENDED), body.replace('\'', "''"));
        format!(
            "INSERT INTO entries (case_id, seq, closes, body) VALUES ('{case}', {seq}, {closes}, '{body}')"
        )
    };
    let open = [OPENED, INTENDED, APPLIED].into_iter().enumerate();
    let open = open.map(|(seq, body)| insert(OPEN, seq, body));
    let closed = [OPENED, INTENDED, APPLIED, ENDED].into_iter().enumerate();
    open.chain(closed.map(|(seq, body)| insert(CLOSED, seq, body)))
        .collect()
}

/// Both cases are there, the open one goes on, and leases may be kept.
pub async fn keeps_its_cases(journal: &dyn Journal) {
    let open = read_open(journal).await.unwrap();
    let [case] = open.as_slice() else {
        unreachable!("{open:?}")
    };
    assert_eq!(
        (case.id, &case.state, &case.taken_by),
        (OPEN, &CaseState::Open, &None)
    );
    assert!(case.may_hold(), "it was held");
    let all = journal.cases().try_collect::<Vec<_>>().await.unwrap();
    assert_eq!(all, [OPEN, CLOSED]);
    let ended = journal.read(CLOSED).await.unwrap();
    let Event::Closed { ending } = &ended[3].event else {
        unreachable!("{ended:?}")
    };
    assert_eq!(ending.reason, "größer, 'free'");
    let taken = Entry {
        at: Timestamp::UNIX_EPOCH,
        event: Event::Taken { by: process::this() },
    };
    let fenced = journal.append(OPEN, Seq(2), std::slice::from_ref(&taken)).await;
    assert!(matches!(fenced, Err(JournalError::Fenced(OPEN))), "{fenced:?}");
    assert_eq!(journal.append(OPEN, Seq(3), &[taken]).await.unwrap(), Seq(4));
    journal
        .keep_lease(&process::this(), Duration::from_secs(60))
        .await
        .unwrap();
    assert_eq!(journal.leases().await.unwrap(), [process::this()].into());
    journal.end_lease(&process::this()).await.unwrap();
}
