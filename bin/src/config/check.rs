//! What the types alone do not tell: everything that is wrong with a value is told before anything is touched.

use std::path::Path;
use std::time::Duration;

use unprovision::core::tag_name;
use unprovision::strategy;
use unprovision_session::{Service, did_you_mean, nearest};
use uuid::Uuid;

use super::{Config, HumanDuration, set};
use crate::logging;
use crate::wire::{IN_MEMORY, SERVERS};

/// A key, and what is wrong with its value.
pub(super) type Wrong = (&'static str, String);

impl Config {
    /// The first value that cannot be used.
    pub(super) fn check(&self) -> Result<(), Wrong> {
        strategy(&self.strategy).map_err(|problem| ("strategy", problem))?;
        tag_name(&self.tag).map_err(|why| ("tag", why.to_string()))?;
        journal(&self.journal).map_err(|problem| ("journal", problem))?;
        patience(self.deadline).map_err(|problem| ("deadline", problem))?;
        at_least(self.poll, Duration::from_millis(10)).map_err(|problem| ("poll", problem))?;
        let second = Duration::from_secs(1);
        at_least(self.ironic.timeout, second).map_err(|problem| ("ironic.timeout", problem))?;
        at_least(self.placement.timeout, second).map_err(|problem| ("placement.timeout", problem))?;
        endpoint(Service::Ironic, &self.ironic.endpoint).map_err(|problem| ("ironic.endpoint", problem))?;
        endpoint(Service::Placement, &self.placement.endpoint)
            .map_err(|problem| ("placement.endpoint", problem))?;
        interface(&self.ironic.interface).map_err(|problem| ("ironic.interface", problem))?;
        interface(&self.placement.interface).map_err(|problem| ("placement.interface", problem))?;
        self.nova.check()?;
        project(&self.guard.project_id).map_err(|problem| ("guard.project_id", problem))?;
        user(&self.guard.user_id).map_err(|problem| ("guard.user_id", problem))?;
        share(self.guard.max_held_share).map_err(|problem| ("guard.max_held_share", problem))?;
        share(self.guard.min_nodes_share).map_err(|problem| ("guard.min_nodes_share", problem))?;
        self.scopes().map_err(|problem| ("scope", problem.to_string()))?;
        self.notifications.check()?;
        self.api.check()?;
        logging::filter(&self.log.level).map_err(|problem| ("log.level", problem))?;
        Ok(())
    }
}

/// How long a node may be waited for: less than a look takes is a slip.
pub(crate) fn patience(wait: HumanDuration) -> Result<(), String> {
    at_least(wait, Duration::from_secs(1))
}

pub(super) fn at_least(duration: HumanDuration, least: Duration) -> Result<(), String> {
    match duration.get() < least {
        true => Err(format!(
            "`{duration}` is too short; it must be {least:?} at least"
        )),
        false => Ok(()),
    }
}

pub(super) fn strategy(name: &str) -> Result<(), String> {
    if strategy::by_name(name).is_some() {
        return Ok(());
    }
    let names = strategy::ALL
        .iter()
        .map(|strategy| strategy.name())
        .collect::<Vec<_>>();
    let guess = did_you_mean(nearest(name, names.iter().copied()));
    Err(format!(
        "there is no strategy `{name}`{guess}; there are: {}",
        names.join(", ")
    ))
}

/// Whether a file can be there, as far as that can be seen without making it.
fn journal(place: &str) -> Result<(), String> {
    const RIGHT: &str =
        "write the path of a file, postgres://USER:PASSWORD@HOST/DATABASE, mysql://..., or `memory:`";
    if place.is_empty() || place == IN_MEMORY || SERVERS.iter().any(|server| place.starts_with(server)) {
        return Ok(());
    }
    // Not repeated: such a text may hold a password. With one slash it is a slip, and no folder.
    let has_scheme = place.split('/').next().is_some_and(|first| first.ends_with(':'));
    if has_scheme || place.contains("://") || place.starts_with(IN_MEMORY) {
        return Err(format!("there is no such kind of journal; {RIGHT}"));
    }
    let path = Path::new(place);
    if path.is_dir() || place.ends_with('/') {
        return Err(format!("{place} is a folder; {RIGHT}"));
    }
    match path.ancestors().skip(1).find(|above| above.exists()) {
        Some(above) if !above.is_dir() => Err(format!(
            "{place} cannot be a file, since {} is not a folder; {RIGHT}",
            above.display()
        )),
        _ => Ok(()),
    }
}

pub(super) fn endpoint(service: Service, text: &str) -> Result<(), String> {
    match set(text).map(|text| service.base(text)) {
        Some(Err(problem)) => Err(format!("{problem}; write it like https://host:port/path")),
        _ => Ok(()),
    }
}

pub(super) fn interface(text: &str) -> Result<(), String> {
    match text {
        "" | "public" | "internal" | "admin" => Ok(()),
        _ => Err(format!("`{text}` is not one of public, internal, admin")),
    }
}

/// With another one a brake of the guard would hold always, or never.
pub(super) fn share(share: f64) -> Result<(), String> {
    match (0.0..=1.0).contains(&share) {
        true => Ok(()),
        false => Err(format!("`{share}` is no share; write a number from 0 to 1")),
    }
}

/// Keystone's identifiers are UUIDs, mostly without hyphens.
fn project(id: &str) -> Result<(), String> {
    match id.parse::<Uuid>() {
        Ok(_) => Ok(()),
        Err(_) => Err(format!("`{id}` is not a UUID, with or without hyphens")),
    }
}

/// A user of a directory has a longer identifier.
fn user(id: &str) -> Result<(), String> {
    match (1..=255).contains(&id.len()) {
        true => Ok(()),
        false => Err("Placement wants 1 to 255 characters".to_owned()),
    }
}
