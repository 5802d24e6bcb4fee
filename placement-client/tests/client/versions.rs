//! Cases C12, C17 and C18: microversions and their discovery.

use std::sync::atomic::{AtomicUsize, Ordering};

use placement_client::{
    CandidateQuery, ErrorKind, Placement, ProviderFilter, ProviderUuid, ResourceClass, SUPPORTED,
};
use serde_json::json;
use unprovision_session::{Class, TransportError};
use uuid::Uuid;

use super::fake::{VERSION, document, placement, raw, reply, text};

fn none() -> serde_json::Value {
    json!({ "resource_providers": [] })
}

#[tokio::test]
async fn the_highest_version_of_both_is_spoken_on_every_request() {
    for (max, spoken) in [
        ("1.28", "1.28"),
        ("1.36", "1.36"),
        ("1.39", "1.39"),
        ("1.50", "1.39"),
    ] {
        let (client, fake) = placement(max, |_| reply(200, &none()));
        client.list_providers(&ProviderFilter::default()).await.unwrap();
        client
            .clone()
            .list_providers(&ProviderFilter::default())
            .await
            .unwrap();
        assert_eq!(client.microversion().await.unwrap().to_string(), spoken);
        let all = fake.all();
        assert_eq!(all.len(), 3, "negotiated once");
        assert_eq!(all[0].headers()[VERSION], "placement 1.28");
        assert!(
            all[1..]
                .iter()
                .all(|request| request.headers()[VERSION] == *format!("placement {spoken}"))
        );
    }
}

#[tokio::test]
async fn services_out_of_reach_are_refused_before_anything_is_written() {
    let name = "CUSTOM_T".parse().unwrap();
    for max in ["1.25", "1.27"] {
        let (client, fake) = placement(max, |_| text(204, ""));
        let error = client.create_trait(&name).await.unwrap_err();
        assert_eq!(error.kind, ErrorKind::Unsupported);
        assert!(error.message.contains(&format!("1.0 to {max}")), "{error}");
        assert!(error.message.contains(&SUPPORTED.to_string()), "{error}");
        assert!(fake.seen().is_empty());
        assert_eq!(client.versions().await.unwrap().max, max.parse().unwrap());
    }
}

#[tokio::test]
async fn a_header_that_is_dropped_is_noticed_before_anything_is_written() {
    for used in [None, Some("placement 1.0"), Some("compute 1.28"), Some("1.28")] {
        let (client, fake) = raw(move |_| {
            let mut answer = reply(200, &document("1.39"))?;
            if let Some(used) = used {
                answer.headers_mut().insert(VERSION, used.parse().unwrap());
            }
            Ok(answer)
        });
        let error = client
            .create_trait(&"CUSTOM_T".parse().unwrap())
            .await
            .unwrap_err();
        assert_eq!(error.kind, ErrorKind::Unsupported);
        assert!(error.message.contains(VERSION), "{error}");
        assert!(fake.seen().is_empty());
        assert_eq!(client.versions().await.unwrap().max, SUPPORTED.max);
    }
}

#[tokio::test]
async fn a_header_that_is_dropped_later_makes_a_write_uncertain() {
    let (client, _) = raw(move |request| {
        let mut answer = reply(200, &document("1.39"))?;
        if request.uri().path() == "/" {
            answer
                .headers_mut()
                .insert(VERSION, request.headers()[VERSION].clone());
        }
        Ok(answer)
    });
    let read = client
        .list_providers(&ProviderFilter::default())
        .await
        .unwrap_err();
    assert_eq!(read.kind, ErrorKind::Unsupported);
    let write = client
        .create_trait(&"CUSTOM_T".parse().unwrap())
        .await
        .unwrap_err();
    assert_eq!(write.kind, ErrorKind::NoAnswer(Class::Unknown));
}

#[tokio::test]
async fn a_failed_negotiation_is_tried_again() {
    let calls = AtomicUsize::new(0);
    let (client, _) = raw(move |request| match calls.fetch_add(1, Ordering::Relaxed) {
        0 => text(502, "<html><h1>Bad Gateway</h1></html>"),
        1 => Err(TransportError::MaybeApplied {
            service: "placement".into(),
            waited: None,
            source: "reset".into(),
        }),
        _ => {
            let mut answer = reply(200, &document("1.36"))?;
            answer
                .headers_mut()
                .insert(VERSION, request.headers()[VERSION].clone());
            Ok(answer)
        }
    });
    for _ in 0..2 {
        // The write itself has not left, so nothing is unknown.
        let error = client
            .create_trait(&"CUSTOM_T".parse().unwrap())
            .await
            .unwrap_err();
        assert_eq!(error.kind.class(), Class::Transient, "{error}");
    }
    assert_eq!(client.microversion().await.unwrap().to_string(), "1.36");
}

#[tokio::test]
async fn after_a_406_the_version_is_negotiated_anew() {
    let calls = AtomicUsize::new(0);
    let (client, fake) = placement("1.39", move |_| match calls.fetch_add(1, Ordering::Relaxed) {
        0 => reply(
            406,
            &json!({ "errors": [{ "detail": "no", "min_version": "1.0", "max_version": "1.36" }] }),
        ),
        _ => reply(200, &none()),
    });
    let error = client
        .list_providers(&ProviderFilter::default())
        .await
        .unwrap_err();
    assert!(matches!(&error.kind, ErrorKind::NotAcceptable(versions) if versions.offered.is_some()));
    assert!(
        error
            .to_string()
            .contains("does not speak API 1.39, only 1.0 to 1.36"),
        "{error}"
    );
    client.list_providers(&ProviderFilter::default()).await.unwrap();
    assert_eq!(fake.all().len(), 4);
}

#[tokio::test]
async fn a_service_without_a_readable_document_is_asked_for_its_providers() {
    for (status, body) in [(404, "not here"), (300, "{}"), (200, "<html>welcome</html>")] {
        for (max, spoken) in [("1.36", "1.36"), ("1.39", "1.39")] {
            let (client, fake) = raw(move |request| {
                if request.uri().path() == "/" {
                    return text(status, body);
                }
                let asked = request.headers()[VERSION].clone();
                if asked.to_str().unwrap() != format!("placement {max}") {
                    let range = json!({ "detail": "no", "min_version": "1.0", "max_version": max });
                    return reply(406, &json!({ "errors": [range] }));
                }
                let mut answer = reply(200, &none())?;
                answer.headers_mut().insert(VERSION, asked);
                Ok(answer)
            });
            assert_eq!(client.microversion().await.unwrap().to_string(), spoken);
            assert_eq!(fake.seen().len(), 1);
        }
    }
}

#[tokio::test]
async fn what_is_not_placement_at_all_is_an_error() {
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
    let (client, fake) = placement("1.30", |_| reply(200, &none()));
    let mut query = CandidateQuery::of(ResourceClass::of_node_class("bm").unwrap());
    query.in_tree = Some(ProviderUuid(Uuid::nil()));
    let error = client.candidates(&query).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Unsupported);
    assert!(
        error.message.contains("1.31") && error.message.contains("1.30"),
        "{error}"
    );
    assert!(fake.seen().is_empty());
}
