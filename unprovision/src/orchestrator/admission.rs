//! Who may stop a write or an end that was decided.

use std::fmt;

use crate::core::{Action, Case, Ending};

/// Is asked before each write and each end. What it does not let pass is waited out.
pub(crate) trait Admission: fmt::Debug + Send + Sync {
    /// Whether the write may leave now, or why not.
    fn admits(&self, case: &Case, write: &Action) -> Result<(), String>;

    /// Whether the case may end now, or why not.
    fn closes(&self, case: &Case, ending: &Ending) -> Result<(), String>;
}

/// Lets everything pass.
#[derive(Debug)]
pub(crate) struct Always;

impl Admission for Always {
    fn admits(&self, _: &Case, _: &Action) -> Result<(), String> {
        Ok(())
    }

    fn closes(&self, _: &Case, _: &Ending) -> Result<(), String> {
        Ok(())
    }
}
