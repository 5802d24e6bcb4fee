//! Keystone's tokens, and what they open at Ironic and Placement.
#![allow(
    clippy::unwrap_used,
    reason = "a helper of a test may fail as the test itself may"
)]

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Method, Request, StatusCode};
use jiff::Timestamp;
use serde_json::{Value, json};
use unprovision_testkit::sandbox::config::{Auth, User};
use unprovision_testkit::sandbox::handle::beginning;
use unprovision_testkit::sandbox::keystone::id;
use unprovision_testkit::sandbox::{Builder, Sandbox, Service, World};

struct Reply {
    status: StatusCode,
    headers: HeaderMap,
    body: Value,
}

fn at(seconds: u64) -> Timestamp {
    beginning().checked_add(Duration::from_secs(seconds)).unwrap()
}

fn send(
    world: &mut World,
    service: Service,
    method: Method,
    path: &str,
    headers: &[(&str, &str)],
    body: Option<Value>,
) -> Reply {
    let mut request = Request::builder().method(method).uri(path);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let request = request
        .body(Bytes::from(body.map(|body| body.to_string()).unwrap_or_default()))
        .unwrap();
    let now = world.now();
    let response = world.handle(service, &request, now);
    let body = serde_json::from_slice(response.body()).unwrap_or(Value::Null);
    Reply {
        status: response.status(),
        headers: response.headers().clone(),
        body,
    }
}

fn cloud() -> Builder {
    Sandbox::builder().nodes(2).configure(|c| {
        let mut user = User::admin("admin", "secret", "admin");
        user.application_credential = Some(("cred-id".into(), "guard".into(), "cred-secret".into()));
        c.keystone.users = vec![user];
    })
}

fn password(scope: Value) -> Value {
    let user = json!({"name": "admin", "domain": {"id": "default"}, "password": "secret"});
    json!({"auth": {"identity": {"methods": ["password"], "password": {"user": user}}, "scope": scope}})
}

fn project() -> Value {
    json!({"project": {"name": "admin", "domain": {"id": "default"}}})
}

fn log_in(world: &mut World, body: Value) -> Reply {
    send(
        world,
        Service::Keystone,
        Method::POST,
        "/v3/auth/tokens",
        &[],
        Some(body),
    )
}

fn token(world: &mut World, scope: Value) -> String {
    let reply = log_in(world, password(scope));
    assert_eq!(reply.status, StatusCode::CREATED);
    reply.headers["x-subject-token"].to_str().unwrap().to_owned()
}

fn nodes(world: &mut World, token: &str) -> Reply {
    send(
        world,
        Service::Ironic,
        Method::GET,
        "/v1/nodes",
        &[("x-auth-token", token)],
        None,
    )
}

fn providers(world: &mut World, token: &str) -> Reply {
    send(
        world,
        Service::Placement,
        Method::GET,
        "/resource_providers",
        &[("x-auth-token", token)],
        None,
    )
}

#[test]
fn documents_are_open_and_have_the_recorded_shape() {
    let mut world = cloud().world(beginning());
    let root = send(&mut world, Service::Keystone, Method::GET, "/", &[], None);
    assert_eq!(root.status, StatusCode::MULTIPLE_CHOICES);
    assert_eq!(
        root.body["versions"]["values"][0]["links"][0]["href"],
        "http://sandbox.invalid/identity/v3/"
    );
    let v3 = send(&mut world, Service::Keystone, Method::GET, "/v3/", &[], None);
    assert_eq!(v3.body["version"]["id"], "v3.14");
    assert_eq!(
        send(&mut world, Service::Ironic, Method::GET, "/v1", &[], None).status,
        StatusCode::OK
    );
    assert_eq!(
        send(&mut world, Service::Placement, Method::GET, "/", &[], None).status,
        StatusCode::OK
    );
}

#[test]
fn a_password_gives_a_token_with_a_catalog() {
    let mut world = cloud().world(beginning());
    let reply = log_in(&mut world, password(project()));
    let token = &reply.body["token"];
    assert_eq!(token["project"]["name"], "admin");
    assert_eq!(token["project"]["id"], id("project/admin"));
    assert_eq!(token["expires_at"], "2026-01-01T04:00:00.000000Z");
    let types: Vec<&str> = token["catalog"]
        .as_array()
        .unwrap()
        .iter()
        .map(|entry| entry["type"].as_str().unwrap())
        .collect();
    assert_eq!(types, ["identity", "baremetal", "placement"]);
    let endpoints = token["catalog"][1]["endpoints"].as_array().unwrap();
    assert_eq!(endpoints.len(), 3);
    assert_eq!(endpoints[0]["url"], "http://sandbox.invalid/baremetal");
    assert_eq!(endpoints[0]["region_id"], "RegionOne");
    let mut wrong = password(project());
    wrong["auth"]["identity"]["password"]["user"]["password"] = json!("nope");
    let reply = log_in(&mut world, wrong);
    assert_eq!(reply.status, StatusCode::UNAUTHORIZED);
    assert_eq!(
        reply.body["error"]["message"],
        "The request you have made requires authentication."
    );
    assert_eq!(log_in(&mut world, json!({})).status, StatusCode::BAD_REQUEST);
}

