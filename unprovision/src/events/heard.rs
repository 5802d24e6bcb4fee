//! What was heard so far, and whether that can be all.

use std::fmt;

use jiff::{SignedDuration, Timestamp};

/// A message that is older than this when it comes is late.
const LATE: SignedDuration = SignedDuration::from_secs(30);
/// So long after a change that was seen its message may still come.
const GRACE: SignedDuration = SignedDuration::from_secs(30);

/// Whether the source listens.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Contact {
    /// Nobody knows yet.
    #[default]
    Unknown,
    /// It does, since then.
    Since(Timestamp),
    /// It does not, and why.
    Lost(String),
}

/// What was heard of a source.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Heard {
    /// Which source.
    pub source: String,
    /// Whether it listens.
    pub contact: Contact,
    /// Messages that came, of any kind.
    pub messages: u64,
    /// Those that were about a node.
    pub hints: u64,
    /// Those that were late.
    pub late: u64,
    /// Those about nodes of which there were too many at once: instead everything was looked at.
    pub dropped: u64,
    /// Those that nobody could read.
    pub unreadable: u64,
    /// When the last message came.
    pub last_message: Option<Timestamp>,
    /// When the first change was seen that no message has come after.
    pub unsaid: Option<Timestamp>,
    /// Whether Ironic changes nodes and says nothing.
    pub silent: bool,
}

impl Heard {
    pub(crate) fn message(&mut self, said_at: Option<Timestamp>, now: Timestamp) {
        self.messages += 1;
        self.last_message = Some(now);
        self.unsaid = None;
        let late = said_at.is_some_and(|said_at| now.duration_since(said_at) > LATE);
        self.late += u64::from(late);
    }

    /// A node has changed, as a look or a sweep has shown.
    pub(crate) fn saw_a_change(&mut self, now: Timestamp) {
        self.unsaid.get_or_insert(now);
    }

    /// Whether the silence begins or ends now. A quiet cloud has nothing to say: silence is a sign only where nodes change, and
    /// no message came for so long before that change, nor soon after it.
    pub(crate) fn turns(&mut self, patience: SignedDuration, now: Timestamp) -> Option<bool> {
        let Contact::Since(connected) = &self.contact else {
            return None;
        };
        let since = self.last_message.map_or(*connected, |at| at.max(*connected));
        let unsaid = self.unsaid.is_some_and(|at| now.duration_since(at) > GRACE);
        let silent = unsaid && now.duration_since(since) >= patience;
        (silent != std::mem::replace(&mut self.silent, silent)).then_some(silent)
    }
}

impl fmt::Display for Heard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {} messages", self.source, self.messages)?;
        for (count, what) in [
            (self.late, "late"),
            (self.dropped, "dropped for a sweep"),
            (self.unreadable, "unreadable"),
        ] {
            if count > 0 {
                write!(f, ", {count} {what}")?;
            }
        }
        match self.last_message {
            Some(at) => write!(f, ", the last at {at:.0}")?,
            None => f.write_str(", none yet")?,
        }
        match &self.contact {
            Contact::Unknown => f.write_str(", not connected yet"),
            Contact::Lost(why) => write!(f, ", not connected: {why}"),
            Contact::Since(_) if self.silent => f.write_str(", SILENT although nodes change"),
            Contact::Since(_) => Ok(()),
        }
    }
}
