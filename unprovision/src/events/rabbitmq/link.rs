//! One connection to a broker, with our queue on it.

use std::time::Duration;

use lapin::options::{
    BasicConsumeOptions, BasicQosOptions, ExchangeDeclareOptions, QueueBindOptions, QueueDeclareOptions,
};
use lapin::protocol::{AMQPErrorKind, AMQPHardError, AMQPSoftError};
use lapin::tcp::OwnedTLSConfig;
use lapin::types::{AMQPValue, FieldTable, ShortString};
use lapin::{Channel, Connection, ConnectionProperties, Consumer, ErrorKind, ExchangeKind, runtime};

use super::{BrokerUrl, RabbitMqSettings};

/// How long it may take until our queue is there and read.
pub(super) const PATIENCE: Duration = Duration::from_secs(20);
/// So many messages are under way to us at most.
const AHEAD: u16 = 64;

/// A connection, and the messages that come over it. Dropped, it closes.
pub(super) struct Link {
    pub(super) messages: Consumer,
    _connection: Connection,
}

/// What was being done when it failed: the broker's answer alone does not tell what is wrong.
#[derive(Clone, Copy)]
enum Stage {
    Connecting,
    LookingForTheExchange,
    MakingTheQueue,
    Reading,
}

impl Link {
    pub(super) async fn open(url: &BrokerUrl, settings: &RabbitMqSettings) -> Result<Self, String> {
        let failed = |stage| move |error| words(&error, stage, settings);
        let (connection, channel) = reach(url, settings).await?;
        make_the_queue(&channel, settings)
            .await
            .map_err(failed(Stage::MakingTheQueue))?;
        let messages = read(&channel, settings).await.map_err(failed(Stage::Reading))?;
        Ok(Self {
            messages,
            _connection: connection,
        })
    }
}

/// Looks whether a guard would get as far as its queue.
pub(super) async fn try_out(url: &BrokerUrl, settings: &RabbitMqSettings) -> Result<(), String> {
    reach(url, settings).await.map(drop)
}

/// As far as the exchange, which is there then.
async fn reach(url: &BrokerUrl, settings: &RabbitMqSettings) -> Result<(Connection, Channel), String> {
    let failed = |stage| move |error| words(&error, stage, settings);
    let connection = connect(url, settings).await.map_err(failed(Stage::Connecting))?;
    let channel = connection
        .create_channel()
        .await
        .map_err(failed(Stage::Connecting))?;
    look_for_the_exchange(&channel, settings)
        .await
        .map_err(failed(Stage::LookingForTheExchange))?;
    Ok((connection, channel))
}

async fn connect(url: &BrokerUrl, settings: &RabbitMqSettings) -> lapin::Result<Connection> {
    let properties = ConnectionProperties::default().with_connection_name("unprovision guard".into());
    let tls = OwnedTLSConfig {
        cert_chain: settings.authorities.clone(),
        ..OwnedTLSConfig::default()
    };
    Connection::connect_uri_with_config(url.uri(), properties, tls, runtime::default_runtime()?).await
}

/// Only looks: the exchange is Ironic's, and whoever declares it first decides how it is.
async fn look_for_the_exchange(channel: &Channel, settings: &RabbitMqSettings) -> lapin::Result<()> {
    let passive = ExchangeDeclareOptions {
        passive: true,
        ..ExchangeDeclareOptions::default()
    };
    let exchange = short(&settings.exchange);
    channel
        .exchange_declare(exchange, ExchangeKind::Topic, passive, FieldTable::default())
        .await
}

async fn make_the_queue(channel: &Channel, settings: &RabbitMqSettings) -> lapin::Result<()> {
    // It outlives the broker's restart, but not the absence of its reader.
    let durable = QueueDeclareOptions {
        durable: true,
        ..QueueDeclareOptions::default()
    };
    let mut bounds = FieldTable::default();
    for (key, value) in [
        ("x-expires", milliseconds(settings.expires)),
        ("x-message-ttl", milliseconds(settings.max_age)),
        ("x-max-length", AMQPValue::LongLongInt(settings.max_length.into())),
        ("x-overflow", AMQPValue::LongString("drop-head".into())),
    ] {
        bounds.insert(key.into(), value);
    }
    let queue = short(&settings.queue);
    channel.queue_declare(queue.clone(), durable, bounds).await?;
    // All priorities: a failure is said with the key `.error` only.
    let key = short(&format!("{}.*", settings.topic));
    let exchange = short(&settings.exchange);
    channel
        .queue_bind(
            queue,
            exchange,
            key,
            QueueBindOptions::default(),
            FieldTable::default(),
        )
        .await
}

async fn read(channel: &Channel, settings: &RabbitMqSettings) -> lapin::Result<Consumer> {
    channel.basic_qos(AHEAD, BasicQosOptions::default()).await?;
    // Two readers of one queue would take half of the messages from each other.
    let alone = BasicConsumeOptions {
        exclusive: true,
        ..BasicConsumeOptions::default()
    };
    let queue = short(&settings.queue);
    channel
        .basic_consume(queue, "unprovision-guard".into(), alone, FieldTable::default())
        .await
}

fn short(text: &str) -> ShortString {
    text.into()
}

fn milliseconds(duration: Duration) -> AMQPValue {
    AMQPValue::LongLongInt(i64::try_from(duration.as_millis()).unwrap_or(i64::MAX))
}

/// What is wrong, and what to do. The broker's own words name users and queues, never a password.
fn words(error: &lapin::Error, stage: Stage, settings: &RabbitMqSettings) -> String {
    let (exchange, queue) = (&settings.exchange, &settings.queue);
    let ErrorKind::ProtocolError(answer) = error.kind() else {
        return match error.kind() {
            ErrorKind::IOError(error) => format!("it cannot be reached: {error}"),
            _ => error.to_string(),
        };
    };
    let said = answer.get_message();
    match (stage, answer.kind()) {
        (Stage::Connecting, AMQPErrorKind::Soft(AMQPSoftError::ACCESSREFUSED)) => {
            format!("it does not take the user or the password ({said})")
        }
        (Stage::Connecting, AMQPErrorKind::Hard(AMQPHardError::NOTALLOWED)) => {
            format!("it has no such virtual host, or does not let the user in ({said})")
        }
        (Stage::LookingForTheExchange, AMQPErrorKind::Soft(AMQPSoftError::NOTFOUND)) => format!(
            "it has no exchange `{exchange}` yet; Ironic makes it with its first notification, where `notification_level` \
             and `[oslo_messaging_notifications] driver = messagingv2` are set in ironic.conf"
        ),
        (Stage::MakingTheQueue, AMQPErrorKind::Soft(AMQPSoftError::PRECONDITIONFAILED)) => format!(
            "its queue `{queue}` was made with other limits; delete it there, let it expire, or name another one ({said})"
        ),
        (
            Stage::Reading,
            AMQPErrorKind::Soft(AMQPSoftError::ACCESSREFUSED | AMQPSoftError::RESOURCELOCKED),
        ) => {
            format!("somebody else reads the queue `{queue}`; give each guard a queue of its own ({said})")
        }
        (_, AMQPErrorKind::Soft(AMQPSoftError::ACCESSREFUSED)) => format!(
            "the user may not do that; it needs `read` on the exchange `{exchange}`, `configure`, `write` and `read` on \
             the queue `{queue}` ({said})"
        ),
        _ => error.to_string(),
    }
}
