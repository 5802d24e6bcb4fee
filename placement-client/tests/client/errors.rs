//! Errors by kind, class and words. Cases C10, C11: conflicts are told apart by their code.

use std::time::Duration;

use placement_client::{ErrorKind, Placement, ProviderFilter, TraitName};
use serde_json::json;
use unprovision_session::{Class, TransportError};

use super::fake::{always, fault, placement, reply};

const CAPACITY: &str = "Unable to allocate inventory: Unable to create allocation for 'CUSTOM_BM' on resource provider \
                        'p'. The requested amount would exceed the capacity.";

fn name() -> TraitName {
    "CUSTOM_T".parse().unwrap()
}

async fn check(status: u16, code: Option<&str>, words: &str, kind: ErrorKind, class: Class) {
    let (client, _) = always(status, &fault(code, words).to_string());
    let error = client.create_trait(&name()).await.unwrap_err();
    assert_eq!(
        (&error.kind, error.kind.class()),
        (&kind, class),
        "{status} {code:?} {words}"
    );
    assert_eq!(error.message, words);
    let text = error.to_string();
    assert!(text.starts_with("placement: create trait CUSTOM_T: "), "{text}");
    assert!(
        text.ends_with(&format!("(HTTP {status}): {words} [req-1]")),
        "{text}"
    );
}

#[tokio::test]
async fn conflicts_are_told_apart_by_their_code() {
    let (update, undefined) = (
        Some("placement.concurrent_update"),
        Some("placement.undefined_code"),
    );
    let inuse = Some("placement.inventory.inuse");
    let other = |code: Option<&str>| ErrorKind::Conflict(code.map(str::to_owned));
    for (code, words, kind, class) in [
        (
            update,
            "consumer generation conflict",
            ErrorKind::ConcurrentUpdate,
            Class::Conflict,
        ),
        (update, CAPACITY, ErrorKind::ConcurrentUpdate, Class::Conflict),
        (undefined, CAPACITY, ErrorKind::NoCapacity, Class::Refused),
        (None, CAPACITY, ErrorKind::NoCapacity, Class::Refused),
        (inuse, "in use", other(inuse), Class::Conflict),
        (inuse, CAPACITY, other(inuse), Class::Conflict),
        (
            undefined,
            "The trait is in use",
            other(undefined),
            Class::Conflict,
        ),
        (
            None,
            "resource provider generation conflict",
            other(None),
            Class::Conflict,
        ),
    ] {
        check(409, code, words, kind, class).await;
    }
}

#[tokio::test]
async fn every_other_refusal_has_its_kind_and_class() {
    for (status, kind, class) in [
        (400, ErrorKind::BadRequest, Class::Refused),
        (401, ErrorKind::Unauthorized, Class::Refused),
        (403, ErrorKind::Forbidden, Class::Refused),
        (404, ErrorKind::NotFound, Class::Refused),
        (429, ErrorKind::Busy, Class::Transient),
        (500, ErrorKind::Server, Class::Unknown),
        (503, ErrorKind::Busy, Class::Transient),
        (504, ErrorKind::Server, Class::Unknown),
    ] {
        check(status, Some("placement.undefined_code"), CAPACITY, kind, class).await;
    }
}

#[tokio::test]
async fn the_words_are_found_in_every_shape() {
    for body in [
        fault(None, "the words").to_string(),
        json!({ "errors": [{ "title": "the words" }] }).to_string(),
        json!({ "errors": [{ "detail": "the\n words", "title": "no" }] }).to_string(),
        json!({ "error": { "code": 401, "title": "Unauthorized", "message": "the words" } }).to_string(),
        json!({ "message": "the words" }).to_string(),
        "<html><body><h1>the words</h1></body></html>".to_owned(),
        "the\twords\u{1b}\n".to_owned(),
    ] {
        let (client, _) = always(400, &body);
        assert_eq!(
            client.create_trait(&name()).await.unwrap_err().message,
            "the words",
            "{body}"
        );
    }
    let (client, _) = always(500, &"ö".repeat(5000));
    assert_eq!(
        client
            .create_trait(&name())
            .await
            .unwrap_err()
            .message
            .chars()
            .count(),
        1000
    );
    let (client, _) = always(500, r#"{"errors":[]}"#);
    assert_eq!(
        client.create_trait(&name()).await.unwrap_err().message,
        r#"{"errors":[]}"#
    );
}

#[tokio::test]
async fn a_pause_that_is_asked_for_is_told() {
    let (client, _) = placement("1.39", |_| {
        let mut answer = reply(503, &json!({}))?;
        answer.headers_mut().insert("retry-after", "7".parse().unwrap());
        Ok(answer)
    });
    assert_eq!(
        client.create_trait(&name()).await.unwrap_err().retry_after,
        Some(Duration::from_secs(7))
    );
}

#[tokio::test]
async fn without_an_answer_the_source_decides() {
    let (client, _) = placement("1.39", |_| {
        Err(TransportError::MaybeApplied {
            service: "placement".into(),
            waited: None,
            source: "reset".into(),
        })
    });
    let write = client.create_trait(&name()).await.unwrap_err();
    assert_eq!(write.kind, ErrorKind::NoAnswer(Class::Unknown));
    let read = client
        .list_providers(&ProviderFilter::default())
        .await
        .unwrap_err();
    assert_eq!(read.kind, ErrorKind::NoAnswer(Class::Transient));
    let (client, _) = placement("1.39", |_| {
        Err(TransportError::NotSent {
            service: "placement".into(),
            source: "refused".into(),
        })
    });
    let write = client.create_trait(&name()).await.unwrap_err();
    assert_eq!(write.kind, ErrorKind::NoAnswer(Class::Transient));
}

#[tokio::test]
async fn an_answer_that_cannot_be_read_is_no_empty_list() {
    for body in [
        "",
        "{}",
        "[]",
        r#"{"resource_providers":null}"#,
        r#"{"resource_providers":[{"uuid":"x"}]}"#,
        "<p>",
    ] {
        let (client, _) = always(200, body);
        let error = client
            .list_providers(&ProviderFilter::default())
            .await
            .unwrap_err();
        assert_eq!(
            (error.kind.class(), &error.kind),
            (Class::Bug, &ErrorKind::Unreadable),
            "{body}"
        );
        assert_eq!(error.status.unwrap().as_u16(), 200);
    }
}
