//! Requests, answers, and all that can happen to them on the way.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http::Request;
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::time::{Instant, timeout};
use unprovision_session::{HttpTransport, Resend, RetryPolicy, Transport, TransportError};

use super::fake::{Fake, Reply, get, open, raw, say};

fn quick() -> RetryPolicy {
    RetryPolicy {
        first_delay: Duration::from_millis(1),
        ..RetryPolicy::default()
    }
}

async fn once(url: &str) -> HttpTransport {
    open(url)
        .retry(RetryPolicy::none())
        .timeout(Duration::from_millis(500))
        .build()
        .await
        .unwrap()
}

#[tokio::test]
async fn requests_and_answers_pass_unchanged() {
    let service = Fake::new(|_, _| {
        Reply::status(406)
            .header("x-openstack-ironic-api-maximum-version", "1.80")
            .body("no")
    })
    .await;
    for form in ["", "/", "/v1", "/v1/"] {
        for prefix in ["", "/baremetal"] {
            let transport = open(&format!("{}{prefix}{form}", service.url))
                .build()
                .await
                .unwrap();
            let request = Request::patch("/v1/nodes/a%2Fb?fields=uuid,name&x=%20")
                .header("x-openstack-ironic-api-version", "1.99")
                .body(Bytes::from_static(b"[1, 2]"))
                .unwrap();
            let answer = transport.send(request).await.unwrap();
            assert_eq!(answer.status(), 406);
            assert_eq!(answer.headers()["x-openstack-ironic-api-maximum-version"], "1.80");
            assert_eq!(answer.body().as_ref(), b"no");
            let asked = service.asked().pop().unwrap();
            assert_eq!(
                asked.path,
                format!("{prefix}/v1/nodes/a%2Fb?fields=uuid,name&x=%20")
            );
            assert_eq!(asked.header("x-openstack-ironic-api-version"), "1.99");
            assert_eq!(
                (asked.method.as_str(), asked.body.as_ref()),
                ("PATCH", b"[1, 2]".as_slice())
            );
        }
    }
}

#[tokio::test]
async fn requests_stay_below_the_endpoint() {
    let service = Fake::new(|_, _| Reply::status(200)).await;
    let transport = open(&format!("{}/baremetal", service.url)).build().await.unwrap();
    for target in [
        "http://elsewhere/v1/nodes",
        "/v1/../../keystone",
        "/v1/nodes/%2E%2e",
        "/./x",
        "*",
    ] {
        let error = get(&transport, target).await.unwrap_err();
        assert!(
            matches!(error, TransportError::Endpoint { .. }),
            "{target}: {error}"
        );
    }
    get(&transport, "/v1/nodes/a..b").await.unwrap();
    assert_eq!(service.count(), 1);
}

#[tokio::test]
async fn redirections_are_answers() {
    let elsewhere = Fake::new(|_, _| Reply::status(200)).await;
    let to = elsewhere.url.clone();
    let service = Fake::new(move |_, _| Reply::status(302).header("location", to.clone())).await;
    let answer = get(&open(&service.url).build().await.unwrap(), "/v1")
        .await
        .unwrap();
    assert_eq!((answer.status().as_u16(), elsewhere.count()), (302, 0));
}

#[tokio::test]
async fn what_surely_was_not_sent() {
    let free = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let refused = format!("http://{}", free.local_addr().unwrap());
    drop(free);
    let no_tls = raw(|stream| say(stream, "HTTP/1.1 400 Bad Request\r\n\r\n")).await;
    for url in [
        refused,
        "http://no-such-host.invalid".to_owned(),
        format!("https://{no_tls}"),
    ] {
        let error = get(&once(&url).await, "/v1").await.unwrap_err();
        assert!(
            matches!(error, TransportError::NotSent { .. }),
            "{url}: {error:?}"
        );
    }
}

#[tokio::test]
async fn a_connection_that_does_not_come_about_was_not_sent_on() {
    // A listener whose queue is full lets the handshakes wait.
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let listener = socket.listen(1).unwrap();
    let address = listener.local_addr().unwrap();
    let mut waiting = Vec::new();
    while let Ok(stream) = timeout(Duration::from_millis(200), TcpStream::connect(address)).await {
        waiting.push(stream.unwrap());
    }
    let transport = open(&format!("http://{address}")).retry(RetryPolicy::none());
    let transport = transport
        .connect_timeout(Duration::from_millis(200))
        .build()
        .await
        .unwrap();
    let error = get(&transport, "/v1").await.unwrap_err();
    assert!(matches!(error, TransportError::NotSent { .. }), "{error:?}");
}

