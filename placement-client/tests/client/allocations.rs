//! Case C13: consumers, their generations and types.

use std::collections::BTreeMap;

use placement_client::{
    Consumer, ConsumerAllocations, ConsumerGeneration, ConsumerUuid, ErrorKind, Generation, Placement,
    ProviderUuid, Units, UnitsOf,
};
use serde_json::{Value, json};
use uuid::Uuid;

use super::fake::{always, placement, text};

const P: &str = "00000000-0000-0000-0000-000000000001";
const A: &str = "00000000-0000-0000-0000-00000000000a";
const B: &str = "00000000-0000-0000-0000-00000000000b";

fn consumer(uuid: &str) -> ConsumerUuid {
    uuid.parse().unwrap()
}

fn unit() -> BTreeMap<ProviderUuid, Units> {
    BTreeMap::from([(
        ProviderUuid(Uuid::from_u128(1)),
        Units::from([("CUSTOM_BM".parse().unwrap(), 1)]),
    )])
}

fn owner(consumer_type: Option<&str>) -> Option<Consumer> {
    let consumer_type = consumer_type.map(|text| text.parse().unwrap());
    Some(Consumer {
        project_id: "p".into(),
        user_id: "u".into(),
        consumer_type,
    })
}

fn held(consumer_type: Option<&str>) -> ConsumerAllocations {
    ConsumerAllocations {
        consumer: owner(consumer_type),
        generation: ConsumerGeneration::At(1),
        allocations: unit(),
    }
}

fn wire(consumer_type: Value) -> Value {
    json!({
        "allocations": { P: { "resources": { "CUSTOM_BM": 1 }, "generation": 6 } },
        "project_id": "p", "user_id": "u", "consumer_generation": 1, "consumer_type": consumer_type,
    })
}

#[tokio::test]
async fn a_consumer_is_read_with_any_type() {
    for (on_the_wire, read) in [
        (json!("INSTANCE"), Some("INSTANCE")),
        (json!("OUR_HOLD"), Some("OUR_HOLD")),
        (json!("unknown"), None),
        (json!(null), None),
        (json!(7), None),
    ] {
        let (client, fake) = always(200, &wire(on_the_wire).to_string());
        assert_eq!(
            client.consumer_allocations(consumer(A)).await.unwrap(),
            held(read)
        );
        assert_eq!(fake.lines(), [format!("GET /allocations/{A}")]);
    }
    let mut old = wire(json!(null));
    old.as_object_mut().unwrap().remove("consumer_type");
    let (client, _) = always(200, &old.to_string());
    assert_eq!(
        client.consumer_allocations(consumer(A)).await.unwrap(),
        held(None)
    );
}

