//! Reads the answers; no IO.

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Response, StatusCode, header};
use serde::de::DeserializeOwned;
use serde_json::Value;
use unprovision_session::{Class, Microversion, NotAcceptable, Resend, VersionRange};

use crate::error::fail;
use crate::request::{Asked, VERSION_HEADER};
use crate::{Error, ErrorKind, ProviderAllocations};

/// The body of an answer that says yes, in the microversion asked for; otherwise the error.
pub(crate) fn accept(asked: &Asked, response: Response<Bytes>) -> Result<Bytes, Error> {
    if !response.status().is_success() {
        return Err(refusal(asked, &response));
    }
    let used = header_of(response.headers(), VERSION_HEADER);
    let version = used.and_then(|text| text.trim().strip_prefix("placement ")?.parse().ok());
    if version == Some(asked.version) {
        return Ok(response.into_body());
    }
    let used = used.unwrap_or("none");
    let message = format!(
        "the answer is in API `{used}` instead of {}: something between drops the header {VERSION_HEADER}",
        asked.version
    );
    Err(unusable(asked, &response, ErrorKind::Unsupported, message))
}

/// The value in the body of an answer that says yes.
pub(crate) fn json<T: DeserializeOwned>(asked: &Asked, response: Response<Bytes>) -> Result<T, Error> {
    let (parts, body) = response.into_parts();
    let head = Response::from_parts(parts.clone(), Bytes::new());
    let body = accept(asked, Response::from_parts(parts, body))?;
    serde_json::from_slice(&body)
        .map_err(|error| unusable(asked, &head, ErrorKind::Unreadable, error.to_string()))
}

/// Who holds what of a provider. Allocations are only ever made and deleted, never changed, so the answer's
/// `Last-Modified` is when the newest of them was made; without any it is the time of the answer.
pub(crate) fn holders(asked: &Asked, response: Response<Bytes>) -> Result<ProviderAllocations, Error> {
    let modified = header_of(response.headers(), header::LAST_MODIFIED.as_str());
    let modified = modified.and_then(|text| jiff::fmt::rfc2822::parse(text).ok());
    let read: ProviderAllocations = json(asked, response)?;
    let newest = modified.filter(|_| !read.allocations.is_empty());
    Ok(ProviderAllocations {
        newest: newest.map(|at| at.timestamp()),
        ..read
    })
}

/// An answer that says yes and cannot be used: a write may have been applied all the same.
fn unusable(asked: &Asked, response: &Response<Bytes>, kind: ErrorKind, message: String) -> Error {
    let kind = if asked.resend == Resend::Safe {
        kind
    } else {
        ErrorKind::NoAnswer(Class::Unknown)
    };
    error(asked, response, kind, message)
}

fn error(asked: &Asked, response: &Response<Bytes>, kind: ErrorKind, message: String) -> Error {
    let headers = response.headers();
    let retry_after =
        header_of(headers, header::RETRY_AFTER.as_str()).and_then(|text| text.trim().parse().ok());
    Error {
        status: Some(response.status()),
        request_id: request_id(headers).map(str::to_owned),
        retry_after: retry_after.map(Duration::from_secs),
        ..fail(&asked.call, kind, message)
    }
}

/// The error of an answer that says no.
pub(crate) fn refusal(asked: &Asked, response: &Response<Bytes>) -> Error {
    let status = response.status();
    let body = serde_json::from_slice(response.body()).ok();
    let mut message = message(response.body(), body.as_ref());
    let code = body.as_ref().and_then(|body| body["errors"][0]["code"].as_str());
    let kind = match status {
        StatusCode::NOT_ACCEPTABLE => ErrorKind::NotAcceptable(NotAcceptable {
            asked: asked.version,
            offered: offered(response),
        }),
        // Whatever stands in the way of Placement may say 404 too: that is no word about a provider.
        StatusCode::NOT_FOUND if header_of(response.headers(), VERSION_HEADER).is_none() => ErrorKind::Server,
        _ => kind(status, code, &message),
    };
    if status.is_redirection() {
        let target = header_of(response.headers(), header::LOCATION.as_str()).unwrap_or("another place");
        message = format!("redirected to {target}, which is not followed; give the endpoint itself");
    }
    error(asked, response, kind, message)
}

