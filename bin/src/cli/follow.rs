//! What `delete` and `resume` share: how long and how often, the report, the exit status.

use std::process::ExitCode;

use jiff::Timestamp;
use unprovision::core::{Limits, Outcome};
use unprovision::orchestrator::{CaseReport, Progress, RunError, Until};

use crate::config::{self, Config, HumanDuration};
use crate::failure::{OTHER, USAGE, Usage};
use crate::output::{self, Format, Row, Subject};
use crate::wire::IN_MEMORY;

/// Some node is blocked, failed or gone.
const NOT_RETURNED: u8 = 3;
/// The time was up.
const TIMED_OUT: u8 = 4;

/// How long and how often, and how the result is shown.
#[derive(Debug, clap::Args)]
pub(super) struct Follow {
    /// Wait until each node has returned, this long at most [default: the setting `deadline`, 72h]
    #[arg(long, value_name = "DURATION", num_args = 0..=1, require_equals = true, conflicts_with = "no_wait",
        value_parser = patience)]
    wait: Option<Option<HumanDuration>>,
    /// Wait only until Ironic has accepted the tear-downs; `unprovision resume` does the rest
    #[arg(long)]
    no_wait: bool,
    /// Send a tear-down that ends in `error` again, so often at most from now on
    #[arg(long, value_name = "N")]
    pub(super) retry_error: Option<u32>,
    /// Start a cleaning that failed again, so often at most from now on
    #[arg(long, value_name = "N")]
    pub(super) reclean: Option<u32>,
    /// How the result is shown on standard output
    #[arg(short, long, value_enum, value_name = "FORMAT", default_value = "table")]
    output: Format,
}

impl Follow {
    /// Refuses what cannot be carried on later.
    pub(super) fn check(&self, config: &Config) -> Result<(), Usage> {
        if self.no_wait && &*config.journal == IN_MEMORY {
            return Err(Usage(format!(
                "with --no-wait the journal must outlive this process, and `{IN_MEMORY}` does not; set `journal` to a file"
            )));
        }
        Ok(())
    }

    pub(super) fn until(&self) -> Until {
        if self.no_wait {
            Until::Accepted
        } else {
            Until::Ended
        }
    }

    /// The limits of cases that begin, or go on, now.
    pub(super) fn limits(
        &self,
        config: &Config,
        now: Timestamp,
        retry_error: u32,
        reclean: u32,
    ) -> Result<Limits, Usage> {
        let wait = self.wait.flatten().unwrap_or(config.deadline);
        let deadline = now
            .checked_add(wait.signed())
            .map_err(|_| Usage(format!("{wait} from now is too far away")))?;
        Ok(Limits {
            deadline,
            retry_error,
            reclean,
            release_nova_reservations: config.release_nova_reservations,
        })
    }

    /// Prints the result, and says how the process ends. There is one result per subject, in their order.
    pub(super) fn report(
        &self,
        subjects: Vec<Subject>,
        results: Vec<Result<CaseReport, RunError>>,
    ) -> anyhow::Result<ExitCode> {
        let code = results
            .iter()
            .map(code)
            .max_by_key(|code| rank(*code))
            .unwrap_or(0);
        let rows = subjects
            .into_iter()
            .zip(results)
            .map(|(subject, result)| Row::new(subject, result));
        output::print_rows(&rows.collect::<Vec<_>>(), self.output)?;
        Ok(ExitCode::from(code))
    }
}

fn code(result: &Result<CaseReport, RunError>) -> u8 {
    let report = match result {
        Ok(report) => report,
        Err(RunError::OtherCloud { .. }) => return USAGE,
        Err(_) => return OTHER,
    };
    match report.outcome {
        Progress::Accepted | Progress::Ended(Outcome::Returned) => 0,
        Progress::Ended(Outcome::Blocked | Outcome::Failed | Outcome::Gone) => NOT_RETURNED,
        Progress::Ended(Outcome::TimedOut) => TIMED_OUT,
        Progress::Stopped | Progress::Waits | Progress::Elsewhere => OTHER,
    }
}

/// Which status tells most, where nodes end differently.
fn rank(code: u8) -> u8 {
    match code {
        OTHER => 4,
        USAGE => 3,
        NOT_RETURNED => 2,
        TIMED_OUT => 1,
        _ => 0,
    }
}

/// How long may be waited; less than a look takes is a slip.
fn patience(text: &str) -> Result<HumanDuration, String> {
    let wait: HumanDuration = text.parse()?;
    config::patience(wait).map(|()| wait)
}

/// A node's name or UUID. One command never means more nodes than it names.
pub(super) fn node(text: &str) -> Result<String, String> {
    match text {
        "" => Err("a node has a name or a UUID".to_owned()),
        _ if text.contains(['*', '?', '[']) => Err("patterns are not taken; name each node".to_owned()),
        _ => Ok(text.to_owned()),
    }
}

/// The first text that is given twice.
pub(super) fn twice<T: PartialEq>(all: &[T]) -> Option<&T> {
    all.iter()
        .enumerate()
        .find(|(index, one)| all[..*index].contains(one))
        .map(|(_, one)| one)
}
