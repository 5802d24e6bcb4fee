//! Logging in: how often, and what happens if it fails.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http::Request;
use tokio::time::Instant;
use unprovision_session::{Auth, HttpTransport, Resend, RetryPolicy, Service, Transport, TransportError};

use super::fake::{Asked, Fake, Reply, auth, catalog, cloud, get, raw, token};

/// Refuses every token but this one as a real service does.
fn only(good: &'static str) -> impl Fn(usize, &Asked) -> Reply + Send + Sync {
    move |_, asked| {
        if asked.header("x-auth-token") == good {
            Reply::status(200).body("done")
        } else {
            Reply::status(401).body(r#"{"error": {"code": 401, "title": "Unauthorized"}}"#)
        }
    }
}

async fn ironic(auth: Auth) -> HttpTransport {
    HttpTransport::builder(Service::Ironic, auth)
        .build()
        .await
        .unwrap()
}

#[tokio::test]
async fn both_services_share_one_login_and_find_themselves_in_the_catalog() {
    let service = Fake::new(|_, _| Reply::status(200)).await;
    let keystone = Fake::keystone(catalog(&format!("{}/prefix/v1", service.url))).await;
    let auth = auth(&format!("{}/v3/", keystone.url));
    let placement = HttpTransport::builder(Service::Placement, auth.clone())
        .build()
        .await
        .unwrap();
    assert_eq!(
        keystone.count(),
        0,
        "nothing is sent before something is asked for"
    );
    get(&ironic(auth).await, "/v1/nodes?limit=1").await.unwrap();
    get(&placement, "/traits").await.unwrap();
    let paths: Vec<_> = service.asked().into_iter().map(|asked| asked.path).collect();
    assert_eq!(paths, ["/prefix/v1/nodes?limit=1", "/prefix/v1/traits"]);
    assert_eq!(keystone.count(), 1);
}

#[tokio::test]
async fn fifty_refused_requests_make_one_login_and_are_sent_again_as_they_were() {
    let service = Fake::new(only("token-2")).await;
    let keystone = Fake::keystone(catalog(&service.url)).await;
    let transport = Arc::new(ironic(auth(&keystone.url)).await);
    let requests: Vec<_> = (0..50)
        .map(|number| {
            let transport = Arc::clone(&transport);
            tokio::spawn(async move {
                let request = Request::put(format!("/v1/nodes/{number}"))
                    .header("x-openstack-ironic-api-version", "1.80")
                    .header("content-type", "application/json")
                    .body(Bytes::from(format!("[{number}]")))
                    .unwrap();
                transport.send(request).await.unwrap()
            })
        })
        .collect();
    for request in requests {
        let answer = request.await.unwrap();
        assert_eq!(
            (answer.status().as_u16(), answer.body().as_ref()),
            (200, b"done".as_slice())
        );
    }
    assert_eq!(
        keystone.count(),
        2,
        "the first login, and one for all that were refused"
    );

    for number in 0..50 {
        let path = format!("/v1/nodes/{number}");
        let mut sent = service.asked().into_iter().filter(|asked| asked.path == path);
        let (first, last) = (sent.next().unwrap(), sent.last());
        let Some(mut again) = last else { continue };
        assert_eq!(
            (first.header("x-auth-token"), again.header("x-auth-token")),
            ("token-1", "token-2")
        );
        again
            .headers
            .insert("x-auth-token", first.headers["x-auth-token"].clone());
        assert_eq!(first.headers, again.headers);
        assert_eq!((first.method, first.body), (again.method, again.body));
    }
}

#[tokio::test]
async fn never_is_not_sent_again_but_leaves_a_new_token() {
    let service = Fake::new(only("token-2")).await;
    let keystone = Fake::keystone(catalog(&service.url)).await;
    let transport = ironic(auth(&keystone.url)).await;
    let request = || {
        let request = Request::put("/v1/nodes/x/states/provision").extension(Resend::Never);
        request.body(Bytes::from_static(b"{}")).unwrap()
    };
    assert_eq!(transport.send(request()).await.unwrap().status(), 401);
    assert_eq!((service.count(), keystone.count()), (1, 2));
    assert_eq!(transport.send(request()).await.unwrap().status(), 200);
    assert_eq!((service.count(), keystone.count()), (2, 2));
}

#[tokio::test]
async fn a_service_that_refuses_every_token_costs_one_login_and_one_repetition() {
    let service = Fake::new(only("none")).await;
    let keystone = Fake::keystone(catalog(&service.url)).await;
    let transport = ironic(auth(&keystone.url)).await;
    assert_eq!(get(&transport, "/v1/nodes").await.unwrap().status(), 401);
    assert_eq!((service.count(), keystone.count()), (2, 2));
}

#[tokio::test]
async fn failed_logins_say_whether_to_try_again() {
    let message =
        r#"{"error": {"code": 401, "message": "The request you have made requires authentication."}}"#;
    let cases = [
        (Reply::status(401).body(message), false, "requires authentication"),
        (Reply::status(403), false, "HTTP 403"),
        (
            Reply::status(404).body("<html>nothing here</html>"),
            false,
            "HTTP 404",
        ),
        (
            Reply::status(301).header("location", "https://elsewhere/v3"),
            false,
            "moved to https://elsewhere/v3",
        ),
        (Reply::status(429), true, "HTTP 429"),
        (Reply::status(500), true, "HTTP 500"),
        (Reply::status(503).body("<html>"), true, "HTTP 503"),
        (Reply::status(201).body("{}"), false, "no X-Subject-Token"),
        (
            Reply::status(201).header("x-subject-token", "t").body("<html>"),
            false,
            "not what describes a token",
        ),
    ];
    for (reply, expected, words) in cases {
        let keystone = Fake::new(move |_, _| reply.clone()).await;
        let transport = ironic(auth(&keystone.url)).await;
        let error = get(&transport, "/v1/nodes").await.unwrap_err();
        let TransportError::Login {
            transient, message, ..
        } = &error
        else {
            panic!("{error:?}")
        };
        assert_eq!(*transient, expected, "{message}");
        assert!(
            message.contains(words) && message.contains(&keystone.url),
            "{message}"
        );
        assert_eq!(keystone.count(), 1);
    }
    let transport = ironic(auth("http://127.0.0.1:1")).await;
    let error = get(&transport, "/v1/nodes").await.unwrap_err();
    assert!(
        matches!(error, TransportError::Login { transient: true, .. }),
        "{error}"
    );
}

#[tokio::test]
async fn a_keystone_that_hangs_delays_nobody_longer_than_a_login_may_take() {
    let address = raw(|stream| async move {
        tokio::time::sleep(Duration::from_secs(60)).await;
        drop(stream);
    })
    .await;
    let config = cloud(&format!("http://{address}")).load().unwrap();
    let limit = Duration::from_millis(500);
    let transport = Arc::new(ironic(Auth::with_login_timeout(config, limit).unwrap()).await);
    let began = Instant::now();
    let callers: Vec<_> = (0..20)
        .map(|_| {
            let transport = Arc::clone(&transport);
            tokio::spawn(async move { get(&transport, "/v1/nodes").await })
        })
        .collect();
    for caller in callers {
        let error = caller.await.unwrap().unwrap_err();
        assert!(
            matches!(error, TransportError::Login { transient: true, .. }),
            "{error}"
        );
    }
    assert!(began.elapsed() < limit * 3, "{:?}", began.elapsed());
}

#[tokio::test]
async fn a_new_login_that_fails_is_the_callers_error_unless_it_wants_the_answer() {
    let service = Fake::new(only("none")).await;
    let url = service.url.clone();
    let broken = Arc::new(AtomicBool::new(false));
    let is_broken = Arc::clone(&broken);
    let keystone = Fake::new(move |_, _| {
        if is_broken.load(Ordering::SeqCst) {
            Reply::status(503)
        } else {
            token("t", &catalog(&url))
        }
    })
    .await;
    let transport = ironic(auth(&keystone.url)).await;
    transport.endpoint().await.unwrap();
    broken.store(true, Ordering::SeqCst);
    let never = Request::get("/v1/nodes")
        .extension(Resend::Never)
        .body(Bytes::new())
        .unwrap();
    assert_eq!(transport.send(never).await.unwrap().status(), 401);
    let error = get(&transport, "/v1/nodes").await.unwrap_err();
    assert!(
        matches!(error, TransportError::Login { transient: true, .. }),
        "{error}"
    );
}

#[tokio::test]
async fn what_the_catalog_does_not_have_is_said() {
    let keystone = Fake::keystone(catalog("http://h")).await;
    let config = cloud(&keystone.url).set("region_name", "R9").load().unwrap();
    let transport = HttpTransport::builder(Service::Ironic, Auth::new(config).unwrap());
    let transport = transport.retry(RetryPolicy::none()).build().await.unwrap();
    let error = transport.endpoint().await.unwrap_err();
    assert!(matches!(error, TransportError::Endpoint { .. }), "{error:?}");
    let message = error.to_string();
    assert!(
        message.contains("region R9") && message.contains("public interface in R"),
        "{message}"
    );
}
