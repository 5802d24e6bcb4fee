//! All settings: one structure, filled from defaults, one file, the environment and flags, in this order.

mod api;
mod check;
mod duration;
mod layers;
mod notifications;
mod nova;
mod scope;

use std::fmt;
use std::num::NonZeroUsize;
use std::ops::Deref;

use serde::{Deserialize, Serialize};
use unprovision::core::{DEFAULT_TAG, GUARD_PROJECT, GUARD_USER};
use unprovision::journal::shown;
use unprovision::strategy;
use unprovision_session::did_you_mean;

pub(crate) use api::Api;
pub(crate) use check::patience;
pub(crate) use duration::HumanDuration;
#[cfg(feature = "sandbox")]
pub(crate) use layers::load_flags;
pub(crate) use layers::{Environment, Flag, Loaded, Setting, load};
pub(crate) use notifications::Notifications;
#[cfg(feature = "rabbitmq")]
pub(crate) use notifications::authorities;
pub(crate) use nova::{Ask, Nova};
pub(crate) use scope::Scope;

/// All settings. Text that is empty counts as not set, so that every key can be written down.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Config {
    /// The cloud in `clouds.yaml`.
    pub(crate) os_cloud: String,
    /// The name of the strategy.
    pub(crate) strategy: String,
    /// The trait that marks a node for `trait-tagging`.
    pub(crate) tag: String,
    /// The journal's file, or `memory:`.
    pub(crate) journal: Place,
    /// How long a node is waited for.
    pub(crate) deadline: HumanDuration,
    /// How often nodes that are waited for are looked at.
    pub(crate) poll: HumanDuration,
    /// How many nodes are looked at or written to at the same time.
    pub(crate) concurrency: NonZeroUsize,
    /// How many nodes may be deleting or cleaning at the same time; 0: as many as Ironic takes.
    pub(crate) max_tear_downs: usize,
    /// Whether the reservation is lifted that Nova leaves on a free node until its next pass.
    pub(crate) release_nova_reservations: bool,
    /// The bare metal service.
    pub(crate) ironic: Service,
    /// The service of inventories and allocations.
    pub(crate) placement: Service,
    /// Whether Nova is asked for servers, and how to reach it.
    pub(crate) nova: Nova,
    /// Whom our consumers in Placement belong to.
    pub(crate) guard: Guard,
    /// Ironic's notifications, which wake the guard.
    pub(crate) notifications: Notifications,
    /// The HTTP interface of a running guard.
    pub(crate) api: Api,
    /// What is logged, and how.
    pub(crate) log: Log,
    /// Which nodes are guarded, and how; none: the whole cloud.
    pub(crate) scope: Vec<Scope>,
}

/// Where a journal is. That of a server may hold a password.
#[derive(Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct Place(String);

impl Deref for Place {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl From<String> for Place {
    fn from(place: String) -> Self {
        Self(place)
    }
}

impl fmt::Debug for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&shown(self))
    }
}

/// How to reach one service, where `clouds.yaml` and the catalog do not say it right.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Service {
    /// Another cloud in `clouds.yaml` for this service.
    pub(crate) cloud: String,
    /// Where it is.
    pub(crate) endpoint: String,
    /// Its region in the catalog.
    pub(crate) region: String,
    /// `public`, `internal` or `admin`.
    pub(crate) interface: String,
    /// How long one attempt of one request may take.
    pub(crate) timeout: HumanDuration,
}

/// Whom our consumers in Placement belong to, and how `unprovision guard` guards.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Guard {
    /// Their project.
    pub(crate) project_id: String,
    /// Their user.
    pub(crate) user_id: String,
    /// The strategy beside Nova; empty: as everywhere.
    pub(crate) strategy: String,
    /// How often the nodes that are deleting or cleaning are looked at.
    pub(crate) look: HumanDuration,
    /// How often all nodes are looked at, and all that Placement offers.
    pub(crate) sweep: HumanDuration,
    /// The share of a resource class that may be held.
    pub(crate) max_held_share: f64,
    /// So many of a class may always be held.
    pub(crate) max_held_floor: usize,
    /// How many nodes may be released right after the start.
    pub(crate) max_releases_at_start: usize,
    /// The share of the nodes that a sweep must still show.
    pub(crate) min_nodes_share: f64,
    /// While this file exists, the guard writes nothing.
    pub(crate) pause_file: String,
}

/// What is logged, and how.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Log {
    /// `text` or `json`.
    pub(crate) format: LogFormat,
    /// A level, or directives like those of `RUST_LOG`.
    pub(crate) level: String,
}

/// How lines on standard error look.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub(crate) enum LogFormat {
    /// For people.
    Text,
    /// For machines.
    Json,
}

impl LogFormat {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Json => "json",
        }
    }
}

impl Default for Config {
    fn default() -> Self {
        let default_strategy = strategy::ALL.first().map_or("", |strategy| strategy.name());
        Self {
            os_cloud: String::new(),
            strategy: default_strategy.to_owned(),
            tag: DEFAULT_TAG.to_owned(),
            journal: Place::default(),
            deadline: HumanDuration::from_secs(72 * 3600),
            poll: HumanDuration::from_secs(1),
            concurrency: NonZeroUsize::MIN.saturating_add(15),
            max_tear_downs: 0,
            release_nova_reservations: true,
            ironic: Service::default(),
            placement: Service::default(),
            nova: Nova::default(),
            guard: Guard {
                project_id: GUARD_PROJECT.to_owned(),
                user_id: GUARD_USER.to_owned(),
                strategy: String::new(),
                look: HumanDuration::from_millis(500),
                sweep: HumanDuration::from_secs(60),
                max_held_share: 0.8,
                max_held_floor: 10,
                max_releases_at_start: 100,
                min_nodes_share: 0.5,
                pause_file: String::new(),
            },
            notifications: Notifications::default(),
            api: Api::default(),
            log: Log {
                format: LogFormat::Text,
                level: "warn".to_owned(),
            },
            scope: Vec::new(),
        }
    }
}

impl Default for Service {
    fn default() -> Self {
        Self {
            cloud: String::new(),
            endpoint: String::new(),
            region: String::new(),
            interface: String::new(),
            timeout: HumanDuration::from_secs(60),
        }
    }
}

/// A configuration that cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ConfigError {
    /// The file that was asked for cannot be read.
    #[error("the configuration file {file} cannot be read: {problem}")]
    File {
        /// The file.
        file: String,
        /// What is wrong.
        problem: String,
    },
    /// A key that does not exist.
    #[error("unknown key `{key}` in {from}{}; the keys are: {known}", did_you_mean(nearest.as_deref()))]
    UnknownKey {
        /// The key.
        key: String,
        /// The file, variable or flag.
        from: String,
        /// The nearest one that exists.
        nearest: Option<String>,
        /// All that exist.
        known: String,
    },
    /// A value that cannot be used.
    #[error("`{key}` in {from}: {problem}")]
    Invalid {
        /// The key.
        key: String,
        /// The file, variable or flag.
        from: String,
        /// What is wrong, and what would be right.
        problem: String,
    },
}

/// A text that is set.
pub(crate) fn set(text: &str) -> Option<&str> {
    Some(text).filter(|text| !text.is_empty())
}

#[cfg(test)]
mod chance;
#[cfg(test)]
mod tests;
