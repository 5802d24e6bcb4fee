//! The lab of real services: nodes in it, an orchestrator over it, and two independent judges of exposure.
//!
//! `tests/lab/lab` starts and stops it; this finds it by the environment's `UNPROVISION_LAB`, the path of its
//! `lab.json`. What an unfixed Nova shows on the sandbox, and what each strategy must not, is shown here by
//! [`order`] from the order of what was said to the services, and by [`sampler`] from looks of its own.

mod api;
#[cfg(feature = "rabbitmq")]
pub mod broker;
pub mod exposure;
pub mod journals;
pub mod nova;
pub mod order;
pub mod sampler;
pub mod tracker;
mod wiring;

use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use placement_client::ResourceClass;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use tokio::process::Command;
use uuid::Uuid;

use crate::contract::Seed;

pub use api::{Api, is_free};
pub use wiring::{Proxies, Setup};

/// The variable that names the lab.
const VARIABLE: &str = "UNPROVISION_LAB";
/// The variable that names the lab with a Nova in it.
const NOVA_VARIABLE: &str = "UNPROVISION_NOVA_LAB";

/// Why something in the lab did not work.
#[derive(Debug, thiserror::Error)]
pub enum LabError {
    /// Nobody says where the lab is.
    #[error(
        "there are no real services to ask: run the tests with `tests/run`, or start a lab yourself: \
         export UNPROVISION_LAB=$(tests/lab/lab up)"
    )]
    NotRunning,
    /// Nobody says where a lab with a Nova is, or that lab has none.
    #[error(
        "there is no real Nova to ask: run the tests with `tests/run`, or start a lab yourself: \
         export UNPROVISION_NOVA_LAB=$(tests/lab/lab up --nova current --proxied --notify)"
    )]
    NoNova,
    /// Nobody says where a broker is.
    #[error(
        "there is no real RabbitMQ to listen to: run the tests with `tests/run`, or start one yourself: \
         export UNPROVISION_BROKER=$(tests/lab/lab broker)"
    )]
    NoBroker,
    /// A file cannot be used.
    #[error("{path} cannot be read: {problem}", path = path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        problem: String,
    },
    /// `tests/lab/lab` failed.
    #[error("`lab {command}` failed: {problem}")]
    Script {
        /// Its arguments.
        command: String,
        /// What it said.
        problem: String,
    },
    /// A service gave no answer, or an unexpected one.
    #[error("{call}: {problem}")]
    Call {
        /// The call.
        call: String,
        /// What went wrong.
        problem: String,
    },
    /// Our own side could not be set up.
    #[error("the program under test cannot be set up: {0}")]
    Setup(String),
}

/// A running lab.
#[derive(Clone, Debug)]
pub struct Lab {
    file: File,
}

/// What `lab.json` says, as far as it matters here.
#[derive(Clone, Debug, Deserialize)]
struct File {
    dir: PathBuf,
    keystone_url: String,
    ironic_url: String,
    placement_url: String,
    clouds_yaml: PathBuf,
    venv: PathBuf,
    admin: crate::contract::Identity,
    amqp_url: Option<String>,
    nova_url: Option<String>,
    nova: Option<NovaPart>,
}

/// What it says of its Nova.
#[derive(Clone, Debug, Deserialize)]
struct NovaPart {
    proxied: Option<Ports>,
}

/// Where the catalog says that Ironic and Placement are.
#[derive(Clone, Debug, Deserialize)]
struct Ports {
    ironic: u16,
    placement: u16,
}

/// A node that was seeded.
#[derive(Clone, Debug, Deserialize)]
pub struct Seeded {
    /// Its UUID, and its provider's.
    pub uuid: Uuid,
    /// Its name.
    pub name: String,
    /// Its class in Ironic's spelling.
    pub resource_class: String,
}

/// A node with an instance on it.
#[derive(Clone, Debug)]
pub struct Deployed {
    /// Its UUID, and its provider's.
    pub node: Uuid,
    /// Its name.
    pub name: String,
    /// Its class in Ironic's spelling.
    pub resource_class: String,
    /// The instance.
    pub instance: Uuid,
}

impl Lab {
    /// The lab that the environment names.
    ///
    /// # Errors
    ///
    /// [`LabError::NotRunning`] says how to start one.
    pub fn from_env() -> Result<Self, LabError> {
        let path = std::env::var_os(VARIABLE).filter(|path| !path.is_empty());
        Self::load(Path::new(&path.ok_or(LabError::NotRunning)?))
    }

    /// The lab with a Nova that the environment names.
    ///
    /// # Errors
    ///
    /// [`LabError::NoNova`] says how to start one.
    pub fn with_nova_from_env() -> Result<Self, LabError> {
        let path = std::env::var_os(NOVA_VARIABLE).filter(|path| !path.is_empty());
        Self::load(Path::new(&path.ok_or(LabError::NoNova)?))
    }

