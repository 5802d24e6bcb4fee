//! Writing allocations: one consumer or several at once, all or nothing.

use http::StatusCode;
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};
use uuid::Uuid;

use super::super::call::{self, Call};
use super::super::config::CapacityRule;
use super::super::world::World;
use super::{Answer, CONCURRENT, Consumer, Refusal, UNDEFINED, object, query};

/// What one consumer shall hold from now on, by provider and class.
type Held = BTreeMap<Uuid, BTreeMap<String, u64>>;

/// One consumer's part of a write.
#[derive(Debug)]
struct Part {
    consumer: Uuid,
    held: Held,
    generation: Option<Option<u64>>,
    project: Option<String>,
    user: Option<String>,
    kind: Option<String>,
}

impl World {
    pub(super) fn put_allocations(&mut self, call: &Call<'_>, minor: u16, consumer: &str) -> Answer {
        let consumer = query::consumer(consumer)?;
        let body = object(call)?;
        let part = parse(consumer, &body, minor)?;
        if part.held.is_empty() && minor < 28 {
            return Err(Refusal::json("{} does not have enough properties"));
        }
        self.write(&[part], minor)?;
        Ok(call::empty(StatusCode::NO_CONTENT))
    }

    pub(super) fn post_allocations(&mut self, call: &Call<'_>, minor: u16) -> Answer {
        if minor < 13 {
            return Err(Refusal::not_found(" "));
        }
        let body = object(call)?;
        if body.is_empty() {
            return Err(Refusal::json("{} does not have enough properties"));
        }
        let mut parts = Vec::new();
        for (consumer, value) in &body {
            let consumer = Uuid::parse_str(consumer).map_err(|_| unexpected(consumer))?;
            let Value::Object(value) = value else {
                return Err(Refusal::json("expected an object"));
            };
            parts.push(parse(consumer, value, minor)?);
        }
        self.write(&parts, minor)?;
        Ok(call::empty(StatusCode::NO_CONTENT))
    }

    pub(super) fn delete_allocations(&mut self, consumer: &str) -> Answer {
        let uuid = query::consumer(consumer)?;
        let held = self
            .placement
            .consumers
            .get(&uuid)
            .map(|entry| entry.providers.clone())
            .unwrap_or_default();
        if held.is_empty() {
            return Err(Refusal::not_found(format!(
                "No allocations for consumer '{uuid}'"
            )));
        }
        // The one write that moves no generation.
        for provider in held {
            self.edit_provider(provider, |entry| {
                entry.holders.remove(&uuid);
            });
        }
        self.placement.consumers.remove(&uuid);
        Ok(call::empty(StatusCode::NO_CONTENT))
    }

    /// Checks all parts, then applies all.
    fn write(&mut self, parts: &[Part], minor: u16) -> Result<(), Refusal> {
        for part in parts {
            self.check_consumer(part, minor)?;
        }
        if let Err(refusal) = self.check_providers_exist(parts) {
            // The real service forgets here to delete the consumers that it has just created.
            for part in parts {
                self.leave_empty_consumer(part.consumer);
            }
            return Err(refusal);
        }
        let providers = self.check_providers(parts)?;
        self.check_capacity(parts)?;
        let mine: BTreeSet<Uuid> = parts.iter().map(|part| part.consumer).collect();
        // Providers that a part no longer names lose its share, but only named or emptied ones move on.
        let mut touched: BTreeSet<Uuid> = providers.clone();
        for part in parts {
            let before = self.placement.consumers.get(&part.consumer);
            touched.extend(before.into_iter().flat_map(|entry| &entry.providers));
        }
        for provider in touched {
            self.edit_provider(provider, |entry| {
                entry.holders.retain(|consumer, _| !mine.contains(consumer));
                for part in parts {
                    if let Some(resources) = part.held.get(&provider) {
                        entry.holders.insert(part.consumer, resources.clone());
                    }
                }
                entry.generation += u64::from(providers.contains(&provider));
            });
        }
        for part in parts {
            self.settle_consumer(part);
        }
        Ok(())
    }

