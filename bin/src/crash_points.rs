//! For the tests: the process kills itself at a point, before or after a journal append or a request that writes.
//!
//! Only with the feature `crash-points`, and only where `CRASH_AT` says something. Each point that is passed is told on standard
//! error, as `crash point: NTH WORDS`, NTH for what happens several times. The process dies at the one that the variable
//! names, as by `kill -9`: nothing is flushed, closed or told.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, LazyLock, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use futures::stream::BoxStream;
use http::{Request, Response};
use rustix::process::{Signal, getpid, kill_process};
use unprovision::core::{CaseId, Entry, Event, Process};
use unprovision::journal::{Journal, JournalError, Seq};
use unprovision_session::{Transport, TransportError};
use uuid::Uuid;

/// Which point is the last.
const VARIABLE: &str = "CRASH_AT";

/// One for the whole process: the points are those of its journal and of both transports.
static FUSE: LazyLock<Option<Fuse>> = LazyLock::new(|| {
    let last = std::env::var(VARIABLE).ok()?;
    Some(Fuse {
        last,
        passed: Mutex::default(),
    })
});

/// Counts the points that were passed, by their words.
#[derive(Debug)]
struct Fuse {
    last: String,
    passed: Mutex<BTreeMap<String, u32>>,
}

impl Fuse {
    fn pass(&self, words: String) {
        let mut passed = self.passed.lock().unwrap_or_else(PoisonError::into_inner);
        let nth = passed.entry(words.clone()).or_default();
        *nth += 1;
        let point = format!("{nth} {words}");
        eprintln!("crash point: {point}");
        if point == self.last {
            // A process may always signal itself.
            let _ = kill_process(getpid(), Signal::KILL);
        }
    }
}

/// Identifiers differ from node to node, and their points do not.
fn without_uuids(text: &str) -> String {
    let words = text.split_inclusive([' ', '/', ',']);
    let shown = words.map(|word| {
        let bare = word.trim_end_matches([' ', '/', ',']);
        match Uuid::try_parse(bare) {
            Ok(_) => word.replace(bare, "*"),
            Err(_) => word.to_owned(),
        }
    });
    shown.collect()
}

#[derive(Debug)]
struct MortalTransport(Arc<dyn Transport>, &'static Fuse);

#[derive(Debug)]
struct MortalJournal(Arc<dyn Journal>, &'static Fuse);

/// The transport, with the points in it where the environment asks for that.
pub(crate) fn transport(transport: Arc<dyn Transport>) -> Arc<dyn Transport> {
    match &*FUSE {
        Some(fuse) => Arc::new(MortalTransport(transport, fuse)),
        None => transport,
    }
}

/// The same for the journal.
pub(crate) fn journal(journal: Arc<dyn Journal>) -> Arc<dyn Journal> {
    match &*FUSE {
        Some(fuse) => Arc::new(MortalJournal(journal, fuse)),
        None => journal,
    }
}

/// What is appended, without what differs from run to run.
fn in_words(new: &[Entry]) -> String {
    let words = new.iter().map(|entry| match &entry.event {
        Event::Intended { write } => format!("intended to {write}"),
        Event::Saw { provision_state, .. } => format!("saw {provision_state}"),
        other => {
            let shown = format!("{other:?}").to_lowercase();
            shown.split([' ', '{']).next().unwrap_or_default().to_owned()
        }
    });
    without_uuids(&words.collect::<Vec<_>>().join(", "))
}

#[async_trait]
impl Transport for MortalTransport {
    async fn send(&self, request: Request<Bytes>) -> Result<Response<Bytes>, TransportError> {
        if request.method().is_safe() {
            return self.0.send(request).await;
        }
        let words = without_uuids(&format!(
            "the request: {} {}",
            request.method(),
            request.uri().path()
        ));
        self.1.pass(format!("before {words}"));
        let answer = self.0.send(request).await;
        self.1.pass(format!("after {words}"));
        answer
    }
}

#[async_trait]
impl Journal for MortalJournal {
    async fn append(&self, case: CaseId, after: Seq, new: &[Entry]) -> Result<Seq, JournalError> {
        let words = in_words(new);
        self.1.pass(format!("before the entry: {words}"));
        let answer = self.0.append(case, after, new).await;
        self.1.pass(format!("after the entry: {words}"));
        answer
    }

    async fn read(&self, case: CaseId) -> Result<Vec<Entry>, JournalError> {
        self.0.read(case).await
    }

    fn open_cases(&self) -> BoxStream<'_, Result<CaseId, JournalError>> {
        self.0.open_cases()
    }

    fn cases(&self) -> BoxStream<'_, Result<CaseId, JournalError>> {
        self.0.cases()
    }

    async fn keep_lease(&self, of: &Process, for_the_next: Duration) -> Result<(), JournalError> {
        self.0.keep_lease(of, for_the_next).await
    }

    async fn end_lease(&self, of: &Process) -> Result<(), JournalError> {
        self.0.end_lease(of).await
    }

    async fn leases(&self) -> Result<BTreeSet<Process>, JournalError> {
        self.0.leases().await
    }
}
