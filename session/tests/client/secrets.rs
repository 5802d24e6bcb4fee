//! Nothing secret is ever printed.

use std::io::Write;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use http::Request;
use tracing_subscriber::fmt::MakeWriter;
use unprovision_session::{Auth, HttpTransport, RetryPolicy, Service, Transport};

use super::fake::{Fake, Reply, catalog, cloud, get, token};

#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Log {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}

const SECRETS: [&str; 4] = ["pa55word", "t0ken-one", "t0ken-two", "b0dy"];

#[tokio::test]
async fn neither_debug_nor_errors_nor_the_log_show_secrets() {
    let log = Log::default();
    // With the records of reqwest, hyper and osauth, which go through the crate `log`.
    tracing_subscriber::fmt()
        .with_max_level(tracing::Level::TRACE)
        .with_ansi(false)
        .with_writer(log.clone())
        .init();

    let service = Fake::new(|count, _| match count {
        0 => Reply::status(401),
        1 => Reply::status(503),
        2 => Reply::status(200)
            .header("x-openstack-request-id", "req-1")
            .body("b0dy"),
        _ => Reply::status(401),
    })
    .await;
    let url = service.url.clone();
    let keystone = Fake::new(move |count, asked| match count {
        0 => token("t0ken-one", &catalog(&url)),
        1 => token("t0ken-two", &catalog(&url)),
        // Quotes the request, as validation errors may.
        _ => {
            let quoted = serde_json::json!({"error": {"message": asked.json().to_string()}});
            Reply::status(400).body(quoted.to_string())
        }
    })
    .await;

    let config = cloud(&keystone.url).load().unwrap();
    let auth = Auth::new(config.clone()).unwrap();
    let retry = RetryPolicy {
        first_delay: std::time::Duration::from_millis(1),
        ..RetryPolicy::default()
    };
    let builder = HttpTransport::builder(Service::Ironic, auth.clone()).retry(retry);
    let mut printed = format!("{config:?}{auth:?}{builder:?}");
    let transport = builder.build().await.unwrap();
    let request = Request::get("/v1/nodes")
        .body(Bytes::from_static(b"b0dy"))
        .unwrap();
    assert_eq!(transport.send(request).await.unwrap().status(), 200);
    let error = get(&transport, "/v1/nodes").await.unwrap_err();
    printed.push_str(&format!("{transport:#?}{error}{error:?}"));
    assert!(error.to_string().contains("***"), "{error}");

    let log = String::from_utf8(log.0.lock().unwrap().clone()).unwrap();
    for expected in [
        "logged in",
        "login failed",
        "req-1",
        "sending again",
        "path=\"/v1/nodes\"",
        "connect",
    ] {
        assert!(log.contains(expected), "the log has no {expected}:\n{log}");
    }
    for secret in SECRETS {
        assert!(!printed.contains(secret), "{secret}: {printed}");
        assert!(!log.contains(secret), "{secret}: {log}");
    }
}