    /// The consumer's generation must be the one the writer saw.
    fn check_consumer(&self, part: &Part, minor: u16) -> Result<(), Refusal> {
        let Some(given) = part.generation.filter(|_| minor >= 28) else {
            return Ok(());
        };
        let known = self
            .placement
            .consumers
            .get(&part.consumer)
            .map(|entry| entry.generation);
        if known == given {
            return Ok(());
        }
        let word = |value: Option<u64>| value.map_or("None".to_owned(), |value| value.to_string());
        let expected = known.map_or("null".to_owned(), |known| known.to_string());
        let text = format!(
            "consumer generation conflict - expected {expected} but got {}",
            word(given)
        );
        Err(Refusal::conflict(text, CONCURRENT))
    }

    fn check_providers_exist(&self, parts: &[Part]) -> Result<(), Refusal> {
        let mut named = parts.iter().flat_map(|part| part.held.keys());
        match named.find(|provider| self.provider(**provider).is_none()) {
            None => Ok(()),
            Some(provider) => {
                let text = format!("Allocation for resource provider '{provider}' that does not exist.");
                Err(Refusal::bad(text))
            }
        }
    }

    /// The providers that the write concerns: those named, and all of a consumer that is emptied.
    fn check_providers(&self, parts: &[Part]) -> Result<BTreeSet<Uuid>, Refusal> {
        let mut providers = BTreeSet::new();
        for part in parts {
            for (provider, resources) in &part.held {
                let entry = self.have_provider(*provider)?;
                for class in resources.keys() {
                    if !self.placement.knows_class(class) {
                        return Err(Refusal::bad(format!(
                            "Unable to allocate inventory No such resource class {class}."
                        )));
                    }
                    if !entry.inventories.contains_key(class) {
                        let text = format!(
                            "Unable to allocate inventory: Inventory for '{class}' on resource provider \
                             '{provider}' invalid."
                        );
                        return Err(Refusal::conflict(text, UNDEFINED));
                    }
                }
                providers.insert(*provider);
            }
            if part.held.is_empty()
                && let Some(before) = self.placement.consumers.get(&part.consumer)
            {
                providers.extend(&before.providers);
            }
        }
        Ok(providers)
    }

    /// What is claimed must fit; how strictly on a provider already over capacity, the rule says.
    fn check_capacity(&self, parts: &[Part]) -> Result<(), Refusal> {
        let mine: BTreeSet<Uuid> = parts.iter().map(|part| part.consumer).collect();
        for (provider, class, amount) in parts.iter().flat_map(claims) {
            let Some(entry) = self.provider(provider) else {
                continue;
            };
            let Some(inventory) = entry.inventories.get(class) else {
                continue;
            };
            let fits = (inventory.min_unit..=inventory.max_unit).contains(&amount)
                && amount.is_multiple_of(inventory.step_size.max(1));
            if !fits {
                return Err(cannot(
                    provider,
                    class,
                    "The requested amount would violate inventory constraints.",
                ));
            }
            let others: u64 = entry
                .holders
                .iter()
                .filter(|(consumer, _)| !mine.contains(consumer))
                .filter_map(|(_, held)| held.get(class))
                .sum();
            let wanted: u64 = parts
                .iter()
                .flat_map(claims)
                .filter(|(p, c, _)| *p == provider && *c == class)
                .map(|c| c.2)
                .sum();
            let grows = others + wanted > entry.used(class);
            let refused = match self.config.placement.capacity_rule {
                CapacityRule::GrowthOnly => grows,
                CapacityRule::Always => true,
            };
            if others + wanted > inventory.capacity() && refused {
                return Err(cannot(
                    provider,
                    class,
                    "The requested amount would exceed the capacity.",
                ));
            }
        }
        Ok(())
    }

    fn settle_consumer(&mut self, part: &Part) {
        let had = self
            .placement
            .consumers
            .get(&part.consumer)
            .is_some_and(|entry| !entry.providers.is_empty());
        if part.held.is_empty() && had {
            self.placement.consumers.remove(&part.consumer);
            return;
        }
        let unknown = || "00000000-0000-0000-0000-000000000000".to_owned();
        let entry = self
            .placement
            .consumers
            .entry(part.consumer)
            .or_insert_with(|| Consumer {
                generation: 0,
                project: unknown(),
                user: unknown(),
                kind: None,
                providers: BTreeSet::new(),
            });
        if let (Some(project), Some(user)) = (&part.project, &part.user) {
            entry.project.clone_from(project);
            entry.user.clone_from(user);
        }
        if part.kind.is_some() {
            entry.kind.clone_from(&part.kind);
        }
        // A consumer that held nothing and gets nothing stays behind, empty, as in the real service.
        entry.generation += u64::from(!part.held.is_empty());
        entry.providers = part.held.keys().copied().collect();
    }
}

