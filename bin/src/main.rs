//! The command line of unprovision: takes bare-metal nodes back to `available`.

mod cli;
mod config;
#[cfg(feature = "crash-points")]
mod crash_points;
mod failure;
mod logging;
mod observer;
mod output;
mod stop;
mod wire;

use std::process::ExitCode;

use clap::Parser;

#[tokio::main]
async fn main() -> ExitCode {
    match cli::Cli::parse().run().await {
        Ok(code) => code,
        Err(error) => failure::tell(&error),
    }
}
