//! Our queue: bounded, gone when nobody reads it, and nobody else's.

use std::time::Duration;

use unprovision::events::{EventSource, Said};
use uuid::Uuid;

use crate::common::{broker, deaf, listen_once, next, secs, source, until, way_to};

/// The guard is off for a day: the oldest messages go, and nothing piles up.
#[tokio::test]
async fn c20_a_queue_without_a_reader_is_bounded() {
    let broker = broker();
    let mut settings = broker.settings("bounded").unwrap();
    settings.max_length = 10;
    let ironic = broker.ironic(&settings).await.unwrap();
    listen_once(&settings).await;
    for number in 1..=500 {
        ironic
            .changes(Uuid::from_u128(number), "active", "deleting")
            .await
            .unwrap();
    }
    until("ten are left", async || {
        broker.queue(&settings.queue).await.unwrap() == Some((10, 0))
    })
    .await;
    let source = source(settings);
    let mut said = source.listen();
    assert_eq!(next(&mut said).await, Said::Listens);
    for number in 491..=500 {
        let Said::Hint(hint) = next(&mut said).await else {
            panic!("no hint")
        };
        assert_eq!(hint.node.0, Uuid::from_u128(number), "the oldest are gone");
    }
}

#[tokio::test]
async fn c20_messages_and_the_queue_itself_grow_old() {
    let broker = broker();
    let mut settings = broker.settings("old").unwrap();
    settings.max_age = secs(1);
    settings.expires = secs(5);
    let ironic = broker.ironic(&settings).await.unwrap();
    listen_once(&settings).await;
    ironic
        .changes(Uuid::from_u128(1), "active", "deleting")
        .await
        .unwrap();
    until("the message is gone", async || {
        broker.queue(&settings.queue).await.unwrap() != Some((1, 0))
    })
    .await;
    // Whoever asks for the queue uses it: its time begins anew.
    let mut gone = false;
    for _ in 0..5 {
        if gone {
            break;
        }
        tokio::time::sleep(secs(8)).await;
        gone = broker.queue(&settings.queue).await.unwrap().is_none();
    }
    assert!(gone, "the queue is still there");
    // Nobody minds, and it is made anew.
    ironic
        .changes(Uuid::from_u128(2), "active", "deleting")
        .await
        .unwrap();
    listen_once(&settings).await;
}

/// Whoever reads the same queue would take half of the messages away: the second one is refused, and told why.
#[tokio::test]
async fn c20_two_guards_do_not_share_a_queue() {
    let broker = broker();
    let settings = broker.settings("shared").unwrap();
    let ironic = broker.ironic(&settings).await.unwrap();
    let mut other = settings.clone();
    other.queue.push_str("-other");
    let (first, second) = (source(settings.clone()), source(other));
    let mut said = first.listen();
    assert_eq!(next(&mut said).await, Said::Listens);
    let why = deaf(settings).await;
    assert!(why.contains("somebody else reads the queue"), "{why}");
    for number in 1..=20 {
        ironic
            .changes(Uuid::from_u128(number), "active", "deleting")
            .await
            .unwrap();
        let Said::Hint(hint) = next(&mut said).await else {
            panic!("no hint")
        };
        assert_eq!(hint.node.0, Uuid::from_u128(number));
    }
    // Another queue on the same exchange takes nothing away.
    let mut also = second.listen();
    assert_eq!(next(&mut also).await, Said::Listens);
    ironic
        .changes(Uuid::from_u128(99), "active", "deleting")
        .await
        .unwrap();
    for stream in [&mut said, &mut also] {
        let Said::Hint(hint) = next(stream).await else {
            panic!("no hint")
        };
        assert_eq!(hint.node.0, Uuid::from_u128(99));
    }
}

/// What was given out and not handled comes again after the connection is lost; what was handled does not.
#[tokio::test]
async fn a_message_is_acknowledged_once_it_was_handled() {
    let broker = broker();
    let settings = broker.settings("acked").unwrap();
    let ironic = broker.ironic(&settings).await.unwrap();
    let mut through = settings.clone();
    let (port, way) = way_to(&broker).await;
    through.urls = vec![format!("amqp://guest:guest@127.0.0.1:{port}/").parse().unwrap()];
    let source = source(through);
    let mut said = source.listen();
    assert_eq!(next(&mut said).await, Said::Listens);
    for number in 1..=3 {
        ironic
            .changes(Uuid::from_u128(number), "active", "deleting")
            .await
            .unwrap();
    }
    for number in 1..=2 {
        let Said::Hint(hint) = next(&mut said).await else {
            panic!("no hint")
        };
        assert_eq!(hint.node.0, Uuid::from_u128(number));
    }
    // The first is handled, since the second was asked for.
    until("one is acknowledged", async || {
        tokio::time::sleep(Duration::from_millis(200)).await;
        true
    })
    .await;
    way.abort();
    assert!(matches!(next(&mut said).await, Said::Deaf(_) | Said::Hint(_)));
    drop(said);
    until("nobody reads it", async || {
        broker
            .queue(&settings.queue)
            .await
            .unwrap()
            .is_some_and(|(_, readers)| readers == 0)
    })
    .await;
    let again = crate::common::source(settings);
    let mut said = again.listen();
    assert_eq!(next(&mut said).await, Said::Listens);
    let Said::Hint(hint) = next(&mut said).await else {
        panic!("no hint")
    };
    assert!(
        (2..=3).contains(&hint.node.0.as_u128()),
        "the first does not come again: {hint:?}"
    );
}

/// Dropped, it leaves nobody behind who reads.
#[tokio::test]
async fn who_stops_listening_is_gone() {
    let broker = broker();
    let settings = broker.settings("stops").unwrap();
    let _ironic = broker.ironic(&settings).await.unwrap();
    for _ in 0..3 {
        listen_once(&settings).await;
        until("nobody reads it", async || {
            broker.queue(&settings.queue).await.unwrap() == Some((0, 0))
        })
        .await;
    }
}
