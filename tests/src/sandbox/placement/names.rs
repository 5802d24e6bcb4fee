//! Names that must exist before they are used: traits and resource classes; and providers' traits.

use http::StatusCode;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use uuid::Uuid;

use super::super::call::{self, Call, set_header};
use super::super::world::World;
use super::{Answer, CONCURRENT, Placement, Refusal, fresh, object, shown};

/// Classes that are always there.
const CLASSES: &[&str] = &[
    "VCPU",
    "MEMORY_MB",
    "DISK_GB",
    "PCI_DEVICE",
    "SRIOV_NET_VF",
    "VGPU",
    "PCPU",
    "FPGA",
    "IPV4_ADDRESS",
];
/// How the names of traits begin that are always there.
const STANDARD: &[&str] = &["COMPUTE_", "HW_", "STORAGE_", "OWNER_", "MISC_"];
/// Some of them, for lists.
const TRAITS: &[&str] = &[
    "COMPUTE_NODE",
    "COMPUTE_STATUS_DISABLED",
    "HW_CPU_X86_AVX2",
    "HW_CPU_X86_VMX",
    "OWNER_IRONIC",
    "OWNER_NOVA",
];

impl Placement {
    /// Whether a trait exists.
    pub fn knows_trait(&self, name: &str) -> bool {
        self.traits.contains(name) || STANDARD.iter().any(|prefix| name.starts_with(prefix))
    }

    /// Whether a resource class exists.
    pub fn knows_class(&self, name: &str) -> bool {
        self.classes.contains(name) || CLASSES.contains(&name)
    }
}

impl World {
    pub(super) fn trait_names(&mut self, call: &Call<'_>, method: &str, minor: u16, rest: &[&str]) -> Answer {
        if minor < 6 {
            return Err(Refusal::not_found(" "));
        }
        match (method, rest) {
            ("GET", []) => self.list_traits(call, minor),
            ("GET", [name]) if self.placement.knows_trait(name) => {
                let mut response = call::empty(StatusCode::NO_CONTENT);
                fresh(call, minor, &mut response);
                Ok(response)
            }
            ("PUT", [name]) => self.create_trait(call, minor, name),
            ("DELETE", [name]) if !name.starts_with("CUSTOM_") && self.placement.knows_trait(name) => {
                Err(Refusal::bad(format!("Cannot delete standard trait {name}")))
            }
            ("DELETE", [name]) if self.placement.traits.contains(*name) => {
                if self
                    .placement
                    .providers
                    .values()
                    .any(|provider| provider.traits.contains(*name))
                {
                    let text = format!("The trait {name} is in use by a resource provider.");
                    return Err(Refusal::conflict(text, super::UNDEFINED));
                }
                self.placement.traits.remove(*name);
                Ok(call::empty(StatusCode::NO_CONTENT))
            }
            (_, [name]) => Err(Refusal::not_found(format!("No such trait(s): {name}."))),
            _ => Err(Refusal::not_found(" ")),
        }
    }

    fn list_traits(&self, call: &Call<'_>, minor: u16) -> Answer {
        let filter = call.param("name");
        let fits = |name: &&str| match filter {
            None => true,
            Some(filter) => match (filter.strip_prefix("in:"), filter.strip_prefix("startswith:")) {
                (Some(list), _) => list.split(',').any(|one| one == *name),
                (_, Some(prefix)) => name.starts_with(prefix),
                _ => false,
            },
        };
        let used = call
            .param("associated")
            .map(|text| text.eq_ignore_ascii_case("true"));
        let in_use = |name: &&str| {
            used.is_none_or(|used| {
                used == self
                    .placement
                    .providers
                    .values()
                    .any(|p| p.traits.contains(*name))
            })
        };
        let all: BTreeSet<&str> = self
            .placement
            .traits
            .iter()
            .map(String::as_str)
            .chain(TRAITS.iter().copied())
            .collect();
        let names: Vec<&str> = all.into_iter().filter(fits).filter(in_use).collect();
        Ok(shown(call, minor, &json!({"traits": names})))
    }

    fn create_trait(&mut self, call: &Call<'_>, minor: u16, name: &str) -> Answer {
        if !is_custom(name) {
            return Err(Refusal::bad(
                "The trait is invalid. A valid trait must be no longer than 255 characters, start with the prefix \
                 \"CUSTOM_\" and use following characters: \"A\"-\"Z\", \"0\"-\"9\" and \"_\"",
            ));
        }
        let new = self.placement.traits.insert(name.to_owned());
        let status = if new {
            StatusCode::CREATED
        } else {
            StatusCode::NO_CONTENT
        };
        let mut response = call::empty(status);
        set_header(
            &mut response,
            "location",
            &format!("{}/traits/{name}", self.config.placement.base_url),
        );
        fresh(call, minor, &mut response);
        Ok(response)
    }

