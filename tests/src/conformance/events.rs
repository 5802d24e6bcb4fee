//! What every [`EventSource`] must do.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "these are the bodies of tests: a failure is told by panicking"
)]

use std::fmt;
use std::time::Duration;

use async_trait::async_trait;
use futures::StreamExt;
use futures::stream::BoxStream;
use ironic_client::NodeUuid;
use unprovision::events::{EventSource, Said};
use uuid::Uuid;

/// Something that makes a source say something.
#[async_trait]
pub trait Mouth: fmt::Debug + Send + Sync {
    /// Something happens to the node.
    async fn hint(&self, node: NodeUuid);

    /// Something is said that nobody can read.
    async fn garbage(&self);
}

/// Longer than any source needs for one message.
const PATIENCE: Duration = Duration::from_secs(30);

/// Runs all of it; `make` gives a new source each time, and what makes it say something.
///
/// # Panics
///
/// With the first thing that the source does wrong.
pub async fn run_all<S: EventSource>(make: impl AsyncFn() -> (S, Box<dyn Mouth>)) {
    let (source, mouth) = make().await;
    it_says_that_it_listens_before_anything_else(&source, &*mouth).await;
    let (source, mouth) = make().await;
    hints_come_in_order_and_once(&source, &*mouth).await;
    let (source, mouth) = make().await;
    garbage_is_set_aside_and_does_not_come_again(&source, &*mouth).await;
    let (source, mouth) = make().await;
    who_listens_anew_is_told_that_something_may_be_missing(&source, &*mouth).await;
    let (source, mouth) = make().await;
    who_does_not_listen_loses_nothing_for_others(&source, &*mouth).await;
}

fn node(number: u128) -> NodeUuid {
    NodeUuid(Uuid::from_u128(number))
}

async fn next(said: &mut BoxStream<'_, Said>) -> Said {
    let next = tokio::time::timeout(PATIENCE, said.next()).await;
    next.expect("it says nothing").expect("it never ends")
}

/// Until it listens, it may say that it does not yet.
async fn listens(said: &mut BoxStream<'_, Said>) {
    loop {
        match next(said).await {
            Said::Listens => return,
            Said::Deaf(_) => {}
            other => panic!("it says something before it listens: {other:?}"),
        }
    }
}

async fn hinted(said: &mut BoxStream<'_, Said>) -> NodeUuid {
    match next(said).await {
        Said::Hint(hint) => {
            assert!(!hint.reason.is_empty());
            hint.node
        }
        other => panic!("no hint: {other:?}"),
    }
}

async fn it_says_that_it_listens_before_anything_else(source: &dyn EventSource, mouth: &dyn Mouth) {
    assert!(!source.name().is_empty());
    let mut said = source.listen();
    listens(&mut said).await;
    mouth.hint(node(1)).await;
    assert_eq!(hinted(&mut said).await, node(1));
}

async fn hints_come_in_order_and_once(source: &dyn EventSource, mouth: &dyn Mouth) {
    let mut said = source.listen();
    listens(&mut said).await;
    for number in 1..=200 {
        mouth.hint(node(number)).await;
    }
    for number in 1..=200 {
        assert_eq!(hinted(&mut said).await, node(number));
    }
    mouth.hint(node(1000)).await;
    assert_eq!(hinted(&mut said).await, node(1000), "nothing was left");
}

async fn garbage_is_set_aside_and_does_not_come_again(source: &dyn EventSource, mouth: &dyn Mouth) {
    let mut said = source.listen();
    listens(&mut said).await;
    mouth.garbage().await;
    mouth.hint(node(1)).await;
    let first = next(&mut said).await;
    assert!(matches!(first, Said::Unreadable(_)), "{first:?}");
    assert_eq!(hinted(&mut said).await, node(1));
    mouth.hint(node(2)).await;
    assert_eq!(hinted(&mut said).await, node(2));
}

async fn who_listens_anew_is_told_that_something_may_be_missing(source: &dyn EventSource, mouth: &dyn Mouth) {
    for round in 1..=3 {
        let mut said = source.listen();
        listens(&mut said).await;
        mouth.hint(node(round)).await;
        // What was given out last is not acknowledged yet, so it may come once more.
        while hinted(&mut said).await != node(round) {}
    }
}

/// The second one finds what the first one has left: at least what was never given out.
async fn who_does_not_listen_loses_nothing_for_others(source: &dyn EventSource, mouth: &dyn Mouth) {
    let mut said = source.listen();
    listens(&mut said).await;
    mouth.hint(node(1)).await;
    assert_eq!(hinted(&mut said).await, node(1));
    mouth.hint(node(2)).await;
    drop(said);
    let mut said = source.listen();
    listens(&mut said).await;
    while hinted(&mut said).await != node(2) {}
}
