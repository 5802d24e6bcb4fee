//! Cases C17 and C18: microversions and their discovery.

use std::sync::atomic::{AtomicUsize, Ordering};

use ironic_client::{ErrorKind, Ironic, NodeFilter, NodeUuid, SUPPORTED, Verb};
use serde_json::json;
use unprovision_session::{Class, Microversion, TransportError};
use uuid::Uuid;

use super::fake::{Answer, VERSION, always, fault, ironic, node, parameter, raw, reply, text};

#[tokio::test]
async fn the_highest_version_of_both_is_spoken_and_only_its_fields_are_asked_for() {
    let missing =
        |fields: &str, not: &[&str]| not.iter().all(|field| !fields.split(',').any(|f| f == *field));
    for (max, spoken, unknown) in [
        (
            "1.38",
            "1.38",
            &[
                "fault",
                "conductor_group",
                "protected",
                "owner",
                "retired",
                "shard",
            ][..],
        ),
        ("1.58", "1.58", &["retired", "shard"]),
        ("1.61", "1.61", &["shard"]),
        ("1.82", "1.82", &[]),
        ("1.115", "1.115", &[]),
        ("1.200", "1.115", &[]),
    ] {
        let (client, fake) = ironic(max, |_| reply(200, &node()));
        client.show_node("n").await.unwrap();
        client.show_node("n").await.unwrap();
        assert_eq!(client.microversion().await.unwrap().to_string(), spoken);
        let all = fake.all();
        assert_eq!(all.len(), 3, "negotiated once");
        assert!(
            all[1..]
                .iter()
                .all(|request| request.headers()[VERSION] == *spoken)
        );
        let fields = parameter(&all[1], "fields").unwrap();
        assert!(missing(&fields, unknown), "{max}: {fields}");
        assert_eq!(fields.split(',').count(), 19 - unknown.len(), "{max}: {fields}");
    }
}

#[tokio::test]
async fn services_out_of_reach_are_refused_with_both_ranges() {
    for max in ["1.37", "1.1"] {
        let (client, fake) = ironic(max, |_| reply(200, &node()));
        let error = client.show_node("n").await.unwrap_err();
        assert_eq!(error.kind, ErrorKind::Unsupported);
        assert!(error.message.contains(&format!("1.1 to {max}")), "{error}");
        assert!(error.message.contains(&SUPPORTED.to_string()), "{error}");
        assert!(fake.seen().is_empty());
        assert_eq!(client.versions().await.unwrap().max, max.parse().unwrap());
    }
}

/// An old proxy drops the header on the way there or on the way back.
#[tokio::test]
async fn a_header_that_is_dropped_is_noticed_before_anything_is_written() {
    for used in [None, Some("1.1")] {
        let (client, fake) = raw(move |_| {
            let mut answer = reply(
                200,
                &json!({ "version": { "min_version": "1.1", "version": "1.115" } }),
            )?;
            if let Some(used) = used {
                answer.headers_mut().insert(VERSION, used.parse().unwrap());
            }
            Ok(answer)
        });
        let error = client
            .set_provision_state(NodeUuid(Uuid::nil()), &Verb::Deleted.into())
            .await
            .unwrap_err();
        assert_eq!(
            (error.kind.class(), &error.kind),
            (Class::Refused, &ErrorKind::Unsupported)
        );
        assert!(error.message.contains(VERSION), "{error}");
        assert!(fake.seen().is_empty());
        assert_eq!(client.versions().await.unwrap().max, SUPPORTED.max);
    }
}

/// One odd backend behind a balancer: a read is refused, a write may have been applied.
#[tokio::test]
async fn a_header_that_is_dropped_later_makes_a_write_uncertain() {
    let odd = |mut answer: Answer| {
        answer.as_mut().unwrap().headers_mut().remove(VERSION);
        answer
    };
    let (client, _) = raw(move |request| {
        let asked = request.headers()[VERSION].clone();
        let mut answer = reply(
            200,
            &json!({ "version": { "min_version": "1.1", "version": "1.115" } }),
        )?;
        answer.headers_mut().insert(VERSION, asked);
        if request.uri().path() == "/v1" {
            Ok(answer)
        } else {
            odd(Ok(answer))
        }
    });
    assert_eq!(
        client.show_node("n").await.unwrap_err().kind,
        ErrorKind::Unsupported
    );
    let error = client
        .set_provision_state(NodeUuid(Uuid::nil()), &Verb::Deleted.into())
        .await
        .unwrap_err();
    assert_eq!(error.kind, ErrorKind::NoAnswer(Class::Unknown));
    assert!(error.to_string().contains("may have been applied"), "{error}");
}

