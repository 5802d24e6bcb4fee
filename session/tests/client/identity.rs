//! Every way of showing who we are: what Keystone and the services get to see of it.

use bytes::Bytes;
use http::Request;
use serde_json::{Value, json};
use unprovision_session::{Auth, Clouds, ConfigError, HttpTransport, Service, Transport};

use super::fake::{Fake, Reply, get};

type Settings<'a> = &'a [(&'a str, &'a str)];

async fn transport(service: Service, settings: Settings<'_>, url: &str) -> HttpTransport {
    let clouds = settings
        .iter()
        .fold(Clouds::new(|_| None), |clouds, (key, value)| {
            clouds.set(*key, value.replace("URL", url))
        });
    let auth = Auth::new(clouds.load().unwrap()).unwrap();
    HttpTransport::builder(service, auth).build().await.unwrap()
}

/// Logs in with the settings, and checks what Keystone got.
async fn assert_login(settings: Settings<'_>, auth: Value) {
    let keystone = Fake::keystone(json!([])).await;
    let common = [("auth_url", "URL"), ("baremetal_endpoint_override", "URL")];
    let ironic = transport(Service::Ironic, &[&common, settings].concat(), &keystone.url).await;
    get(&ironic, "/v1/nodes").await.unwrap();
    let login = &keystone.asked()[0];
    assert_eq!(
        (login.method.as_str(), login.path.as_str()),
        ("POST", "/v3/auth/tokens")
    );
    assert_eq!(login.header("content-type"), "application/json");
    assert_eq!(login.json(), json!({ "auth": auth }), "{settings:?}");
}

#[tokio::test]
async fn passwords_in_every_scope() {
    let by_name = json!({"name": "u", "domain": {"name": "Heat"}, "password": "p"});
    let by_id = json!({"id": "ui", "password": "p"});
    for (settings, user, scope) in [
        (
            [
                ("username", "u"),
                ("user_domain_name", "Heat"),
                ("project_name", "admin"),
            ],
            &by_name,
            json!({"project": {"name": "admin", "domain": {"id": "default"}}}),
        ),
        (
            [
                ("user_id", "ui"),
                ("auth_type", "v3password"),
                ("project_id", "pi"),
            ],
            &by_id,
            json!({"project": {"id": "pi"}}),
        ),
        (
            [
                ("user_id", "ui"),
                ("auth_type", "password"),
                ("system_scope", "all"),
            ],
            &by_id,
            json!({"system": {"all": true}}),
        ),
        (
            [("user_id", "ui"), ("auth_type", "password"), ("domain_name", "D")],
            &by_id,
            json!({"domain": {"name": "D"}}),
        ),
    ] {
        let settings = [settings.as_slice(), &[("password", "p")]].concat();
        let identity = json!({"methods": ["password"], "password": {"user": user}});
        assert_login(&settings, json!({"identity": identity, "scope": scope})).await;
    }
}

#[tokio::test]
async fn tokens() {
    let identity = json!({"methods": ["token"], "token": {"id": "t"}});
    assert_login(&[("token", "t")], json!({ "identity": identity })).await;
    let scope = json!({"project": {"id": "pi"}});
    let settings = &[("auth_type", "v3token"), ("token", "t"), ("project_id", "pi")];
    assert_login(settings, json!({"identity": identity, "scope": scope})).await;
}

#[tokio::test]
async fn application_credentials_never_ask_for_a_scope() {
    let common = [
        ("auth_type", "v3applicationcredential"),
        ("application_credential_secret", "s"),
        ("project_id", "pi"),
    ];
    let user = json!({"name": "u", "domain": {"name": "Heat"}});
    for (settings, credential) in [
        (
            vec![("application_credential_id", "i")],
            json!({"id": "i", "secret": "s"}),
        ),
        (
            vec![
                ("application_credential_name", "n"),
                ("username", "u"),
                ("user_domain_name", "Heat"),
            ],
            json!({"name": "n", "secret": "s", "user": user}),
        ),
    ] {
        let identity = json!({"methods": ["application_credential"], "application_credential": credential});
        assert_login(
            &[&common, settings.as_slice()].concat(),
            json!({ "identity": identity }),
        )
        .await;
    }
}

#[tokio::test]
async fn without_keystone_the_service_gets_what_it_knows() {
    type Case = (Service, Settings<'static>, &'static str, &'static str);
    let cases: [Case; 3] = [
        (
            Service::Ironic,
            &[("auth_type", "none"), ("endpoint", "URL")],
            "",
            "",
        ),
        (
            Service::Ironic,
            &[
                ("auth_type", "http_basic"),
                ("username", "u"),
                ("password", "p"),
                ("endpoint", "URL"),
            ],
            "",
            "Basic dTpw",
        ),
        (
            Service::Placement,
            &[
                ("auth_type", "admin_token"),
                ("token", "admin"),
                ("placement_endpoint_override", "URL"),
            ],
            "admin",
            "",
        ),
    ];
    let server = Fake::new(|_, _| Reply::status(200)).await;
    for (service, settings, token, authorization) in cases {
        let transport = transport(service, settings, &server.url).await;
        // Whatever a client says about itself does not count.
        let request = Request::get("/")
            .header("x-auth-token", "x")
            .header("authorization", "x");
        transport.send(request.body(Bytes::new()).unwrap()).await.unwrap();
        let asked = server.asked().pop().unwrap();
        assert_eq!(
            (asked.header("x-auth-token"), asked.header("authorization")),
            (token, authorization)
        );
    }
}

#[tokio::test]
async fn without_keystone_and_endpoint_there_is_nowhere_to_go() {
    let config = Clouds::new(|_| None)
        .set("auth_type", "none")
        .set("endpoint", "http://h")
        .load()
        .unwrap();
    let auth = Auth::new(config).unwrap();
    let error = HttpTransport::builder(Service::Placement, auth.clone())
        .build()
        .await
        .unwrap_err();
    assert!(matches!(error, ConfigError::Missing { ref key, .. } if key == "placement_endpoint_override"));
    assert!(
        HttpTransport::builder(Service::Placement, auth)
            .endpoint("http://p")
            .build()
            .await
            .is_ok()
    );
}
