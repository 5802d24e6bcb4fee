//! Case C16: lists of more than one page.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use http::Request;
use ironic_client::{ErrorKind, Ironic, NodeField, NodeFilter, NodeUuid, ProvisionState};
use serde_json::{Value, json};
use unprovision_session::Class;
use uuid::Uuid;

use super::fake::{Answer, fault, ironic, parameter, reply};

fn uuid(number: usize) -> Uuid {
    Uuid::from_u128(number as u128 + 1)
}

/// What a service with so many nodes answers; `link` makes the query of its `next`.
fn page(
    request: &Request<bytes::Bytes>,
    count: usize,
    cap: usize,
    link: impl Fn(&str, usize) -> Option<String>,
) -> Answer {
    let limit = parameter(request, "limit")
        .unwrap()
        .parse::<usize>()
        .unwrap()
        .min(cap);
    let start =
        parameter(request, "marker").map_or(0, |marker| marker.parse::<Uuid>().unwrap().as_u128() as usize);
    let nodes: Vec<Value> = (start..count.min(start + limit))
        .map(|n| json!({ "uuid": uuid(n), "provision_state": "active", "instance_uuid": null, "links": [] }))
        .collect();
    let mut body = json!({ "nodes": nodes });
    if nodes.len() == limit {
        let last = nodes[limit - 1]["uuid"].as_str().unwrap();
        if let Some(query) = link(last, limit) {
            body["next"] = json!(format!("http://wrong.example:1/other/v1/nodes?{query}"));
        }
    }
    reply(200, &body)
}

fn good_link(last: &str, limit: usize) -> Option<String> {
    Some(format!(
        "sort_key=id&sort_dir=asc&fields=uuid,provision_state&limit={limit}&marker={last}"
    ))
}

async fn list(count: usize, cap: usize, link: fn(&str, usize) -> Option<String>) -> (usize, Vec<String>) {
    let (client, fake) = ironic("1.115", move |request| page(request, count, cap, link));
    let nodes = client
        .list_nodes(&NodeFilter::default(), &[NodeField::InstanceUuid])
        .await
        .unwrap();
    let expected: Vec<_> = (0..count).map(|n| NodeUuid(uuid(n))).collect();
    assert_eq!(nodes.iter().map(|node| node.uuid).collect::<Vec<_>>(), expected);
    (nodes.len(), fake.lines())
}

#[tokio::test]
async fn lists_are_followed_to_their_end() {
    for (count, requests) in [(0, 1), (1, 1), (999, 1), (1000, 2), (1001, 2), (2500, 3)] {
        let (_, lines) = list(count, 1000, good_link).await;
        assert_eq!(lines.len(), requests, "{count} nodes");
        for line in &lines {
            assert!(line.starts_with("GET /v1/nodes?"), "{line}");
            assert!(
                line.contains("fields=uuid,provision_state,instance_uuid&limit=1000"),
                "{line}"
            );
            assert!(
                !line.contains("wrong.example") && line.matches("fields=").count() == 1,
                "{line}"
            );
        }
        assert!(
            lines
                .iter()
                .skip(1)
                .all(|line| line.contains("sort_key=id") && line.contains("marker="))
        );
    }
}

#[tokio::test]
async fn a_lower_cap_of_the_service_is_followed_too() {
    let (_, lines) = list(1200, 500, good_link).await;
    assert_eq!(lines.len(), 3);
}

#[tokio::test]
async fn a_full_page_without_a_link_is_asked_on_by_marker() {
    for (count, requests) in [(1000, 2), (1001, 2), (2000, 3)] {
        let (_, lines) = list(count, 1000, |_, _| None).await;
        assert_eq!(lines.len(), requests, "{count} nodes");
        assert!(
            lines[1].ends_with(&format!("marker={}", uuid(999))),
            "{}",
            lines[1]
        );
    }
}

#[tokio::test]
async fn a_link_without_fields_or_marker_still_works() {
    let (_, lines) = list(1500, 1000, |last, limit| {
        Some(format!("limit={limit}&marker={last}"))
    })
    .await;
    assert!(lines[1].contains("fields=uuid,provision_state"));
    list(1500, 1000, |_, _| Some(String::new())).await;
}

#[tokio::test]
async fn the_filter_is_on_every_page() {
    let (client, fake) = ironic("1.115", |request| {
        page(request, 1500, 1000, |last, _| Some(format!("marker={last}")))
    });
    let filter = NodeFilter {
        provision_state: Some(ProvisionState::DeployWait),
        maintenance: Some(false),
        conductor_group: Some(String::new()),
        shard: Some("rack 7&8".into()),
        ..NodeFilter::default()
    };
    client.list_nodes(&filter, &[]).await.unwrap();
    let expected = "provision_state=wait%20call%2Dback";
    let lines = fake.lines();
    assert_eq!(lines.len(), 2);
    for line in lines {
        let line = line.replace("call-back", "call%2Dback");
        assert!(line.contains(expected), "{line}");
        assert!(
            line.contains("maintenance=false&conductor_group=&shard=rack%207%268&fields="),
            "{line}"
        );
    }
}

#[tokio::test]
async fn a_link_that_goes_round_is_an_error() {
    let (client, fake) = ironic("1.115", |request| {
        page(request, 5000, 1000, |_, limit| {
            Some(format!("limit={limit}&marker={}", uuid(999)))
        })
    });
    let error = client.list_nodes(&NodeFilter::default(), &[]).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Unreadable);
    assert!(error.to_string().contains(&uuid(999).to_string()), "{error}");
    assert_eq!(fake.seen().len(), 2);
}

