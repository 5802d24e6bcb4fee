//! Cases, nodes and the audit.

use std::collections::BTreeSet;
use std::time::Duration;

use reqwest::Method;
use serde_json::Value;
use unprovision_service::Access;

use crate::schema::misfit;
use crate::served::{Served, problem};

const LOOK: Duration = Duration::from_millis(50);

/// Both nodes have been away and are back.
async fn two_have_returned() -> Served {
    let served = Served::start(Access::default(), LOOK).await;
    served.is_ready().await;
    for instance in served.instances() {
        served.nova_deletes(instance);
    }
    let closed = async || rows(&served.get("/v1/cases?state=closed").await, "cases").len() == 2;
    served.until("both have returned", closed).await;
    served
}

fn rows<'a>(page: &'a Value, of: &str) -> &'a Vec<Value> {
    page[of].as_array().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn cases_are_listed_while_they_are_open_and_told_for_good() {
    let served = Served::start(Access::default(), LOOK).await;
    served.is_ready().await;
    let instance = served.instances()[0];
    served.nova_deletes(instance);
    let open = async || rows(&served.get("/v1/cases").await, "cases").len() == 1;
    served.until("its case is open", open).await;
    let closed = async || rows(&served.get("/v1/cases?state=closed").await, "cases").len() == 1;
    served.until("its case is closed", closed).await;
    assert!(rows(&served.get("/v1/cases").await, "cases").is_empty());
    let case = served.get("/v1/cases?state=all").await["cases"][0].clone();
    assert_eq!(
        (&case["kind"], &case["outcome"]),
        (&"guard".into(), &"returned".into())
    );
    for word in ["case", "node", "name"].map(|key| case[key].as_str().unwrap()) {
        let stories = served.get(&format!("/v1/cases/{word}")).await;
        let entries = rows(&rows(&stories, "cases")[0], "entries");
        assert_eq!(entries[0]["event"], "opened", "{word}");
        assert_eq!(entries.last().unwrap()["event"], "closed", "{word}");
        let numbers = entries
            .iter()
            .map(|entry| entry["seq"].as_u64().unwrap() as usize);
        assert!(numbers.eq(1..=entries.len()), "{entries:?}");
    }
    let unknown = problem(served.ask(Method::GET, "/v1/cases/nobody", None).await, 404).await;
    assert!(
        unknown["detail"].as_str().unwrap().contains("nobody"),
        "{unknown}"
    );
}

/// Following `next` to its end shows everything once.
#[tokio::test(flavor = "multi_thread")]
async fn pages_show_everything_once() {
    let served = two_have_returned().await;
    for (of, key, first) in [
        ("cases", "case", "/v1/cases?state=all&limit=1"),
        ("nodes", "node", "/v1/nodes?limit=1&state=available"),
    ] {
        let (mut seen, mut pages, mut next) = (BTreeSet::new(), 0, Some(first.to_owned()));
        while let Some(path) = next {
            let page = served.get(&path).await;
            assert!(rows(&page, of).len() <= 1, "{page}");
            for row in rows(&page, of) {
                assert!(seen.insert(row[key].to_string()), "twice: {row}");
            }
            pages += 1;
            next = page["next"].as_str().map(str::to_owned);
        }
        assert_eq!((seen.len(), pages), (2, 2), "{of}");
    }
    let none = served.get("/v1/nodes?state=clean%20wait").await;
    assert!(rows(&none, "nodes").is_empty(), "{none}");
}

/// Readers never multiply what Ironic and Placement are asked.
#[tokio::test(flavor = "multi_thread")]
async fn many_readers_cost_one_look() {
    // The guard looks once an hour here.
    let served = Served::start(Access::default(), Duration::from_secs(3600)).await;
    served.is_ready().await;
    for path in ["/v1/nodes", "/v1/audit", "/v1/audit?deep=true"] {
        let count = || {
            served
                .sandbox
                .log()
                .requests()
                .filter(|line| line.who != "nova")
                .count()
        };
        let before = count();
        let first = served.get(path).await;
        let one = count() - before;
        assert!(one > 0, "{path} asks nobody");
        let again = (0..20).map(|_| served.get(path));
        for other in futures::future::join_all(again).await {
            assert_eq!(other["seen_at"], first["seen_at"], "{path}");
        }
        assert_eq!(count() - before, one, "{path}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_audit_tells_what_does_not_fit() {
    let served = Served::start(Access::default(), Duration::from_secs(3600)).await;
    served.is_ready().await;
    let node = served.sandbox.nodes()[0];
    served
        .sandbox
        .with(|world, _| world.edit_node(node, |node| node.resource_class = None));
    let audit = served.get("/v1/audit").await;
    let kinds = rows(&audit, "findings")
        .iter()
        .filter(|finding| finding["node"] == node.to_string());
    let kinds = kinds
        .map(|finding| finding["kind"].as_str().unwrap())
        .collect::<Vec<_>>();
    assert!(kinds.contains(&"no-resource-class"), "{audit}");
    assert_eq!(audit["nodes"], 2);
    problem(served.ask(Method::GET, "/v1/audit?scope=none", None).await, 404).await;
    let description = served.get("/openapi.json").await;
    fits(&description, "/v1/audit", &audit);
}

fn fits(description: &Value, path: &str, answer: &Value) {
    let ok = &description["paths"][path]["get"]["responses"]["200"];
    let schema = &ok["content"]["application/json"]["schema"];
    assert!(schema.is_object(), "{path} does not say what it answers");
    assert_eq!(misfit(description, schema, answer, path), None);
}

#[tokio::test(flavor = "multi_thread")]
async fn answers_are_as_they_are_described() {
    let served = two_have_returned().await;
    let description = served.get("/openapi.json").await;
    for (path, asked) in [
        ("/v1/cases", "/v1/cases?state=all"),
        ("/v1/cases", "/v1/cases"),
        ("/v1/cases/{node}", "/v1/cases/node-0001"),
        ("/v1/nodes", "/v1/nodes"),
        ("/v1/status", "/v1/status"),
    ] {
        fits(&description, path, &served.get(asked).await);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_query_that_cannot_be_meant_is_refused() {
    let served = Served::start(Access::default(), LOOK).await;
    for path in [
        "/v1/cases?limit=0",
        "/v1/cases?limit=1001",
        "/v1/cases?limit=-1",
        "/v1/cases?state=gone",
        "/v1/cases?marker=x",
        "/v1/cases?more=1",
        "/v1/cases/%FF",
        "/v1/nodes?limit=0",
        "/v1/nodes?marker=",
        "/v1/audit?deep=perhaps",
    ] {
        problem(served.ask(Method::GET, path, None).await, 400).await;
    }
}