fn kind(status: StatusCode, code: Option<&str>, message: &str) -> ErrorKind {
    match status {
        StatusCode::BAD_REQUEST => ErrorKind::BadRequest,
        StatusCode::UNAUTHORIZED => ErrorKind::Unauthorized,
        StatusCode::FORBIDDEN => ErrorKind::Forbidden,
        StatusCode::NOT_FOUND => ErrorKind::NotFound,
        StatusCode::CONFLICT => conflict(code, message),
        StatusCode::REQUEST_TIMEOUT | StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE => {
            ErrorKind::Busy
        }
        _ if status.is_server_error() => ErrorKind::Server,
        _ if status.is_client_error() => ErrorKind::BadRequest,
        _ => ErrorKind::Unreadable,
    }
}

/// The code decides; only where Placement has none of its own for a reason, its words do.
fn conflict(code: Option<&str>, message: &str) -> ErrorKind {
    let of_capacity =
        message.contains("Unable to allocate inventory") || message.contains("exceed the capacity");
    match code {
        Some("placement.concurrent_update") => ErrorKind::ConcurrentUpdate,
        Some("placement.undefined_code") | None if of_capacity => ErrorKind::NoCapacity,
        code => ErrorKind::Conflict(code.map(str::to_owned)),
    }
}

/// The server's name for the request.
pub(crate) fn request_id(headers: &HeaderMap) -> Option<&str> {
    header_of(headers, "x-openstack-request-id").or(header_of(headers, "openstack-request-id"))
}

fn header_of<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name)?.to_str().ok()
}

/// The range that the service speaks, from the body of `GET /` or of a 406. Links in the body are not looked at.
pub(crate) fn offered(response: &Response<Bytes>) -> Option<VersionRange> {
    let body: Value = serde_json::from_slice(response.body()).ok()?;
    let version = |text: &Value| text.as_str()?.parse::<Microversion>().ok();
    [&body["versions"][0], &body["errors"][0]]
        .into_iter()
        .find_map(|found| {
            Some(VersionRange {
                min: version(&found["min_version"])?,
                max: version(&found["max_version"])?,
            })
        })
}

/// What the server says, from any of the shapes of its own errors, keystonemiddleware's or a proxy's page.
fn message(bytes: &[u8], body: Option<&Value>) -> String {
    let text = String::from_utf8_lossy(bytes);
    match body {
        Some(body) => tidy(&said(body).unwrap_or_else(|| text.to_string())),
        None => tidy(&without_tags(&text)),
    }
}

/// The words in an error's JSON. Placement's begin with a sentence on the status and go on after an empty line.
fn said(value: &Value) -> Option<String> {
    if let Some(text) = value.as_str() {
        let after_status = text
            .split_once("\n\n")
            .map(|(_, own)| own)
            .filter(|own| !own.trim().is_empty());
        return Some(after_status.unwrap_or(text).to_owned());
    }
    let error = value
        .get("errors")
        .and_then(|errors| errors.get(0))
        .unwrap_or(value);
    ["detail", "error", "message", "title"]
        .into_iter()
        .filter_map(|key| said(error.get(key)?))
        .find(|text| !text.trim().is_empty())
}

/// The text of a page. Good enough for the one line that a proxy has to say.
fn without_tags(page: &str) -> String {
    let mut text = String::new();
    let mut in_tag = false;
    for c in page.chars() {
        match c {
            '<' => in_tag = true,
            '>' if in_tag => {
                in_tag = false;
                text.push(' ');
            }
            _ if !in_tag => text.push(c),
            _ => {}
        }
    }
    text
}

/// One line of at most 1,000 characters, without control characters, which a terminal might obey.
fn tidy(text: &str) -> String {
    let clean: String = text
        .chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect();
    let line = clean.split_whitespace().collect::<Vec<_>>().join(" ");
    if line.chars().count() <= 1000 {
        line
    } else {
        line.chars().take(999).chain(['…']).collect()
    }
}
