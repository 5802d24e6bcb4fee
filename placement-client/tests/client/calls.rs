//! Providers, inventories, traits, candidates: what is sent, what is read.

use std::collections::BTreeMap;

use placement_client::{
    Candidate, CandidateQuery, ErrorKind, Generation, Inventories, Placement, ProviderFilter, ProviderTraits,
    ProviderUuid, ResourceClass, ResourceProvider,
};
use serde_json::json;
use unprovision_session::{Class, Resend};
use uuid::Uuid;

use super::fake::{VERSION, always};

const P: &str = "00000000-0000-0000-0000-000000000001";
const Q: &str = "00000000-0000-0000-0000-000000000002";

fn provider(number: u128) -> ProviderUuid {
    ProviderUuid(Uuid::from_u128(number))
}

fn class() -> ResourceClass {
    "CUSTOM_BM".parse().unwrap()
}

#[tokio::test]
async fn providers_are_read() {
    let wire = json!({ "uuid": P, "name": "n", "generation": 16, "links": [], "root_provider_uuid": P });
    let expected = ResourceProvider {
        uuid: provider(1),
        name: "n".into(),
        generation: Generation(16),
        parent: None,
    };
    let (client, fake) = always(200, &wire.to_string());
    assert_eq!(client.show_provider(provider(1)).await.unwrap(), expected);
    assert_eq!(fake.lines(), [format!("GET /resource_providers/{P}")]);
    let (client, _) = always(200, &json!({ "resource_providers": [wire] }).to_string());
    assert_eq!(
        client.list_providers(&ProviderFilter::default()).await.unwrap(),
        [expected]
    );
}

#[tokio::test]
async fn a_part_of_a_provider_names_it() {
    let wire = json!({ "uuid": Q, "name": "n:eth0", "generation": 1, "parent_provider_uuid": P });
    let (client, _) = always(200, &wire.to_string());
    assert_eq!(
        client.show_provider(provider(2)).await.unwrap().parent,
        Some(provider(1))
    );
}

#[tokio::test]
async fn a_provider_is_deleted_unless_it_is_in_use() {
    let (client, fake) = always(204, "");
    client.delete_provider(provider(1)).await.unwrap();
    assert_eq!(fake.lines(), [format!("DELETE /resource_providers/{P}")]);
    let in_use = json!({ "errors": [{ "status": 409, "code": "placement.resource_provider.inuse", "detail": "held" }] });
    let (client, _) = always(409, &in_use.to_string());
    let refused = client.delete_provider(provider(1)).await.unwrap_err();
    let code = "placement.resource_provider.inuse".to_owned();
    assert_eq!(refused.kind, ErrorKind::Conflict(Some(code)));
}

#[tokio::test]
async fn a_filter_of_providers_is_one_query() {
    let filter = ProviderFilter {
        uuid: Some(provider(1)),
        name: Some("a b&c/d".into()),
        resources: BTreeMap::from([(class(), 1), ("VCPU".parse().unwrap(), 2)]),
        required: ["CUSTOM_B", "CUSTOM_A"].map(|name| name.parse().unwrap()).into(),
        forbidden: ["CUSTOM_C".parse().unwrap()].into(),
    };
    let (client, fake) = always(200, &json!({ "resource_providers": [] }).to_string());
    client.list_providers(&filter).await.unwrap();
    client.list_providers(&ProviderFilter::default()).await.unwrap();
    let traits = "required=CUSTOM_A,CUSTOM_B,!CUSTOM_C";
    let expected = format!("uuid={P}&name=a%20b%26c%2Fd&resources=CUSTOM_BM:1,VCPU:2&{traits}");
    assert_eq!(
        fake.lines(),
        [
            format!("GET /resource_providers?{expected}"),
            "GET /resource_providers".to_owned()
        ]
    );
}

#[tokio::test]
async fn inventories_go_back_as_they_came() {
    let bm = json!({
        "total": 1, "reserved": 1, "min_unit": 1, "max_unit": 1, "step_size": 1, "allocation_ratio": 1.0,
    });
    let other = json!({
        "total": 40, "reserved": 3, "min_unit": 2, "max_unit": 2_147_483_647, "step_size": 2, "allocation_ratio": 16.5,
    });
    let wire =
        json!({ "resource_provider_generation": 8, "inventories": { "CUSTOM_BM": bm, "VCPU": other } });
    let (client, fake) = always(200, &wire.to_string());
    let read = client.inventories(provider(1)).await.unwrap();
    assert_eq!(
        (read.generation, read.inventories[&class()].reserved),
        (Generation(8), 1)
    );
    assert_eq!(
        client.replace_inventories(provider(1), &read).await.unwrap(),
        read
    );
    let seen = fake.seen();
    assert_eq!(seen[1].method(), "PUT");
    assert_eq!(seen[1].headers()["content-type"], "application/json");
    assert_eq!(Resend::of(&seen[1]), Resend::IfNotApplied);
    assert_eq!(
        serde_json::from_slice::<serde_json::Value>(seen[1].body()).unwrap(),
        wire
    );
}

