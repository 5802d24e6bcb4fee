//! A service in memory: a closure answers, every request is kept.

use std::fmt;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use bytes::Bytes;
use http::{Request, Response};
use ironic_client::IronicClient;
use serde_json::{Value, json};
use unprovision_session::{Transport, TransportError};

pub(crate) const VERSION: &str = "x-openstack-ironic-api-version";
const MIN: &str = "x-openstack-ironic-api-minimum-version";
const MAX: &str = "x-openstack-ironic-api-maximum-version";

pub(crate) type Answer = Result<Response<Bytes>, TransportError>;

type Service = dyn Fn(&Request<Bytes>) -> Answer + Send + Sync;

pub(crate) struct Fake {
    answer: Box<Service>,
    seen: Mutex<Vec<Request<Bytes>>>,
}

impl fmt::Debug for Fake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Fake")
    }
}

#[async_trait]
impl Transport for Fake {
    async fn send(&self, request: Request<Bytes>) -> Answer {
        let answer = (self.answer)(&request);
        self.seen.lock().unwrap().push(request);
        answer
    }
}

impl Fake {
    /// Every request, those of the negotiation included.
    pub(crate) fn all(&self) -> Vec<Request<Bytes>> {
        self.seen.lock().unwrap().clone()
    }

    /// The requests without the negotiation.
    pub(crate) fn seen(&self) -> Vec<Request<Bytes>> {
        self.all()
            .into_iter()
            .filter(|request| request.uri().path() != "/v1")
            .collect()
    }

    /// `METHOD path?query` of the requests without the negotiation.
    pub(crate) fn lines(&self) -> Vec<String> {
        self.seen()
            .iter()
            .map(|request| format!("{} {}", request.method(), request.uri()))
            .collect()
    }
}

/// A client of a service that this closure plays from the first byte on.
pub(crate) fn raw(
    answer: impl Fn(&Request<Bytes>) -> Answer + Send + Sync + 'static,
) -> (IronicClient, Arc<Fake>) {
    let fake = Arc::new(Fake {
        answer: Box::new(answer),
        seen: Mutex::default(),
    });
    (IronicClient::new(fake.clone()), fake)
}

/// A client of a service that speaks 1.1 to `max` as Ironic does, and answers everything but `/v1` by this closure.
pub(crate) fn ironic(
    max: &'static str,
    answer: impl Fn(&Request<Bytes>) -> Answer + Send + Sync + 'static,
) -> (IronicClient, Arc<Fake>) {
    raw(move |request| {
        let (major, minor) = max.split_once('.').unwrap();
        let asked = request.headers()[VERSION].to_str().unwrap();
        let known = asked
            .split_once('.')
            .is_some_and(|(a, b)| a == major && b.parse::<u16>().unwrap() <= minor.parse::<u16>().unwrap());
        let mut answer = match request.uri().path() {
            _ if !known => reply(406, &fault("Version was requested but is not supported.")),
            "/v1" => reply(200, &json!({ "id": "v1" })),
            _ => answer(request),
        }?;
        let refused_login = answer.status() == 401;
        let headers = answer.headers_mut();
        headers.insert(MIN, "1.1".parse().unwrap());
        headers.insert(MAX, max.parse().unwrap());
        if known && !refused_login {
            headers.insert(VERSION, asked.parse().unwrap());
        }
        Ok(answer)
    })
}

/// A client of today's service, which always gives this answer.
pub(crate) fn always(status: u16, body: &str) -> (IronicClient, Arc<Fake>) {
    let body = body.to_owned();
    ironic("1.115", move |_| text(status, &body))
}

pub(crate) fn reply(status: u16, body: &Value) -> Answer {
    text(status, &body.to_string())
}

pub(crate) fn text(status: u16, body: &str) -> Answer {
    let builder = Response::builder()
        .status(status)
        .header("x-openstack-request-id", "req-1");
    Ok(builder.body(Bytes::copy_from_slice(body.as_bytes())).unwrap())
}

/// An error as Ironic's own: JSON in a string of JSON.
pub(crate) fn fault(words: &str) -> Value {
    json!({ "error_message": json!({ "faultcode": "Client", "faultstring": words, "debuginfo": null }).to_string() })
}

/// The value of a parameter, as it stands in the query.
pub(crate) fn parameter(request: &Request<Bytes>, key: &str) -> Option<String> {
    let query = request.uri().query()?;
    query
        .split('&')
        .find_map(|pair| pair.strip_prefix(key)?.strip_prefix('='))
        .map(str::to_owned)
}

/// A node as today's service shows it.
pub(crate) fn node() -> Value {
    let uuid = "00000000-0000-0000-0000-000000000001";
    json!({ "uuid": uuid, "provision_state": "available", "instance_uuid": null, "maintenance": false, "retired": false })
}
