//! Faults: what happens to requests on their way, by service, method, path and count.
//!
//! A plan belongs to the sandbox, not to the world: the world stays a value.

use bytes::Bytes;
use http::header::{CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderName, HeaderValue, Method, Request, Response, StatusCode};
use jiff::Timestamp;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::Service;
use super::call::{Caller, set_header};
use super::world::World;

/// Something done to the world by the way.
pub type Hook = Arc<dyn Fn(&mut World, Timestamp) + Send + Sync>;

/// A fault: which requests it meets, and what it does to them.
///
/// ```
/// # use unprovision_testkit::sandbox::{Fault, Service};
/// # use http::Method;
/// // The second POST of allocations is applied, and its answer gets lost.
/// let fault = Fault::on(Service::Placement).method(Method::POST).path("/allocations").nth(2).lose_reply();
/// ```
#[derive(Clone, Debug)]
pub struct Fault {
    service: Service,
    method: Option<Method>,
    path: Option<String>,
    query: Option<String>,
    who: Option<String>,
    first: u32,
    times: u32,
    seen: u32,
    pub(super) effect: Effect,
}

/// What a fault does.
#[derive(Clone)]
pub(super) enum Effect {
    Nothing,
    LoseRequest,
    LoseReply,
    Answer(Response<Bytes>),
    Stale(Stale),
    Before(Hook),
    After(Hook),
    Delay(Duration),
    DelayReply(Duration),
    Late(Duration),
}

impl Effect {
    /// How long a request is on its way.
    pub(super) fn delay(&self) -> Option<Duration> {
        if let Self::Delay(by) = self {
            Some(*by)
        } else {
            None
        }
    }

    /// How long an answer is on its way.
    pub(super) fn reply_delay(&self) -> Option<Duration> {
        if let Self::DelayReply(by) = self {
            Some(*by)
        } else {
            None
        }
    }
}

/// From when a stale answer comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stale {
    Age(Duration),
    Exchanges(usize),
}

impl Fault {
    /// A fault for requests to a service; without more, for all of them.
    pub fn on(service: Service) -> Self {
        Self {
            service,
            method: None,
            path: None,
            query: None,
            who: None,
            first: 1,
            times: u32::MAX,
            seen: 0,
            effect: Effect::Nothing,
        }
    }

    /// Only this method.
    pub fn method(mut self, method: Method) -> Self {
        self.method = Some(method);
        self
    }

    /// Only this path: `*` stands for one part, `**` at the end for all that follow.
    pub fn path(mut self, pattern: impl Into<String>) -> Self {
        self.path = Some(pattern.into());
        self
    }

    /// Only with this text in the query.
    pub fn query(mut self, text: impl Into<String>) -> Self {
        self.query = Some(text.into());
        self
    }

    /// Only from this caller (see [`Caller`]).
    pub fn from(mut self, who: impl Into<String>) -> Self {
        self.who = Some(who.into());
        self
    }

    /// From the `n`th fitting request on, counted from 1, and only that one unless [`Fault::times`] follows.
    pub fn nth(mut self, n: u32) -> Self {
        self.first = n.max(1);
        self.times = 1;
        self
    }

    /// So many fitting requests.
    pub fn times(mut self, times: u32) -> Self {
        self.times = times;
        self
    }

    /// The request never arrives (`TransportError::NotSent`).
    pub fn lose_request(self) -> Self {
        self.doing(Effect::LoseRequest)
    }

    /// The request is applied, its answer gets lost (`TransportError::MaybeApplied`).
    pub fn lose_reply(self) -> Self {
        self.doing(Effect::LoseReply)
    }

    /// The sender gets no answer, and the request arrives only after `by`.
    pub fn arrives_late(self, by: Duration) -> Self {
        self.doing(Effect::Late(by))
    }

    /// The request is slow to arrive.
    pub fn delay(self, by: Duration) -> Self {
        self.doing(Effect::Delay(by))
    }

    /// The answer is slow to arrive.
    pub fn delay_reply(self, by: Duration) -> Self {
        self.doing(Effect::DelayReply(by))
    }

    /// The request is not looked at and answered so.
    pub fn answer(self, response: Response<Bytes>) -> Self {
        self.doing(Effect::Answer(response))
    }

    /// The request is answered with this status and body; a body beginning with `<` is HTML.
    pub fn status(self, status: StatusCode, body: &str) -> Self {
        let kind = if body.starts_with('<') {
            "text/html"
        } else {
            "application/json"
        };
        let mut response = Response::new(Bytes::from(body.to_owned()));
        *response.status_mut() = status;
        response
            .headers_mut()
            .insert(CONTENT_TYPE, HeaderValue::from_static(kind));
        self.answer(response)
    }

    /// A proxy answers 502 with an HTML page.
    pub fn bad_gateway(self) -> Self {
        self.status(
            StatusCode::BAD_GATEWAY,
            "<html><body><h1>502 Bad Gateway</h1></body></html>",
        )
    }