#[tokio::test]
async fn what_may_have_been_applied() {
    let reset = raw(|stream| async move {
        // Closing with unread or undelivered data behind makes it a reset.
        #[allow(deprecated)]
        stream.set_linger(Some(Duration::ZERO)).unwrap();
    })
    .await;
    let closed = raw(|stream| async move { drop(stream) }).await;
    let truncated = raw(|stream| say(stream, "HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nhalf")).await;
    let chunked = raw(|stream| {
        say(
            stream,
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhalf",
        )
    })
    .await;
    let nonsense = raw(|stream| say(stream, "220 mail.example.org ESMTP\r\n")).await;
    for address in [reset, closed, truncated, chunked, nonsense] {
        let error = get(&once(&format!("http://{address}")).await, "/v1")
            .await
            .unwrap_err();
        assert!(
            matches!(error, TransportError::MaybeApplied { waited: None, .. }),
            "{error:?}"
        );
    }
    let silent = raw(|stream| async move {
        tokio::time::sleep(Duration::from_secs(60)).await;
        drop(stream);
    })
    .await;
    let halting = raw(|mut stream| async move {
        stream
            .write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nhalf")
            .await
            .unwrap();
        tokio::time::sleep(Duration::from_secs(60)).await;
    })
    .await;
    for address in [silent, halting] {
        let error = get(&once(&format!("http://{address}")).await, "/v1")
            .await
            .unwrap_err();
        let TransportError::MaybeApplied {
            waited: Some(waited), ..
        } = &error
        else {
            panic!("{error:?}")
        };
        assert!((450..2000).contains(&waited.as_millis()), "{error}");
    }
}

#[tokio::test]
async fn a_connection_that_the_server_closed_meanwhile_is_not_used() {
    let connections = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&connections);
    let address = raw(move |stream| {
        count.fetch_add(1, Ordering::SeqCst);
        // Promises to keep the connection, and does not.
        say(stream, "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok")
    })
    .await;
    let transport = once(&format!("http://{address}")).await;
    for _ in 0..5 {
        assert_eq!(get(&transport, "/v1").await.unwrap().status(), 200);
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(connections.load(Ordering::SeqCst), 5);
}

#[tokio::test]
async fn answers_that_are_too_large_are_not_read() {
    let service = Fake::new(|_, asked| {
        let length = asked.path.trim_start_matches('/').parse().unwrap();
        Reply::status(200).body("x".repeat(length))
    })
    .await;
    let endless = raw(|mut stream| async move {
        stream
            .write_all(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n")
            .await
            .unwrap();
        while stream.write_all(b"5\r\nxxxxx\r\n").await.is_ok() {}
    })
    .await;
    let transport = open(&service.url).max_answer(1000).build().await.unwrap();
    assert_eq!(get(&transport, "/1000").await.unwrap().body().len(), 1000);
    let error = get(&transport, "/1001").await.unwrap_err();
    assert!(
        matches!(error, TransportError::TooLarge { limit: 1000, .. }),
        "{error:?}"
    );
    assert_eq!(service.count(), 2, "not sent again");
    let transport = open(&format!("http://{endless}"))
        .max_answer(1000)
        .build()
        .await
        .unwrap();
    let error = get(&transport, "/").await.unwrap_err();
    assert!(
        matches!(error, TransportError::TooLarge { limit: 1000, .. }),
        "{error:?}"
    );
}

#[tokio::test]
async fn reads_are_sent_again_and_writes_are_not() {
    let flaky = |fails: u16| {
        Fake::new(move |count, _| {
            if count < 2 {
                Reply::status(fails)
            } else {
                Reply::status(200)
            }
        })
    };
    for (method, status, answers) in [
        ("GET", 503, (200, 3)),
        ("PUT", 503, (503, 1)),
        ("PUT", 429, (200, 3)),
    ] {
        let service = flaky(status).await;
        let transport = open(&service.url).retry(quick()).build().await.unwrap();
        let request = Request::builder()
            .method(method)
            .uri("/v1/nodes")
            .body(Bytes::new())
            .unwrap();
        let answer = transport.send(request).await.unwrap();
        assert_eq!(
            (answer.status().as_u16(), service.count()),
            answers,
            "{method} {status}"
        );
    }
}

#[tokio::test]
async fn a_dropped_answer_is_repeated_for_reads_only() {
    let connections = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&connections);
    let address = raw(move |stream| {
        let first = count.fetch_add(1, Ordering::SeqCst) == 0;
        async move {
            if !first {
                say(
                    stream,
                    "HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\nok",
                )
                .await;
            }
        }
    })
    .await;
    let transport = open(&format!("http://{address}"))
        .retry(quick())
        .build()
        .await
        .unwrap();
    let write = Request::post("/allocations")
        .extension(Resend::IfNotApplied)
        .body(Bytes::new())
        .unwrap();
    let error = transport.send(write).await.unwrap_err();
    assert!(matches!(error, TransportError::MaybeApplied { .. }), "{error:?}");
    connections.store(0, Ordering::SeqCst);
    assert_eq!(get(&transport, "/v1").await.unwrap().status(), 200);
    assert_eq!(connections.load(Ordering::SeqCst), 2);
}

#[tokio::test]
async fn retry_after_is_waited_for() {
    let service = Fake::new(|count, _| match count {
        0 => Reply::status(503).header("retry-after", "1"),
        _ => Reply::status(200),
    })
    .await;
    let transport = open(&service.url).retry(quick()).build().await.unwrap();
    let began = Instant::now();
    assert_eq!(get(&transport, "/v1").await.unwrap().status(), 200);
    assert!(began.elapsed() >= Duration::from_secs(1));
}