    /// Its `clouds.yaml`, for a program of its own.
    pub fn clouds_yaml(&self) -> &Path {
        &self.file.clouds_yaml
    }

    /// The official clients that are installed with it: `openstack`, and Python with openstacksdk.
    pub fn program(&self, name: &str) -> PathBuf {
        self.file.venv.join("bin").join(name)
    }

    /// Its RabbitMQ, where Ironic says what happens; with its password. `None` where it was not started with `--notify`.
    pub fn amqp_url(&self) -> Option<&str> {
        self.file.amqp_url.as_deref()
    }

    fn load(path: &Path) -> Result<Self, LabError> {
        let unusable = |problem: String| LabError::File {
            path: path.to_owned(),
            problem,
        };
        let text = std::fs::read(path).map_err(|error| unusable(error.to_string()))?;
        let file = serde_json::from_slice(&text).map_err(|error| unusable(error.to_string()))?;
        Ok(Self { file })
    }

    /// A name that no other test has, nor an earlier run on the same lab: nodes are never removed.
    pub fn unique(what: &str) -> String {
        let mut tag = Seed::random().to_string();
        tag.truncate(8);
        format!("{what}-{tag}")
    }

    /// Enrols nodes with this unique prefix, `available`. Unless the flags say otherwise they have a resource
    /// class of their own, so that queries for it see no other test's nodes.
    ///
    /// # Errors
    ///
    /// Where the script fails.
    pub async fn seed(&self, count: usize, prefix: &str, flags: &[&str]) -> Result<Vec<Seeded>, LabError> {
        let (count, class) = (count.to_string(), format!("lab.{prefix}"));
        let mut args = vec!["--count", &count, "--prefix", prefix];
        if !flags.contains(&"--resource-class") {
            args.extend(["--resource-class", &class]);
        }
        args.extend(flags);
        self.script("seed", args).await
    }

    /// Puts a new instance on each of these nodes, as Nova does.
    ///
    /// # Errors
    ///
    /// Where the script fails.
    pub async fn deploy(&self, nodes: &[Seeded]) -> Result<Vec<Deployed>, LabError> {
        let seed = Seed::random();
        let deployed = |node: &Seeded| Deployed {
            node: node.uuid,
            name: node.name.clone(),
            resource_class: node.resource_class.clone(),
            instance: Uuid::new_v5(&node.uuid, seed.to_string().as_bytes()),
        };
        let deployed = nodes.iter().map(deployed).collect::<Vec<_>>();
        let pairs = deployed
            .iter()
            .flat_map(|node| [node.name.clone(), node.instance.to_string()]);
        let _: serde_json::Value = self.script("deploy", pairs).await?;
        Ok(deployed)
    }

    /// Changes how a node behaves (`KEY=VALUE`); not while it is locked.
    ///
    /// # Errors
    ///
    /// Where the script fails.
    pub async fn knob(&self, node: &str, knobs: &[&str]) -> Result<(), LabError> {
        let args = [node].into_iter().chain(knobs.iter().copied());
        self.script::<serde_json::Value, _>("knob", args).await.map(drop)
    }

    /// Runs `tests/lab/lab COMMAND DIR ARGS` and reads what it prints.
    async fn script<T: DeserializeOwned, A: AsRef<OsStr>>(
        &self,
        command: &str,
        args: impl IntoIterator<Item = A>,
    ) -> Result<T, LabError> {
        let printed = self.run(command, args).await?;
        serde_json::from_slice(&printed).map_err(|error| LabError::Script {
            command: command.to_owned(),
            problem: format!("it printed no JSON: {error}"),
        })
    }

    /// Runs `tests/lab/lab COMMAND DIR ARGS`.
    async fn run<A: AsRef<OsStr>>(
        &self,
        command: &str,
        args: impl IntoIterator<Item = A>,
    ) -> Result<Vec<u8>, LabError> {
        let dir = self.file.dir.clone().into_os_string();
        let args = args.into_iter().map(|arg| arg.as_ref().to_owned());
        lab(command, std::iter::once(dir).chain(args)).await
    }
}

/// Runs `tests/lab/lab COMMAND ARGS`.
async fn lab(command: &str, args: impl IntoIterator<Item = OsString>) -> Result<Vec<u8>, LabError> {
    let failed = |problem: String| LabError::Script {
        command: command.to_owned(),
        problem,
    };
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("lab/lab");
    let run = Command::new(script)
        .arg(command)
        .args(args)
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output();
    let output = run.await.map_err(|error: io::Error| failed(error.to_string()))?;
    if !output.status.success() {
        return Err(failed(String::from_utf8_lossy(&output.stderr).into_owned()));
    }
    Ok(output.stdout)
}

impl Deployed {
    /// Its class in Placement's spelling.
    ///
    /// # Errors
    ///
    /// Where there is none.
    pub fn class(&self) -> Result<ResourceClass, LabError> {
        ResourceClass::of_node_class(&self.resource_class).map_err(|error| LabError::Setup(error.to_string()))
    }
}
