//! The error of a client call, and the few classes of what one can do about it.

use std::fmt;
use std::time::Duration;

use http::StatusCode;
use serde::{Deserialize, Serialize};

use crate::{Microversion, TransportError, VersionRange};

/// What a caller can do about an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Class {
    /// Nothing was changed; the same call may succeed later (locked, busy, not reached).
    Transient,
    /// Nothing was changed, since somebody else changed it first: read again, decide again.
    Conflict,
    /// Nothing was changed, and the same call will not succeed by waiting.
    Refused,
    /// Nobody knows whether it was applied: look before anything else is done.
    Unknown,
    /// One of the sides broke the protocol: an answer that cannot be read, a request that cannot be built.
    Bug,
}

/// An error with its causes, `between` before each; a cause that was said already is left out.
pub fn in_full(error: &(dyn std::error::Error + 'static), between: &str) -> String {
    let mut text = error.to_string();
    let causes = std::iter::successors(error.source(), |error| error.source());
    for cause in causes.map(ToString::to_string) {
        if !text.contains(&cause) {
            text.push_str(between);
            text.push_str(&cause);
        }
    }
    text
}

/// The range that a service offered with its 406.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotAcceptable {
    /// What was asked for.
    pub asked: Microversion,
    /// What the service speaks, where it said so.
    pub offered: Option<VersionRange>,
}

/// A call to a service that failed: which call, what the server said, and its request id.
///
/// `K` is the client's own list of reasons. `Display` never prints the source; walk
/// [`std::error::Error::source`] for it.
#[derive(Debug)]
pub struct ApiError<K> {
    /// The service's name.
    pub service: &'static str,
    /// The call in words with its object, such as `show node 5c2f...`.
    pub call: String,
    /// Why it failed.
    pub kind: K,
    /// The status of the answer, where there was one.
    pub status: Option<StatusCode>,
    /// What the server said, in its own words, shortened to 1,000 characters.
    pub message: String,
    /// The server's request id (`req-...`), to be found in its log.
    pub request_id: Option<String>,
    /// When the server asks to be tried again.
    pub retry_after: Option<Duration>,
    /// The transport's error, where there was no answer.
    pub source: Option<TransportError>,
}

impl<K: fmt::Display> fmt::Display for ApiError<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}: {}", self.service, self.call, self.kind)?;
        if let Some(status) = self.status {
            write!(f, " (HTTP {})", status.as_u16())?;
        }
        if !self.message.is_empty() {
            write!(f, ": {}", self.message)?;
        }
        if let Some(id) = &self.request_id {
            write!(f, " [{id}]")?;
        }
        Ok(())
    }
}

impl<K: fmt::Debug + fmt::Display> std::error::Error for ApiError<K> {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.source.as_ref().map(|source| source as _)
    }
}

impl TransportError {
    /// What a caller can do about it.
    pub fn class(&self) -> Class {
        match self {
            Self::NotSent { .. } | Self::Login { transient: true, .. } => Class::Transient,
            Self::Login { transient: false, .. } | Self::Endpoint { .. } => Class::Refused,
            Self::MaybeApplied { .. } => Class::Unknown,
            Self::TooLarge { .. } => Class::Bug,
        }
    }
}