#[tokio::test]
async fn a_write_whose_answer_cannot_be_read_may_have_been_applied() {
    let (client, _) = always(200, "{");
    let none = Inventories {
        generation: Generation(1),
        inventories: BTreeMap::new(),
    };
    let error = client.replace_inventories(provider(1), &none).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::NoAnswer(Class::Unknown));
}

#[tokio::test]
async fn traits_go_back_as_they_came() {
    let wire = json!({ "resource_provider_generation": 15, "traits": ["COMPUTE_NODE", "CUSTOM_T"] });
    let (client, fake) = always(200, &wire.to_string());
    let read: ProviderTraits = client.provider_traits(provider(1)).await.unwrap();
    assert_eq!((read.generation, read.traits.len()), (Generation(15), 2));
    assert_eq!(
        client.replace_provider_traits(provider(1), &read).await.unwrap(),
        read
    );
    assert_eq!(fake.lines()[1], format!("PUT /resource_providers/{P}/traits"));
    assert_eq!(
        serde_json::from_slice::<serde_json::Value>(fake.seen()[1].body()).unwrap(),
        wire
    );
}

#[tokio::test]
async fn traits_and_classes_may_exist_already() {
    for status in [201, 204] {
        let (client, fake) = always(status, "");
        client.create_trait(&"CUSTOM_T".parse().unwrap()).await.unwrap();
        client.create_resource_class(&class()).await.unwrap();
        assert_eq!(
            fake.lines(),
            ["PUT /traits/CUSTOM_T", "PUT /resource_classes/CUSTOM_BM"]
        );
        assert!(fake.seen().iter().all(|request| request.body().is_empty()));
        assert!(
            fake.seen()
                .iter()
                .all(|request| request.headers()[VERSION] == "placement 1.39")
        );
    }
}

#[tokio::test]
async fn candidates_are_what_would_be_allocated_by_uuid() {
    let summary = |traits: &[&str]| json!({ "traits": traits, "resources": { "CUSTOM_BM": { "capacity": 1, "used": 0 } } });
    let request =
        |uuid: &str| json!({ "allocations": { uuid: { "resources": { "CUSTOM_BM": 1 } } }, "mappings": {} });
    let relative = "00000000-0000-0000-0000-000000000009";
    let wire = json!({
        "allocation_requests": [request(Q), request(P), request(Q)],
        "provider_summaries": { P: summary(&["CUSTOM_B", "CUSTOM_A"]), relative: summary(&[]) },
    });
    let (client, fake) = always(200, &wire.to_string());
    let mut query = CandidateQuery::of(class());
    let found = client.candidates(&query).await.unwrap();
    let traits = ["CUSTOM_A", "CUSTOM_B"].map(|name| name.parse().unwrap());
    assert_eq!(
        found,
        [
            Candidate {
                provider: provider(1),
                traits: traits.clone().into()
            },
            Candidate {
                provider: provider(2),
                traits: [].into()
            },
        ]
    );
    query.required = [traits[0].clone()].into();
    query.forbidden = [traits[1].clone()].into();
    query.limit = Some(5);
    query.in_tree = Some(provider(2));
    client.candidates(&query).await.unwrap();
    assert_eq!(
        fake.lines(),
        [
            "GET /allocation_candidates?resources=CUSTOM_BM:1".to_owned(),
            format!(
                "GET /allocation_candidates?resources=CUSTOM_BM:1&required=CUSTOM_A,!CUSTOM_B&limit=5&in_tree={Q}"
            ),
        ]
    );
    let (client, _) = always(200, r#"{"allocation_requests": [], "provider_summaries": {}}"#);
    assert!(client.candidates(&query).await.unwrap().is_empty());
}

/// Case C11 (derived): only a readable answer may say that nothing is offered.
#[tokio::test]
async fn what_is_no_list_of_candidates_is_an_error() {
    for body in [
        "{}",
        r#"{"allocation_requests": []}"#,
        r#"{"allocation_requests": null, "provider_summaries": {}}"#,
    ] {
        let (client, _) = always(200, body);
        assert_eq!(
            client
                .candidates(&CandidateQuery::of(class()))
                .await
                .unwrap_err()
                .kind,
            ErrorKind::Unreadable
        );
    }
}
