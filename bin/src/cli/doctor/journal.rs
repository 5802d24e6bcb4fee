//! What there is of the journal.

use std::collections::BTreeSet;
use std::fs::OpenOptions;
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
    if !place.contains("://") {
        may_be_written(Path::new(place))?;
    }
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
    try_out(folder).map_err(|error| format!("nothing can be made in {}: {error}", folder.display()))
}

/// Makes a file and takes it away: some places refuse that although the rights to them do not tell.
fn try_out(folder: &Path) -> std::io::Result<()> {
    let path = folder.join(format!(".unprovision-doctor-{}", std::process::id()));
    let made = OpenOptions::new().write(true).create_new(true).open(&path);
    drop(made?);
    std::fs::remove_file(path)
}

/// Whether the file that is there can be written. It is not opened: closing it would take away the locks of others in this process.
fn may_be_written(path: &Path) -> anyhow::Result<()> {
    let allowed = access(path, Access::WRITE_OK);
    allowed.map_err(|error| anyhow::anyhow!("it cannot be written: {error}"))
}
