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
