//! Ctrl-C and SIGTERM; and what pauses a guard.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio_util::sync::CancellationToken;
use unprovision::guard::Brakes;

use crate::failure::OTHER;
use crate::output;
use crate::progress;

/// What is said where tear-downs are waited for.
const STOPPING: &str = "stopping the waiting as soon as the requests under way are answered; what is held stays held, and \
                        `unprovision resume` goes on; once more to stop at once";

/// The signals that end the command; they are heard from its making on.
#[derive(Debug)]
pub(crate) struct Signals {
    stop: CancellationToken,
    begun: Arc<AtomicBool>,
}

/// A signal came before anything had begun.
#[derive(Debug, thiserror::Error)]
#[error("stopped before anything was begun; nothing was touched")]
pub(crate) struct Stopped;

impl Signals {
    /// Hears the signals: the first one stops, the second one ends the process at once.
    pub(crate) fn new() -> io::Result<Self> {
        Self::saying(STOPPING)
    }

    /// The same, with other words once something has begun.
    pub(crate) fn saying(words: &'static str) -> io::Result<Self> {
        let mut signals = (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
        let (stop, begun) = (CancellationToken::new(), Arc::new(AtomicBool::new(false)));
        let all = Self {
            stop: stop.clone(),
            begun: Arc::clone(&begun),
        };
        tokio::spawn(async move {
            next(&mut signals).await;
            if begun.load(Ordering::Acquire) {
                output::say(words);
            }
            stop.cancel();
            next(&mut signals).await;
            // The journal has each intent before its write: nothing is lost by this.
            progress::clear();
            std::process::exit(OTHER.into());
        });
        Ok(all)
    }

    /// Does what must not have begun anything yet; a signal drops it.
    pub(crate) async fn before_anything<T>(
        &self,
        work: impl Future<Output = anyhow::Result<T>>,
    ) -> anyhow::Result<T> {
        tokio::select! {
            biased;
            () = self.stop.cancelled() => Err(Stopped.into()),
            done = work => done,
        }
    }

    /// A token that the first signal cancels; nothing is said, since nothing is left behind.
    pub(crate) fn token(&self) -> &CancellationToken {
        &self.stop
    }

    /// From here on a signal stops the waiting, and what was begun stays as it is: the token tells.
    pub(crate) fn begin(&self) -> &CancellationToken {
        self.begun.store(true, Ordering::Release);
        &self.stop
    }
}

/// SIGUSR1 and SIGUSR2: heard from its making on, and kept in their order until there is a guard to obey them.
#[derive(Debug)]
pub(crate) struct Pauses(UnboundedReceiver<Word>);

#[derive(Clone, Copy, Debug)]
enum Word {
    Pause,
    GoOn,
}

impl Pauses {
    /// Hears the signals; without this they would end the process.
    pub(crate) fn new() -> io::Result<Self> {
        let (mut first, mut second) = (
            signal(SignalKind::user_defined1())?,
            signal(SignalKind::user_defined2())?,
        );
        let (told, heard) = unbounded_channel();
        tokio::spawn(async move {
            loop {
                // Nobody knows which of two came first that came at once; then the pause has the last word.
                let word = tokio::select! {
                    biased;
                    _ = second.recv() => Word::GoOn,
                    _ = first.recv() => Word::Pause,
                };
                if told.send(word).is_err() {
                    return;
                }
            }
        });
        Ok(Self(heard))
    }

    /// What was heard so far counts at once, what comes later when it comes.
    pub(crate) fn obeyed_by(mut self, brakes: Arc<Brakes>) {
        while let Ok(word) = self.0.try_recv() {
            match word {
                Word::Pause => pause(&brakes),
                Word::GoOn => brakes.go_on_beforehand(),
            }
        }
        tokio::spawn(async move {
            while let Some(word) = self.0.recv().await {
                match word {
                    Word::Pause => pause(&brakes),
                    Word::GoOn => brakes.go_on(),
                }
            }
        });
    }
}

fn pause(brakes: &Brakes) {
    brakes.pause("by SIGUSR1; SIGUSR2 lets it go on");
}

async fn next((interrupt, terminate): &mut (Signal, Signal)) {
    tokio::select! {
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
    }
}
