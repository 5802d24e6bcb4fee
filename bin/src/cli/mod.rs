//! The subcommands, one file each.

mod abandon;
mod ask;
mod audit;
mod candidates;
mod cases;
mod config;
mod delete;
#[cfg(feature = "sandbox")]
mod demo;
mod doctor;
mod follow;
mod guard;
mod nodes;
mod resume;
#[cfg(feature = "sandbox")]
mod sandbox;
mod show;
#[cfg(test)]
mod tests;
mod watch;
mod written;

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use unprovision::cloud::{Lookout, OpenStack};

use crate::config::{ConfigError, Environment, Flag, Loaded, LogFormat};
use crate::logging;
use crate::output;
use crate::wire::{self, Tls, Wired};
use unprovision::guard::Adapters;

/// Takes OpenStack bare-metal nodes back to `available`, and keeps Placement from offering them before
#[derive(Debug, clap::Parser)]
#[command(name = "unprovision", version, arg_required_else_help = true, after_help = EXAMPLE)]
#[command(color = clap::ColorChoice::Never)]
pub(crate) struct Cli {
    #[command(flatten)]
    global: Global,
    #[command(subcommand)]
    command: Command,
}

const EXAMPLE: &str = "\
Example:
  unprovision --os-cloud prod delete node-0001 --instance 6b1f3c1e-3a52-4a6e-9d1f-0f5a6c6f2b11

Exit status:
  0  all returned (or accepted, with --no-wait)
  1  anything else, also stopped by Ctrl-C
  2  bad usage or configuration
  3  a node is blocked, failed or gone; candidates, watch: one is offered although it is not free;
     audit: something does not fit; doctor: something that is needed is not there
  4  the time was up";

/// What holds for all subcommands.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Global options")]
struct Global {
    /// Read this file [default: $UNPROVISION_CONFIG, or the first there is of ./unprovision.toml,
    /// ~/.config/unprovision/config.toml, /etc/unprovision/config.toml]
    #[arg(long, global = true, value_name = "FILE")]
    config: Option<PathBuf>,
    /// The cloud in clouds.yaml
    #[arg(long, global = true, value_name = "NAME")]
    os_cloud: Option<String>,
    #[command(flatten)]
    tls: Tls,
    /// Log more; twice: still more. RUST_LOG wins
    #[arg(short, long, global = true, action = clap::ArgAction::Count)]
    verbose: u8,
    /// Say nothing on the way, only errors
    #[arg(short, long, global = true, conflicts_with = "verbose")]
    quiet: bool,
    /// How the lines on standard error look
    #[arg(long, global = true, value_enum, value_name = "FORMAT")]
    log_format: Option<LogFormat>,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Tear instances down, and take their nodes back to `available`
    Delete(delete::Args),
    /// Carry on what a crash, Ctrl-C, a time-out or --no-wait has left
    Resume(resume::Args),
    /// Keep Placement right while Nova, or somebody else, tears nodes down
    Guard(guard::Args),
    /// Show what Placement offers now, and whether the nodes behind it are free
    Candidates(candidates::Args),
    /// Watch nodes without touching them: when were they offered, and when were they free?
    Watch(watch::Args),
    /// Look for what does not fit between Ironic's nodes and Placement's providers
    Audit(audit::Args),
    /// Check a cloud before it is used: what fits, what does not, and what to do
    Doctor(doctor::Args),
    /// List the nodes as both services see them
    Nodes(nodes::Args),
    /// List what the journal has open, or all of it
    Cases(cases::Args),
    /// Tell the whole story of one node, from the journal; with --look also what it is now
    Show(show::Args),
    /// End a case by an operator's signed word
    Abandon(abandon::Args),
    /// Show the effective configuration, and where each value comes from
    Config(config::Args),
    /// Write the completions of a shell to standard output
    Completions(written::Completions),
    /// Write the pages of the manual into a folder
    Man(written::Man),
    /// Show the whole story on an embedded cloud, in under half a minute
    #[cfg(feature = "sandbox")]
    Demo(demo::Args),
    /// Serve an embedded cloud (Keystone, Ironic, Placement) until SIGTERM
    #[cfg(feature = "sandbox")]
    Sandbox(sandbox::Args),
}

