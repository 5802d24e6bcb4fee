//! Reading allocations and usages.

use jiff::Timestamp;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use uuid::Uuid;

use super::super::call::{Call, http_date, set_header};
use super::super::log::Change;
use super::super::world::World;
use super::{Answer, Refusal, query, shown};

impl World {
    pub(super) fn show_consumer(&self, call: &Call<'_>, minor: u16, consumer: &str) -> Answer {
        let uuid = query::consumer(consumer)?;
        let mut allocations = Map::new();
        let held = self
            .placement
            .consumers
            .get(&uuid)
            .into_iter()
            .flat_map(|entry| &entry.providers);
        for provider in held.filter_map(|id| self.provider(*id)) {
            if let Some(resources) = provider.holders.get(&uuid) {
                let entry = json!({"generation": provider.generation, "resources": resources});
                allocations.insert(provider.uuid.to_string(), entry);
            }
        }
        let known = self
            .placement
            .consumers
            .get(&uuid)
            .filter(|_| !allocations.is_empty());
        let mut body = json!({"allocations": allocations});
        if let Some(entry) = known.filter(|_| minor >= 12) {
            body["project_id"] = json!(entry.project);
            body["user_id"] = json!(entry.user);
            if minor >= 28 {
                body["consumer_generation"] = json!(entry.generation);
            }
            if minor >= 38 {
                body["consumer_type"] = json!(entry.kind.as_deref().unwrap_or("unknown"));
            }
        }
        Ok(shown(call, minor, &body))
    }

    pub(super) fn show_holders(&self, call: &Call<'_>, minor: u16, provider: Uuid) -> Answer {
        let entry = self.have_provider(provider)?;
        let mut allocations = Map::new();
        for (consumer, resources) in &entry.holders {
            let mut held = json!({"resources": resources});
            if minor >= 28 {
                let generation = self
                    .placement
                    .consumers
                    .get(consumer)
                    .map(|entry| entry.generation);
                held["consumer_generation"] = json!(generation);
            }
            allocations.insert(consumer.to_string(), held);
        }
        let body = json!({"allocations": allocations, "resource_provider_generation": entry.generation});
        let mut response = shown(call, minor, &body);
        // Allocations are only ever made and deleted, so this is when the newest of them was made.
        if let Some(made) = self.newest_allocation(provider).filter(|_| minor >= 15) {
            set_header(&mut response, "last-modified", &http_date(made));
        }
        Ok(response)
    }

    fn newest_allocation(&self, provider: Uuid) -> Option<Timestamp> {
        let holders = &self.provider(provider)?.holders;
        let made = |change: &Change| {
            matches!(change, Change::Allocation { provider: of, consumer, after, .. }
            if *of == provider && *after > 0 && holders.contains_key(consumer))
        };
        if holders.is_empty() {
            return None;
        }
        let mut newest = self.log.newest().filter(|entry| made(&entry.change));
        newest.next().map(|entry| entry.at)
    }

    pub(super) fn provider_usages(&self, call: &Call<'_>, minor: u16, provider: Uuid) -> Answer {
        let entry = self.have_provider(provider)?;
        let usages: BTreeMap<&String, u64> = entry
            .inventories
            .keys()
            .map(|class| (class, entry.used(class)))
            .collect();
        let body = json!({"resource_provider_generation": entry.generation, "usages": usages});
        Ok(shown(call, minor, &body))
    }

    pub(super) fn project_usages(&self, call: &Call<'_>, minor: u16) -> Answer {
        if minor < 9 {
            return Err(Refusal::not_found(" "));
        }
        let project = call.param("project_id").ok_or_else(|| {
            Refusal::bad("Invalid query string parameters: 'project_id' is a required property")
        })?;
        let (user, kind) = (call.param("user_id"), call.param("consumer_type"));
        let mut groups: BTreeMap<String, BTreeMap<String, u64>> = BTreeMap::new();
        for (uuid, consumer) in &self.placement.consumers {
            let own = consumer.kind.as_deref().unwrap_or("unknown");
            let fits = consumer.project == project
                && user.is_none_or(|user| consumer.user == user)
                && kind.is_none_or(|kind| kind == "all" || kind == own);
            if !fits || consumer.providers.is_empty() {
                continue;
            }
            let name = if minor < 38 || kind == Some("all") {
                "all"
            } else {
                own
            };
            let group = groups.entry(name.to_owned()).or_default();
            if minor >= 38 {
                *group.entry("consumer_count".into()).or_default() += 1;
            }
            for provider in consumer.providers.iter().filter_map(|id| self.provider(*id)) {
                for (class, amount) in provider.holders.get(uuid).into_iter().flatten() {
                    *group.entry(class.clone()).or_default() += amount;
                }
            }
        }
        let body = if minor >= 38 {
            json!({"usages": groups})
        } else {
            let all = groups
                .remove("all")
                .map_or(Value::Object(Map::new()), |all| json!(all));
            json!({"usages": all})
        };
        Ok(shown(call, minor, &body))
    }
}
