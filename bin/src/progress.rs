//! How far long work is: on a terminal in a line that changes, elsewhere in a plain line now and then.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use unprovision::cloud::{Clock, SystemClock};

use crate::output;

/// Between two plain lines.
const EVERY: Duration = Duration::from_secs(10);
/// How often a line that changes shows that the work is alive.
const ALIVE: Duration = Duration::from_millis(200);

/// The bar that is on the terminal now.
static SHOWN: Mutex<Option<ProgressBar>> = Mutex::new(None);

/// Writes to the terminal, with nothing of a bar in between.
pub(crate) fn around<T>(write: impl FnOnce() -> T) -> T {
    let shown = locked(&SHOWN).clone();
    match shown {
        Some(bar) => bar.suspend(write),
        None => write(),
    }
}

/// Takes the bar away, for a process that is about to end.
pub(crate) fn clear() {
    if let Some(bar) = locked(&SHOWN).take() {
        bar.finish_and_clear();
    }
}

/// Says how far something is, until it is dropped.
#[derive(Debug)]
pub(crate) struct Progress {
    /// What goes on before anything can be counted.
    first: &'static str,
    /// What is counted.
    what: &'static str,
    bar: ProgressBar,
    /// Plain lines are said: since when, and when the last one was; nothing where none is.
    plain: Option<Mutex<(Duration, Duration)>>,
}

impl Progress {
    /// Where the work goes on in equal steps; what goes on before the first of them is `first`. If `quiet`, nothing is said.
    pub(crate) fn new(first: &'static str, what: &'static str, quiet: bool) -> Self {
        let quiet = quiet || output::is_for_machines();
        let target = match quiet {
            true => ProgressDrawTarget::hidden(),
            false => ProgressDrawTarget::stderr(),
        };
        let bar = ProgressBar::with_draw_target(None, target).with_message(first);
        // No colours, whatever the terminal can do.
        if let Ok(style) = ProgressStyle::with_template("{msg} {spinner}") {
            bar.set_style(style);
        }
        if !bar.is_hidden() {
            bar.enable_steady_tick(ALIVE);
            *locked(&SHOWN) = Some(bar.clone());
        }
        let now = SystemClock.elapsed();
        let plain = !quiet && bar.is_hidden();
        Self {
            first,
            what,
            bar,
            plain: plain.then(|| Mutex::new((now, now))),
        }
    }

    /// Where nothing can be counted.
    pub(crate) fn waiting(first: &'static str, quiet: bool) -> Self {
        Self::new(first, first, quiet)
    }

    /// So many of all are done.
    pub(crate) fn tell(&self, done: usize, all: usize) {
        let is_first = self.bar.length().is_none();
        self.bar.set_length(all as u64);
        self.bar.set_position(done as u64);
        if is_first && let Ok(style) = ProgressStyle::with_template("{msg} {bar:30} {pos} of {len}") {
            self.bar.set_style(style);
            self.bar.set_message(self.what);
        }
        if done < all {
            self.say_if_time(|_| format!("{}: {done} of {all}", self.what));
        }
    }

    /// Does the work, and says that it goes on as long as nothing is counted.
    pub(crate) async fn during<T>(&self, work: impl Future<Output = T>) -> T {
        tokio::pin!(work);
        loop {
            tokio::select! {
                done = &mut work => return done,
                () = SystemClock.sleep(Duration::from_secs(1)) => {}
            }
            if self.bar.length().is_none() {
                self.say_if_time(|since| format!("{}: {} s so far", self.first, since.as_secs()));
            }
        }
    }

    /// A plain line, if none was said for a while; it is told how long all takes already.
    fn say_if_time(&self, words: impl FnOnce(Duration) -> String) {
        let Some(plain) = &self.plain else { return };
        let mut times = locked(plain);
        let now = SystemClock.elapsed();
        if now.saturating_sub(times.1) >= EVERY {
            output::say(&words(now.saturating_sub(times.0)));
            times.1 = now;
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if !self.bar.is_hidden() {
            locked(&SHOWN).take();
        }
        self.bar.finish_and_clear();
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
