//! Errors as RFC 9457 has them: what happened, to what, and what to do next.

use axum::extract::rejection::{JsonRejection, PathRejection, QueryRejection};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use unprovision::cloud::CloudError;
use unprovision::journal::JournalError;
use unprovision_session::in_full;
use utoipa::ToSchema;

/// What went wrong, as a problem document of RFC 9457.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct Problem {
    /// Which kind of problem it is: a name that does not change.
    #[serde(rename = "type")]
    #[schema(example = "urn:unprovision:problem:not-found")]
    pub kind: String,
    /// What kind of problem it is, in words.
    pub title: String,
    /// The HTTP status.
    #[schema(example = 404)]
    pub status: u16,
    /// What happened this time.
    pub detail: String,
    /// What to do about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
    /// After how many seconds it is worth another try.
    #[serde(skip)]
    pub retry_after: Option<u64>,
}

impl Problem {
    fn new(status: StatusCode, kind: &str, title: &str, detail: impl Into<String>) -> Self {
        Self {
            kind: format!("urn:unprovision:problem:{kind}"),
            title: title.to_owned(),
            status: status.as_u16(),
            detail: detail.into(),
            next: None,
            retry_after: None,
        }
    }

    /// The request cannot be understood.
    pub fn bad_request(detail: impl Into<String>) -> Self {
        Self::new(
            StatusCode::BAD_REQUEST,
            "bad-request",
            "The request cannot be understood",
            detail,
        )
    }

    /// Whoever asks may not do that.
    pub fn forbidden(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::FORBIDDEN, "forbidden", "This is not allowed", detail)
    }

    /// There is no such thing.
    pub fn not_found(detail: impl Into<String>) -> Self {
        Self::new(
            StatusCode::NOT_FOUND,
            "not-found",
            "There is no such thing",
            detail,
        )
    }

    /// The thing is there, and takes other methods.
    pub fn method_not_allowed() -> Self {
        let title = "The resource does not take this method";
        let detail = "see the header Allow, or /openapi.json, for those that it takes";
        Self::new(
            StatusCode::METHOD_NOT_ALLOWED,
            "method-not-allowed",
            title,
            detail,
        )
    }

    /// The thing cannot be had just now.
    pub fn unavailable(detail: impl Into<String>) -> Self {
        let title = "It cannot be said just now";
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "unavailable", title, detail).again_after(5)
    }

    /// The journal cannot be read.
    pub(crate) fn journal(error: &JournalError) -> Self {
        Self::unavailable(in_full(error, ": "))
    }

    /// One of the services behind the guard cannot be read.
    pub(crate) fn cloud(what: &str, error: &CloudError) -> Self {
        Self::unavailable(format!("{what}: {}", in_full(error, ": ")))
    }

    /// Something of the program is broken.
    pub fn internal() -> Self {
        let detail = "the log of the service has more; the guard goes on";
        Self::new(
            StatusCode::INTERNAL_SERVER_ERROR,
            "internal",
            "The service has failed",
            detail,
        )
    }

    /// With what to do about it.
    #[must_use]
    pub fn next(mut self, next: impl Into<String>) -> Self {
        self.next = Some(next.into());
        self
    }

    /// With when it is worth another try.
    #[must_use]
    pub fn again_after(mut self, seconds: u64) -> Self {
        self.retry_after = Some(seconds);
        self
    }

    /// What a layer below has refused with a plain text.
    pub(crate) fn of_status(status: StatusCode, detail: String) -> Self {
        match status {
            StatusCode::PAYLOAD_TOO_LARGE => Self::new(status, "too-large", "The body is too large", detail),
            StatusCode::UNSUPPORTED_MEDIA_TYPE => {
                Self::new(status, "media-type", "The body is of another kind", detail)
                    .next("send `Content-Type: application/json`")
            }
            StatusCode::UNPROCESSABLE_ENTITY => {
                Self::new(status, "bad-body", "The body does not say what is needed", detail)
            }
            _ => Self::bad_request(detail),
        }
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let status = StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let body = serde_json::to_string(&self).unwrap_or_default();
        let mut response =
            (status, [(header::CONTENT_TYPE, "application/problem+json")], body).into_response();
        if let Some(seconds) = self.retry_after {
            response.headers_mut().insert(header::RETRY_AFTER, seconds.into());
        }
        response
    }
}

impl From<JsonRejection> for Problem {
    fn from(rejection: JsonRejection) -> Self {
        Self::of_status(rejection.status(), rejection.body_text())
    }
}

impl From<QueryRejection> for Problem {
    fn from(rejection: QueryRejection) -> Self {
        Self::of_status(rejection.status(), rejection.body_text())
    }
}

impl From<PathRejection> for Problem {
    fn from(rejection: PathRejection) -> Self {
        Self::of_status(rejection.status(), rejection.body_text())
    }
}
