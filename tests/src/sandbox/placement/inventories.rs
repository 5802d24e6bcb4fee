//! Inventories, guarded by the provider's generation.

use http::StatusCode;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use uuid::Uuid;

use super::super::call::{self, Call};
use super::super::world::World;
use super::{Answer, CONCURRENT, Inventory, Provider, Refusal, object, shown};

/// The most that a number in an inventory may be.
const MOST: u64 = 2_147_483_647;

impl World {
    pub(super) fn show_inventories(&self, call: &Call<'_>, minor: u16, provider: Uuid) -> Answer {
        Ok(shown(call, minor, &view(self.have_provider(provider)?)))
    }

    pub(super) fn show_inventory(&self, call: &Call<'_>, minor: u16, provider: Uuid, class: &str) -> Answer {
        let entry = self.have_provider(provider)?;
        let inventory = entry
            .inventories
            .get(class)
            .ok_or_else(|| Refusal::not_found(format!("No inventory of class {class} for {provider}")))?;
        Ok(shown(call, minor, &one(entry, inventory)))
    }

    pub(super) fn put_inventories(&mut self, call: &Call<'_>, minor: u16, provider: Uuid) -> Answer {
        let body = object(call)?;
        let generation = generation(&body)?;
        let Some(Value::Object(listed)) = body.get("inventories") else {
            return Err(Refusal::json("'inventories' is a required property"));
        };
        nothing_but(&body, &["resource_provider_generation", "inventories"])?;
        let parsed = listed.iter().map(|(class, value)| {
            let value = value
                .as_object()
                .ok_or_else(|| Refusal::json("an inventory is an object"))?;
            Ok((class.clone(), parse(value)?))
        });
        let inventories = parsed.collect::<Result<BTreeMap<_, _>, Refusal>>()?;
        let entry = self.have_provider(provider)?;
        if entry.generation != generation {
            return Err(Refusal::conflict(
                "resource provider generation conflict",
                CONCURRENT,
            ));
        }
        for (class, inventory) in &inventories {
            check_reserved(provider, class, inventory, minor)?;
        }
        for class in inventories.keys() {
            if !self.placement.knows_class(class) {
                return Err(Refusal::bad(format!(
                    "Unknown resource class in inventory for resource provider {provider}: No such resource \
                     class {class}."
                )));
            }
        }
        let dropped = |class: &&String| !inventories.contains_key(*class) && entry.used(class) > 0;
        if let Some(class) = entry.inventories.keys().find(dropped) {
            return Err(in_use(provider, class, "update conflict: "));
        }
        self.edit_provider(provider, |entry| {
            entry.inventories = inventories;
            entry.generation += 1;
        });
        Ok(shown(call, minor, &view(self.have_provider(provider)?)))
    }

    pub(super) fn put_inventory(
        &mut self,
        call: &Call<'_>,
        minor: u16,
        provider: Uuid,
        class: &str,
    ) -> Answer {
        let body = object(call)?;
        let generation = generation(&body)?;
        let inventory = parse(&body)?;
        let entry = self.have_provider(provider)?;
        if entry.generation != generation {
            return Err(Refusal::conflict(
                "resource provider generation conflict",
                CONCURRENT,
            ));
        }
        check_reserved(provider, class, &inventory, minor)?;
        if !entry.inventories.contains_key(class) {
            let text = format!("No inventory record with resource class {class} for provider {provider}");
            return Err(Refusal::bad(text));
        }
        self.edit_provider(provider, |entry| {
            entry.inventories.insert(class.to_owned(), inventory.clone());
            entry.generation += 1;
        });
        self.show_inventory(call, minor, provider, class)
    }

    pub(super) fn delete_inventories(&mut self, provider: Uuid) -> Answer {
        let entry = self.have_provider(provider)?;
        if let Some(class) = entry.inventories.keys().find(|class| entry.used(class) > 0) {
            return Err(in_use(provider, class, ""));
        }
        self.edit_provider(provider, |entry| {
            entry.inventories.clear();
            entry.generation += 1;
        });
        Ok(call::empty(StatusCode::NO_CONTENT))
    }

