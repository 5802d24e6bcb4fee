//! The way of one request to its service and of the answer back, and what goes wrong there.

use std::io;

use axum::body::{Body, to_bytes};
use axum::extract::State;
use bytes::Bytes;
use futures::stream;
use http::header::{CONNECTION, CONTENT_LENGTH, HOST, TRANSFER_ENCODING, USER_AGENT};
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode};
use unprovision_session::Service;

use super::{Call, Mishap, Recorder};

/// The largest body that is read.
const LARGEST: usize = 64 * 1024 * 1024;

/// From one proxy to its service.
#[derive(Clone)]
pub(super) struct Way {
    pub(super) recorder: Recorder,
    pub(super) service: Service,
    pub(super) target: String,
    pub(super) client: reqwest::Client,
}

pub(super) async fn answer(State(way): State<Way>, request: Request<Body>) -> Response<Body> {
    // A task of its own: a program that is gone does not take its request back.
    let forwarded = tokio::spawn(async move { way.carry(request).await }).await;
    let lost = |problem: String| {
        let mut response = Response::new(Body::from(problem));
        *response.status_mut() = StatusCode::BAD_GATEWAY;
        response
    };
    match forwarded {
        Ok(Ok(response)) => response,
        Ok(Err(error)) => lost(error.to_string()),
        Err(error) => lost(error.to_string()),
    }
}

impl Way {
    async fn carry(&self, request: Request<Body>) -> Result<Response<Body>, axum::Error> {
        let (head, body) = request.into_parts();
        let body = to_bytes(body, LARGEST).await?;
        let path = head
            .uri
            .path_and_query()
            .map_or("/", |path| path.as_str())
            .to_owned();
        let call = Call {
            service: self.service,
            method: head.method,
            path,
            body: serde_json::from_slice(&body).unwrap_or_default(),
            token: head.headers.get("x-auth-token").cloned().map(secret),
            agent: agent(&head.headers),
        };
        let sent = self.recorder.sent(call.clone());
        let mishap = self.recorder.mishap(&call);
        match &mishap {
            Some(Mishap::LostBefore) => return Ok(broken_off(Bytes::new())),
            Some(Mishap::Answered(answer)) => {
                self.recorder.answered(sent, answer);
                return Ok(answer.clone().map(Body::from));
            }
            // Not recorded: it is no news.
            Some(Mishap::Stale) if call.method == Method::GET => {
                if let Some(last) = self.recorder.last(&call) {
                    return Ok(last.map(Body::from));
                }
            }
            Some(Mishap::Slow(by)) => tokio::time::sleep(*by).await,
            _ => {}
        }
        for other in self.recorder.interferes() {
            other.before(&call).await;
        }
        let forwarded = self.forward(&call, head.headers, body).await;
        let response = forwarded.map_err(axum::Error::new)?;
        for other in self.recorder.interferes() {
            other.after(&call, response.status()).await;
        }
        self.recorder.answered(sent, &response);
        Ok(match mishap {
            Some(Mishap::LostAfter) => broken_off(Bytes::new()),
            Some(Mishap::Truncated) => {
                let (head, body) = response.into_parts();
                let mut torn = broken_off(body.slice(..body.len() / 2));
                (*torn.status_mut(), *torn.headers_mut()) = (head.status, head.headers);
                torn
            }
            _ => response.map(Body::from),
        })
    }

    async fn forward(
        &self,
        call: &Call,
        mut headers: HeaderMap,
        body: Bytes,
    ) -> reqwest::Result<Response<Bytes>> {
        for name in [HOST, CONNECTION, CONTENT_LENGTH, TRANSFER_ENCODING] {
            headers.remove(name);
        }
        let url = format!("{}{}", self.target, call.path);
        let request = self
            .client
            .request(call.method.clone(), url)
            .headers(headers)
            .body(body);
        let answer = request.send().await?;
        let mut response = Response::new(Bytes::new());
        *response.status_mut() = answer.status();
        *response.headers_mut() = answer.headers().clone();
        for name in [CONNECTION, CONTENT_LENGTH, TRANSFER_ENCODING] {
            response.headers_mut().remove(name);
        }
        *response.body_mut() = answer.bytes().await?;
        Ok(response)
    }
}

/// An answer that breaks off after this much, which closes the connection.
fn broken_off(after: Bytes) -> Response<Body> {
    let broken = Err(io::Error::new(io::ErrorKind::ConnectionReset, "torn on purpose"));
    let first = (!after.is_empty()).then_some(Ok(after));
    Response::new(Body::from_stream(stream::iter(first.into_iter().chain([broken]))))
}

fn agent(headers: &HeaderMap) -> String {
    let agent = headers.get(USER_AGENT).and_then(|agent| agent.to_str().ok());
    agent.unwrap_or_default().to_owned()
}

fn secret(mut token: HeaderValue) -> HeaderValue {
    token.set_sensitive(true);
    token
}
