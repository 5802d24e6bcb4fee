//! What came of a file's run, for people to read.

use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use super::Difference;

/// What came of one file.
#[derive(Clone, Debug)]
pub struct Report {
    /// The file's name.
    pub file: String,
    /// What its names were made from: with it, traces in the services' logs are found again.
    pub seed: String,
    /// One entry per step, the cleanup included.
    pub steps: Vec<StepReport>,
}

/// What came of one step.
#[derive(Clone, Debug)]
pub struct StepReport {
    /// The step's name.
    pub name: String,
    /// What came of it.
    pub outcome: Outcome,
}

/// What came of one step.
#[derive(Clone, Debug)]
pub enum Outcome {
    /// The answer was as expected.
    Passed,
    /// It was not.
    Failed(Box<Failure>),
    /// The step was not tried, after an earlier failure.
    Skipped,
}

/// Why a step failed.
#[derive(Clone, Debug)]
pub struct Failure {
    /// The request as sent, without its token.
    pub request: String,
    /// The answer; `None` if there was none.
    pub answer: Option<Answer>,
    /// Where the answer is not as expected.
    pub differences: Vec<Difference>,
    /// What went wrong besides.
    pub problem: Option<String>,
    /// How often it was tried.
    pub tries: u32,
    /// How long that took.
    pub took: Duration,
}

/// An answer, decoded.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    /// The status.
    pub status: u16,
    /// The headers, with names in lower case.
    pub headers: BTreeMap<String, String>,
    /// The body: JSON, or a string with what is none; no body is the empty string.
    pub body: Value,
}

impl Report {
    /// Whether everything was as expected.
    pub fn is_ok(&self) -> bool {
        self.steps
            .iter()
            .all(|step| matches!(step.outcome, Outcome::Passed))
    }

    /// The steps that failed.
    pub fn failures(&self) -> impl Iterator<Item = (&str, &Failure)> {
        self.steps.iter().filter_map(|step| match &step.outcome {
            Outcome::Failed(failure) => Some((step.name.as_str(), failure.as_ref())),
            _ => None,
        })
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let skipped = self
            .steps
            .iter()
            .filter(|step| matches!(step.outcome, Outcome::Skipped))
            .count();
        let (failed, all) = (self.failures().count(), self.steps.len());
        write!(f, "{}: {failed} of {all} steps failed", self.file)?;
        if skipped > 0 {
            write!(f, ", {skipped} not tried")?;
        }
        writeln!(f, " (seed {})", self.seed)?;
        for (name, failure) in self.failures() {
            write!(f, "  FAILED: {name}\n{failure}")?;
        }
        Ok(())
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for line in self.request.lines() {
            writeln!(f, "    > {line}")?;
        }
        if let Some(answer) = &self.answer {
            write!(f, "{answer}")?;
        }
        if self.tries > 1 {
            writeln!(
                f,
                "    tried {} times in {:.1} s",
                self.tries,
                self.took.as_secs_f64()
            )?;
        }
        for Difference { at, expected, got } in &self.differences {
            writeln!(f, "    {at}:\n      expected {expected}\n      got      {got}")?;
        }
        if let Some(problem) = &self.problem {
            writeln!(f, "    {problem}")?;
        }
        Ok(())
    }
}

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "    < {}", self.status)?;
        for (name, value) in &self.headers {
            writeln!(f, "    < {name}: {value}")?;
        }
        match &self.body {
            Value::String(text) if text.is_empty() => Ok(()),
            body => writeln!(f, "    < {body}"),
        }
    }
}
