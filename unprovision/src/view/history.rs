//! The whole story of a case.

use serde::Serialize;

use super::{CaseRow, Told};
use crate::core::{Case, CaseState, Entry};

/// A case with all of its entries.
#[derive(Clone, Debug, Serialize)]
pub struct Story<'a> {
    /// The case in one line.
    #[serde(flatten)]
    pub row: CaseRow,
    /// What would lift by hand what may still hold the provider.
    pub commands: Vec<String>,
    /// All entries, as they are in the journal.
    pub entries: &'a [Entry],
}

impl<'a> From<&'a Told> for Story<'a> {
    fn from(told: &'a Told) -> Self {
        Self {
            row: told.row(),
            commands: commands(&told.case),
            entries: &told.entries,
        }
    }
}

/// What would lift by hand what may still hold the provider, in commands; nothing where the case has ended.
pub fn commands(case: &Case) -> Vec<String> {
    let holds = case.may_hold() && !matches!(case.state, CaseState::Closed(_));
    if holds { case.by_hand() } else { Vec::new() }
}