    pub(super) fn delete_inventory(&mut self, provider: Uuid, class: &str) -> Answer {
        let entry = self.have_provider(provider)?;
        if !entry.inventories.contains_key(class) {
            let text = format!("No inventory of class {class} found for delete: No such inventory");
            return Err(Refusal::not_found(text));
        }
        if entry.used(class) > 0 {
            // Unlike the routes for all classes, this one says that something moved.
            let text = format!("Unable to delete inventory of class {class}: ");
            return Err(Refusal {
                code: CONCURRENT,
                ..in_use(provider, class, &text)
            });
        }
        self.edit_provider(provider, |entry| {
            entry.inventories.remove(class);
            entry.generation += 1;
        });
        Ok(call::empty(StatusCode::NO_CONTENT))
    }
}

fn in_use(provider: Uuid, class: &str, prefix: &str) -> Refusal {
    let text = format!("{prefix}Inventory for '{class}' on resource provider '{provider}' in use.");
    Refusal::conflict(text, "placement.inventory.inuse")
}

fn generation(body: &Map<String, Value>) -> Result<u64, Refusal> {
    let generation = body.get("resource_provider_generation").and_then(Value::as_u64);
    generation.ok_or_else(|| Refusal::json("'resource_provider_generation' is a required property"))
}

fn nothing_but(body: &Map<String, Value>, known: &[&str]) -> Result<(), Refusal> {
    match body.keys().find(|key| !known.contains(&key.as_str())) {
        None => Ok(()),
        Some(key) => {
            let text = format!("Additional properties are not allowed ('{key}' was unexpected)");
            Err(Refusal::json(text))
        }
    }
}

/// An inventory from JSON, with the service's defaults and limits, looked at before any generation is.
fn parse(body: &Map<String, Value>) -> Result<Inventory, Refusal> {
    let number = |key: &str, default: u64| match body.get(key) {
        None => Ok(default),
        Some(value) => {
            let least = u64::from(key != "reserved");
            let number = value.as_u64().filter(|number| (least..=MOST).contains(number));
            number.ok_or_else(|| Refusal::json(format!("{value} is not valid for '{key}'")))
        }
    };
    nothing_but(
        body,
        &[
            "resource_provider_generation",
            "total",
            "reserved",
            "min_unit",
            "max_unit",
            "step_size",
            "allocation_ratio",
        ],
    )?;
    if !body.contains_key("total") {
        return Err(Refusal::json("'total' is a required property"));
    }
    let ratio = body.get("allocation_ratio").map_or(Some(1.0), Value::as_f64);
    let ratio = ratio.ok_or_else(|| Refusal::json("'allocation_ratio' is not of type 'number'"))?;
    Ok(Inventory {
        total: number("total", 1)?,
        reserved: number("reserved", 0)?,
        min_unit: number("min_unit", 1)?,
        max_unit: number("max_unit", MOST)?,
        step_size: number("step_size", 1)?,
        ratio_milli: (ratio.clamp(0.0, 1e9) * 1000.0).round() as u64,
    })
}

/// As much as there is may be reserved from 1.26 on, and less before.
fn check_reserved(provider: Uuid, class: &str, inventory: &Inventory, minor: u16) -> Result<(), Refusal> {
    let too_much = match inventory.reserved.cmp(&inventory.total) {
        std::cmp::Ordering::Greater if minor >= 26 => "greater than total",
        std::cmp::Ordering::Greater | std::cmp::Ordering::Equal if minor < 26 => {
            "greater than or equal to total"
        }
        _ => return Ok(()),
    };
    Err(Refusal::bad(format!(
        "Unable to update inventory for resource provider {provider}: Invalid inventory for '{class}' on \
         resource provider '{provider}'. The reserved value is {too_much}."
    )))
}

fn fields(inventory: &Inventory) -> Value {
    json!({
        "total": inventory.total,
        "reserved": inventory.reserved,
        "min_unit": inventory.min_unit,
        "max_unit": inventory.max_unit,
        "step_size": inventory.step_size,
        "allocation_ratio": inventory.ratio_milli as f64 / 1000.0,
    })
}

fn one(provider: &Provider, inventory: &Inventory) -> Value {
    let mut body = fields(inventory);
    body["resource_provider_generation"] = json!(provider.generation);
    body
}

fn view(provider: &Provider) -> Value {
    let inventories: Map<String, Value> = provider
        .inventories
        .iter()
        .map(|(class, inventory)| (class.clone(), fields(inventory)))
        .collect();
    json!({"resource_provider_generation": provider.generation, "inventories": inventories})
}
