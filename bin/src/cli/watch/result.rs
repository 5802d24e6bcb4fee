//! What came of watching: the windows of each node.

use jiff::{SignedDuration, Timestamp};
use serde::{Serialize, Serializer};
use unprovision::NodeUuid;
use unprovision::watch::{self, Look, Phase, Sample, Span};

use super::Watched;
use crate::output::{self, plain};

/// What was seen of one node.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Story {
    /// The node.
    pub(super) node: NodeUuid,
    /// Its name.
    pub(super) name: String,
    /// How many looks there were.
    samples: usize,
    /// How many of them failed.
    failed_samples: usize,
    /// The longest time between two looks of which none failed.
    #[serde(rename = "resolution_s", serialize_with = "seconds")]
    pub(super) resolution: SignedDuration,
    /// How long it was offered although it was not free.
    #[serde(rename = "exposed_s", serialize_with = "seconds")]
    exposed: SignedDuration,
    /// How long it was neither.
    #[serde(rename = "held_s", serialize_with = "seconds")]
    held: SignedDuration,
    /// How long it was free and not offered.
    #[serde(rename = "idle_while_free_s", serialize_with = "seconds")]
    idle: SignedDuration,
    /// All of it in order.
    #[serde(serialize_with = "as_windows")]
    pub(super) windows: Vec<Span<Phase>>,
    /// Its provision states in order.
    #[serde(serialize_with = "as_windows")]
    pub(super) provision_states: Vec<Span<Option<String>>>,
}

impl Story {
    pub(super) fn read(watched: &Watched, samples: &[Sample]) -> Self {
        let windows = watch::spans(samples, watched.node, Look::phase);
        let state = |look: &Look| look.provision_state.as_ref().map(ToString::to_string);
        let total = |phase: Phase| {
            let of = windows.iter().filter(|window| window.what == phase);
            of.map(Span::duration).sum::<SignedDuration>()
        };
        Self {
            node: watched.node,
            name: watched.name.clone(),
            samples: samples.len(),
            failed_samples: samples.iter().filter(|sample| sample.looks.is_none()).count(),
            resolution: watch::resolution(samples),
            exposed: total(Phase::Exposed),
            held: total(Phase::Held),
            idle: total(Phase::IdleWhileFree),
            provision_states: watch::spans(samples, watched.node, state),
            windows,
        }
    }

    /// The totals in a line.
    pub(super) fn summary(&self) -> String {
        let of = |total: SignedDuration| format!("{:.1} s", total.as_secs_f64());
        let failed = match self.failed_samples {
            0 => String::new(),
            failed => format!(", {failed} of them failed"),
        };
        format!(
            "{}: exposed {}, held {}, idle while free {}; {} looks{failed}, at most {} apart",
            plain(&self.name),
            of(self.exposed),
            of(self.held),
            of(self.idle),
            self.samples,
            of(self.resolution),
        )
    }
}

/// A line for each window, but for those in which all was well; below them the totals.
pub(super) fn table(stories: &[Story]) -> String {
    let mut table = output::new_table(&["node", "window", "from", "to", "seconds", "+/-"]);
    for story in stories {
        for window in story
            .windows
            .iter()
            .filter(|window| window.what != Phase::Offered)
        {
            let still = if window.ended { "" } else { ", seen last" };
            table.add_row([
                plain(&story.name),
                name(window.what).to_owned(),
                format!("{:.1}", window.from),
                format!("{:.1}{still}", window.to),
                format!("{:.1}", window.duration().as_secs_f64()),
                format!("{:.1}", window.resolution.as_secs_f64()),
            ]);
        }
    }
    let totals = stories.iter().map(Story::summary).collect::<Vec<_>>().join("\n");
    match table.is_empty() {
        true => totals,
        false => format!("{table}\n{totals}"),
    }
}

/// The phase for people.
pub(super) fn name(phase: Phase) -> &'static str {
    match phase {
        Phase::Exposed => "EXPOSED",
        Phase::Held => "held",
        Phase::IdleWhileFree => "idle while free",
        Phase::Offered => "free and offered",
    }
}

/// A window in JSON.
#[derive(Serialize)]
struct Window<'a, K> {
    what: &'a K,
    from: Timestamp,
    to: Timestamp,
    ended: bool,
    #[serde(serialize_with = "seconds")]
    seconds: SignedDuration,
    #[serde(rename = "resolution_s", serialize_with = "seconds")]
    resolution: SignedDuration,
}

fn as_windows<K: Serialize, S: Serializer>(spans: &[Span<K>], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(spans.iter().map(|span| Window {
        what: &span.what,
        from: span.from,
        to: span.to,
        ended: span.ended,
        seconds: span.duration(),
        resolution: span.resolution,
    }))
}

fn seconds<S: Serializer>(duration: &SignedDuration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64(duration.as_secs_f64())
}