#[test]
fn tokens_and_application_credentials_log_in_too() {
    let mut world = cloud().world(beginning());
    let unscoped = log_in(&mut world, password(Value::Null));
    assert!(unscoped.body["token"].get("catalog").is_none());
    let text = unscoped.headers["x-subject-token"].to_str().unwrap().to_owned();
    let body =
        json!({"auth": {"identity": {"methods": ["token"], "token": {"id": text}}, "scope": project()}});
    assert_eq!(log_in(&mut world, body).status, StatusCode::CREATED);
    for credential in [
        json!({"id": "cred-id", "secret": "cred-secret"}),
        json!({"name": "guard", "secret": "cred-secret", "user": {"name": "admin", "domain": {"name": "Default"}}}),
    ] {
        let identity = json!({"methods": ["application_credential"], "application_credential": credential});
        let reply = log_in(&mut world, json!({"auth": {"identity": identity}}));
        assert_eq!(
            (reply.status, &reply.body["token"]["project"]["name"]),
            (StatusCode::CREATED, &json!("admin"))
        );
    }
    let identity = json!({"methods": ["application_credential"], "application_credential": {"id": "cred-id", "secret": "x"}});
    assert_eq!(
        log_in(&mut world, json!({"auth": {"identity": identity}})).status,
        StatusCode::UNAUTHORIZED
    );
}

#[test]
fn expired_revoked_malformed_and_missing_tokens_look_alike() {
    let mut world = cloud()
        .configure(|c| c.keystone.token_life = Duration::from_secs(60))
        .world(beginning());
    let good = token(&mut world, project());
    assert_eq!(nodes(&mut world, &good).status, StatusCode::OK);
    let mut replies = vec![nodes(&mut world, "garbage"), providers(&mut world, "garbage")];
    let revoked = token(&mut world, project());
    let headers = [
        ("x-auth-token", good.as_str()),
        ("x-subject-token", revoked.as_str()),
    ];
    let reply = send(
        &mut world,
        Service::Keystone,
        Method::DELETE,
        "/v3/auth/tokens",
        &headers,
        None,
    );
    assert_eq!(reply.status, StatusCode::NO_CONTENT);
    replies.push(nodes(&mut world, &revoked));
    replies.push(send(
        &mut world,
        Service::Ironic,
        Method::GET,
        "/v1/nodes",
        &[],
        None,
    ));
    world.advance(at(60));
    replies.push(nodes(&mut world, &good));
    for reply in replies {
        assert_eq!(reply.status, StatusCode::UNAUTHORIZED);
        let message = "The request you have made requires authentication.";
        assert_eq!(
            reply.body,
            json!({"error": {"code": 401, "title": "Unauthorized", "message": message}})
        );
        assert_eq!(
            reply.headers["www-authenticate"],
            "Keystone uri=\"http://sandbox.invalid/identity/v3\""
        );
        assert!(reply.headers.get("x-openstack-ironic-api-version").is_none());
    }
}

#[test]
fn a_token_can_be_looked_at() {
    let mut world = cloud().world(beginning());
    let text = token(&mut world, project());
    let headers = [
        ("x-auth-token", text.as_str()),
        ("x-subject-token", text.as_str()),
    ];
    let reply = send(
        &mut world,
        Service::Keystone,
        Method::GET,
        "/v3/auth/tokens",
        &headers,
        None,
    );
    assert_eq!(
        (reply.status, &reply.body["token"]["user"]["name"]),
        (StatusCode::OK, &json!("admin"))
    );
    let headers = [("x-auth-token", text.as_str()), ("x-subject-token", "other")];
    let reply = send(
        &mut world,
        Service::Keystone,
        Method::GET,
        "/v3/auth/tokens",
        &headers,
        None,
    );
    assert_eq!(reply.status, StatusCode::NOT_FOUND);
}

