//! The interface over a real socket, with a guard on the sandbox.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "what goes wrong fails the test"
)]

mod lists;
mod schema;
mod served;

use std::collections::BTreeSet;
use std::time::Duration;

use reqwest::Method;
use serde_json::{Value, json};
use unprovision_service::Access;
use uuid::Uuid;

use crate::served::{Served, json_of, problem, read};

#[tokio::test(flavor = "multi_thread")]
async fn a_guard_tells_how_it_is() {
    let served = Served::start(Access::default(), Duration::from_millis(50)).await;
    assert_eq!(served.ask(Method::GET, "/healthz", None).await.status(), 204);
    served.is_ready().await;
    let status = served.get("/v1/status").await;
    assert_eq!(status["nodes"], 2, "{status}");
    assert_eq!(status["version"], "1.2.3");
    assert_eq!(status["held"], 0);
    assert_eq!(status["stopped"], Value::Null);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_happens_to_a_node_is_told_and_told_again_from_any_point() {
    let served = Served::start(Access::default(), Duration::from_millis(50)).await;
    served.is_ready().await;
    let stream = served.ask(Method::GET, "/v1/events", None).await;
    for instance in served.instances() {
        served.nova_deletes(instance);
    }
    let told = read(stream, 4).await;
    let names = told.iter().map(|(_, name, _)| name.as_str()).collect::<Vec<_>>();
    assert_eq!(
        names.iter().filter(|name| **name == "held").count(),
        2,
        "{names:?}"
    );
    assert_eq!(
        names.iter().filter(|name| **name == "released").count(),
        2,
        "{names:?}"
    );
    for (id, name, data) in &told {
        assert_eq!(data["id"].as_u64(), *id);
        assert_eq!(data["event"], name.as_str());
    }
    // Whoever comes back goes on where they were: nothing twice, nothing missing.
    for seen in 0..3 {
        let after = told[seen].0.unwrap();
        let asked = served.client.get(format!("{}/v1/events", served.address));
        let again = asked.header("Last-Event-ID", after).send().await.unwrap();
        assert_eq!(read(again, 3 - seen).await, told[seen + 1..]);
        let path = format!("/v1/events?after={after}");
        let again = served.ask(Method::GET, &path, None).await;
        assert_eq!(read(again, 3 - seen).await, told[seen + 1..]);
    }
    let old = served.ask(Method::GET, "/v1/events?after=7", None).await;
    let first = &read(old, 1).await[0];
    assert_eq!(
        (first.0, first.1.as_str()),
        (None, "missed"),
        "of an earlier process"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn streams_are_counted_and_given_back() {
    let served = Served::start(Access::default(), Duration::from_millis(50)).await;
    let mut streams = Vec::new();
    for _ in 0..256 {
        streams.push(served.ask(Method::GET, "/v1/events", None).await);
    }
    assert!(streams.iter().all(|stream| stream.status() == 200));
    let one_more = served.ask(Method::GET, "/v1/events", None).await;
    assert!(one_more.headers().contains_key("retry-after"));
    problem(one_more, 503).await;
    streams.clear();
    served
        .until("a place is free again", async || {
            served.ask(Method::GET, "/v1/events", None).await.status() == 200
        })
        .await;
}

/// The guard looks once an hour here, so only the hint can have told it.
#[tokio::test(flavor = "multi_thread")]
async fn a_hint_wakes_the_guard() {
    let served = Served::start(Access::default(), Duration::from_secs(3600)).await;
    served
        .until("the first sweep", async || {
            served.get("/v1/status").await["last_sweep"].is_string()
        })
        .await;
    let instance = served.instances()[0];
    let node = served.sandbox.with(|world, _| {
        let mut nodes = world.nodes().into_iter();
        nodes
            .find(|node| node.instance_uuid == Some(instance))
            .unwrap()
            .uuid
    });
    served.nova_deletes(instance);
    let hint = json!({"nodes": [node], "reason": "it was deleted"});
    let answer = served.ask(Method::POST, "/v1/hints", Some(hint)).await;
    assert_eq!(answer.status(), 202);
    assert_eq!(json_of(answer).await, json!({"taken": 1}));
    served
        .until("held", async || served.get("/v1/status").await["held"] == 1)
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn all_writes_stop_and_go_on_for_those_who_may() {
    let pause = || Some(json!({"reason": "the power is being worked on"}));
    let guest = Served::start(Access::default(), Duration::from_millis(50)).await;
    for method in [Method::POST, Method::DELETE] {
        let refused = guest.ask(method, "/v1/pause", pause()).await;
        let told = problem(refused, 403).await;
        assert!(told["next"].as_str().unwrap().contains("trust_local"), "{told}");
    }
    assert_eq!(guest.get("/v1/status").await["stopped"], Value::Null);

    let trusted = Access { trust_local: true };
    let served = Served::start(trusted, Duration::from_millis(50)).await;
    served.is_ready().await;
    let paused = served.ask(Method::POST, "/v1/pause", pause()).await;
    let status = json_of(paused).await;
    let why = status["stopped"].as_str().unwrap();
    assert!(
        why.contains("the power is being worked on (somebody on this machine)"),
        "{why}"
    );
    served.nova_deletes(served.instances()[0]);
    served
        .until("its case is open", async || {
            served.get("/v1/status").await["open"] == 1
        })
        .await;
    let writes = served
        .sandbox
        .log()
        .requests()
        .filter(|line| !line.method.is_safe() && line.who != "nova")
        .count();
    assert_eq!(writes, 0);
    let goes_on = served.ask(Method::DELETE, "/v1/pause", pause()).await;
    assert_eq!(json_of(goes_on).await["stopped"], Value::Null);
    served
        .until("its case is closed", async || {
            served.get("/v1/status").await["open"] == 0
        })
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn whatever_cannot_be_is_told_as_a_problem() {
    let served = Served::start(Access { trust_local: true }, Duration::from_millis(50)).await;
    let ask = |method, path: &'static str, body| served.ask(method, path, body);
    problem(ask(Method::GET, "/v1/nothing", None).await, 404).await;
    let wrong = ask(Method::PUT, "/v1/status", None).await;
    assert!(wrong.headers().contains_key("allow"));
    problem(wrong, 405).await;
    problem(
        ask(Method::POST, "/v1/hints", Some(json!({"nodes": []}))).await,
        400,
    )
    .await;
    problem(
        ask(Method::POST, "/v1/hints", Some(json!({"nodes": ["node-0001"]}))).await,
        422,
    )
    .await;
    problem(
        ask(Method::POST, "/v1/hints", Some(json!({"nodes": [], "more": 1}))).await,
        422,
    )
    .await;
    problem(
        ask(Method::POST, "/v1/pause", Some(json!({"reason": "  "}))).await,
        400,
    )
    .await;
    problem(ask(Method::GET, "/v1/events?after=x", None).await, 400).await;
    let many = json!({"nodes": vec![Uuid::nil(); 1001]});
    problem(ask(Method::POST, "/v1/hints", Some(many)).await, 400).await;
    let large = json!({"nodes": [], "reason": "x".repeat(70_000)});
    problem(ask(Method::POST, "/v1/hints", Some(large)).await, 413).await;
    let post = |kind, body| {
        let request = served.client.post(format!("{}/v1/hints", served.address));
        request.header("Content-Type", kind).body(body).send()
    };
    problem(post("text/plain", "{}").await.unwrap(), 415).await;
    problem(post("application/json", "{").await.unwrap(), 400).await;
    let asked = served.client.get(format!("{}/v1/status", served.address));
    problem(
        asked.header("Host", "evil.example.org").send().await.unwrap(),
        403,
    )
    .await;
    let asked = served.client.get(format!("{}/v1/events", served.address));
    problem(asked.header("Last-Event-ID", "x").send().await.unwrap(), 400).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn all_that_there_is_is_described() {
    let served = Served::start(Access::default(), Duration::from_millis(50)).await;
    let description = served.get("/openapi.json").await;
    assert_eq!(description["info"]["version"], "1.2.3");
    let paths = description["paths"].as_object().unwrap();
    let described = paths.keys().map(String::as_str).collect::<BTreeSet<_>>();
    let expected = [
        "/healthz",
        "/readyz",
        "/v1/cases",
        "/v1/cases/{node}",
        "/v1/nodes",
        "/v1/audit",
        "/v1/status",
        "/v1/events",
        "/v1/hints",
        "/v1/pause",
    ];
    assert_eq!(described, BTreeSet::from(expected));
    for (path, methods) in paths {
        for (method, operation) in methods.as_object().unwrap() {
            let responses = operation["responses"].as_object().unwrap();
            assert!(!responses.is_empty(), "{method} {path} answers nothing");
            let body = (method != "get").then(|| json!({}));
            let method = method.to_uppercase().parse().unwrap();
            let answer = served.ask(method, path, body).await;
            let status = answer.status().as_u16().to_string();
            assert!(
                responses.contains_key(&status),
                "{path} answers {status}, which is not described"
            );
        }
    }
}
