//! Ctrl-C and SIGTERM.

use std::io;

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio_util::sync::CancellationToken;

use crate::failure::OTHER;
use crate::output;

/// A token that the first signal cancels; the second one ends the process at once.
pub(crate) fn on_signals() -> io::Result<CancellationToken> {
    let mut signals = (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
    let stop = CancellationToken::new();
    let stopped = stop.clone();
    tokio::spawn(async move {
        next(&mut signals).await;
        output::say(
            "stopping the waiting as soon as the requests under way are answered; what is held stays held, and \
             `unprovision resume` goes on; once more to stop at once",
        );
        stopped.cancel();
        next(&mut signals).await;
        // The journal has each intent before its write: nothing is lost by this.
        std::process::exit(OTHER.into());
    });
    Ok(stop)
}

async fn next((interrupt, terminate): &mut (Signal, Signal)) {
    tokio::select! {
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
    }
}