#[tokio::test]
async fn a_service_that_ignores_the_marker_is_an_error() {
    let (client, _) = ironic("1.115", |_| {
        let nodes: Vec<_> = (0..1000)
            .map(|n| json!({ "uuid": uuid(n), "provision_state": "active" }))
            .collect();
        reply(200, &json!({ "nodes": nodes }))
    });
    let error = client.list_nodes(&NodeFilter::default(), &[]).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Unreadable);
}

#[tokio::test]
async fn a_page_that_fails_fails_the_list() {
    for (status, kind) in [
        (404, ErrorKind::NotFound),
        (500, ErrorKind::Server),
        (503, ErrorKind::Busy),
    ] {
        let (client, _) = ironic("1.115", move |request| match parameter(request, "marker") {
            Some(_) => reply(status, &fault("Node could not be found.")),
            None => page(request, 1500, 1000, good_link),
        });
        let error = client.list_nodes(&NodeFilter::default(), &[]).await.unwrap_err();
        assert_eq!((error.kind, error.call.as_str()), (kind, "list nodes"));
    }
}

#[tokio::test]
async fn one_node_that_cannot_be_read_is_named() {
    let (client, _) = ironic("1.115", |_| {
        let good = json!({ "uuid": uuid(1), "provision_state": "moonwalking" });
        let bad = json!({ "uuid": uuid(2), "provision_state": "active", "instance_uuid": "i-7" });
        reply(200, &json!({ "nodes": [good, bad] }))
    });
    let error = client.list_nodes(&NodeFilter::default(), &[]).await.unwrap_err();
    assert_eq!(error.kind.class(), Class::Bug);
    assert!(error.message.contains(&uuid(2).to_string()), "{error}");
}

#[tokio::test]
async fn what_is_no_list_is_never_an_empty_list() {
    for body in [
        json!({}),
        json!({ "nodes": null }),
        json!([]),
        json!({ "nodes": {} }),
        json!("nodes"),
    ] {
        let (client, _) = ironic("1.115", move |_| reply(200, &body));
        let error = client.list_nodes(&NodeFilter::default(), &[]).await.unwrap_err();
        assert_eq!(error.kind, ErrorKind::Unreadable);
    }
}

#[tokio::test]
async fn a_node_on_two_pages_is_listed_once() {
    let (client, _) = ironic("1.115", |request| {
        let first = parameter(request, "marker").is_none();
        let numbers = if first { [1, 2] } else { [2, 3] };
        let mut body =
            json!({ "nodes": numbers.map(|n| json!({ "uuid": uuid(n), "provision_state": "active" })) });
        if first {
            body["next"] = json!(format!("/v1/nodes?marker={}", uuid(2)));
        }
        reply(200, &body)
    });
    let nodes = client.list_nodes(&NodeFilter::default(), &[]).await.unwrap();
    assert_eq!(
        nodes.iter().map(|node| node.uuid.0).collect::<Vec<_>>(),
        [1, 2, 3].map(uuid)
    );
}

/// Without the key a node would look as if it carried no instance.
#[tokio::test]
async fn what_decides_about_free_must_be_there_if_it_was_asked_for() {
    for (field, key) in [
        (NodeField::InstanceUuid, "instance_uuid"),
        (NodeField::Maintenance, "maintenance"),
        (NodeField::Retired, "retired"),
    ] {
        let (client, _) = ironic("1.115", |_| {
            reply(
                200,
                &json!({ "nodes": [{ "uuid": uuid(1), "provision_state": "available" }] }),
            )
        });
        assert_eq!(
            client
                .list_nodes(&NodeFilter::default(), &[NodeField::Name])
                .await
                .unwrap()
                .len(),
            1
        );
        let error = client
            .list_nodes(&NodeFilter::default(), &[field])
            .await
            .unwrap_err();
        assert_eq!(error.kind, ErrorKind::Unreadable);
        assert!(
            error.message.contains(key) && error.message.contains(&uuid(1).to_string()),
            "{error}"
        );
    }
}

/// LP ironic 1718683: the only match came with a link to itself.
#[tokio::test]
async fn the_node_of_an_instance_has_no_second_page() {
    let (client, fake) = ironic("1.115", |_| {
        let node = json!({ "uuid": uuid(1), "provision_state": "active", "instance_uuid": uuid(7) });
        reply(
            200,
            &json!({ "nodes": [node], "next": "http://h/v1/nodes?limit=1&marker=x" }),
        )
    });
    let filter = NodeFilter {
        instance_uuid: Some(uuid(7)),
        ..NodeFilter::default()
    };
    assert_eq!(client.list_nodes(&filter, &[]).await.unwrap().len(), 1);
    assert_eq!(fake.seen().len(), 1);
}

#[tokio::test]
async fn a_list_without_end_ends() {
    let count = Arc::new(AtomicUsize::new(0));
    let calls = count.clone();
    let (client, _) = ironic("1.115", move |_| {
        let n = calls.fetch_add(1, Ordering::Relaxed);
        let node = json!({ "uuid": uuid(n), "provision_state": "active" });
        reply(
            200,
            &json!({ "nodes": [node], "next": format!("?marker={}", uuid(n)) }),
        )
    });
    let error = client.list_nodes(&NodeFilter::default(), &[]).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Unreadable);
    assert_eq!(count.load(Ordering::Relaxed), 10_000);
}
