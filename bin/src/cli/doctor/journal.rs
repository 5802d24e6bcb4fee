//! What there is of the journal.

use std::collections::BTreeSet;
use std::path::Path;

use jiff::{SignedDuration, Timestamp};
use rustix::fs::{Access, access};
use unprovision::core::CaseState;
use unprovision::journal::shown;

use super::super::cases;
use super::facts::{JournalFound, JournalState};
use crate::failure;
use crate::wire::{self, IN_MEMORY};

/// Whoever works with a journal may have written something so lately.
const LATELY: SignedDuration = SignedDuration::from_secs(10);

/// Looks at the journal, and makes none. `here` is the cloud, as cases name it.
pub(super) async fn look(place: &str, here: Option<&str>, now: Timestamp) -> JournalState {
    let found = if place == IN_MEMORY {
        JournalFound::InMemory
    } else if wire::is_there(place) {
        match opened(place, here, now).await {
            Ok(found) => found,
            Err(error) => JournalFound::Broken(failure::chain(&error, ": ")),
        }
    } else {
        JournalFound::Absent(may_be_made(Path::new(place)))
    };
    JournalState {
        place: shown(place),
        found,
    }
}

async fn opened(place: &str, here: Option<&str>, now: Timestamp) -> anyhow::Result<JournalFound> {
    let journal = wire::journal_if_any(place).await?;
    let all = cases::read_all(journal.as_deref()).await?;
    let open = all.iter().filter(|told| !told.is_closed()).collect::<Vec<_>>();
    let clouds = open.iter().filter_map(|told| told.case.cloud.as_deref());
    let elsewhere = clouds.filter(|cloud| here.is_some_and(|here| here != *cloud));
    let last = open
        .iter()
        .filter(|told| matches!(told.case.state, CaseState::Open))
        .filter_map(|told| told.entries.last().map(|entry| entry.at))
        .max();
    Ok(JournalFound::Opened {
        cases: all.len(),
        open: open.len(),
        elsewhere: elsewhere
            .map(str::to_owned)
            .collect::<BTreeSet<_>>()
            .into_iter()
            .collect(),
        lately: last.filter(|at| now.duration_since(*at) < LATELY),
    })
}

/// Whether the file, with the folders that lead there, can be made.
fn may_be_made(path: &Path) -> Result<(), String> {
    if path.as_os_str().is_empty() {
        return Err("nobody says where it is: set `journal`, XDG_STATE_HOME or HOME".to_owned());
    }
    let folder = path
        .ancestors()
        .skip(1)
        .find(|above| above.exists())
        .filter(|above| !above.as_os_str().is_empty())
        .unwrap_or(Path::new("."));
    access(folder, Access::WRITE_OK | Access::EXEC_OK)
        .map_err(|error| format!("{} cannot be written: {error}", folder.display()))
}
