//! Reads the answers; no IO.

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Response, StatusCode, header};
use serde::de::DeserializeOwned;
use serde_json::Value;
use unprovision_session::{Class, Microversion, NotAcceptable, Resend, VersionRange};

use crate::error::fail;
use crate::request::{Asked, VERSION_HEADER};
use crate::{Error, ErrorKind};

/// The body of an answer that says yes, in the microversion asked for; otherwise the error.
pub(crate) fn accept(asked: &Asked, response: Response<Bytes>) -> Result<Bytes, Error> {
    if !response.status().is_success() {
        return Err(refusal(asked, &response));
    }
    let used = header_of(response.headers(), VERSION_HEADER);
    if used.and_then(|text| text.parse().ok()) == Some(asked.version) {
        return Ok(response.into_body());
    }
    let used = used.unwrap_or("none");
    let message = format!(
        "the answer is in API {used} instead of {}: something between drops the header {VERSION_HEADER}",
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
    let mut message = message(response.body());
    let kind = match status {
        // Handed on before a new login was tried, since the call is never sent twice.
        StatusCode::UNAUTHORIZED if asked.resend == Resend::Never => ErrorKind::NoAnswer(Class::Transient),
        StatusCode::NOT_ACCEPTABLE => ErrorKind::NotAcceptable(NotAcceptable {
            asked: asked.version,
            offered: offered(response),
        }),
        // Whatever stands in the way of Ironic may say 404 too: that is no word about a node.
        StatusCode::NOT_FOUND if header_of(response.headers(), VERSION_HEADER).is_none() => ErrorKind::Server,
        _ => kind(status, &message),
    };
    if status.is_redirection() {
        let target = header_of(response.headers(), header::LOCATION.as_str()).unwrap_or("another place");
        message = format!("redirected to {target}, which is not followed; give the endpoint itself");
    }
    error(asked, response, kind, message)
}

/// Told by the status and, where Ironic gives one status to several reasons, by its words.
fn kind(status: StatusCode, message: &str) -> ErrorKind {
    // A missing conductor is 404 to some calls and 400 to others; the node itself is there.
    if status.is_client_error() && message.contains("No conductor service registered") {
        return ErrorKind::NoConductor;
    }
    match status {
        StatusCode::BAD_REQUEST => {
            let illegal =
                message.contains("can not be performed on node") && message.contains("while it is in state");
            if illegal {
                ErrorKind::IllegalTransition
            } else {
                ErrorKind::BadRequest
            }
        }
        StatusCode::UNAUTHORIZED => ErrorKind::Unauthorized,
        StatusCode::FORBIDDEN => ErrorKind::Forbidden,
        StatusCode::NOT_FOUND => ErrorKind::NotFound,
        StatusCode::CONFLICT if message.contains("is locked by host") => ErrorKind::Locked,
        StatusCode::CONFLICT => ErrorKind::Conflict,
        StatusCode::REQUEST_TIMEOUT | StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE => {
            ErrorKind::Busy
        }
        _ if status.is_server_error() => ErrorKind::Server,
        _ if status.is_client_error() => ErrorKind::BadRequest,
        _ => ErrorKind::Unreadable,
    }
}

/// The server's name for the request.
pub(crate) fn request_id(headers: &HeaderMap) -> Option<&str> {
    header_of(headers, "x-openstack-request-id").or(header_of(headers, "openstack-request-id"))
}

fn header_of<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name)?.to_str().ok()
}

/// The range that the service speaks: from the headers of any answer, or from the body of `GET /v1` or `GET /`.
/// Links in the body are not looked at.
pub(crate) fn offered(response: &Response<Bytes>) -> Option<VersionRange> {
    let range = |min: Option<&str>, max: Option<&str>| {
        let parse = |text: &str| text.parse::<Microversion>().ok();
        Some(VersionRange {
            min: parse(min?)?,
            max: parse(max?)?,
        })
    };
    let header = |name| header_of(response.headers(), name);
    let by_headers = range(
        header("x-openstack-ironic-api-minimum-version"),
        header("x-openstack-ironic-api-maximum-version"),
    );
    by_headers.or_else(|| {
        let body: Value = serde_json::from_slice(response.body()).ok()?;
        [&body["version"], &body["default_version"], &body["versions"][0]]
            .into_iter()
            .find_map(|version| range(version["min_version"].as_str(), version["version"].as_str()))
    })
}

/// What the server says, from any of the shapes of its own errors, keystonemiddleware's or a proxy's page.
fn message(body: &[u8]) -> String {
    let text = String::from_utf8_lossy(body);
    match serde_json::from_str::<Value>(&text) {
        Ok(value) => tidy(&said(&value).unwrap_or_else(|| text.to_string())),
        Err(_) => tidy(&without_tags(&text)),
    }
}

/// The words in an error's JSON, which Ironic puts into a string of JSON once more.
fn said(value: &Value) -> Option<String> {
    if let Some(text) = value.as_str() {
        let inner = serde_json::from_str::<Value>(text).ok().filter(Value::is_object);
        return inner.as_ref().and_then(said).or_else(|| Some(text.to_owned()));
    }
    [
        "error_message",
        "faultstring",
        "description",
        "error",
        "message",
        "title",
    ]
    .into_iter()
    .filter_map(|key| said(value.get(key)?))
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
