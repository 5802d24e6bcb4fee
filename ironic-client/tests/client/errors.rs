//! Errors by kind, class and words, in every shape they come in. Cases C09, C25.

use std::error::Error as _;
use std::time::Duration;

use ironic_client::{ErrorKind, Ironic, NodeUuid, Verb};
use serde_json::json;
use unprovision_session::{Class, TransportError};
use uuid::Uuid;

use super::fake::{always, fault, ironic, reply, text};

const ILLEGAL: &str =
    r#"The requested action "deleted" can not be performed on node "n" while it is in state "available"."#;
const LOCKED: &str = "Node n is locked by host c1, please retry after the current operation is completed.";
const BUSY_NODE: &str = "Node n can not be updated while a state transition is in progress.";
const NO_CONDUCTOR: &str = "No valid host was found. Reason: No conductor service registered which supports driver \
                            ipmi for conductor group \"\". Ensure the driver is valid and enabled.";

/// Status, words, kind, class.
const REFUSALS: [(u16, &str, ErrorKind, Class); 16] = [
    (400, ILLEGAL, ErrorKind::IllegalTransition, Class::Conflict),
    (400, NO_CONDUCTOR, ErrorKind::NoConductor, Class::Transient),
    (404, NO_CONDUCTOR, ErrorKind::NoConductor, Class::Transient),
    (
        400,
        "Expected UUID or name for node: not a node",
        ErrorKind::BadRequest,
        Class::Refused,
    ),
    (
        400,
        "because it's in maintenance mode",
        ErrorKind::BadRequest,
        Class::Refused,
    ),
    (
        401,
        "requires authentication",
        ErrorKind::Unauthorized,
        Class::Refused,
    ),
    (403, "Node n is protected", ErrorKind::Forbidden, Class::Refused),
    (
        404,
        "Node n could not be found.",
        ErrorKind::NotFound,
        Class::Refused,
    ),
    (409, LOCKED, ErrorKind::Locked, Class::Transient),
    (409, BUSY_NODE, ErrorKind::Conflict, Class::Conflict),
    (413, "too large", ErrorKind::BadRequest, Class::Refused),
    (429, "slow down", ErrorKind::Busy, Class::Transient),
    (500, "oops", ErrorKind::Server, Class::Unknown),
    (502, "bad gateway", ErrorKind::Server, Class::Unknown),
    (
        503,
        "The concurrent action limit for cleaning has been reached.",
        ErrorKind::Busy,
        Class::Transient,
    ),
    (504, "gateway timeout", ErrorKind::Server, Class::Unknown),
];

#[tokio::test]
async fn every_refusal_has_its_kind_and_class() {
    for (status, words, kind, class) in REFUSALS {
        let (client, _) = always(status, &fault(words).to_string());
        let error = client.clear_maintenance(NodeUuid(Uuid::nil())).await.unwrap_err();
        assert_eq!(
            (&error.kind, error.kind.class()),
            (&kind, class),
            "{status} {words}"
        );
        assert_eq!(error.message, words);
        assert_eq!(error.status.unwrap().as_u16(), status);
        assert_eq!(error.request_id.as_deref(), Some("req-1"));
        let text = error.to_string();
        assert!(
            text.starts_with("ironic: clear maintenance of node 00000000-"),
            "{text}"
        );
        assert!(
            text.ends_with(&format!("(HTTP {status}): {words} [req-1]")),
            "{text}"
        );
    }
}

#[tokio::test]
async fn the_words_are_found_in_every_shape() {
    let inner = json!({ "code": 400, "title": "Bad Request", "description": "the words" });
    let flat = json!({ "faultcode": "Client", "faultstring": "the words", "debuginfo": null });
    let page = "<html>\n<head><title>502</title></head>\n<body><h1>the words</h1>\n<hr></body></html>";
    for body in [
        fault("the words").to_string(),
        json!({ "error_message": inner.to_string() }).to_string(),
        json!({ "error_message": inner }).to_string(),
        json!({ "error_message": "the words" }).to_string(),
        json!({ "error_message": { "faultstring": "", "title": "the words" } }).to_string(),
        flat.to_string(),
        json!({ "error": { "code": 401, "title": "Unauthorized", "message": "the words" } }).to_string(),
        json!({ "error": "the words" }).to_string(),
        page.replace("<title>502</title>", ""),
        "the\twords\u{1b}\n".to_owned(),
    ] {
        let (client, _) = always(400, &body);
        assert_eq!(
            client.show_node("n").await.unwrap_err().message,
            "the words",
            "{body}"
        );
    }
    for (body, message) in [
        ("", ""),
        ("null", "null"),
        ("{\"a\":1}", "{\"a\":1}"),
        ("\u{1b}[31mred", "[31mred"),
    ] {
        let (client, _) = always(400, body);
        assert_eq!(client.show_node("n").await.unwrap_err().message, message);
    }
}

