//! What a broker refuses is told in words that help, without a password.

use crate::common::{broker, deaf, listen_once};

#[tokio::test]
async fn c20_what_is_wrong_is_told() {
    let broker = broker();
    let settings = broker.settings("refused").unwrap();
    let host = broker
        .url()
        .rsplit('@')
        .next()
        .unwrap()
        .split('/')
        .next()
        .unwrap()
        .to_owned();
    for (url, words) in [
        (
            format!("amqp://guest:hunter2@{host}/"),
            "does not take the user or the password",
        ),
        (
            format!("amqp://nobody:hunter2@{host}/"),
            "does not take the user or the password",
        ),
        (
            format!("amqp://guest:guest@{host}/hunter"),
            "no such virtual host",
        ),
        (format!("amqp://guest:guest@{host}/"), "no exchange `refused-"),
        (
            "amqp://guest:hunter2@127.0.0.1:1/".to_owned(),
            "cannot be reached",
        ),
        (
            "amqp://guest:hunter2@no-such-host.invalid/".to_owned(),
            "cannot be reached",
        ),
        // It speaks no TLS.
        (format!("amqps://guest:hunter2@{host}/"), "cannot be reached"),
    ] {
        let mut settings = settings.clone();
        settings.urls = vec![url.parse().unwrap()];
        let why = deaf(settings).await;
        assert!(why.contains(words), "{url}: {why}");
        assert!(!why.contains("hunter2"), "{why}");
        assert!(
            why.starts_with(&url.parse::<unprovision::events::BrokerUrl>().unwrap().to_string()),
            "{why}"
        );
    }
}

/// Somebody has changed the limits: the queue of before is not destroyed.
#[tokio::test]
async fn other_limits_are_told() {
    let broker = broker();
    let settings = broker.settings("limits").unwrap();
    let _ironic = broker.ironic(&settings).await.unwrap();
    listen_once(&settings).await;
    let mut other = settings.clone();
    other.max_length += 1;
    let why = deaf(other).await;
    assert!(why.contains("made with other limits"), "{why}");
    listen_once(&settings).await;
}

/// The first broker of the cluster is down: the next one is taken, at once.
#[tokio::test]
async fn brokers_are_tried_in_turn() {
    let broker = broker();
    let mut settings = broker.settings("turn").unwrap();
    let _ironic = broker.ironic(&settings).await.unwrap();
    settings.urls.insert(0, "amqp://127.0.0.1:1/".parse().unwrap());
    settings.urls.insert(1, "amqp://127.0.0.1:2/".parse().unwrap());
    let source = crate::common::source(settings);
    let mut said = unprovision::events::EventSource::listen(&source);
    for port in [1, 2] {
        let unprovision::events::Said::Deaf(why) = crate::common::next(&mut said).await else {
            panic!("deaf")
        };
        assert!(why.starts_with(&format!("amqp://127.0.0.1:{port}/")), "{why}");
    }
    assert_eq!(
        crate::common::next(&mut said).await,
        unprovision::events::Said::Listens
    );
}

/// The doctor tries it out: as far as Ironic's exchange, and nothing is made there.
#[tokio::test]
async fn a_broker_is_tried_out_without_a_trace() {
    let broker = broker();
    let mut settings = broker.settings("tried").unwrap();
    let without = crate::common::source(settings.clone()).try_out().await;
    let without = without.unwrap_err();
    assert!(without.contains("no exchange `tried-"), "{without}");
    let _ironic = broker.ironic(&settings).await.unwrap();
    let mut first_is_down = settings.clone();
    let down = "amqp://guest:hunter2@127.0.0.1:1/".parse().unwrap();
    first_is_down.urls.insert(0, down);
    let source = crate::common::source(first_is_down);
    let reached = source.try_out().await.unwrap();
    assert!(
        reached.starts_with("RabbitMQ at amqp://") && !reached.contains("127.0.0.1:1/"),
        "{reached}"
    );
    // No queue was left there that has other limits.
    settings.max_length += 1;
    listen_once(&settings).await;
}
