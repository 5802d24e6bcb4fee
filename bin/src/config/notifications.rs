//! Where Ironic's notifications are.

use std::fmt;
use std::num::NonZeroU32;
use std::path::Path;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::check::{Wrong, at_least};
use super::{HumanDuration, set};

/// Ironic's notifications, which wake the guard.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Notifications {
    /// The broker; several of one cluster with spaces between them; empty: nobody listens.
    pub(crate) url: Urls,
    /// The exchange that Ironic publishes to.
    pub(crate) exchange: String,
    /// The beginning of its routing keys.
    pub(crate) topic: String,
    /// The name of our queue.
    pub(crate) queue: String,
    /// Authorities that are trusted besides the system's.
    pub(crate) ca_file: String,
    /// Without a reader our queue goes after so long.
    pub(crate) expires: HumanDuration,
    /// So many messages wait at most.
    pub(crate) max_length: NonZeroU32,
    /// So long a message waits at most.
    pub(crate) max_age: HumanDuration,
    /// So long may nothing be said although nodes change.
    pub(crate) silence: HumanDuration,
}

/// A text that may hold passwords.
#[derive(Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct Urls(String);

impl Urls {
    /// One after the other.
    pub(crate) fn each(&self) -> impl Iterator<Item = &str> {
        self.0.split_whitespace()
    }
}

impl fmt::Debug for Urls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} URLs", self.each().count())
    }
}

impl Default for Notifications {
    fn default() -> Self {
        Self {
            url: Urls::default(),
            exchange: "ironic".to_owned(),
            topic: "ironic_versioned_notifications".to_owned(),
            queue: "unprovision-guard".to_owned(),
            ca_file: String::new(),
            expires: HumanDuration::from_secs(600),
            max_length: NonZeroU32::MIN.saturating_add(9_999),
            max_age: HumanDuration::from_secs(600),
            silence: HumanDuration::from_secs(600),
        }
    }
}

impl Notifications {
    /// The first value that cannot be used. A URL is never repeated.
    pub(super) fn check(&self) -> Result<(), Wrong> {
        for url in self.url.each() {
            broker(url).map_err(|problem| ("notifications.url", problem))?;
        }
        for (key, name) in [
            ("notifications.exchange", &self.exchange),
            ("notifications.topic", &self.topic),
            ("notifications.queue", &self.queue),
        ] {
            // AMQP's limit is 255; the topic gets a priority, and a dry run's queue another ending.
            if !(1..=200).contains(&name.len()) {
                return Err((key, "write a name of 1 to 200 characters".to_owned()));
            }
        }
        if let Some(path) = set(&self.ca_file) {
            authorities(Path::new(path)).map_err(|problem| ("notifications.ca_file", problem))?;
        }
        let second = Duration::from_secs(1);
        at_least(self.expires, second).map_err(|problem| ("notifications.expires", problem))?;
        at_least(self.max_age, second).map_err(|problem| ("notifications.max_age", problem))?;
        at_least(self.silence, second).map_err(|problem| ("notifications.silence", problem))
    }
}

/// The certificates in a file.
pub(crate) fn authorities(path: &Path) -> Result<String, String> {
    let text = std::fs::read_to_string(path)
        .map_err(|error| format!("{} cannot be read: {error}", path.display()))?;
    match text.contains("-----BEGIN CERTIFICATE-----") {
        true => Ok(text),
        false => Err(format!("there is no certificate (PEM) in {}", path.display())),
    }
}

#[cfg(feature = "rabbitmq")]
fn broker(url: &str) -> Result<(), String> {
    use unprovision::events::BrokerUrl;

    url.parse::<BrokerUrl>().map(drop).map_err(|why| why.to_string())
}

#[cfg(not(feature = "rabbitmq"))]
fn broker(_: &str) -> Result<(), String> {
    Err("this program was built without RabbitMQ; leave it empty".to_owned())
}
