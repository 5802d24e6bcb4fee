//! `unprovision sandbox`: serves the embedded cloud over HTTP, for any client.

mod deleter;
mod env_file;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context;
use tokio::signal::unix::{SignalKind, signal};
use unprovision_testkit::sandbox::config::NovaRule;
use unprovision_testkit::sandbox::serve::{self, Served};
use unprovision_testkit::sandbox::{Sandbox, Service};

use self::env_file::EnvFile;
use crate::config::HumanDuration;
use crate::failure::Usage;
use crate::output;

/// How long requests under way may take once the sandbox is told to stop.
const LAST_ANSWERS: Duration = Duration::from_secs(2);

/// Options of `sandbox`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLE)]
pub(crate) struct Args {
    /// How many nodes there are
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u16).range(1..=10_000))]
    nodes: u16,
    /// How many of them carry an instance; the others are available [default: half of them]
    #[arg(long, value_name = "M")]
    deployed: Option<u16>,
    /// How long cleaning takes
    #[arg(long, value_name = "DURATION", default_value = "10s")]
    cleaning: HumanDuration,
    /// A Nova beside: its resource tracker passes once a minute by the rule from before 26.1 (old) or since
    /// (current), and it deletes the allocation of an instance that has left its node
    #[arg(long, value_enum, default_value_t = Nova::Off)]
    nova: Nova,
    /// Where to listen; loopback addresses only, since the password is no secret. Port 0 takes a free one
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:0", value_parser = loopback)]
    listen: SocketAddr,
    /// Write the clients' environment into this file once everything is ready, instead of to standard output; removed at
    /// the end
    #[arg(long, value_name = "PATH")]
    env_file: Option<PathBuf>,
}

impl Args {
    /// Half of the nodes, rounded up, so that there is always one to try a tear-down on.
    fn deployed(&self) -> u16 {
        self.deployed.unwrap_or(self.nodes.div_ceil(2))
    }
}

const EXAMPLE: &str = "\
Example:
  unprovision sandbox --env-file /tmp/sandbox.env &
  until [ -e /tmp/sandbox.env ]; do sleep 0.1; done; . /tmp/sandbox.env
  openstack baremetal node list
  unprovision delete node-0001";

/// Which Nova there is beside the sandbox's services.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Nova {
    /// None.
    Off,
    /// With the rule from before 26.1: a node in use is not reserved.
    Old,
    /// With the rule since 26.1: a node in use is reserved.
    Current,
}

impl From<Nova> for NovaRule {
    fn from(nova: Nova) -> Self {
        match nova {
            Nova::Off => Self::Off,
            Nova::Old => Self::Old,
            Nova::Current => Self::Current,
        }
    }
}

/// An address that nobody outside this machine can reach.
fn loopback(text: &str) -> Result<SocketAddr, String> {
    let address = text.replacen("localhost:", "127.0.0.1:", 1);
    let address = address
        .parse::<SocketAddr>()
        .map_err(|_| "write it like 127.0.0.1:8080 or [::1]:0".to_owned())?;
    match address.ip().is_loopback() {
        true => Ok(address),
        false => Err(format!(
            "{} is not a loopback address, and the sandbox protects nothing",
            address.ip()
        )),
    }
}

/// Serves until SIGTERM or Ctrl-C.
pub(crate) async fn run(args: Args, quiet: bool) -> anyhow::Result<ExitCode> {
    if args.deployed() > args.nodes {
        let problem = format!(
            "--deployed {} is more than --nodes {}",
            args.deployed(),
            args.nodes
        );
        return Err(Usage(problem).into());
    }
    // Before anything can be seen from outside: whoever sees it may already want to end it.
    let (mut terminate, mut interrupt) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    let env_file = args.env_file.as_ref().map(EnvFile::new).transpose()?;
    let served = serve::serve_at(build(&args), args.listen).await;
    let served = served.with_context(|| format!("cannot listen on {}", args.listen))?;
    let deleter = (args.nova != Nova::Off).then(|| tokio::spawn(deleter::run(served.sandbox().clone())));
    if !quiet {
        introduce(&args, &served);
    }
    match &env_file {
        Some(file) => file.write(&environment(&served))?,
        None => output::print(environment(&served).trim_end())?,
    }
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
    if !quiet {
        output::say("stopping");
    }
    drop(env_file);
    if let Some(deleter) = deleter {
        deleter.abort();
    }
    // A client that keeps its connection open does not keep the sandbox alive.
    let _ = tokio::time::timeout(LAST_ANSWERS, served.stop()).await;
    Ok(ExitCode::SUCCESS)
}

fn build(args: &Args) -> Sandbox {
    let sandbox = Sandbox::builder()
        .nodes(args.nodes.into())
        .deployed(args.deployed().into())
        .cleaning(args.cleaning.get())
        .nova(args.nova.into())
        .configure(|config| config.nova.in_catalog = args.nova != Nova::Off)
        .clock(serve::real_clock())
        .build();
    if args.nova == Nova::Off {
        // The traits say that Nova manages the node.
        for node in sandbox.nodes() {
            sandbox.with(|world, _| world.edit_provider(node, |provider| provider.traits.clear()));
        }
    }
    sandbox
}

/// What any client needs; Placement's own client asks for API 1.0 unless it is told otherwise, and from 1.38 on
/// sends back consumer types that Placement then refuses.
fn environment(served: &Served) -> String {
    format!("{}export OS_PLACEMENT_API_VERSION='1.37'\n", served.openrc())
}

fn introduce(args: &Args, served: &Served) {
    let services = [Service::Keystone, Service::Ironic, Service::Placement].map(|service| {
        // Padded by hand: the width of a `Display` is up to its author.
        format!("  {:<10} {}", service.name(), served.url(service))
    });
    let nova = match args.nova {
        Nova::Off => "no Nova beside them",
        Nova::Old => "Nova's tracker and deleter beside them, by the rule from before 26.1",
        Nova::Current => "Nova's tracker and deleter beside them, by the rule since 26.1",
    };
    let (nodes, deployed) = (args.nodes, args.deployed());
    let hint = match &args.env_file {
        Some(file) => format!(". {}", file.display()),
        None => "with the environment on standard output".to_owned(),
    };
    output::say(&format!(
        "serving an embedded cloud; everything is forgotten at the end (Ctrl-C or SIGTERM)\n{}\n\
         {nodes} nodes, {deployed} of them with an instance; cleaning takes {}; {nova}\n\
         try, in another shell ({hint}):\n  openstack baremetal node list\n  {}",
        services.join("\n"),
        args.cleaning,
        example(args.nova, served)
    ));
}

/// A command of ours that works right away.
fn example(nova: Nova, served: &Served) -> String {
    let Some((node, instance)) = served.sandbox().deployed().first().copied() else {
        return "openstack allocation candidate list --resource CUSTOM_BAREMETAL=1".to_owned();
    };
    let name = served
        .sandbox()
        .with(|world, _| world.node(node).and_then(|node| node.name.clone()));
    let node = name.unwrap_or_else(|| node.to_string());
    let word = if nova == Nova::Off {
        ""
    } else {
        " --nova-record-remains"
    };
    format!("unprovision delete {node} --instance {instance}{word} --yes")
}