#[tokio::test]
async fn long_words_are_cut_to_a_thousand_characters() {
    let (client, _) = always(500, &"ö".repeat(5000));
    assert_eq!(
        client.show_node("n").await.unwrap_err().message.chars().count(),
        1000
    );
}

#[tokio::test]
async fn a_pause_that_is_asked_for_is_told() {
    for (value, pause) in [
        ("120", Some(Duration::from_secs(120))),
        ("Fri, 31 Dec 1999 23:59:59 GMT", None),
    ] {
        let (client, _) = ironic("1.115", move |_| {
            let mut answer = reply(503, &fault("full"))?;
            answer.headers_mut().insert("retry-after", value.parse().unwrap());
            Ok(answer)
        });
        assert_eq!(client.show_node("n").await.unwrap_err().retry_after, pause);
    }
}

#[tokio::test]
async fn a_redirect_is_not_followed_and_says_where_it_leads() {
    let (client, _) = ironic("1.115", |_| {
        let mut answer = text(301, "")?;
        answer
            .headers_mut()
            .insert("location", "https://h/v1/nodes".parse().unwrap());
        Ok(answer)
    });
    let error = client.show_node("n").await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Unreadable);
    assert!(error.message.contains("https://h/v1/nodes"), "{error}");
}

#[tokio::test]
async fn without_an_answer_the_source_decides() {
    let service = || "ironic".to_owned();
    for (number, of_read, of_write) in [
        (0, Class::Transient, Class::Transient),
        (1, Class::Transient, Class::Unknown),
        (2, Class::Refused, Class::Refused),
        (3, Class::Bug, Class::Bug),
    ] {
        let (client, _) = ironic("1.115", move |_| {
            Err(match number {
                0 => TransportError::NotSent {
                    service: service(),
                    source: "refused".into(),
                },
                1 => TransportError::MaybeApplied {
                    service: service(),
                    waited: None,
                    source: "reset".into(),
                },
                2 => TransportError::Endpoint {
                    service: service(),
                    message: "none".into(),
                },
                _ => TransportError::TooLarge {
                    service: service(),
                    limit: 1,
                },
            })
        });
        let read = client.show_node("n").await.unwrap_err();
        assert_eq!(read.kind, ErrorKind::NoAnswer(of_read));
        assert!(read.source().is_some() && read.status.is_none() && read.message.is_empty());
        let write = client
            .set_provision_state(NodeUuid(Uuid::nil()), &Verb::Deleted.into())
            .await
            .unwrap_err();
        assert_eq!(write.kind, ErrorKind::NoAnswer(of_write));
    }
}

/// A call that is never sent twice gets its 401 before the new login was tried, so another attempt may work.
#[tokio::test]
async fn an_expired_login_does_not_refuse_a_delete_for_good() {
    let (client, _) = always(
        401,
        &json!({ "error": { "message": "requires authentication" } }).to_string(),
    );
    let error = client
        .set_provision_state(NodeUuid(Uuid::nil()), &Verb::Deleted.into())
        .await
        .unwrap_err();
    assert_eq!(error.kind, ErrorKind::NoAnswer(Class::Transient));
    assert_eq!(error.status.unwrap().as_u16(), 401);
    assert_eq!(
        client.show_node("n").await.unwrap_err().kind,
        ErrorKind::Unauthorized
    );
}

#[tokio::test]
async fn what_is_no_node_is_unreadable() {
    for body in [
        "",
        "[]",
        "{\"uuid\":\"x\"}",
        "<html></html>",
        "{\"uuid\":\"00000000-0000-0000-0000-000000000001\"",
    ] {
        let (client, _) = always(200, body);
        let error = client.show_node("n").await.unwrap_err();
        assert_eq!(
            (error.kind.class(), &error.kind),
            (Class::Bug, &ErrorKind::Unreadable),
            "{body}"
        );
    }
}
