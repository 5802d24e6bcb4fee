//! `[[scope]]`: which nodes the guard is about, and how it treats them.

use std::fmt;

use serde::de::{self, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use unprovision::scope::{self, Care, ScopeError, Scopes, Selector};

use super::{Config, set};

/// The strategy of a scope that is only looked at.
const AUDIT_ONLY: &str = "audit-only";

/// Nodes that are treated alike. The first scope that fits a node counts; nodes outside of all are left alone.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Scope {
    /// What it is called in messages.
    pub(crate) name: String,
    /// Conductor groups.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) conductor_group: Option<Texts>,
    /// Shards.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) shard: Option<Texts>,
    /// Resource classes, in Ironic's spelling.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) resource_class: Option<Texts>,
    /// Owners.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) owner: Option<Texts>,
    /// Globs of names.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) names: Option<Texts>,
    /// The strategy, or `audit-only`; empty: that of the guard.
    pub(crate) strategy: String,
    /// Whether the reservation is lifted that Nova leaves; not set: as everywhere.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) release_nova_reservations: Option<bool>,
    /// The share of a resource class of this scope that may be held; not set: that of the guard.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) max_held_share: Option<f64>,
    /// So many of a class of this scope may always be held; not set: that of the guard.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) max_held_floor: Option<usize>,
}

/// One text, or several of which one is enough.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(transparent)]
pub(crate) struct Texts(Vec<String>);

impl Scope {
    /// All its keys.
    pub(super) const KEYS: [&str; 10] = [
        "name",
        "conductor_group",
        "shard",
        "resource_class",
        "owner",
        "names",
        "strategy",
        "release_nova_reservations",
        "max_held_share",
        "max_held_floor",
    ];

    /// What one of its keys takes.
    pub(super) fn takes(key: &str) -> &'static str {
        match key {
            "name" | "strategy" => "a text in quotes",
            "release_nova_reservations" => "true or false",
            "max_held_share" => "a number from 0 to 1",
            "max_held_floor" => "a whole number, 0 or more",
            _ => "a text in quotes, or a list of such",
        }
    }

    /// The scope as the guard takes it; `config` has what it does not say itself.
    fn read(&self, config: &Config) -> Result<scope::Scope, String> {
        let texts = |texts: &Option<Texts>| texts.as_ref().map(|texts| texts.0.clone());
        let nodes = Selector {
            conductor_groups: texts(&self.conductor_group),
            shards: texts(&self.shard),
            resource_classes: texts(&self.resource_class),
            owners: texts(&self.owner),
            names: texts(&self.names),
        };
        let own = [
            self.release_nova_reservations.is_some(),
            self.max_held_share.is_some(),
            self.max_held_floor.is_some(),
        ];
        let care = match self.strategy.as_str() {
            AUDIT_ONLY if own.contains(&true) => {
                return Err("it is audit-only, so nothing is written, and limits mean nothing".to_owned());
            }
            AUDIT_ONLY => None,
            own => {
                let strategy = set(own).unwrap_or(config.guards_strategy());
                super::check::strategy(strategy)?;
                let share = self.max_held_share.unwrap_or(config.guard.max_held_share);
                super::check::share(share)?;
                Some(Care {
                    strategy: strategy.to_owned(),
                    release_nova_reservations: self
                        .release_nova_reservations
                        .unwrap_or(config.release_nova_reservations),
                    max_held_share: share,
                    max_held_floor: self.max_held_floor.unwrap_or(config.guard.max_held_floor),
                })
            }
        };
        let name = self.name.clone();
        Ok(scope::Scope { name, nodes, care })
    }
}

impl Config {
    /// The strategy of the guard, where no scope says another.
    pub(crate) fn guards_strategy(&self) -> &str {
        set(&self.guard.strategy).unwrap_or(&self.strategy)
    }

    /// All scopes, checked.
    pub(crate) fn scopes(&self) -> Result<Scopes, ScopeError> {
        let scopes = self.scope.iter().map(|scope| {
            scope.read(self).map_err(|problem| ScopeError {
                scope: scope.name.clone(),
                problem,
            })
        });
        Scopes::new(scopes.collect::<Result<_, _>>()?)
    }
}

impl<'de> Deserialize<'de> for Texts {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(OneOrMore)
    }
}

struct OneOrMore;

impl<'de> Visitor<'de> for OneOrMore {
    type Value = Texts;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a text, or a list of texts")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Texts, E> {
        Ok(Texts(vec![text.to_owned()]))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Texts, A::Error> {
        let mut texts = Vec::new();
        while let Some(text) = list.next_element()? {
            texts.push(text);
        }
        Ok(Texts(texts))
    }
}

#[cfg(test)]
mod tests;
