//! The time line on standard error, as it happens: a line for each change of a node.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::json;
use unprovision::NodeUuid;
use unprovision::cloud::CloudError;
use unprovision::watch::{Look, Phase, Sample};
use unprovision_session::in_full;

use super::{Args, Until, Watched};
use crate::config::LogFormat;
use crate::output::{self, plain};

/// Tells what has changed since the last look.
#[derive(Debug)]
pub(super) struct Lines {
    format: LogFormat,
    quiet: bool,
    told: BTreeMap<NodeUuid, String>,
    failing: bool,
}

impl Lines {
    pub(super) fn new(format: LogFormat, quiet: bool) -> Self {
        Self {
            format,
            quiet,
            told: BTreeMap::new(),
            failing: false,
        }
    }

    /// Tells what is going to happen.
    pub(super) fn begin(&self, at: Timestamp, args: &Args) {
        let until = match args.until {
            Until::Available => "until all have been away and are back, free and offered".to_owned(),
            Until::For(duration) => format!("for {duration}"),
        };
        let words = format!(
            "is looked at every {}, {until}; Ctrl-C ends it with the result so far",
            args.every
        );
        self.line(at, None, &words);
    }

    /// Tells of each node that looks otherwise than before.
    pub(super) fn tell(&mut self, watched: &[Watched], sample: &Sample) {
        let Some(looks) = &sample.looks else { return };
        self.failing = false;
        for one in watched {
            let Some(words) = looks.get(&one.node).map(words) else {
                continue;
            };
            if self.told.get(&one.node) != Some(&words) {
                self.line(sample.at, Some(one), &words);
                self.told.insert(one.node, words);
            }
        }
    }

    /// Tells that a look has failed, once for all in a row.
    pub(super) fn failed(&mut self, at: Timestamp, error: &CloudError) {
        if !self.failing {
            self.line(
                at,
                None,
                &format!("could not be looked at, a gap begins: {}", in_full(error, ": ")),
            );
        }
        self.failing = true;
        // After a gap it is worth a line that a node still looks the same.
        self.told.clear();
    }

    fn line(&self, at: Timestamp, one: Option<&Watched>, words: &str) {
        if self.quiet {
            return;
        }
        let name = one.map(|one| one.name.as_str());
        match self.format {
            LogFormat::Text => {
                let name = plain(name.unwrap_or("the cloud"));
                output::say(&format!("{at:.3} {name} {}", plain(words)));
            }
            LogFormat::Json => {
                let node = one.map(|one| one.node);
                output::say_object(&json!({"timestamp": at, "node": node, "name": name, "message": words}));
            }
        }
    }
}

fn words(look: &Look) -> String {
    let state = match &look.provision_state {
        Some(state) => state.to_string(),
        None => "unknown to Ironic".to_owned(),
    };
    // That a node is not `available` says the state already.
    let why = match &look.not_free {
        Some(why) if state == "available" => format!(" ({why})"),
        _ => String::new(),
    };
    let phase = match look.phase() {
        Phase::Exposed => "OFFERED ALTHOUGH NOT FREE",
        Phase::Held => "not offered",
        Phase::IdleWhileFree => "free, but not offered",
        Phase::Offered => "free and offered",
    };
    format!("is {state}{why}, {phase}")
}