fn claims(part: &Part) -> impl Iterator<Item = (Uuid, &str, u64)> {
    part.held.iter().flat_map(|(provider, resources)| {
        resources
            .iter()
            .map(|(class, amount)| (*provider, class.as_str(), *amount))
    })
}

fn cannot(provider: Uuid, class: &str, why: &str) -> Refusal {
    let text = format!(
        "Unable to allocate inventory: Unable to create allocation for '{class}' on resource provider \
         '{provider}'. {why}"
    );
    Refusal::conflict(text, UNDEFINED)
}

fn unexpected(key: &str) -> Refusal {
    Refusal::json(format!(
        "Additional properties are not allowed ('{key}' was unexpected)"
    ))
}

/// One consumer's part from JSON, by the rules of the version.
fn parse(consumer: Uuid, body: &Map<String, Value>, minor: u16) -> Result<Part, Refusal> {
    let fields = [
        ("allocations", 0, 0),
        ("project_id", 8, 8),
        ("user_id", 8, 8),
        ("consumer_generation", 28, 28),
        ("mappings", 34, u16::MAX),
        ("consumer_type", 38, 38),
    ];
    for key in body.keys() {
        if !fields
            .iter()
            .any(|(name, since, _)| name == key && *since <= minor)
        {
            return Err(unexpected(key));
        }
    }
    for (name, _, required) in fields {
        if required <= minor && !body.contains_key(name) {
            return Err(Refusal::json(format!("'{name}' is a required property")));
        }
    }
    let text = |key: &str| match body.get(key) {
        None => Ok(None),
        Some(Value::String(text)) if !text.is_empty() && text.len() <= 255 => Ok(Some(text.clone())),
        Some(other) => Err(Refusal::json(format!("{other} is not valid for '{key}'"))),
    };
    let kind = text("consumer_type")?;
    if let Some(kind) = &kind
        && !kind
            .chars()
            .all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_')
    {
        return Err(Refusal::json(format!("'{kind}' does not match '^[A-Z0-9_]+$'")));
    }
    let generation = match body.get("consumer_generation") {
        None => None,
        Some(Value::Null) => Some(None),
        Some(value) => match value.as_u64() {
            Some(number) => Some(Some(number)),
            None => return Err(Refusal::json(format!("{value} is not of type 'integer', 'null'"))),
        },
    };
    let held = held(body.get("allocations").unwrap_or(&Value::Null), minor)?;
    Ok(Part {
        consumer,
        held,
        generation,
        project: text("project_id")?,
        user: text("user_id")?,
        kind,
    })
}

/// The allocations, as an object from 1.12 on, as a list before.
fn held(value: &Value, minor: u16) -> Result<Held, Refusal> {
    let wrong = |what: &Value| Refusal::json(format!("{what} is not valid under 'allocations'"));
    let mut held = Held::new();
    let entries: Vec<(&str, &Value)> = match value {
        Value::Object(object) if minor >= 12 => object
            .iter()
            .map(|(uuid, entry)| (uuid.as_str(), entry))
            .collect(),
        Value::Array(list) if minor < 12 => list
            .iter()
            .map(|entry| (entry["resource_provider"]["uuid"].as_str().unwrap_or(""), entry))
            .collect(),
        other => return Err(wrong(other)),
    };
    for (provider, entry) in entries {
        let uuid = Uuid::parse_str(provider).map_err(|_| unexpected(provider))?;
        let resources = entry["resources"]
            .as_object()
            .filter(|resources| !resources.is_empty());
        let resources = resources.ok_or_else(|| wrong(entry))?;
        let mut amounts = BTreeMap::new();
        for (class, amount) in resources {
            let amount = amount
                .as_u64()
                .filter(|amount| *amount >= 1)
                .ok_or_else(|| wrong(amount))?;
            amounts.insert(class.clone(), amount);
        }
        held.insert(uuid, amounts);
    }
    Ok(held)
}
