//! The seam between a client, which builds requests, and whatever carries them.

use std::error::Error as StdError;
use std::fmt;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use http::{Request, Response};

/// Carries requests to one service: over HTTP with a Keystone token, or in-process to a sandbox.
///
/// The request's URI is a path with an optional query, such as `/v1/nodes/UUID` or
/// `/allocation_candidates?limit=1`; the transport knows where the service lives, adds the
/// authentication, and leaves all other headers and the body as they are, on every attempt. A request may carry a
/// [`Resend`] among its extensions; without one, the method decides ([`Resend::of`]).
///
/// An answer of any status is `Ok`: what it means is the client's business.
///
/// Dropping the future stops the waiting; the request may or may not have been applied by then.
#[async_trait]
pub trait Transport: fmt::Debug + Send + Sync {
    /// Sends the request and reads the whole answer.
    async fn send(&self, request: Request<Bytes>) -> Result<Response<Bytes>, TransportError>;
}

/// When a transport may send a request again by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resend {
    /// A read: after any failure, and after 429, 502, 503 and 504, within the transport's budget.
    Safe,
    /// A write that is checked by what it relies on (a generation) or harmless when doubled: only
    /// if it surely never left or the server surely did not look at it (429, 401 after a new login).
    IfNotApplied,
    /// Never, for any reason: the caller looks at the world anew before each attempt. A 401 still makes
    /// the transport log in anew, and is then handed to the caller.
    Never,
}

impl Resend {
    /// The kind that a request carries, or else: reads are [`Resend::Safe`], writes
    /// [`Resend::IfNotApplied`].
    pub fn of(request: &Request<Bytes>) -> Self {
        let by_method = if request.method().is_safe() {
            Self::Safe
        } else {
            Self::IfNotApplied
        };
        request.extensions().get().copied().unwrap_or(by_method)
    }
}

/// Why there is no answer.
///
/// The texts name the service and never contain a token or password.
#[derive(Debug, thiserror::Error)]
pub enum TransportError {
    /// The request surely never reached the service (connection refused, name not found).
    #[error("{service} was not reached")]
    NotSent {
        /// The service's name, such as `ironic`.
        service: String,
        /// What went wrong below.
        #[source]
        source: Box<dyn StdError + Send + Sync>,
    },
    /// The request left, and no whole answer came back: the service may have applied it.
    #[error("{service} gave no whole answer{}",
        waited.map(|d| format!(" within {} s", d.as_secs_f32())).unwrap_or_default())]
    MaybeApplied {
        /// The service's name.
        service: String,
        /// How long was waited, where the wait's limit was the reason.
        waited: Option<Duration>,
        /// What went wrong below.
        #[source]
        source: Box<dyn StdError + Send + Sync>,
    },
    /// No token could be had, so nothing was sent to the service, or it was refused unread (401).
    #[error("no login for {service}: {message}")]
    Login {
        /// The service's name.
        service: String,
        /// What Keystone said, or why it was not reached, in words without secrets.
        message: String,
        /// Whether trying again later can help (Keystone away) or not (wrong password).
        transient: bool,
    },
    /// The service is not to be found: no such endpoint in the catalog, or an unusable URL.
    #[error("no endpoint for {service}: {message}")]
    Endpoint {
        /// The service's name.
        service: String,
        /// What was looked for and what there is.
        message: String,
    },
    /// The answer is larger than what is read of any answer; nothing of it was used.
    #[error("the answer of {service} is larger than {limit} bytes")]
    TooLarge {
        /// The service's name.
        service: String,
        /// The limit in bytes.
        limit: usize,
    },
}
