//! How a command fails: what is said, what to do next, and the exit status.

mod next;

use std::collections::BTreeSet;
use std::fmt;
use std::process::ExitCode;

use unprovision::orchestrator::RunError;
use unprovision_session::{TransportError, in_full};

use crate::config::ConfigError;
use crate::output;

pub(crate) use next::{next, with_next};

/// Anything that has no status of its own.
pub(crate) const OTHER: u8 = 1;
/// Bad usage or configuration.
pub(crate) const USAGE: u8 = 2;

/// The command cannot be carried out as it was given.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct Usage(pub(crate) String);

/// What is wrong with several nodes, found before anything was touched.
#[derive(Debug)]
pub(crate) struct Problems(Vec<anyhow::Error>);

impl Problems {
    /// All that is good, or else all that is wrong.
    pub(crate) fn sort<T>(results: impl IntoIterator<Item = anyhow::Result<T>>) -> anyhow::Result<Vec<T>> {
        let mut problems = Vec::new();
        let good = results
            .into_iter()
            .filter_map(|result| result.map_err(|error| problems.push(error)).ok())
            .collect();
        if problems.is_empty() {
            Ok(good)
        } else {
            Err(Self(problems).into())
        }
    }
}

impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("nothing was touched, because")?;
        self.0
            .iter()
            .try_for_each(|error| write!(f, "\n  {}", chain(error, ": ")))
    }
}

impl std::error::Error for Problems {}

/// Prints the error with its causes, and says how the process ends.
pub(crate) fn tell(error: &anyhow::Error) -> ExitCode {
    let errors = match error.downcast_ref() {
        Some(Problems(all)) => all.iter().collect(),
        None => vec![error],
    };
    // Many nodes may have met the same.
    let next = errors.into_iter().filter_map(|error| next(error.as_ref()));
    let next = next
        .map(|next| format!("\n  next: {next}"))
        .collect::<BTreeSet<_>>();
    let next = next.into_iter().collect::<String>();
    output::say(&format!("error: {}{next}", chain(error, "\n  because: ")));
    ExitCode::from(status(error))
}

/// The exit status of an error.
fn status(error: &anyhow::Error) -> u8 {
    if let Some(Problems(all)) = error.downcast_ref() {
        return all.iter().map(status).min().unwrap_or(OTHER);
    }
    let by_user = error.chain().any(|cause| {
        cause.is::<Usage>()
            || cause.is::<ConfigError>()
            || cause.is::<unprovision_session::ConfigError>()
            || matches!(
                cause.downcast_ref(),
                Some(RunError::CannotOpen(_) | RunError::OtherCloud { .. } | RunError::NovaRequired(_))
            )
            || cause.downcast_ref().is_some_and(is_misconfigured)
            || is_too_old(cause)
    });
    if by_user { USAGE } else { OTHER }
}

/// Whether waiting cannot help: a refused login, no such endpoint.
fn is_misconfigured(error: &TransportError) -> bool {
    matches!(
        error,
        TransportError::Login { transient: false, .. } | TransportError::Endpoint { .. }
    )
}

/// Whether the service does not speak what is needed.
fn is_too_old(cause: &(dyn std::error::Error + 'static)) -> bool {
    use ironic_client::ErrorKind as Ironic;
    use placement_client::ErrorKind as Placement;
    let ironic = cause.downcast_ref().is_some_and(|error: &ironic_client::Error| {
        matches!(error.kind, Ironic::Unsupported | Ironic::NotAcceptable(_))
    });
    let placement = cause
        .downcast_ref()
        .is_some_and(|error: &placement_client::Error| {
            matches!(error.kind, Placement::Unsupported | Placement::NotAcceptable(_))
        });
    ironic || placement
}

/// The error and its causes; a cause that was said already is left out.
pub(crate) fn chain(error: &anyhow::Error, between: &str) -> String {
    in_full(error.as_ref(), between)
}

#[cfg(test)]
mod tests {
    use anyhow::anyhow;
    use ironic_client::ErrorKind as Ironic;
    use unprovision_session::Class;

    use super::*;

    pub(super) fn error(kind: Ironic) -> ironic_client::Error {
        ironic_client::Error {
            service: "ironic",
            call: "show node n".to_owned(),
            kind,
            status: None,
            message: String::new(),
            request_id: None,
            retry_after: None,
            source: None,
        }
    }

    #[test]
    fn what_the_user_can_correct_is_told_from_the_rest() {
        let usage = || anyhow::Error::from(Usage("no".to_owned()));
        assert_eq!(status(&usage().context("while")), USAGE);
        assert_eq!(status(&anyhow!("boom")), OTHER);
        let several =
            |errors: Vec<anyhow::Error>| Problems::sort::<()>(errors.into_iter().map(Err)).unwrap_err();
        assert_eq!(status(&several(vec![usage(), usage()])), USAGE);
        assert_eq!(status(&several(vec![usage(), anyhow!("boom")])), OTHER);
    }

    #[test]
    fn a_login_that_waiting_does_not_cure_is_configuration() {
        let login = |transient| TransportError::Login {
            service: "ironic".into(),
            message: "no".into(),
            transient,
        };
        assert_eq!(
            status(&anyhow::Error::from(login(false)).context("show node n")),
            USAGE
        );
        assert_eq!(status(&anyhow::Error::from(login(true))), OTHER);
    }

    #[test]
    fn a_read_that_timed_out_is_not_said_to_have_been_applied() {
        let source = TransportError::MaybeApplied {
            service: "ironic".into(),
            waited: None,
            source: "timed out".into(),
        };
        let read = ironic_client::Error {
            source: Some(source),
            ..error(Ironic::NoAnswer(Class::Transient))
        };
        let said = chain(&read.into(), ": ");
        assert!(
            said.contains("nothing was done") && !said.contains("applied"),
            "{said}"
        );
        assert!(
            error(Ironic::NoAnswer(Class::Unknown))
                .to_string()
                .contains("may have been applied")
        );
    }

    #[test]
    fn a_service_that_is_too_old_is_configuration() {
        assert_eq!(status(&error(Ironic::Unsupported).into()), USAGE);
        assert_eq!(status(&error(Ironic::Forbidden).into()), OTHER);
    }

    #[test]
    fn a_cause_is_said_once() {
        let error = anyhow!("deep").context("deep, and more").context("top");
        assert_eq!(chain(&error, ": "), "top: deep, and more");
    }
}
