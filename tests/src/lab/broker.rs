//! A real RabbitMQ: what is said over it, and how our queue in it is.
//!
//! `tests/lab/lab broker` starts and stops it; this finds it by the environment's `UNPROVISION_BROKER`, the path of its
//! `broker.json`. Tests that run side by side have an exchange and a queue of their own each.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use lapin::options::{BasicPublishOptions, ExchangeDeclareOptions, QueueDeclareOptions};
use lapin::types::FieldTable;
use lapin::{BasicProperties, Channel, Connection, ConnectionProperties, ExchangeKind};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::process::Command;
use unprovision::events::RabbitMqSettings;
use uuid::Uuid;

use super::{Lab, LabError};

/// The variable that names the broker.
const VARIABLE: &str = "UNPROVISION_BROKER";

/// A broker that runs.
#[derive(Clone, Debug, Deserialize)]
pub struct Broker {
    dir: PathBuf,
    amqp_url: String,
}

/// An exchange as Ironic's, and somebody who publishes to it.
#[derive(Debug)]
pub struct Ironic {
    name: String,
    channel: Channel,
    connection: Connection,
}

impl Broker {
    /// The broker that the environment names.
    ///
    /// # Errors
    ///
    /// [`LabError::NoBroker`] says how to start one.
    pub fn from_env() -> Result<Self, LabError> {
        let path = std::env::var_os(VARIABLE).filter(|path| !path.is_empty());
        Self::load(Path::new(&path.ok_or(LabError::NoBroker)?))
    }

    /// A broker of one's own, in this folder; or the same one again, if it was stopped.
    ///
    /// # Errors
    ///
    /// Where the script fails.
    pub async fn start(dir: &Path) -> Result<Self, LabError> {
        let pid = std::process::id().to_string();
        let dir = dir.to_string_lossy();
        let printed = script(&["broker", "--dir", &dir, "--while-pid", &pid]).await?;
        Self::load(Path::new(printed.trim()))
    }

    /// Stops it. What is durable in it stays on disk.
    ///
    /// # Errors
    ///
    /// Where the script fails.
    pub async fn stop(&self) -> Result<(), LabError> {
        let dir = self.dir.to_string_lossy();
        script(&["down", &dir, "--only", "rabbitmq"]).await.map(drop)
    }

    /// Stops all of it, and leaves nothing.
    ///
    /// # Errors
    ///
    /// Where the script fails.
    pub async fn wipe(self) -> Result<(), LabError> {
        let dir = self.dir.to_string_lossy();
        script(&["down", &dir, "--wipe"]).await.map(drop)
    }

    fn load(path: &Path) -> Result<Self, LabError> {
        let unusable = |problem: String| LabError::File {
            path: path.to_owned(),
            problem,
        };
        let text = std::fs::read(path).map_err(|error| unusable(error.to_string()))?;
        serde_json::from_slice(&text).map_err(|error| unusable(error.to_string()))
    }

    /// Where it is, with its password.
    pub fn url(&self) -> &str {
        &self.amqp_url
    }

    /// Settings for an exchange and a queue that nobody else has.
    ///
    /// # Errors
    ///
    /// Where its URL is none.
    pub fn settings(&self, what: &str) -> Result<RabbitMqSettings, LabError> {
        let url = self.amqp_url.parse().map_err(problem)?;
        let name = Lab::unique(what);
        Ok(RabbitMqSettings {
            exchange: name.clone(),
            queue: format!("{name}-queue"),
            ..RabbitMqSettings::new(vec![url])
        })
    }

    /// Makes the exchange, as Ironic does with its first message.
    ///
    /// # Errors
    ///
    /// Where the broker does not answer as it should; so for all that follow.
    pub async fn ironic(&self, settings: &RabbitMqSettings) -> Result<Ironic, LabError> {
        let (connection, channel) = self.channel().await?;
        let (name, kind) = (settings.exchange.clone(), ExchangeKind::Topic);
        let options = ExchangeDeclareOptions::default();
        channel
            .exchange_declare(name.as_str().into(), kind, options, FieldTable::default())
            .await
            .map_err(problem)?;
        Ok(Ironic {
            name,
            channel,
            connection,
        })
    }

    /// How many messages wait in a queue, and how many read it; `None` where there is no such queue.
    pub async fn queue(&self, name: &str) -> Result<Option<(u32, u32)>, LabError> {
        let (_connection, channel) = self.channel().await?;
        let passive = QueueDeclareOptions {
            passive: true,
            ..QueueDeclareOptions::default()
        };
        let found = channel
            .queue_declare(name.into(), passive, FieldTable::default())
            .await;
        Ok(found
            .ok()
            .map(|queue| (queue.message_count(), queue.consumer_count())))
    }

    async fn channel(&self) -> Result<(Connection, Channel), LabError> {
        let properties = ConnectionProperties::default();
        let connection = Connection::connect(&self.amqp_url, properties)
            .await
            .map_err(problem)?;
        let channel = connection.create_channel().await.map_err(problem)?;
        Ok((connection, channel))
    }
}

impl Ironic {
    /// Says something, with a priority such as `info` or `error`.
    pub async fn says(&self, priority: &str, body: &[u8]) -> Result<(), LabError> {
        let key = format!("ironic_versioned_notifications.{priority}");
        let (exchange, options) = (self.name.as_str().into(), BasicPublishOptions::default());
        self.channel
            .basic_publish(
                exchange,
                key.as_str().into(),
                options,
                body,
                BasicProperties::default(),
            )
            .await
            .map_err(problem)?;
        Ok(())
    }

    /// Says that the node's state has changed.
    pub async fn changes(&self, node: Uuid, from: &str, to: &str) -> Result<(), LabError> {
        self.says("info", envelope(&change(node, from, to)).to_string().as_bytes())
            .await
    }

    /// Ends the connection.
    pub async fn goes(self) {
        // Whoever wants it gone does not care how.
        let _ = self.connection.close(200, "OK".into()).await;
    }
}

/// A message as Ironic's, without its envelope.
pub fn change(node: Uuid, from: &str, to: &str) -> Value {
    let data = json!({ "uuid": node, "previous_provision_state": from, "provision_state": to });
    json!({
        "event_type": "baremetal.node.provision_set.success",
        "payload": { "ironic_object.version": "1.17", "ironic_object.data": data },
        "timestamp": "2026-11-30 12:00:00.000000",
    })
}

/// The envelope around it.
pub fn envelope(message: &Value) -> Value {
    json!({ "oslo.version": "2.0", "oslo.message": message.to_string() })
}

fn problem(error: impl ToString) -> LabError {
    LabError::Call {
        call: "RabbitMQ".to_owned(),
        problem: error.to_string(),
    }
}

/// Runs `tests/lab/lab ARGS`; returns what it prints.
async fn script(args: &[&str]) -> Result<String, LabError> {
    let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("lab/lab");
    let failed = |problem: String| LabError::Script {
        command: args.join(" "),
        problem,
    };
    let output = Command::new(program)
        .args(args)
        .stdin(Stdio::null())
        .output()
        .await;
    let output = output.map_err(|error| failed(error.to_string()))?;
    match output.status.success() {
        true => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
        false => Err(failed(String::from_utf8_lossy(&output.stderr).into_owned())),
    }
}