#[tokio::test]
async fn a_failed_negotiation_is_tried_again() {
    let calls = AtomicUsize::new(0);
    let (client, _) = ironic("1.115", |_| reply(200, &node()));
    let (flaky, _) = raw(move |request| match calls.fetch_add(1, Ordering::Relaxed) {
        0 => text(502, "<html><h1>Bad Gateway</h1></html>"),
        1 => Err(TransportError::NotSent {
            service: "ironic".into(),
            source: "refused".into(),
        }),
        2 => Err(TransportError::MaybeApplied {
            service: "ironic".into(),
            waited: None,
            source: "reset".into(),
        }),
        _ => {
            let mut answer = reply(
                200,
                &json!({ "version": { "min_version": "1.1", "version": "1.90" } }),
            )?;
            answer
                .headers_mut()
                .insert(VERSION, request.headers()[VERSION].clone());
            Ok(answer)
        }
    });
    let delete = Verb::Deleted.into();
    for _ in 0..3 {
        // The delete itself has not left, so nothing is unknown.
        let error = flaky
            .set_provision_state(NodeUuid(Uuid::nil()), &delete)
            .await
            .unwrap_err();
        assert_eq!(error.kind.class(), Class::Transient, "{error}");
    }
    assert_eq!(flaky.microversion().await.unwrap(), Microversion::new(1, 90));
    assert_eq!(client.clone().microversion().await.unwrap(), SUPPORTED.max);
}

#[tokio::test]
async fn after_a_406_the_version_is_negotiated_anew() {
    let calls = AtomicUsize::new(0);
    let (client, fake) = ironic("1.115", move |_| match calls.fetch_add(1, Ordering::Relaxed) {
        0 => reply(406, &fault("Request not acceptable.")),
        _ => reply(200, &node()),
    });
    let error = client.show_node("n").await.unwrap_err();
    assert!(matches!(&error.kind, ErrorKind::NotAcceptable(versions) if versions.offered.is_some()));
    assert!(error.to_string().contains("1.1 to 1.115"), "{error}");
    client.show_node("n").await.unwrap();
    assert_eq!(fake.all().len(), 4);
}

#[tokio::test]
async fn discovery_needs_only_the_range_from_wherever_it_stands() {
    let range =
        json!({ "min_version": "1.1", "version": "1.60", "links": [{ "href": "http://dead.example:1/" }] });
    for (status, body) in [
        (200, json!({ "version": range })),
        (200, json!({ "default_version": range })),
        (300, json!({ "versions": [range] })),
    ] {
        let (client, fake) = raw(move |_| reply(status, &body));
        assert_eq!(client.versions().await.unwrap().max.to_string(), "1.60");
        assert!(fake.seen().is_empty());
    }
}

#[tokio::test]
async fn a_service_without_a_readable_document_is_asked_by_its_nodes() {
    for (status, body) in [
        (404, "not here"),
        (300, "{}"),
        (200, "<html>welcome</html>"),
        (403, ""),
    ] {
        let (client, fake) = raw(move |request| {
            if request.uri().path() == "/v1" {
                return text(status, body);
            }
            let mut answer = reply(200, &json!({ "nodes": [] }))?;
            for (name, value) in [
                ("minimum-version", "1.1"),
                ("maximum-version", "1.80"),
                ("version", "1.38"),
            ] {
                let name: http::HeaderName = format!("x-openstack-ironic-api-{name}").parse().unwrap();
                answer.headers_mut().insert(name, value.parse().unwrap());
            }
            Ok(answer)
        });
        assert_eq!(client.microversion().await.unwrap().to_string(), "1.80");
        assert_eq!(fake.lines(), ["GET /v1/nodes?limit=1&fields=uuid"]);
    }
}

#[tokio::test]
async fn what_is_not_ironic_at_all_is_an_error() {
    for (status, kind) in [
        (401, ErrorKind::Unauthorized),
        (404, ErrorKind::NoAnswer(Class::Transient)),
        (200, ErrorKind::Unsupported),
    ] {
        let (client, _) = raw(move |_| text(status, "<html>welcome</html>"));
        assert_eq!(client.microversion().await.unwrap_err().kind, kind);
    }
}

#[tokio::test]
async fn what_the_version_does_not_know_is_refused_before_it_is_sent() {
    let (client, fake) = ironic("1.45", |_| reply(200, &node()));
    for filter in [
        NodeFilter {
            owner: Some("p".into()),
            ..NodeFilter::default()
        },
        NodeFilter {
            shard: Some("s".into()),
            ..NodeFilter::default()
        },
        NodeFilter {
            conductor_group: Some("g".into()),
            ..NodeFilter::default()
        },
    ] {
        let error = client.list_nodes(&filter, &[]).await.unwrap_err();
        assert_eq!(error.kind, ErrorKind::Unsupported);
        assert!(error.message.contains("1.45"), "{error}");
    }
    for verb in [Verb::Unhold, Verb::Service] {
        let error = client
            .set_provision_state(NodeUuid(Uuid::nil()), &verb.into())
            .await
            .unwrap_err();
        assert_eq!(error.kind, ErrorKind::Unsupported);
        assert!(error.message.contains(&verb.since().to_string()), "{error}");
    }
    assert!(fake.seen().is_empty());
    let (client, _) = always(202, "");
    client
        .set_provision_state(NodeUuid(Uuid::nil()), &Verb::Unhold.into())
        .await
        .unwrap();
}
