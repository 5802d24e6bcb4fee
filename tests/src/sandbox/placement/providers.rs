//! Providers: create, show, list, rename, delete, aggregates.

use bytes::Bytes;
use http::{Response, StatusCode};
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;
use uuid::Uuid;

use super::super::call::{self, Call, set_header};
use super::super::world::World;
use super::{Answer, CONCURRENT, Provider, Refusal, fresh, object, query, shown};

impl World {
    pub(super) fn create_provider(&mut self, call: &Call<'_>, minor: u16) -> Answer {
        let body = object(call)?;
        let name = body.get("name").and_then(Value::as_str);
        let name = name
            .ok_or_else(|| Refusal::json("'name' is a required property"))?
            .to_owned();
        let uuid = match body.get("uuid").and_then(Value::as_str) {
            None => self.new_uuid("provider"),
            Some(text) => {
                Uuid::parse_str(text).map_err(|_| Refusal::json(format!("'{text}' is not a 'uuid'")))?
            }
        };
        let duplicate = |what: &str, value: &str| {
            let text = format!("Conflicting resource provider {what}: {value} already exists.");
            Refusal::conflict(text, "placement.duplicate_name")
        };
        if self.placement.providers.contains_key(&uuid) {
            return Err(duplicate("uuid", &uuid.to_string()));
        }
        if self.placement.providers.values().any(|other| other.name == name) {
            return Err(duplicate("name", &name));
        }
        let provider = Provider::new(self.next_provider_id(), uuid, name);
        let shown = view(&provider, minor);
        self.add_provider(provider);
        let mut response = if minor >= 20 {
            call::json(StatusCode::OK, &shown)
        } else {
            call::empty(StatusCode::CREATED)
        };
        fresh(call, minor, &mut response);
        Ok(self.located(response, uuid))
    }

    fn located(&self, mut response: Response<Bytes>, uuid: Uuid) -> Response<Bytes> {
        let location = format!("{}/resource_providers/{uuid}", self.config.placement.base_url);
        set_header(&mut response, "location", &location);
        response
    }

    pub(super) fn show_provider(&self, call: &Call<'_>, minor: u16, provider: Uuid) -> Answer {
        Ok(shown(call, minor, &view(self.have_provider(provider)?, minor)))
    }

    pub(super) fn rename_provider(&mut self, call: &Call<'_>, minor: u16, provider: Uuid) -> Answer {
        let body = object(call)?;
        let name = body.get("name").and_then(Value::as_str);
        let name = name
            .ok_or_else(|| Refusal::json("'name' is a required property"))?
            .to_owned();
        if self
            .placement
            .providers
            .values()
            .any(|other| other.uuid != provider && other.name == name)
        {
            let text = format!("Conflicting resource provider {name} already exists.");
            return Err(Refusal::conflict(text, "placement.duplicate_name"));
        }
        self.edit_provider(provider, |entry| entry.name = name);
        Ok(shown(call, minor, &view(self.have_provider(provider)?, minor)))
    }

    pub(super) fn delete_provider(&mut self, provider: Uuid) -> Answer {
        if !self.have_provider(provider)?.holders.is_empty() {
            let text =
                format!("Unable to delete resource provider {provider}: Resource provider has allocations.");
            return Err(Refusal::conflict(text, "placement.resource_provider.inuse"));
        }
        self.remove_provider(provider);
        Ok(call::empty(StatusCode::NO_CONTENT))
    }

    pub(super) fn list_providers(&self, call: &Call<'_>, minor: u16) -> Answer {
        let query = query::Query::parse(self, call, minor, query::Of::Providers)?;
        let found: Vec<Value> = self
            .sorted_providers()
            .filter(|entry| query.fits(entry))
            .map(|entry| view(entry, minor))
            .collect();
        Ok(shown(call, minor, &json!({"resource_providers": found})))
    }

    /// All providers in the order of their creation.
    pub(crate) fn sorted_providers(&self) -> impl Iterator<Item = &Provider> {
        let mut all: Vec<&Provider> = self.placement.providers.values().map(AsRef::as_ref).collect();
        all.sort_by_key(|provider| provider.id);
        all.into_iter()
    }

    pub(super) fn provider_aggregates(
        &mut self,
        call: &Call<'_>,
        method: &str,
        minor: u16,
        provider: Uuid,
    ) -> Answer {
        match method {
            "GET" => {}
            "PUT" => {
                let body = call.json().map_err(Refusal::json)?;
                let list = if minor >= 19 { &body["aggregates"] } else { &body };
                let aggregates = uuids(list)?;
                let generation = self.have_provider(provider)?.generation;
                if minor >= 19 && body["resource_provider_generation"].as_u64() != Some(generation) {
                    let text = "Resource provider's generation already changed. Please update the generation and \
                                try again.";
                    return Err(Refusal::conflict(text, CONCURRENT));
                }
                self.edit_provider(provider, |entry| {
                    entry.aggregates = aggregates;
                    entry.generation += u64::from(minor >= 19);
                });
            }
            _ => return Err(Refusal::new(StatusCode::METHOD_NOT_ALLOWED, " ")),
        }
        let entry = self.have_provider(provider)?;
        let mut body = json!({"aggregates": entry.aggregates});
        if minor >= 19 {
            body["resource_provider_generation"] = json!(entry.generation);
        }
        Ok(shown(call, minor, &body))
    }
}

fn uuids(list: &Value) -> Result<BTreeSet<Uuid>, Refusal> {
    let wrong = || Refusal::json("expected a list of UUIDs");
    let list = list.as_array().ok_or_else(wrong)?;
    list.iter()
        .map(|item| {
            item.as_str()
                .and_then(|text| Uuid::parse_str(text).ok())
                .ok_or_else(wrong)
        })
        .collect()
}

/// A provider as a version shows it. All providers here are roots.
fn view(provider: &Provider, minor: u16) -> Value {
    let path = format!("/resource_providers/{}", provider.uuid);
    let mut links = vec![json!({"rel": "self", "href": path})];
    let rels = [
        ("inventories", 0),
        ("usages", 0),
        ("aggregates", 1),
        ("traits", 6),
        ("allocations", 11),
    ];
    for (rel, since) in rels {
        if since <= minor {
            links.push(json!({"rel": rel, "href": format!("{path}/{rel}")}));
        }
    }
    let mut body = Map::new();
    body.insert("uuid".into(), json!(provider.uuid));
    body.insert("name".into(), json!(provider.name));
    body.insert("generation".into(), json!(provider.generation));
    body.insert("links".into(), json!(links));
    if minor >= 14 {
        body.insert("parent_provider_uuid".into(), Value::Null);
        body.insert("root_provider_uuid".into(), json!(provider.uuid));
    }
    Value::Object(body)
}
