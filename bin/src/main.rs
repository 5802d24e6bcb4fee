//! The command line of unprovision: takes bare-metal nodes back to `available`.

#[cfg(feature = "service")]
mod api;
mod cli;
mod config;
#[cfg(feature = "crash-points")]
mod crash_points;
mod events;
mod failure;
mod logging;
mod observer;
mod output;
mod progress;
mod shape;
mod stop;
mod wire;

use std::process::ExitCode;

use clap::Parser;
use tokio::runtime::Runtime;

fn main() -> ExitCode {
    let cli = cli::Cli::parse();
    let runtime = match Runtime::new() {
        Ok(runtime) => runtime,
        Err(error) => return failure::tell(&error.into()),
    };
    let code = match runtime.block_on(cli.run()) {
        Ok(code) => code,
        Err(error) => failure::tell(&error),
    };
    // Nobody waits for an answer to a question that does not matter any more.
    runtime.shutdown_background();
    code
}
