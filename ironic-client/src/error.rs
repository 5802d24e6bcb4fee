//! Why a call to Ironic failed.

use std::fmt;

use unprovision_session::{ApiError, Class, NotAcceptable, Resend, TransportError};

use crate::request::Asked;

/// An error of a call to Ironic. What one can do about it: [`ErrorKind::class`] of its `kind`.
pub type Error = ApiError<ErrorKind>;

/// Why a call to Ironic failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    /// 404: no such node, or not visible with these credentials.
    NotFound,
    /// 409: a conductor holds the node's lock; reading goes on, writing must wait.
    Locked,
    /// 409: another conflict.
    Conflict,
    /// 400: the verb is not legal in the node's provision state.
    IllegalTransition,
    /// 400, or 404 by some calls: no conductor serves the node now; it heals by itself.
    NoConductor,
    /// 400 otherwise: the request is wrong.
    BadRequest,
    /// 401, also after a new login.
    Unauthorized,
    /// 403: the credentials do not allow it, or the node is protected.
    Forbidden,
    /// 406: the service does not speak the microversion.
    NotAcceptable(NotAcceptable),
    /// 429 or 503: the service, or its limit of concurrent cleanings, is full; nothing was queued.
    Busy,
    /// Another 5xx, also a proxy's: it may have been applied.
    Server,
    /// No answer; the source tells whether the request left. Also an answer that does not say what became of a write:
    /// one without the microversion asked for ([`Class::Unknown`]), or the 401 to a call that is never sent twice
    /// ([`Class::Transient`]: nothing was done, and the transport has logged in anew).
    NoAnswer(Class),
    /// The answer could not be read.
    Unreadable,
    /// The service is too old for this call; the message names what is needed.
    Unsupported,
}

impl ErrorKind {
    /// What a caller can do about it.
    ///
    /// An illegal transition is a [`Class::Conflict`]: the node is not where the caller saw it, so look again. After a
    /// delete whose answer was lost it only says that the node is on its way already.
    pub fn class(&self) -> Class {
        match self {
            Self::Locked | Self::NoConductor | Self::Busy => Class::Transient,
            Self::Conflict | Self::IllegalTransition => Class::Conflict,
            Self::NotFound | Self::BadRequest | Self::Unauthorized | Self::Forbidden => Class::Refused,
            Self::NotAcceptable(_) | Self::Unsupported => Class::Refused,
            Self::Server => Class::Unknown,
            Self::NoAnswer(class) => *class,
            Self::Unreadable => Class::Bug,
        }
    }
}

impl fmt::Display for ErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotFound => {
                "not found; check the name, and the scope of the credentials: all nodes are seen with a system scope"
            }
            Self::Locked => "a conductor holds the node's lock; wait and try again",
            Self::Conflict => "something else is going on with the node; look at it again",
            Self::IllegalTransition => "the node's provision state does not allow it; look at the node again",
            Self::NoConductor => "no conductor serves the node; wait, or look whether its ironic-conductor is up",
            Self::BadRequest => "the request is refused as wrong",
            Self::Unauthorized => "the login is not accepted; check the credentials",
            Self::Forbidden => "not allowed; check the roles of the credentials, and whether the node is protected",
            Self::NotAcceptable(versions) => return not_acceptable(f, *versions),
            Self::Busy => "the service is busy, and nothing was done; try again later",
            Self::Server => "the service or a proxy failed; a write may have been applied, so look before trying again",
            Self::NoAnswer(Class::Unknown) => "no usable answer; it may have been applied, look before trying again",
            Self::NoAnswer(Class::Transient) => "no usable answer, and nothing was done; try again later",
            Self::NoAnswer(_) => "no usable answer",
            Self::Unreadable => "the answer cannot be read; is this Ironic's endpoint?",
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
        service: "ironic",
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
