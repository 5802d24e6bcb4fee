//! Servers on the loopback that remember what they are asked.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::Request;
use axum::response::Response;
use bytes::Bytes;
use http::HeaderMap;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use unprovision_session::{Auth, Clouds, HttpTransport, HttpTransportBuilder, Service, Transport};

/// A request as a server got it.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl Asked {
    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap()
    }
}

/// An answer.
#[derive(Clone, Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(&'static str, String)>,
    pub(crate) body: String,
}

impl Reply {
    pub(crate) fn status(status: u16) -> Self {
        Self {
            status,
            headers: Vec::new(),
            body: "{}".to_owned(),
        }
    }

    pub(crate) fn header(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }

    pub(crate) fn body(mut self, body: impl Into<String>) -> Self {
        self.body = body.into();
        self
    }
}

/// A running server.
#[derive(Clone)]
pub(crate) struct Fake {
    pub(crate) url: String,
    asked: Arc<Mutex<Vec<Asked>>>,
}

impl Fake {
    /// Serves answers from a function of how many requests came before and the request.
    pub(crate) async fn new(answer: impl Fn(usize, &Asked) -> Reply + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let asked = Arc::new(Mutex::new(Vec::new()));
        let (record, answer) = (Arc::clone(&asked), Arc::new(answer));
        let router = Router::new().fallback(move |request: Request| {
            let (record, answer) = (Arc::clone(&record), Arc::clone(&answer));
            async move {
                let (parts, body) = request.into_parts();
                let asked = Asked {
                    method: parts.method.to_string(),
                    path: parts.uri.to_string(),
                    headers: parts.headers,
                    body: to_bytes(body, usize::MAX).await.unwrap(),
                };
                let reply = {
                    let mut record = record.lock().unwrap();
                    let reply = answer(record.len(), &asked);
                    record.push(asked);
                    reply
                };
                let mut response = Response::builder().status(reply.status);
                for (name, value) in reply.headers {
                    response = response.header(name, value);
                }
                response.body(Body::from(reply.body)).unwrap()
            }
        });
        tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        Self { url, asked }
    }

    /// A Keystone: its tokens are `token-1`, `token-2`, ..., and live for an hour.
    pub(crate) async fn keystone(catalog: Value) -> Self {
        Self::new(move |count, _| token(&format!("token-{}", count + 1), &catalog)).await
    }

    pub(crate) fn asked(&self) -> Vec<Asked> {
        self.asked.lock().unwrap().clone()
    }

    pub(crate) fn count(&self) -> usize {
        self.asked.lock().unwrap().len()
    }
}

/// Keystone's answer to a login.
pub(crate) fn token(token: &str, catalog: &Value) -> Reply {
    let body = json!({"token": {
        "methods": ["password"],
        "issued_at": "2026-11-30T03:27:59.000000Z",
        "expires_at": "2026-11-30T04:27:59.000000Z",
        "catalog": catalog,
    }});
    Reply::status(201)
        .header("x-subject-token", token)
        .body(body.to_string())
}

/// A catalog with one public endpoint for each service.
pub(crate) fn catalog(url: &str) -> Value {
    let endpoints = json!([{"interface": "public", "region_id": "R", "region": "R", "url": url}]);
    json!([{"type": "baremetal", "endpoints": endpoints}, {"type": "placement", "endpoints": endpoints}])
}

/// A server that does with each connection whatever it is told, after it has read the request's head.
pub(crate) async fn raw<F, Fut>(serve: F) -> SocketAddr
where
    F: Fn(TcpStream) -> Fut + Send + 'static,
    Fut: Future<Output = ()> + Send + 'static,
{
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut head = [0; 4096];
            if stream.read(&mut head).await.unwrap_or(0) > 0 {
                tokio::spawn(serve(stream));
            }
        }
    });
    address
}

/// Sends bytes as they are, and closes.
pub(crate) async fn say(mut stream: TcpStream, text: &str) {
    stream.write_all(text.as_bytes()).await.unwrap();
    stream.shutdown().await.unwrap();
}

/// Settings of a cloud with a password at this Keystone.
pub(crate) fn cloud(keystone: &str) -> Clouds<'static> {
    Clouds::new(|_| None)
        .set("auth_url", keystone)
        .set("username", "u")
        .set("password", "pa55word")
        .set("system_scope", "all")
}

/// Login at a Keystone.
pub(crate) fn auth(keystone: &str) -> Auth {
    Auth::new(cloud(keystone).load().unwrap()).unwrap()
}

/// A transport to a service that wants no login.
pub(crate) fn open(url: &str) -> HttpTransportBuilder {
    let config = Clouds::new(|_| None)
        .set("auth_type", "none")
        .set("baremetal_endpoint_override", url)
        .load()
        .unwrap();
    HttpTransport::builder(Service::Ironic, Auth::new(config).unwrap())
}

/// Sends a GET.
pub(crate) async fn get(
    transport: &HttpTransport,
    path: &str,
) -> Result<http::Response<Bytes>, unprovision_session::TransportError> {
    transport
        .send(http::Request::get(path).body(Bytes::new()).unwrap())
        .await
}
