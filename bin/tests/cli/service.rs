//! The HTTP interface of a running guard.

use std::process::Stdio;
use std::time::Duration;

use rustix::process::Signal;
use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::process::Child;
use tokio::time::timeout;

use crate::support::{Cloud, finish, finish_within, quick, send};

const LIMIT: Duration = Duration::from_secs(60);

/// A guard that serves, and where.
async fn serving(cloud: &Cloud) -> (Child, String) {
    let mut command = cloud.command(&["guard", "--listen", "127.0.0.1:0"]);
    let mut guard = command.stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(guard.stderr.take().unwrap()).lines();
    let found = async {
        loop {
            let line = lines.next_line().await.unwrap().expect("it said no address");
            if let Some((_, address)) = line.split_once("serving http://") {
                return address.to_owned();
            }
        }
    };
    let address = timeout(LIMIT, found).await.unwrap();
    tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
    (guard, address)
}

async fn ask(address: &str, path: &str) -> TcpStream {
    let mut socket = TcpStream::connect(address).await.unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    socket.write_all(request.as_bytes()).await.unwrap();
    socket
}

async fn answer(address: &str, path: &str) -> String {
    let mut text = String::new();
    ask(address, path).await.read_to_string(&mut text).await.unwrap();
    text
}

/// A stream that somebody follows does not keep the guard from ending.
#[tokio::test]
async fn a_guard_serves_until_it_is_stopped() {
    let cloud = Cloud::with_nova_traits(quick(2)).await;
    let (guard, address) = serving(&cloud).await;
    let ready = async {
        while !answer(&address, "/readyz").await.starts_with("HTTP/1.1 204") {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    timeout(LIMIT, ready).await.unwrap();
    let status = answer(&address, "/v1/status").await;
    let (head, body) = status.split_once("\r\n\r\n").unwrap();
    assert!(head.contains("content-security-policy"), "{head}");
    let status: Value = serde_json::from_str(body).unwrap();
    assert_eq!(status["version"], env!("CARGO_PKG_VERSION"));
    for (path, key, count) in [
        ("/v1/nodes", "nodes", 2),
        ("/v1/cases", "cases", 0),
        ("/v1/audit", "findings", 0),
    ] {
        let answer = answer(&address, path).await;
        let (_, body) = answer.split_once("\r\n\r\n").unwrap();
        let page: Value = serde_json::from_str(body).unwrap();
        assert_eq!(page[key].as_array().map(Vec::len), Some(count), "{answer}");
    }
    let mut stream = ask(&address, "/v1/events").await;
    let mut begun = [0; 12];
    stream.read_exact(&mut begun).await.unwrap();
    assert_eq!(&begun, b"HTTP/1.1 200");
    send(&guard, Signal::TERM);
    finish_within(guard, Duration::from_secs(8)).await.assert_code(0);
}

#[tokio::test]
async fn what_cannot_be_listened_on_is_refused_before_anything_is_begun() {
    let cloud = Cloud::start(quick(1)).await;
    let taken = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let taken = taken.local_addr().unwrap().to_string();
    for (address, code, says) in [
        ("0.0.0.0:8784", 2, "can be reached from other machines"),
        ("localhost", 2, "write it like 127.0.0.1:8784"),
        (taken.as_str(), 1, "cannot be listened on"),
    ] {
        let ran = finish(cloud.spawn(&["guard", "--listen", address])).await;
        ran.assert_code(code).assert_says(&["api.listen", says]);
    }
    assert!(cloud.writes().is_empty());
}