    /// Ironic's answer while a lock is held.
    pub fn locked(self) -> Self {
        let inner = r#"{"faultcode": "Client", "faultstring": "Node 00000000-0000-0000-0000-000000000000 is locked by host conductor-1, please retry after the current operation is completed.", "debuginfo": null}"#;
        let body = serde_json::json!({"error_message": inner});
        self.status(StatusCode::CONFLICT, &body.to_string())
    }

    /// The service or a proxy asks to come back later.
    pub fn too_many(self, retry_after: Duration) -> Self {
        let fault = self.status(StatusCode::TOO_MANY_REQUESTS, "{}");
        fault.header(RETRY_AFTER, &retry_after.as_secs().to_string())
    }

    /// Adds a header to the answer given before.
    pub fn header(mut self, name: HeaderName, value: &str) -> Self {
        if let (Effect::Answer(response), Ok(value)) = (&mut self.effect, HeaderValue::from_str(value)) {
            response.headers_mut().insert(name, value);
        }
        self
    }

    /// A read is answered as it would have been so long ago.
    pub fn stale(self, age: Duration) -> Self {
        self.doing(Effect::Stale(Stale::Age(age)))
    }

    /// A read is answered as it would have been before the last `exchanges` exchanges and edits.
    pub fn stale_by(self, exchanges: usize) -> Self {
        self.doing(Effect::Stale(Stale::Exchanges(exchanges)))
    }

    /// Something happens just before the request is looked at.
    pub fn before(self, hook: impl Fn(&mut World, Timestamp) + Send + Sync + 'static) -> Self {
        self.doing(Effect::Before(Arc::new(hook)))
    }

    /// Something happens just after the request was answered, before the sender learns of it.
    pub fn after(self, hook: impl Fn(&mut World, Timestamp) + Send + Sync + 'static) -> Self {
        self.doing(Effect::After(Arc::new(hook)))
    }

    fn doing(mut self, effect: Effect) -> Self {
        self.effect = effect;
        self
    }

    fn fits(&self, service: Service, request: &Request<Bytes>) -> bool {
        let who = request
            .extensions()
            .get::<Caller>()
            .map(|caller| caller.0.as_str());
        self.service == service
            && self
                .method
                .as_ref()
                .is_none_or(|method| method == request.method())
            && self
                .path
                .as_ref()
                .is_none_or(|pattern| path_fits(pattern, request.uri().path()))
            && self
                .query
                .as_ref()
                .is_none_or(|text| request.uri().query().is_some_and(|q| q.contains(text)))
            && self.who.as_deref().is_none_or(|wanted| who == Some(wanted))
    }

    /// Counts a request and says whether this fault is for it.
    fn meets(&mut self, service: Service, request: &Request<Bytes>) -> bool {
        if !self.fits(service, request) {
            return false;
        }
        self.seen += 1;
        self.seen >= self.first && self.seen - self.first < self.times
    }
}

fn path_fits(pattern: &str, path: &str) -> bool {
    let split = |text: &str| {
        text.split('/')
            .filter(|part| !part.is_empty())
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    let (pattern, path) = (split(pattern), split(path));
    if let Some((last, front)) = pattern.split_last()
        && last == "**"
    {
        return path.len() >= front.len() && front.iter().zip(&path).all(|(p, part)| p == "*" || p == part);
    }
    pattern.len() == path.len() && pattern.iter().zip(&path).all(|(p, part)| p == "*" || p == part)
}

/// All faults of a sandbox.
#[derive(Clone, Debug, Default)]
pub(super) struct Plan {
    faults: Vec<Fault>,
}

impl Plan {
    pub(super) fn add(&mut self, fault: Fault) {
        self.faults.push(fault);
    }

    pub(super) fn clear(&mut self) {
        self.faults.clear();
    }

    /// Whether any fault needs to know how the world was.
    pub(super) fn looks_back(&self) -> bool {
        self.faults
            .iter()
            .any(|fault| matches!(fault.effect, Effect::Stale(_)))
    }

    /// Counts a request with all faults and returns what happens to it.
    pub(super) fn meet(&mut self, service: Service, request: &Request<Bytes>) -> Vec<Effect> {
        let met = self
            .faults
            .iter_mut()
            .filter_map(|fault| fault.meets(service, request).then(|| fault.effect.clone()));
        met.collect()
    }
}

impl fmt::Debug for Effect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match self {
            Self::Nothing => "Nothing",
            Self::LoseRequest => "LoseRequest",
            Self::LoseReply => "LoseReply",
            Self::Answer(response) => return write!(f, "Answer({})", response.status()),
            Self::Stale(stale) => return write!(f, "{stale:?}"),
            Self::Before(_) => "Before",
            Self::After(_) => "After",
            Self::Delay(by) => return write!(f, "Delay({by:?})"),
            Self::DelayReply(by) => return write!(f, "DelayReply({by:?})"),
            Self::Late(by) => return write!(f, "Late({by:?})"),
        };
        f.write_str(name)
    }
}

/// An answer made by a fault carries a request id like all others.
pub(super) fn stamp(mut response: Response<Bytes>) -> Response<Bytes> {
    if !response.headers().contains_key("x-openstack-request-id") {
        set_header(&mut response, "x-openstack-request-id", "req-fault");
    }
    response
}
