//! Ironic's notifications, from a RabbitMQ.
//!
//! A queue of our own is bound to Ironic's exchange, so nobody else's messages are taken away, and it is bounded in length
//! and age and goes if nobody reads it for a while, so it fills no disk. A message is acknowledged once it was handled.
//! One that nobody can read is acknowledged as well, and counted: it would only come again. Nothing of the broker's that is
//! not ours is declared, changed or deleted.

mod broker_url;
mod link;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use futures::stream::{self, BoxStream};
use ironic_client::Notification;
use lapin::Acker;
use lapin::options::BasicAckOptions;

use super::{EventSource, Hint, Said};
use crate::cloud::Clock;
use link::Link;

pub use broker_url::{BadBroker, BrokerUrl};

/// The first pause after a failure, doubled each time.
const PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);
/// A connection that has lasted so long was a good one: the next failure is the first again.
const LASTED: Duration = Duration::from_secs(60);

/// Where Ironic's messages are, and how our queue is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RabbitMqSettings {
    /// The brokers of one cluster, tried in turn.
    pub urls: Vec<BrokerUrl>,
    /// Authorities (PEM) that are trusted besides the system's.
    pub authorities: Option<String>,
    /// The exchange that Ironic publishes to, its `control_exchange`.
    pub exchange: String,
    /// The beginning of its routing keys, its `versioned_notifications_topics`; the priority follows.
    pub topic: String,
    /// The name of our queue. Only one process may read it.
    pub queue: String,
    /// Without a reader the queue goes after so long.
    pub expires: Duration,
    /// The oldest messages go where there are more.
    pub max_length: u32,
    /// And those that are older.
    pub max_age: Duration,
}

impl RabbitMqSettings {
    /// Ironic's defaults, and a queue for ten thousand messages of ten minutes.
    pub fn new(urls: Vec<BrokerUrl>) -> Self {
        Self {
            urls,
            authorities: None,
            exchange: "ironic".to_owned(),
            topic: "ironic_versioned_notifications".to_owned(),
            queue: "unprovision-guard".to_owned(),
            expires: Duration::from_secs(600),
            max_length: 10_000,
            max_age: Duration::from_secs(600),
        }
    }
}

/// Listens to what Ironic says over RabbitMQ.
#[derive(Debug)]
pub struct RabbitMq {
    settings: RabbitMqSettings,
    clock: Arc<dyn Clock>,
}

impl RabbitMq {
    /// Nothing is connected yet.
    pub fn new(settings: RabbitMqSettings, clock: Arc<dyn Clock>) -> Self {
        Self { settings, clock }
    }

    /// Whether one of the brokers lets us in and has Ironic's exchange; which, or why none does. Nothing is declared there.
    ///
    /// # Errors
    ///
    /// What is wrong with each of them, in words without secrets.
    pub async fn try_out(&self) -> Result<String, String> {
        let mut wrong = Vec::new();
        for url in &self.settings.urls {
            let tried = tokio::select! {
                tried = link::try_out(url, &self.settings) => tried,
                () = self.clock.sleep(link::PATIENCE) => Err(format!("no answer within {:?}", link::PATIENCE)),
            };
            match tried {
                Ok(()) => return Ok(format!("RabbitMQ at {url}")),
                Err(why) => wrong.push(format!("{url}: {why}")),
            }
        }
        Err(wrong.join("; "))
    }
}

impl EventSource for RabbitMq {
    fn name(&self) -> String {
        let urls = self.settings.urls.iter().map(ToString::to_string);
        format!("RabbitMQ at {}", urls.collect::<Vec<_>>().join(", "))
    }

    fn listen(&self) -> BoxStream<'_, Said> {
        let listener = Listener {
            of: self,
            link: None,
            handled: None,
            attempts: 0,
            failures: 0,
        };
        stream::unfold(listener, |mut listener| async move {
            let said = listener.next().await;
            Some((said, listener))
        })
        .boxed()
    }
}

struct Listener<'a> {
    of: &'a RabbitMq,
    link: Option<(Link, Duration)>,
    /// The message that was given out last, to be acknowledged when the next one is asked for.
    handled: Option<Acker>,
    attempts: usize,
    failures: u32,
}

impl Listener<'_> {
    async fn next(&mut self) -> Said {
        if let Some(acker) = self.handled.take()
            && let Err(error) = acker.ack(BasicAckOptions::default()).await
        {
            return self.lost(&error.to_string());
        }
        let Some((link, _)) = &mut self.link else {
            return self.connect().await;
        };
        match link.messages.next().await {
            Some(Ok(message)) => {
                self.handled = Some(message.acker);
                said(message.routing_key.as_str(), &message.data)
            }
            Some(Err(error)) => self.lost(&error.to_string()),
            None => self.lost("the broker has ended it: was our queue deleted?"),
        }
    }

    async fn connect(&mut self) -> Said {
        let settings = &self.of.settings;
        if self.failures > 0 {
            self.of.clock.sleep(self.pause()).await;
        }
        let Some(url) = settings.urls.get(self.attempts % settings.urls.len().max(1)) else {
            // Nothing to connect to, ever.
            return std::future::pending().await;
        };
        self.attempts += 1;
        let connected = tokio::select! {
            connected = Link::open(url, settings) => connected,
            () = self.of.clock.sleep(link::PATIENCE) => Err(format!("no answer within {:?}", link::PATIENCE)),
        };
        match connected {
            Ok(link) => {
                self.link = Some((link, self.of.clock.elapsed()));
                Said::Listens
            }
            Err(why) => {
                self.failures += 1;
                Said::Deaf(format!("{url}: {why}"))
            }
        }
    }

    fn lost(&mut self, why: &str) -> Said {
        if let Some((_, since)) = self.link.take()
            && self.of.clock.elapsed().saturating_sub(since) >= LASTED
        {
            self.failures = 0;
        }
        self.failures += 1;
        Said::Deaf(format!("the connection was lost: {why}"))
    }

    /// Each broker of the cluster once, then a pause that grows; with jitter, so that many guards do not come in step.
    fn pause(&self) -> Duration {
        let brokers = u32::try_from(self.of.settings.urls.len().max(1)).unwrap_or(u32::MAX);
        if !self.failures.is_multiple_of(brokers) {
            return Duration::ZERO;
        }
        let doubled = PAUSE.saturating_mul(1 << (self.failures / brokers - 1).min(5));
        doubled.min(LONGEST_PAUSE).mul_f64(0.5 + fastrand::f64())
    }
}

fn said(key: &str, body: &[u8]) -> Said {
    match Notification::parse(body) {
        Ok(message) => match message.node {
            Some(node) => Said::Hint(Hint {
                node,
                reason: message.to_string(),
                said_at: message.said_at,
            }),
            None => Said::Other,
        },
        Err(why) => Said::Unreadable(format!("{} bytes with the key `{key}`: {why}", body.len())),
    }
}

impl fmt::Debug for Listener<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Listener")
            .field("of", self.of)
            .finish_non_exhaustive()
    }
}
