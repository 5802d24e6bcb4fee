//! Allocation candidates: who could be given what is asked for.

use serde_json::{Map, Value, json};

use super::super::call::Call;
use super::super::world::World;
use super::{Answer, Provider, Refusal, query, shown};

impl World {
    pub(super) fn candidates(&self, call: &Call<'_>, minor: u16) -> Answer {
        if minor < 10 {
            return Err(Refusal::not_found(" "));
        }
        let query = query::Query::parse(self, call, minor, query::Of::Candidates)?;
        if query.resources.is_empty() {
            return Err(Refusal::bad(
                "Invalid query string parameters: 'resources' is a required property",
            ));
        }
        let fitting = self.sorted_providers().filter(|provider| query.fits(provider));
        let found: Vec<&Provider> = fitting.take(query.limit.unwrap_or(usize::MAX)).collect();
        let requests: Vec<Value> = found
            .iter()
            .map(|provider| request(provider, &query.resources, minor))
            .collect();
        let summaries: Map<String, Value> = found
            .iter()
            .map(|provider| {
                (
                    provider.uuid.to_string(),
                    summary(provider, &query.resources, minor),
                )
            })
            .collect();
        let body = json!({"allocation_requests": requests, "provider_summaries": summaries});
        Ok(shown(call, minor, &body))
    }
}

fn request(provider: &Provider, resources: &[(String, u64)], minor: u16) -> Value {
    let resources: Map<String, Value> = resources
        .iter()
        .map(|(c, amount)| (c.clone(), json!(amount)))
        .collect();
    let uuid = provider.uuid.to_string();
    if minor < 12 {
        return json!({"allocations": [{"resource_provider": {"uuid": uuid}, "resources": resources}]});
    }
    let mut body = json!({"allocations": {uuid.clone(): {"resources": resources}}});
    if minor >= 34 {
        body["mappings"] = json!({"": [uuid]});
    }
    body
}

fn summary(provider: &Provider, asked: &[(String, u64)], minor: u16) -> Value {
    let wanted = |class: &String| minor >= 27 || asked.iter().any(|(name, _)| name == class);
    let resources: Map<String, Value> = provider
        .inventories
        .iter()
        .filter(|(class, _)| wanted(class))
        .map(|(class, inventory)| {
            (
                class.clone(),
                json!({"capacity": inventory.capacity(), "used": provider.used(class)}),
            )
        })
        .collect();
    let mut body = json!({"resources": resources});
    if minor >= 17 {
        body["traits"] = json!(provider.traits);
    }
    if minor >= 29 {
        body["parent_provider_uuid"] = Value::Null;
        body["root_provider_uuid"] = json!(provider.uuid);
    }
    body
}
