//! Each call: what is sent, what is read.

use http::Request;
use ironic_client::{CleanStep, ErrorKind, Ironic, NodeField, NodeFilter, NodeUuid, ProvisionRequest, Verb};
use serde_json::{Value, json};
use unprovision_session::Resend;
use uuid::Uuid;

use super::fake::{self, VERSION, always, fault, ironic, reply};

const NODE: &str = "00000000-0000-0000-0000-000000000001";

fn node() -> NodeUuid {
    NodeUuid(Uuid::from_u128(1))
}

fn body(request: &Request<bytes::Bytes>) -> Value {
    serde_json::from_slice(request.body()).unwrap()
}

#[tokio::test]
async fn every_request_names_its_version() {
    let (client, fake) = always(204, "");
    client.set_maintenance(node(), "why").await.unwrap();
    client.clear_maintenance(node()).await.unwrap();
    client.add_node_trait(node(), "CUSTOM_T").await.unwrap();
    client.remove_node_trait(node(), "CUSTOM_T").await.unwrap();
    client
        .set_provision_state(node(), &Verb::Deleted.into())
        .await
        .unwrap();
    client.node_traits(node()).await.unwrap_err();
    let all = fake.all();
    assert_eq!(all.len(), 7);
    assert_eq!(all[0].headers()[VERSION], "1.38");
    assert!(
        all[1..]
            .iter()
            .all(|request| request.headers()[VERSION] == "1.115")
    );
    assert!(
        all.iter()
            .all(|request| request.headers()["accept"] == "application/json")
    );
    for request in &all {
        assert_eq!(
            request.headers().contains_key("content-type"),
            !request.body().is_empty()
        );
    }
    assert_eq!(
        fake.lines(),
        [
            format!("PUT /v1/nodes/{NODE}/maintenance"),
            format!("DELETE /v1/nodes/{NODE}/maintenance"),
            format!("PUT /v1/nodes/{NODE}/traits/CUSTOM_T"),
            format!("DELETE /v1/nodes/{NODE}/traits/CUSTOM_T"),
            format!("PUT /v1/nodes/{NODE}/states/provision"),
            format!("GET /v1/nodes/{NODE}/traits"),
        ]
    );
    assert_eq!(body(&all[1]), json!({ "reason": "why" }));
}

#[tokio::test]
async fn only_the_provision_call_is_never_sent_twice() {
    let (client, fake) = always(202, "");
    client
        .set_provision_state(node(), &Verb::Deleted.into())
        .await
        .unwrap();
    client.set_maintenance(node(), "").await.unwrap();
    client.add_node_trait(node(), "CUSTOM_T").await.unwrap();
    let kinds: Vec<_> = fake.seen().iter().map(Resend::of).collect();
    assert_eq!(kinds, [Resend::Never, Resend::IfNotApplied, Resend::IfNotApplied]);
}

#[tokio::test]
async fn a_verb_goes_out_as_its_word_and_steps_only_with_clean() {
    let step = CleanStep {
        interface: "deploy".into(),
        step: "erase_devices".into(),
        args: serde_json::Map::new(),
    };
    for verb in Verb::ALL {
        let (client, fake) = always(202, "");
        client
            .set_provision_state(
                node(),
                &ProvisionRequest {
                    verb,
                    clean_steps: vec![step.clone()],
                },
            )
            .await
            .unwrap();
        let sent = body(&fake.seen()[0]);
        assert_eq!(sent["target"], verb.as_str());
        let steps = json!([{ "interface": "deploy", "step": "erase_devices", "args": {} }]);
        assert_eq!(sent.get("clean_steps"), (verb == Verb::Clean).then_some(&steps));
    }
}

#[tokio::test]
async fn names_are_encoded_and_cannot_leave_their_place() {
    let answer = fake::node().to_string();
    for (name, path) in [
        ("node-0001", "node-0001"),
        ("a/b", "a%2Fb"),
        ("a?b#c", "a%3Fb%23c"),
        ("../conductors", "..%2Fconductors"),
        ("r 1%2F", "r%201%252F"),
        ("größe", "gr%C3%B6%C3%9Fe"),
    ] {
        let (client, fake) = always(200, &answer);
        assert_eq!(client.show_node(name).await.unwrap().uuid, node());
        assert_eq!(fake.seen()[0].uri().path(), format!("/v1/nodes/{path}"));
    }
    let (client, fake) = always(200, &answer);
    for name in ["", ".", ".."] {
        assert_eq!(
            client.show_node(name).await.unwrap_err().kind,
            ErrorKind::BadRequest
        );
        assert_eq!(
            client.add_node_trait(node(), name).await.unwrap_err().kind,
            ErrorKind::BadRequest
        );
        assert_eq!(
            client.remove_node_trait(node(), name).await.unwrap_err().kind,
            ErrorKind::BadRequest
        );
    }
    assert!(fake.seen().is_empty());
}

#[tokio::test]
async fn a_list_always_has_the_uuid_and_the_state() {
    let (client, fake) = always(200, &json!({ "nodes": [] }).to_string());
    let fields = [
        NodeField::ResourceClass,
        NodeField::ProvisionState,
        NodeField::ResourceClass,
    ];
    let filter = NodeFilter {
        associated: Some(true),
        resource_class: Some("bm.a+b".into()),
        ..NodeFilter::default()
    };
    assert!(client.list_nodes(&filter, &fields).await.unwrap().is_empty());
    let expected =
        "associated=true&resource_class=bm.a%2Bb&fields=uuid,provision_state,resource_class&limit=1000";
    assert_eq!(fake.lines(), [format!("GET /v1/nodes?{expected}")]);
}

#[tokio::test]
async fn traits_are_read() {
    let (client, _) = always(200, &json!({ "traits": ["CUSTOM_B", "CUSTOM_A"] }).to_string());
    let traits = client.node_traits(node()).await.unwrap();
    assert_eq!(traits.into_iter().collect::<Vec<_>>(), ["CUSTOM_A", "CUSTOM_B"]);
}

#[tokio::test]
async fn a_trait_that_is_gone_already_is_removed_but_a_missing_node_is_not() {
    let absent = fault(&format!("Node {NODE} doesn't have a trait 'CUSTOM_T'")).to_string();
    let (client, _) = always(404, &absent);
    client.remove_node_trait(node(), "CUSTOM_T").await.unwrap();
    assert_eq!(
        client.remove_node_trait(node(), "CUSTOM").await.unwrap_err().kind,
        ErrorKind::NotFound
    );
    assert_eq!(
        client.add_node_trait(node(), "CUSTOM_T").await.unwrap_err().kind,
        ErrorKind::NotFound
    );
    let (client, _) = ironic("1.115", |_| {
        reply(404, &fault(&format!("Node {NODE} could not be found.")))
    });
    assert_eq!(
        client
            .remove_node_trait(node(), "CUSTOM_T")
            .await
            .unwrap_err()
            .kind,
        ErrorKind::NotFound
    );
}
