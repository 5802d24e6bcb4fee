//! What every [`Journal`] must do with leases.
#![allow(
    clippy::unwrap_used,
    reason = "these are the bodies of tests: a failure is told by panicking"
)]

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use unprovision::core::Process;
use unprovision::journal::Journal;

const LONG: Duration = Duration::from_secs(3600);
const SHORT: Duration = Duration::from_millis(300);

pub(super) async fn run_all(make: impl AsyncFn() -> Arc<dyn Journal>) {
    a_lease_lasts_until_it_is_ended(&*make().await).await;
    a_lease_runs_out_and_may_be_kept_again(&*make().await).await;
    leases_are_kept_at_the_same_time(&make().await).await;
}

/// Another handle sees them, too.
pub(super) async fn run_shared(one: &dyn Journal, other: &dyn Journal) {
    one.keep_lease(&process(1), LONG).await.unwrap();
    other.keep_lease(&process(2), LONG).await.unwrap();
    for journal in [one, other] {
        assert_eq!(journal.leases().await.unwrap(), [process(1), process(2)].into());
    }
    other.end_lease(&process(1)).await.unwrap();
    assert_eq!(one.leases().await.unwrap(), [process(2)].into());
}

async fn a_lease_lasts_until_it_is_ended(journal: &dyn Journal) {
    assert!(journal.leases().await.unwrap().is_empty());
    journal.end_lease(&process(1)).await.unwrap();
    for number in [2, 1, 1] {
        journal.keep_lease(&process(number), LONG).await.unwrap();
    }
    assert_eq!(
        journal.leases().await.unwrap(),
        [process(1), process(2)].into(),
        "each once"
    );
    journal.end_lease(&process(2)).await.unwrap();
    assert_eq!(journal.leases().await.unwrap(), [process(1)].into());
}

async fn a_lease_runs_out_and_may_be_kept_again(journal: &dyn Journal) {
    journal.keep_lease(&process(1), SHORT).await.unwrap();
    journal.keep_lease(&process(2), LONG).await.unwrap();
    journal.keep_lease(&process(2), SHORT).await.unwrap();
    journal.keep_lease(&process(3), LONG).await.unwrap();
    while journal.leases().await.unwrap() != BTreeSet::from([process(3)]) {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    journal.keep_lease(&process(1), LONG).await.unwrap();
    assert_eq!(journal.leases().await.unwrap(), [process(1), process(3)].into());
}

async fn leases_are_kept_at_the_same_time(journal: &Arc<dyn Journal>) {
    let keepers = (1..=8).chain(1..=8).map(|number| {
        let journal = Arc::clone(journal);
        tokio::spawn(async move {
            for _ in 0..5 {
                journal.keep_lease(&process(number), LONG).await.unwrap();
            }
        })
    });
    join_all(keepers).await.into_iter().for_each(|done| done.unwrap());
    assert_eq!(journal.leases().await.unwrap(), (1..=8).map(process).collect());
}

fn process(pid: u32) -> Process {
    Process {
        host: "größer.example.org \"'; --".to_owned(),
        boot: "b".to_owned(),
        namespace: "n".to_owned(),
        pid,
        started: u64::MAX,
    }
}