impl Cli {
    /// Does what was asked for, and says how the process ends.
    pub(crate) async fn run(self) -> anyhow::Result<ExitCode> {
        let global = self.global;
        if let Some(format) = global.log_format {
            // A configuration that cannot be read is told so too.
            output::speak(format);
        }
        match self.command {
            Command::Delete(args) => delete::run(args, global).await,
            Command::Resume(args) => resume::run(args, global).await,
            Command::Guard(args) => guard::run(args, global).await,
            Command::Candidates(args) => candidates::run(args, global).await,
            Command::Watch(args) => watch::run(args, global).await,
            Command::Audit(args) => audit::run(args, global).await,
            Command::Doctor(args) => doctor::run(args, global).await,
            Command::Nodes(args) => nodes::run(args, global).await,
            Command::Cases(args) => cases::run(args, global).await,
            Command::Show(args) => show::run(args, global).await,
            Command::Abandon(args) => abandon::run(args, global).await,
            Command::Config(args) => config::run(&args, &global),
            Command::Completions(args) => written::completions(&args),
            Command::Man(args) => written::man(&args),
            #[cfg(feature = "sandbox")]
            Command::Demo(args) => {
                global.log_only()?;
                demo::run(args, global.quiet).await
            }
            #[cfg(feature = "sandbox")]
            Command::Sandbox(args) => {
                global.log_only()?;
                sandbox::run(args, global.quiet).await
            }
        }
    }
}

impl Global {
    /// The effective configuration, with the flags of a subcommand; logging begins.
    fn load(&self, own: impl IntoIterator<Item = Flag>) -> Result<Loaded, ConfigError> {
        let flags = self.flags().into_iter().chain(own).collect::<Vec<_>>();
        let loaded = crate::config::load(self.config.as_deref(), &Environment::of_process(), &flags)?;
        logging::init(&loaded.config.log)?;
        Ok(loaded)
    }

    /// Logging for what needs no configuration: a broken file does not keep it from working.
    #[cfg(feature = "sandbox")]
    fn log_only(&self) -> Result<(), ConfigError> {
        let loaded = crate::config::load_flags(&self.flags())?;
        logging::init(&loaded.config.log)
    }

    async fn connect(&self, loaded: &Loaded) -> anyhow::Result<Wired> {
        wire::connect(&loaded.config, &self.tls, self.quiet, false).await
    }

    /// The same, and cases are taken up that name another cloud.
    async fn connect_moved(&self, loaded: &Loaded) -> anyhow::Result<Wired> {
        wire::connect(&loaded.config, &self.tls, self.quiet, true).await
    }

    async fn guard_adapters(&self, loaded: &Loaded) -> anyhow::Result<(Adapters, Arc<OpenStack>)> {
        wire::guard_adapters(&loaded.config, &self.tls, self.quiet).await
    }

    async fn audited(&self, loaded: &Loaded) -> anyhow::Result<OpenStack> {
        wire::audited(&loaded.config, &self.tls).await
    }

    /// The cloud, and which one it is.
    async fn located(&self, loaded: &Loaded) -> anyhow::Result<(OpenStack, String)> {
        wire::located(&loaded.config, &self.tls).await
    }

    /// What looks at both services, and can do nothing else.
    async fn lookout(&self, loaded: &Loaded) -> anyhow::Result<Lookout> {
        wire::lookout(&loaded.config, &self.tls).await
    }

    fn flags(&self) -> Vec<Flag> {
        let level = match (self.quiet, self.verbose) {
            (true, _) => Some(("--quiet", "error")),
            (false, 0) => None,
            (false, 1) => Some(("--verbose", "info")),
            (false, 2) => Some(("--verbose", "debug")),
            (false, _) => Some(("--verbose", "trace")),
        };
        let format = self
            .log_format
            .map(|format| ("--log-format", "log.format", format.name().to_owned()));
        let cloud = self.os_cloud.clone().map(|name| ("--os-cloud", "os_cloud", name));
        let level = level.map(|(flag, level)| (flag, "log.level", level.to_owned()));
        [format, cloud, level]
            .into_iter()
            .flatten()
            .map(|(flag, key, value)| Flag { flag, key, value })
            .collect()
    }
}
