//! Traits of nodes. Changing them needs the lock.

use http::StatusCode;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use uuid::Uuid;

use super::super::call::{self, Call};
use super::super::world::World;
use super::{Answer, Refusal, not_found, object};

/// The most traits that a node may have.
const MOST: usize = 50;

impl World {
    pub(super) fn node_traits(
        &mut self,
        call: &Call<'_>,
        method: &str,
        minor: u16,
        node: Uuid,
        rest: &[&str],
    ) -> Answer {
        if minor < 37 {
            return Err(Refusal::not_acceptable());
        }
        let mut traits = self.have(node)?.traits.clone();
        match (method, rest) {
            ("GET", []) => return Ok(call::json(StatusCode::OK, &json!({"traits": traits}))),
            ("PUT", []) if call.body.is_empty() => {
                let text = "A single node trait may be added via PUT /v1/nodes/<node identifier>/traits/<trait> with no \
                            body, or all node traits may be replaced via PUT /v1/nodes/<node identifier>/traits with the \
                            list of traits specified in the request body.";
                return Err(Refusal::bad(text));
            }
            ("PUT", []) => traits = listed(&object(call)?)?,
            ("PUT", [name]) => {
                traits.insert((*name).to_owned());
            }
            ("DELETE", []) => traits.clear(),
            ("DELETE", [_]) => {}
            _ => return Err(not_found(call)),
        }
        self.take_lock(node)?;
        if let ("DELETE", [name]) = (method, rest)
            && !traits.remove(*name)
        {
            let text = format!("Node {node} doesn't have a trait '{name}'");
            return Err(Refusal::new(StatusCode::NOT_FOUND, text));
        }
        if traits.len() > MOST {
            let text = format!("Error setting traits of node {node}: a node can have at most {MOST} traits");
            return Err(Refusal::bad(text));
        }
        self.edit_node(node, |entry| entry.traits = traits);
        Ok(call::empty(StatusCode::NO_CONTENT))
    }
}

/// What is wrong with the traits themselves is told before the node is looked for.
pub(super) fn check_form(call: &Call<'_>, rest: &[&str]) -> Result<(), Refusal> {
    match rest {
        [name] => check(name),
        [] if !call.body.is_empty() => listed(&object(call)?).map(drop),
        _ => Ok(()),
    }
}

fn listed(body: &Value) -> Result<BTreeSet<String>, Refusal> {
    let wrong = || Refusal::bad("Invalid input for field/attribute traits");
    let list = body["traits"].as_array().ok_or_else(wrong)?;
    let names = list
        .iter()
        .map(|name| name.as_str().map(str::to_owned).ok_or_else(wrong));
    let names = names.collect::<Result<BTreeSet<_>, _>>()?;
    for name in &names {
        check(name)?;
    }
    Ok(names)
}

/// A trait is a standard one (its name tells) or starts with `CUSTOM_`.
fn check(name: &str) -> Result<(), Refusal> {
    let plain = name
        .chars()
        .all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_');
    let prefixes = ["CUSTOM_", "COMPUTE_", "HW_", "STORAGE_", "OWNER_", "MISC_"];
    if plain && name.len() <= 255 && prefixes.iter().any(|prefix| name.starts_with(prefix)) {
        return Ok(());
    }
    Err(Refusal::bad(format!(
        "Invalid traits. {name} is not a valid trait: a valid trait is no longer than 255 characters and is \
         either a standard trait or starts with 'CUSTOM_'"
    )))
}
