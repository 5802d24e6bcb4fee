//! What a list or candidate query asks for.

use std::collections::BTreeSet;
use uuid::Uuid;

use super::super::call::Call;
use super::super::world::World;
use super::{Provider, Refusal};

/// Which route a query belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Of {
    Providers,
    Candidates,
}

/// A parsed query.
#[derive(Debug, Default)]
pub(super) struct Query {
    pub(super) resources: Vec<(String, u64)>,
    required: Vec<BTreeSet<String>>,
    forbidden: BTreeSet<String>,
    name: Option<String>,
    uuid: Option<String>,
    in_tree: Option<String>,
    member_of: Vec<BTreeSet<String>>,
    pub(super) limit: Option<usize>,
}

impl Query {
    pub(super) fn parse(world: &World, call: &Call<'_>, minor: u16, of: Of) -> Result<Self, Refusal> {
        let mut query = Self::default();
        for (key, value) in &call.query {
            let since = match (of, key.as_str()) {
                (Of::Providers, "name" | "uuid") => 0,
                (Of::Providers, "member_of") => 3,
                (Of::Providers, "resources") => 4,
                (Of::Providers, "in_tree") => 14,
                (Of::Providers, "required") => 18,
                (Of::Candidates, "resources") => 10,
                (Of::Candidates, "limit") => 16,
                (Of::Candidates, "required") => 17,
                (Of::Candidates, "member_of") => 21,
                (Of::Candidates, "group_policy") => 25,
                (Of::Candidates, "in_tree") => 31,
                (Of::Candidates, "root_required") => 35,
                _ => u16::MAX,
            };
            if since > minor {
                return Err(invalid(format!(
                    "Additional properties are not allowed ('{key}' was unexpected)"
                )));
            }
            match key.as_str() {
                "name" => query.name = Some(value.clone()),
                "uuid" => query.uuid = Some(uuid(value)?),
                "in_tree" => query.in_tree = Some(uuid(value)?),
                "member_of" => {
                    let list = value.strip_prefix("in:").unwrap_or(value);
                    query
                        .member_of
                        .push(list.split(',').map(str::to_lowercase).collect());
                }
                "resources" => query.resources = resources(world, value)?,
                "limit" => query.limit = Some(limit(value)?),
                "required" | "root_required" => query.traits(value, minor)?,
                _ => {}
            }
        }
        query.known_traits(world)?;
        Ok(query)
    }

    pub(super) fn fits(&self, provider: &Provider) -> bool {
        let uuid = provider.uuid.to_string();
        self.name.as_ref().is_none_or(|name| *name == provider.name)
            && self.uuid.as_ref().is_none_or(|wanted| *wanted == uuid)
            && self.in_tree.as_ref().is_none_or(|wanted| *wanted == uuid)
            && self
                .member_of
                .iter()
                .all(|any| provider.aggregates.iter().any(|a| any.contains(&a.to_string())))
            && self.required.iter().all(|any| !any.is_disjoint(&provider.traits))
            && self.forbidden.is_disjoint(&provider.traits)
            && self
                .resources
                .iter()
                .all(|(class, amount)| provider.has_room(class, *amount))
    }

    fn traits(&mut self, value: &str, minor: u16) -> Result<(), Refusal> {
        if let Some(any) = value.strip_prefix("in:") {
            if minor < 39 {
                return Err(invalid(format!(
                    "The format 'in:HW_CPU_X86_VMX,CUSTOM_MAGIC' only supported since microversion 1.39. Got: \
                     {value}"
                )));
            }
            self.required.push(any.split(',').map(str::to_owned).collect());
            return Ok(());
        }
        let malformed = || {
            let form = if minor >= 22 {
                "HW_CPU_X86_VMX,!CUSTOM_MAGIC"
            } else {
                "HW_CPU_X86_VMX,CUSTOM_MAGIC"
            };
            invalid(format!(
                "Expected 'required' parameter value of the form: {form}. Got: {value}"
            ))
        };
        for name in value.split(',') {
            match name.strip_prefix('!') {
                _ if name.is_empty() => return Err(malformed()),
                Some(_) if minor < 22 => return Err(malformed()),
                Some(name) => {
                    self.forbidden.insert(name.to_owned());
                }
                None => self.required.push(BTreeSet::from([name.to_owned()])),
            }
        }
        Ok(())
    }

    fn known_traits(&self, world: &World) -> Result<(), Refusal> {
        let named = self.required.iter().flatten().chain(&self.forbidden);
        let unknown: Vec<&str> = named
            .filter(|name| !world.placement.knows_trait(name))
            .map(String::as_str)
            .collect();
        let both = self
            .required
            .iter()
            .find(|any| !any.is_empty() && any.is_subset(&self.forbidden));
        if let Some(both) = both.filter(|_| unknown.is_empty()) {
            let names: Vec<&str> = both.iter().map(String::as_str).collect();
            return Err(Refusal::bad(format!(
                "Conflicting required and forbidden traits found in the following traits keys: required: ({})",
                names.join(", ")
            )));
        }
        if unknown.is_empty() {
            Ok(())
        } else {
            Err(Refusal::bad(format!("No such trait(s): {}.", unknown.join(", "))))
        }
    }
}

fn invalid(text: impl std::fmt::Display) -> Refusal {
    Refusal::bad(format!("Invalid query string parameters: {text}"))
}

fn uuid(value: &str) -> Result<String, Refusal> {
    let parsed = Uuid::parse_str(value).map_err(|_| invalid(format!("'{value}' is not a 'uuid'")))?;
    Ok(parsed.to_string())
}

fn limit(value: &str) -> Result<usize, Refusal> {
    let parsed = value.parse::<usize>().ok().filter(|limit| *limit > 0);
    parsed.ok_or_else(|| invalid(format!("'{value}' does not match '^[1-9][0-9]*$'")))
}

fn resources(world: &World, value: &str) -> Result<Vec<(String, u64)>, Refusal> {
    let mut found = Vec::new();
    for part in value.split(',') {
        let amount = part
            .split_once(':')
            .and_then(|(class, amount)| Some((class, amount.parse::<u64>().ok()?)));
        let Some((class, amount)) = amount else {
            return Err(Refusal::bad(format!(
                "Badly formed resources parameter. Expected resources query string parameter in form: \
                 ?resources=VCPU:2,MEMORY_MB:1024. Got: {value}."
            )));
        };
        if amount == 0 {
            return Err(Refusal::bad(format!(
                "Requested resource {class} requires a positive amount. Got: {amount}."
            )));
        }
        if !world.placement.knows_class(class) {
            return Err(Refusal::bad(format!(
                "Invalid resource class in resources parameter: No such resource class {class}."
            )));
        }
        found.push((class.to_owned(), amount));
    }
    Ok(found)
}

/// A consumer's UUID as it stands in a path.
pub(super) fn consumer(text: &str) -> Result<Uuid, Refusal> {
    Uuid::parse_str(text).map_err(|_| Refusal::bad(format!("Malformed consumer_uuid: {text}")))
}
