//! Why a call to Placement failed.

use std::fmt;

use unprovision_session::{ApiError, Class, NotAcceptable, Resend, TransportError};

use crate::request::Asked;

/// An error of a call to Placement. What one can do about it: [`ErrorKind::class`] of its `kind`.
pub type Error = ApiError<ErrorKind>;

/// Why a call to Placement failed. A 409 is told apart by the error code of its body, never by the status.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    /// 404: no such provider, class or trait.
    NotFound,
    /// 409 `placement.concurrent_update`: a provider's or consumer's generation has moved.
    ConcurrentUpdate,
    /// 409 `placement.undefined_code` that speaks of capacity: the units are not free, or the provider is over
    /// capacity and the service older than 14.0.0.
    NoCapacity,
    /// 409 otherwise (in use, exists already): the code, where the body had one.
    Conflict(Option<String>),
    /// 400: the request is wrong; a trait or class that does not exist, too.
    BadRequest,
    /// 401, also after a new login.
    Unauthorized,
    /// 403: the credentials do not allow it; Placement refuses every system-scoped token.
    Forbidden,
    /// 406: the service does not speak the microversion.
    NotAcceptable(NotAcceptable),
    /// 429 or 503: busy; nothing was done.
    Busy,
    /// Another 5xx, also a proxy's: it may have been applied.
    Server,
    /// No answer; the source tells whether the request left. Also an answer to a write that does not say what became
    /// of it, such as one without the microversion asked for ([`Class::Unknown`]).
    NoAnswer(Class),
    /// The answer could not be read.
    Unreadable,
    /// The service is too old for this call; the message names what is needed.
    Unsupported,
}

impl ErrorKind {
    /// What a caller can do about it.
    ///
    /// [`ErrorKind::NoCapacity`] is [`Class::Refused`]: waiting for a generation to move would wait for ever.
    pub fn class(&self) -> Class {
        match self {
            Self::Busy => Class::Transient,
            Self::ConcurrentUpdate | Self::Conflict(_) => Class::Conflict,
            Self::NotFound | Self::NoCapacity | Self::BadRequest => Class::Refused,
            Self::Unauthorized | Self::Forbidden | Self::NotAcceptable(_) | Self::Unsupported => {
                Class::Refused
            }
            Self::Server => Class::Unknown,
            Self::NoAnswer(class) => *class,
            Self::Unreadable => Class::Bug,
        }
    }
}

impl fmt::Display for ErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotFound => "not found; check the name, and whether Nova has made the provider yet",
            Self::ConcurrentUpdate => "somebody else wrote first; read again, then decide again",
            Self::NoCapacity => {
                "the units are not free, or the provider is over capacity; look who holds them before trying again"
            }
            Self::Conflict(Some(code)) => return write!(f, "a conflict ({code}); look at it again"),
            Self::Conflict(None) => "a conflict; look at it again",
            Self::BadRequest => "the request is refused as wrong",
            Self::Unauthorized => "the login is not accepted; check the credentials",
            Self::Forbidden => {
                "not allowed; check the roles of the credentials, and that they are not system-scoped, which Placement refuses"
            }
            Self::NotAcceptable(versions) => return not_acceptable(f, *versions),
            Self::Busy => "the service is busy, and nothing was done; try again later",
            Self::Server => "the service or a proxy failed; a write may have been applied, so look before trying again",
            Self::NoAnswer(Class::Unknown) => "no usable answer; it may have been applied, look before trying again",
            Self::NoAnswer(Class::Transient) => "no usable answer, and nothing was done; try again later",
            Self::NoAnswer(_) => "no usable answer",
            Self::Unreadable => "the answer cannot be read; is this Placement's endpoint?",
            Self::Unsupported => "the service does not offer what this call needs",
        })
    }
}

fn not_acceptable(
    f: &mut fmt::Formatter<'_>,
    NotAcceptable { asked, offered }: NotAcceptable,
) -> fmt::Result {
    match offered {
        Some(range) if range.min <= asked && asked <= range.max => {
            write!(
                f,
                "this needs a newer API than {asked}; the service speaks {range}"
            )
        }
        Some(range) => write!(
            f,
            "the service does not speak API {asked}, only {range}; is it older than this client?"
        ),
        None => write!(f, "the service does not speak API {asked}"),
    }
}

/// An error that was found on this side.
pub(crate) fn fail(call: &str, kind: ErrorKind, message: impl Into<String>) -> Error {
    Error {
        service: "placement",
        call: call.to_owned(),
        kind,
        status: None,
        message: message.into(),
        request_id: None,
        retry_after: None,
        source: None,
    }
}

/// The error of a request without an answer. A read changes nothing, so it may just be tried again.
pub(crate) fn no_answer(asked: &Asked, source: TransportError) -> Error {
    let class = match source.class() {
        Class::Unknown if asked.resend == Resend::Safe => Class::Transient,
        class => class,
    };
    Error {
        source: Some(source),
        ..fail(&asked.call, ErrorKind::NoAnswer(class), "")
    }
}