#[tokio::test]
async fn a_consumer_that_does_not_exist_holds_nothing_and_is_new() {
    let (client, _) = always(200, r#"{"allocations": {}}"#);
    let expected = ConsumerAllocations {
        consumer: None,
        generation: ConsumerGeneration::New,
        allocations: BTreeMap::new(),
    };
    assert_eq!(client.consumer_allocations(consumer(A)).await.unwrap(), expected);
    for body in ["{}", r#"{"allocations": null}"#, r#"{"allocations": []}"#] {
        let (client, _) = always(200, body);
        let error = client.consumer_allocations(consumer(A)).await.unwrap_err();
        assert_eq!(error.kind, ErrorKind::Unreadable, "{body}");
    }
}

#[tokio::test]
async fn a_write_names_the_type_exactly_where_it_is_required() {
    for (max, given, sent) in [
        ("1.39", None, Some("INSTANCE")),
        ("1.38", Some("OUR_HOLD"), Some("OUR_HOLD")),
        ("1.37", Some("OUR_HOLD"), None),
        ("1.28", None, None),
    ] {
        let (client, fake) = placement(max, |_| text(204, ""));
        client.write_consumer(consumer(A), &held(given)).await.unwrap();
        let mut expected = json!({
            "allocations": { P: { "resources": { "CUSTOM_BM": 1 } } },
            "project_id": "p", "user_id": "u", "consumer_generation": 1,
        });
        if let Some(sent) = sent {
            expected["consumer_type"] = json!(sent);
        }
        assert_eq!(fake.body(), expected, "{max}");
        assert_eq!(fake.lines(), [format!("PUT /allocations/{A}")]);
    }
}

#[tokio::test]
async fn a_new_consumer_has_the_generation_null() {
    let (client, fake) = always(204, "");
    let new = ConsumerAllocations {
        generation: ConsumerGeneration::New,
        ..held(None)
    };
    client.write_consumer(consumer(A), &new).await.unwrap();
    assert_eq!(fake.body().get("consumer_generation"), Some(&Value::Null));
}

/// The hand-over: the giver keeps nothing, the receiver is new, in one request.
#[tokio::test]
async fn a_unit_changes_hands_in_one_request() {
    let (client, fake) = always(204, "");
    let giver = ConsumerAllocations {
        allocations: BTreeMap::new(),
        ..held(None)
    };
    let receiver = ConsumerAllocations {
        generation: ConsumerGeneration::New,
        ..held(Some("OUR_HOLD"))
    };
    client
        .write_consumers(&BTreeMap::from([(consumer(A), giver), (consumer(B), receiver)]))
        .await
        .unwrap();
    assert_eq!(fake.lines(), ["POST /allocations"]);
    let expected = json!({
        A: {
            "project_id": "p", "user_id": "u", "allocations": {},
            "consumer_generation": 1, "consumer_type": "INSTANCE",
        },
        B: {
            "project_id": "p", "user_id": "u", "allocations": { P: { "resources": { "CUSTOM_BM": 1 } } },
            "consumer_generation": null, "consumer_type": "OUR_HOLD",
        },
    });
    assert_eq!(fake.body(), expected);
}

#[tokio::test]
async fn a_write_without_an_owner_is_not_sent() {
    let (client, fake) = always(204, "");
    let nobody = ConsumerAllocations {
        consumer: None,
        ..held(None)
    };
    let error = client.write_consumer(consumer(A), &nobody).await.unwrap_err();
    assert_eq!((error.kind, error.status), (ErrorKind::BadRequest, None));
    let both = BTreeMap::from([(consumer(A), held(None)), (consumer(B), nobody)]);
    let error = client.write_consumers(&both).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::BadRequest);
    assert!(error.message.contains(B), "{error}");
    assert!(fake.seen().is_empty());
}

#[tokio::test]
async fn who_holds_what_of_a_provider_is_read() {
    let body = json!({
        "allocations": { A: { "resources": { "CUSTOM_BM": 1 }, "consumer_generation": 3 } },
        "resource_provider_generation": 6,
    });
    let (client, fake) = always(200, &body.to_string());
    let read = client
        .provider_allocations(ProviderUuid(Uuid::from_u128(1)))
        .await
        .unwrap();
    let units = Units::from([("CUSTOM_BM".parse().unwrap(), 1)]);
    assert_eq!(read.generation, Generation(6));
    assert_eq!(
        read.allocations,
        BTreeMap::from([(
            consumer(A),
            UnitsOf {
                units,
                generation: Some(3)
            }
        )])
    );
    assert_eq!(fake.lines(), [format!("GET /resource_providers/{P}/allocations")]);
}

/// Allocations are never changed, so the answer's `Last-Modified` is the age of the newest one; of none it is no age.
#[tokio::test]
async fn the_newest_allocation_of_a_provider_has_an_age() {
    let one = json!({ A: { "resources": { "CUSTOM_BM": 1 }, "consumer_generation": 3 } });
    let made = Some("2026-11-30T03:27:59Z".parse().unwrap());
    for (allocations, header, newest) in [
        (one.clone(), Some("Mon, 30 Nov 2026 03:27:59 GMT"), made),
        (json!({}), Some("Mon, 30 Nov 2026 03:27:59 GMT"), None),
        (one.clone(), Some("yesterday"), None),
        (one, None, None),
    ] {
        let body = json!({ "allocations": allocations, "resource_provider_generation": 6 }).to_string();
        let (client, _) = placement("1.39", move |_| {
            let mut answer = text(200, &body)?;
            if let Some(header) = header {
                answer
                    .headers_mut()
                    .insert("last-modified", header.parse().unwrap());
            }
            Ok(answer)
        });
        let read = client
            .provider_allocations(ProviderUuid(Uuid::from_u128(1)))
            .await;
        assert_eq!(read.unwrap().newest, newest, "{header:?}");
    }
}