#[test]
fn one_token_serves_both_services_unless_scopes_are_strict() {
    let mut world = cloud().world(beginning());
    let one = token(&mut world, project());
    assert_eq!(nodes(&mut world, &one).body["nodes"].as_array().unwrap().len(), 2);
    assert_eq!(providers(&mut world, &one).status, StatusCode::OK);

    let mut world = cloud()
        .configure(|c| c.keystone.strict_scopes = true)
        .world(beginning());
    let of_project = token(&mut world, project());
    let of_system = token(&mut world, json!({"system": {"all": true}}));
    // No error, just nothing to see.
    let reply = nodes(&mut world, &of_project);
    assert_eq!(
        (reply.status, &reply.body),
        (StatusCode::OK, &json!({"nodes": []}))
    );
    let path = format!("/v1/nodes/{}", world.nodes()[0].uuid);
    let show = |world: &mut World, token: &str| {
        send(
            world,
            Service::Ironic,
            Method::GET,
            &path,
            &[("x-auth-token", token)],
            None,
        )
        .status
    };
    assert_eq!(show(&mut world, &of_project), StatusCode::NOT_FOUND);
    assert_eq!(show(&mut world, &of_system), StatusCode::OK);
    assert_eq!(providers(&mut world, &of_project).status, StatusCode::OK);
    let headers = [
        ("x-auth-token", of_system.as_str()),
        ("openstack-api-version", "placement 1.39"),
    ];
    let reply = send(
        &mut world,
        Service::Placement,
        Method::GET,
        "/resource_providers",
        &headers,
        None,
    );
    assert_eq!(
        (reply.status, &reply.body["errors"][0]["code"]),
        (StatusCode::FORBIDDEN, &json!("placement.undefined_code"))
    );
    // A node that belongs to the project is visible to it.
    let node = world.nodes()[0].uuid;
    world.edit_node(node, |node| node.owner = Some(id("project/admin")));
    assert_eq!(show(&mut world, &of_project), StatusCode::OK);
}

#[test]
fn readers_do_not_write() {
    let builder = cloud().configure(|c| c.keystone.users[0].roles = vec!["reader".into()]);
    let mut world = builder.world(beginning());
    let text = token(&mut world, project());
    assert_eq!(nodes(&mut world, &text).status, StatusCode::OK);
    let path = format!("/v1/nodes/{}/states/provision", world.nodes()[0].uuid);
    let headers = [("x-auth-token", text.as_str())];
    let reply = send(
        &mut world,
        Service::Ironic,
        Method::PUT,
        &path,
        &headers,
        Some(json!({"target": "manage"})),
    );
    assert_eq!(reply.status, StatusCode::FORBIDDEN);
    assert_eq!(providers(&mut world, &text).status, StatusCode::FORBIDDEN);
}

#[test]
fn ironic_may_do_without_keystone() {
    let mut world = cloud()
        .configure(|c| c.ironic.auth = Auth::Off)
        .world(beginning());
    assert_eq!(
        send(&mut world, Service::Ironic, Method::GET, "/v1/nodes", &[], None).status,
        StatusCode::OK
    );
    let basic = Auth::HttpBasic {
        user: "admin".into(),
        password: "pass".into(),
    };
    let mut world = cloud().configure(|c| c.ironic.auth = basic).world(beginning());
    let with = |world: &mut World, headers: &[(&str, &str)]| {
        send(world, Service::Ironic, Method::GET, "/v1/nodes", headers, None)
    };
    let reply = with(&mut world, &[]);
    assert_eq!(
        (reply.status, &reply.body["error"]["message"]),
        (StatusCode::UNAUTHORIZED, &json!("Authorization required"))
    );
    assert_eq!(reply.headers["www-authenticate"], "Basic realm=\"Baremetal API\"");
    assert_eq!(
        with(&mut world, &[("authorization", "Basic YWRtaW46cGFzcw==")]).status,
        StatusCode::OK
    );
    let wrong = with(&mut world, &[("authorization", "Basic YWRtaW46bm9wZQ==")]);
    assert_eq!(wrong.body["error"]["message"], "Incorrect username or password");
    assert_eq!(
        send(&mut world, Service::Ironic, Method::GET, "/v1", &[], None).status,
        StatusCode::OK
    );
}

#[test]
fn placement_may_do_without_keystone() {
    let mut world = cloud()
        .configure(|c| c.placement.auth = Auth::NoAuth2)
        .world(beginning());
    for (token, status) in [("admin", 200), ("admin:some-project", 200), ("someone", 403)] {
        assert_eq!(providers(&mut world, token).status, status, "{token}");
    }
    assert_eq!(
        send(
            &mut world,
            Service::Placement,
            Method::GET,
            "/resource_providers",
            &[],
            None
        )
        .status,
        401
    );
}
