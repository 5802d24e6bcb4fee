//! How far long work is: on a terminal in a line that changes, elsewhere in a plain line now and then.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use unprovision::cloud::{Clock, SystemClock};

use crate::output;

/// Between two plain lines.
const EVERY: Duration = Duration::from_secs(10);

/// Says how far something is, until it is dropped.
#[derive(Debug)]
pub(crate) struct Progress {
    what: &'static str,
    bar: ProgressBar,
    /// When a plain line was said last; nothing where none is.
    said: Option<Mutex<Duration>>,
}

impl Progress {
    /// Nothing is said yet, and if `quiet` never.
    pub(crate) fn new(what: &'static str, quiet: bool) -> Self {
        let target = match quiet {
            true => ProgressDrawTarget::hidden(),
            false => ProgressDrawTarget::stderr(),
        };
        let bar = ProgressBar::with_draw_target(None, target).with_message(what);
        // No colours, whatever the terminal can do.
        if let Ok(style) = ProgressStyle::with_template("{msg} {bar:30} {pos} of {len}, {eta} to go") {
            bar.set_style(style);
        }
        let plain = !quiet && bar.is_hidden();
        Self {
            what,
            bar,
            said: plain.then(|| Mutex::new(SystemClock.elapsed())),
        }
    }

    /// So many of all are done.
    pub(crate) fn tell(&self, done: usize, all: usize) {
        self.bar.set_length(all as u64);
        self.bar.set_position(done as u64);
        let Some(said) = &self.said else { return };
        let mut said = said.lock().unwrap_or_else(PoisonError::into_inner);
        let now = SystemClock.elapsed();
        if now.saturating_sub(*said) >= EVERY && done < all {
            output::say(&format!("{}: {done} of {all}", self.what));
            *said = now;
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