    pub(super) fn provider_traits(
        &mut self,
        call: &Call<'_>,
        method: &str,
        minor: u16,
        provider: Uuid,
    ) -> Answer {
        if minor < 6 {
            return Err(Refusal::not_found(" "));
        }
        match method {
            "GET" => {}
            "PUT" => {
                let (names, generation) = asked_traits(call)?;
                if generation != self.have_provider(provider)?.generation {
                    let text = "Resource provider's generation already changed. Please update the generation and \
                                try again.";
                    return Err(Refusal::conflict(text, CONCURRENT));
                }
                if let Some(unknown) = names.iter().find(|name| !self.placement.knows_trait(name)) {
                    return Err(Refusal::bad(format!("No such trait {unknown}")));
                }
                self.replace_traits(provider, names);
            }
            "DELETE" => {
                self.replace_traits(provider, BTreeSet::new());
                return Ok(call::empty(StatusCode::NO_CONTENT));
            }
            _ => return Err(Refusal::new(StatusCode::METHOD_NOT_ALLOWED, " ")),
        }
        let entry = self.have_provider(provider)?;
        let body = json!({"traits": entry.traits, "resource_provider_generation": entry.generation});
        Ok(shown(call, minor, &body))
    }

    /// The generation moves only when there is something to change.
    fn replace_traits(&mut self, provider: Uuid, names: BTreeSet<String>) {
        self.edit_provider(provider, |entry| {
            if entry.traits != names {
                entry.traits = names;
                entry.generation += 1;
            }
        });
    }

    pub(super) fn class_names(&mut self, call: &Call<'_>, method: &str, minor: u16, rest: &[&str]) -> Answer {
        if minor < 2 {
            return Err(Refusal::not_found(" "));
        }
        let name = match (method, rest) {
            ("POST", []) => {
                let body = object(call)?;
                let name = body.get("name").and_then(Value::as_str);
                name.ok_or_else(|| Refusal::json("'name' is a required property"))?
                    .to_owned()
            }
            (_, [name]) => (*name).to_owned(),
            _ => String::new(),
        };
        match (method, rest) {
            ("GET", []) => {
                let names = CLASSES
                    .iter()
                    .copied()
                    .chain(self.placement.classes.iter().map(String::as_str));
                let all: Vec<Value> = names.map(class_view).collect();
                Ok(shown(call, minor, &json!({"resource_classes": all})))
            }
            ("GET", [_]) if self.placement.knows_class(&name) => Ok(shown(call, minor, &class_view(&name))),
            ("POST", []) | ("PUT", [_]) => self.create_class(method, &name),
            ("DELETE", [_]) if self.placement.classes.contains(&name) => {
                if self
                    .placement
                    .providers
                    .values()
                    .any(|p| p.inventories.contains_key(&name))
                {
                    let text = format!(
                        "Error in delete resource class: Resource class {name} is in use in inventory."
                    );
                    return Err(Refusal::conflict(text, super::UNDEFINED));
                }
                self.placement.classes.remove(&name);
                Ok(call::empty(StatusCode::NO_CONTENT))
            }
            _ => Err(Refusal::not_found(format!("No such resource class {name}."))),
        }
    }

    fn create_class(&mut self, method: &str, name: &str) -> Answer {
        if !is_custom(name) {
            return Err(Refusal::json(format!(
                "'{name}' does not match '^CUSTOM\\\\_[A-Z0-9_]+$'"
            )));
        }
        let new = self.placement.classes.insert(name.to_owned());
        if !new && method == "POST" {
            let text = format!("Conflicting resource class already exists: {name}");
            return Err(Refusal::conflict(text, super::UNDEFINED));
        }
        let mut response = call::empty(if new {
            StatusCode::CREATED
        } else {
            StatusCode::NO_CONTENT
        });
        set_header(
            &mut response,
            "location",
            &format!("{}/resource_classes/{name}", self.config.placement.base_url),
        );
        Ok(response)
    }
}

/// The traits that a provider shall have, and the generation that the writer saw. What is wrong with them is told
/// before the provider is looked for.
pub(super) fn asked_traits(call: &Call<'_>) -> Result<(BTreeSet<String>, u64), Refusal> {
    let body = object(call)?;
    let names = body.get("traits").and_then(Value::as_array);
    let names = names.ok_or_else(|| Refusal::json("'traits' is a required property"))?;
    let names = names.iter().filter_map(Value::as_str).map(str::to_owned);
    let generation = body.get("resource_provider_generation").and_then(Value::as_u64);
    let generation = generation.ok_or_else(|| Refusal::json("a generation is of type 'integer'"))?;
    Ok((names.collect(), generation))
}

fn class_view(name: &str) -> Value {
    let path = format!("/resource_classes/{name}");
    json!({"name": name, "links": [{"rel": "self", "href": path}]})
}

fn is_custom(name: &str) -> bool {
    let rest = name.strip_prefix("CUSTOM_").filter(|rest| !rest.is_empty());
    let fits = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_';
    name.len() <= 255 && rest.is_some_and(|rest| rest.chars().all(fits))
}
