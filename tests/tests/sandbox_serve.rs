//! The sandbox behind a real port.
#![allow(
    clippy::unwrap_used,
    reason = "a helper of a test may fail as the test itself may"
)]

use std::time::Duration;

use reqwest::{Client, StatusCode};
use serde_json::{Value, json};
use unprovision_testkit::sandbox::serve::{Served, real_clock, serve};
use unprovision_testkit::sandbox::{Fault, Sandbox, Service};

async fn served() -> Served {
    let short = Duration::from_millis(100);
    let builder = Sandbox::builder()
        .nodes(2)
        .deployed(1)
        .teardown(short)
        .cleaning(short)
        .clock(real_clock());
    serve(builder.build()).await.unwrap()
}

async fn token(client: &Client, served: &Served) -> String {
    let user = json!({"name": "admin", "domain": {"name": "Default"}, "password": "secret"});
    let scope = json!({"project": {"name": "admin", "domain": {"name": "Default"}}});
    let body =
        json!({"auth": {"identity": {"methods": ["password"], "password": {"user": user}}, "scope": scope}});
    let url = format!("{}/v3/auth/tokens", served.url(Service::Keystone));
    let response = client.post(url).body(body.to_string()).send().await.unwrap();
    assert_eq!(response.status(), StatusCode::CREATED);
    response.headers()["x-subject-token"].to_str().unwrap().to_owned()
}

#[tokio::test]
async fn a_client_logs_in_and_works() {
    let served = served().await;
    let client = Client::builder().no_proxy().build().unwrap();
    let token = token(&client, &served).await;
    let (node, _) = served.sandbox().deployed()[0];
    let base = served.url(Service::Ironic);
    let url = format!("{base}/v1/nodes/{node}");
    assert_eq!(
        client.get(&url).send().await.unwrap().status(),
        StatusCode::UNAUTHORIZED
    );
    let get = || {
        client
            .get(&url)
            .header("x-auth-token", &token)
            .header("x-openstack-ironic-api-version", "1.80")
    };
    let body: Value = get().send().await.unwrap().json().await.unwrap();
    assert_eq!(
        (&body["provision_state"], &body["links"][0]["href"]),
        (&json!("active"), &json!(url))
    );
    let put = client
        .put(format!("{url}/states/provision"))
        .header("x-auth-token", &token);
    let response = put
        .body(json!({"target": "deleted"}).to_string())
        .send()
        .await
        .unwrap();
    assert_eq!(response.status(), StatusCode::ACCEPTED);
    // Nobody asks meanwhile; the log knows the times all the same.
    tokio::time::sleep(Duration::from_millis(600)).await;
    let body: Value = get().send().await.unwrap().json().await.unwrap();
    assert_eq!(body["provision_state"], "available");
    let placement = served.url(Service::Placement);
    let response = client
        .get(format!("{placement}/resource_providers?uuid={node}"))
        .header("x-auth-token", &token);
    assert_eq!(response.send().await.unwrap().status(), StatusCode::OK);
    let log = served.sandbox().log();
    assert!(
        log.requests()
            .any(|line| line.who == "admin" && line.service == Service::Placement)
    );
    served.stop().await.unwrap();
}

#[tokio::test]
async fn lost_answers_are_torn_connections() {
    let served = served().await;
    let client = Client::builder().no_proxy().build().unwrap();
    served
        .sandbox()
        .fault(Fault::on(Service::Ironic).path("/v1").nth(1).lose_reply());
    let url = format!("{}/v1", served.url(Service::Ironic));
    let torn = match client.get(&url).send().await {
        Ok(response) => response.bytes().await.is_err(),
        Err(_) => true,
    };
    assert!(torn);
    assert_eq!(client.get(&url).send().await.unwrap().status(), StatusCode::OK);
}

#[tokio::test]
async fn settings_are_written_for_shells_and_clients() {
    let served = served().await;
    let openrc = served.openrc();
    assert!(
        openrc.contains(&format!(
            "export OS_AUTH_URL='http://{}/identity'\n",
            served.address()
        )),
        "{openrc}"
    );
    for line in [
        "OS_USERNAME='admin'",
        "OS_PASSWORD='secret'",
        "OS_PROJECT_NAME='admin'",
        "OS_REGION_NAME='RegionOne'",
    ] {
        assert!(openrc.contains(line), "{line}");
    }
    assert!(served.clouds_yaml("sandbox").contains("  sandbox:\n    auth:\n"));
    assert_eq!(
        reqwest::get(format!("http://{}/elsewhere", served.address()))
            .await
            .unwrap()
            .status(),
        StatusCode::NOT_FOUND
    );
}
