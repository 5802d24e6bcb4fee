//! What to do next about an error that comes from a service.

use std::error::Error as StdError;

use ironic_client::ErrorKind as Ironic;
use placement_client::ErrorKind as Placement;
use unprovision_session::{ApiError, TransportError, in_full};

/// What a service has to do with it, before anybody says so in words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Trouble {
    /// It does not let us in, does not allow it, is not where it is looked for, or is too old.
    Access,
    /// There is no such thing.
    Unknown,
    /// It is away, busy, or has not answered.
    Away,
    /// Somebody else was faster.
    Overtaken,
    /// It failed in the middle.
    Failed,
    /// What it says is not in its language.
    Garbled,
    /// It does not take what it was asked.
    Disliked,
}

impl Trouble {
    fn next(self, service: &str) -> String {
        match self {
            Self::Access => "`unprovision doctor` says what is missing, and what to do about it".to_owned(),
            Self::Unknown => {
                format!("check the name; `unprovision nodes` lists what {service} shows to these credentials")
            }
            Self::Away => format!(
                "see whether {service} is up and can be reached from here (`unprovision doctor` tries), then run this again"
            ),
            Self::Overtaken => "run this again: it looks anew before it does anything".to_owned(),
            Self::Failed => format!(
                "look into {service}'s log, or the proxy's before it, then run this again: it looks before it does anything"
            ),
            Self::Garbled => format!(
                "see whether that is {service}'s endpoint at all: `unprovision config` shows what is configured, `unprovision \
                 doctor` what the catalog says"
            ),
            Self::Disliked => {
                format!("look into {service}'s log; if nothing there explains it, this is worth a report")
            }
        }
    }
}

/// What to do next; nothing where no service has to do with it.
pub(crate) fn next(error: &(dyn StdError + 'static)) -> Option<String> {
    let mut at = Some(error);
    while let Some(error) = at {
        if let Some((trouble, service)) = trouble(error) {
            return Some(trouble.next(&service));
        }
        at = error.source();
    }
    None
}

/// The error in one line, with its causes and what to do next.
pub(crate) fn with_next(error: &(dyn StdError + 'static)) -> String {
    let said = in_full(error, ": ");
    match next(error) {
        Some(next) => format!("{said}; next: {next}"),
        None => said,
    }
}

fn trouble(error: &(dyn StdError + 'static)) -> Option<(Trouble, String)> {
    let by_api = error
        .downcast_ref::<ApiError<Ironic>>()
        .and_then(of_ironic)
        .or_else(|| error.downcast_ref::<ApiError<Placement>>().and_then(of_placement));
    by_api.or_else(|| of_transport(error.downcast_ref()?))
}

/// Nothing where the way to the service is the reason.
fn of_ironic(error: &ApiError<Ironic>) -> Option<(Trouble, String)> {
    let trouble = match &error.kind {
        Ironic::NoAnswer(_) if error.source.is_some() => return None,
        Ironic::Unauthorized | Ironic::Forbidden | Ironic::NotAcceptable(_) | Ironic::Unsupported => {
            Trouble::Access
        }
        Ironic::NotFound => Trouble::Unknown,
        Ironic::Locked | Ironic::Busy | Ironic::NoConductor => Trouble::Away,
        Ironic::Conflict | Ironic::IllegalTransition => Trouble::Overtaken,
        Ironic::Server | Ironic::NoAnswer(_) => Trouble::Failed,
        Ironic::Unreadable => Trouble::Garbled,
        Ironic::BadRequest => Trouble::Disliked,
    };
    Some((trouble, error.service.to_owned()))
}

fn of_placement(error: &ApiError<Placement>) -> Option<(Trouble, String)> {
    let trouble = match &error.kind {
        Placement::NoAnswer(_) if error.source.is_some() => return None,
        Placement::Unauthorized
        | Placement::Forbidden
        | Placement::NotAcceptable(_)
        | Placement::Unsupported => Trouble::Access,
        Placement::NotFound => Trouble::Unknown,
        Placement::Busy => Trouble::Away,
        Placement::ConcurrentUpdate | Placement::Conflict(_) | Placement::NoCapacity => Trouble::Overtaken,
        Placement::Server | Placement::NoAnswer(_) => Trouble::Failed,
        Placement::Unreadable => Trouble::Garbled,
        Placement::BadRequest => Trouble::Disliked,
    };
    Some((trouble, error.service.to_owned()))
}

fn of_transport(error: &TransportError) -> Option<(Trouble, String)> {
    let (trouble, service) = match error {
        TransportError::Login {
            transient: false,
            service,
            ..
        }
        | TransportError::Endpoint { service, .. } => (Trouble::Access, service.as_str()),
        TransportError::Login { transient: true, .. } => (Trouble::Away, "keystone"),
        TransportError::NotSent { service, .. } | TransportError::MaybeApplied { service, .. } => {
            (Trouble::Away, service.as_str())
        }
        TransportError::TooLarge { service, .. } => (Trouble::Garbled, service.as_str()),
    };
    Some((trouble, service.to_owned()))
}

#[cfg(test)]
mod tests {
    use unprovision_session::Class;

    use super::super::tests::error as plain;
    use super::*;

    fn error(kind: Ironic, source: Option<TransportError>) -> ApiError<Ironic> {
        ApiError {
            source,
            ..plain(kind)
        }
    }

    #[test]
    fn each_reason_has_a_next_step() {
        let away = || TransportError::NotSent {
            service: "ironic".to_owned(),
            source: "refused".into(),
        };
        let login = TransportError::Login {
            service: "ironic".to_owned(),
            message: "no".to_owned(),
            transient: false,
        };
        for (error, words) in [
            (error(Ironic::Forbidden, None), "`unprovision doctor`"),
            (error(Ironic::Unsupported, None), "`unprovision doctor`"),
            (error(Ironic::NotFound, None), "`unprovision nodes`"),
            (error(Ironic::Server, None), "ironic's log"),
            (error(Ironic::Conflict, None), "run this again"),
            (error(Ironic::Unreadable, None), "`unprovision config`"),
            (
                error(Ironic::NoAnswer(Class::Transient), Some(away())),
                "whether ironic is up",
            ),
            (
                error(Ironic::NoAnswer(Class::Refused), Some(login)),
                "`unprovision doctor`",
            ),
        ] {
            let said = with_next(&error);
            assert!(said.contains("; next: ") && said.contains(words), "{said}");
        }
        let ours = std::io::Error::other("the disk is full");
        assert_eq!(with_next(&ours), "the disk is full");
    }
}
