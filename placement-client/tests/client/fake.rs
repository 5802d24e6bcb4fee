//! A service in memory: a closure answers, every request is kept.

use std::fmt;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use bytes::Bytes;
use http::{Request, Response};
use placement_client::PlacementClient;
use serde_json::{Value, json};
use unprovision_session::{Transport, TransportError};

pub(crate) const VERSION: &str = "openstack-api-version";

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
            .filter(|request| request.uri().path() != "/")
            .collect()
    }

    /// `METHOD path?query` of the requests without the negotiation.
    pub(crate) fn lines(&self) -> Vec<String> {
        self.seen()
            .iter()
            .map(|request| format!("{} {}", request.method(), request.uri()))
            .collect()
    }

    /// The body of the only request without the negotiation.
    pub(crate) fn body(&self) -> Value {
        let seen = self.seen();
        assert_eq!(seen.len(), 1);
        serde_json::from_slice(seen[0].body()).unwrap()
    }
}

/// A client of a service that this closure plays from the first byte on.
pub(crate) fn raw(
    answer: impl Fn(&Request<Bytes>) -> Answer + Send + Sync + 'static,
) -> (PlacementClient, Arc<Fake>) {
    let fake = Arc::new(Fake {
        answer: Box::new(answer),
        seen: Mutex::default(),
    });
    (PlacementClient::new(fake.clone()), fake)
}

/// The answer to `GET /`.
pub(crate) fn document(max: &str) -> Value {
    let links = json!([{ "rel": "self", "href": "" }]);
    json!({ "versions": [{ "id": "v1.0", "min_version": "1.0", "max_version": max, "links": links }] })
}

/// A client of a service that speaks 1.0 to `max` as Placement does, and answers everything but `/` by this closure.
pub(crate) fn placement(
    max: &'static str,
    answer: impl Fn(&Request<Bytes>) -> Answer + Send + Sync + 'static,
) -> (PlacementClient, Arc<Fake>) {
    raw(move |request| {
        let asked = request.headers()[VERSION].to_str().unwrap();
        let minor = |version: &str| version.rsplit('.').next().unwrap().parse::<u16>().unwrap();
        if minor(asked) > minor(max) {
            let error = json!({ "status": 406, "detail": "Unacceptable version", "min_version": "1.0", "max_version": max });
            return reply(406, &json!({ "errors": [error] }));
        }
        let mut answer = match request.uri().path() {
            "/" => reply(200, &document(max)),
            _ => answer(request),
        }?;
        answer.headers_mut().insert(VERSION, asked.parse().unwrap());
        Ok(answer)
    })
}

/// A client of today's service, which always gives this answer.
pub(crate) fn always(status: u16, body: &str) -> (PlacementClient, Arc<Fake>) {
    let body = body.to_owned();
    placement("1.39", move |_| text(status, &body))
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

/// An error as Placement's own, with its sentence on the status in front.
pub(crate) fn fault(code: Option<&str>, words: &str) -> Value {
    let mut error =
        json!({ "title": "T", "detail": format!("It did not work.\n\n {words}  "), "request_id": "req-1" });
    if let Some(code) = code {
        error["code"] = json!(code);
    }
    json!({ "errors": [error] })
}
