//! One request, taken apart once, and the small pieces that every answer is made of.

use bytes::Bytes;
use http::header::{CONTENT_TYPE, HeaderName};
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode};
use jiff::Timestamp;
use percent_encoding::percent_decode_str;
use serde_json::Value;
use std::time::Duration;

/// Who sent a request that needs no token: put among a request's extensions, it skips authentication,
/// as a caller inside the process may, and names the caller in the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Caller(pub String);

/// A request, decoded.
#[derive(Debug)]
pub(crate) struct Call<'a> {
    pub(crate) method: &'a Method,
    /// The path's parts, decoded; a trailing slash adds nothing.
    pub(crate) path: Vec<String>,
    pub(crate) query: Vec<(String, String)>,
    pub(crate) headers: &'a HeaderMap,
    pub(crate) body: &'a [u8],
    pub(crate) now: Timestamp,
    pub(crate) request_id: String,
    /// The project whose nodes alone the caller may see.
    pub(crate) only_of: Option<String>,
    /// The rule that forbids the request, if one does.
    pub(crate) refused: Option<String>,
}

impl<'a> Call<'a> {
    pub(crate) fn new(request: &'a Request<Bytes>, now: Timestamp, request_id: String) -> Self {
        Self {
            method: request.method(),
            path: request
                .uri()
                .path()
                .split('/')
                .filter(|part| !part.is_empty())
                .map(decode)
                .collect(),
            query: request.uri().query().map(pairs).unwrap_or_default(),
            headers: request.headers(),
            body: request.body(),
            now,
            request_id,
            only_of: None,
            refused: None,
        }
    }

    /// The last value given for a query key.
    pub(crate) fn param(&self, key: &str) -> Option<&str> {
        self.query
            .iter()
            .rev()
            .find(|(k, _)| k == key)
            .map(|(_, v)| v.as_str())
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).and_then(|value| value.to_str().ok())
    }

    pub(crate) fn json(&self) -> Result<Value, String> {
        serde_json::from_slice(self.body).map_err(|error| error.to_string())
    }

    /// The path's parts as slices, for matching.
    pub(crate) fn parts(&self) -> Vec<&str> {
        self.path.iter().map(String::as_str).collect()
    }
}

fn pairs(query: &str) -> Vec<(String, String)> {
    query
        .split('&')
        .filter(|pair| !pair.is_empty())
        .map(|pair| {
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            (decode(&key.replace('+', " ")), decode(&value.replace('+', " ")))
        })
        .collect()
}

fn decode(text: &str) -> String {
    percent_decode_str(text).decode_utf8_lossy().into_owned()
}

/// An answer with a JSON body.
pub(crate) fn json(status: StatusCode, body: &Value) -> Response<Bytes> {
    let mut response = Response::new(Bytes::from(body.to_string()));
    *response.status_mut() = status;
    response
        .headers_mut()
        .insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

/// An answer without a body.
pub(crate) fn empty(status: StatusCode) -> Response<Bytes> {
    let mut response = Response::new(Bytes::new());
    *response.status_mut() = status;
    response
}

/// Sets a header; a value that no header can carry is left out.
pub(crate) fn set_header(response: &mut Response<Bytes>, name: &'static str, value: &str) {
    if let Ok(value) = HeaderValue::from_str(value) {
        response
            .headers_mut()
            .insert(HeaderName::from_static(name), value);
    }
}

/// The time as Python's `isoformat` writes it: microseconds unless they are zero.
pub(crate) fn iso(at: Timestamp) -> String {
    let format = if at.subsec_nanosecond() < 1_000 {
        "%Y-%m-%dT%H:%M:%S+00:00"
    } else {
        "%Y-%m-%dT%H:%M:%S.%6f+00:00"
    };
    at.strftime(format).to_string()
}

/// The time as HTTP headers write it.
pub(crate) fn http_date(at: Timestamp) -> String {
    at.strftime("%a, %d %b %Y %H:%M:%S GMT").to_string()
}

/// A point in time further on; far in the future it stands still.
pub(crate) fn later(at: Timestamp, by: Duration) -> Timestamp {
    at.checked_add(by).unwrap_or(Timestamp::MAX)
}
