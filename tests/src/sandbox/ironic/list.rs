//! Reading nodes: one, or lists with filters and pages.

use http::StatusCode;
use serde_json::{Value, json};
use uuid::Uuid;

use super::super::call::{self, Call};
use super::super::config::Paging;
use super::super::world::World;
use super::{Answer, Node, Refusal, State, view};

/// Filters and the minor version that brought each.
const FILTERS: &[(&str, u16)] = &[
    ("instance_uuid", 1),
    ("associated", 1),
    ("maintenance", 1),
    // Came later, but no version is asked for them.
    ("description_contains", 1),
    ("retired", 1),
    ("provision_state", 9),
    ("driver", 16),
    ("resource_class", 21),
    ("fault", 42),
    ("conductor_group", 46),
    ("owner", 50),
    ("lessee", 65),
    ("shard", 82),
    ("sharded", 82),
];

/// The faults that Ironic knows.
const FAULTS: &[&str] = &[
    "power failure",
    "clean failure",
    "rescue abort failure",
    "service failure",
];

/// Parameters of a list that filter nothing.
const OTHERS: &[&str] = &["limit", "marker", "sort_key", "sort_dir", "fields", "detail"];

impl World {
    pub(super) fn show_node(&self, call: &Call<'_>, minor: u16, node: Uuid) -> Answer {
        let fields = fields(call, minor)?;
        if let Some(unknown) = fields.iter().flatten().find(|name| view::since(name).is_none()) {
            return Err(Refusal::bad(format!("Field {unknown} is not a valid field.")));
        }
        let body = view::node(&self.config.ironic, self.have(node)?, minor, fields.as_deref());
        Ok(call::json(StatusCode::OK, &body))
    }

    pub(super) fn show_states(&self, minor: u16, node: Uuid) -> Answer {
        let fields = [
            "power_state",
            "provision_state",
            "provision_updated_at",
            "target_provision_state",
            "last_error",
        ]
        .map(String::from);
        let mut body = view::node(&self.config.ironic, self.have(node)?, minor, Some(&fields));
        if let Value::Object(body) = &mut body {
            body.remove("links");
            body.insert("target_power_state".into(), Value::Null);
            body.insert("console_enabled".into(), Value::Bool(false));
        }
        Ok(call::json(StatusCode::OK, &body))
    }

    pub(super) fn list_nodes(&self, call: &Call<'_>, minor: u16, detail: bool) -> Answer {
        check_filters(call, minor)?;
        let asked = fields(call, minor)?;
        if let Some(unknown) = asked.iter().flatten().find(|name| view::since(name).is_none()) {
            // Ironic 39.0.0 asks its database for the field before it looks whether there is such a one.
            let text = format!("type object 'Node' has no attribute '{unknown}'");
            return Err(Refusal::new(StatusCode::INTERNAL_SERVER_ERROR, text));
        }
        let short = || view::SHORT.iter().map(|name| (*name).to_owned()).collect();
        let detail = detail || (minor >= 43 && call.param("detail").is_some_and(is_true));
        let fields = if detail {
            None
        } else {
            Some(asked.clone().unwrap_or_else(short))
        };
        let limit = self.page_size(call)?;
        let sorted = self.sorted(call)?;
        let after = match call.param("marker") {
            None => 0,
            Some(marker) => {
                let uuid = Uuid::parse_str(marker).ok();
                let at = uuid.and_then(|uuid| sorted.iter().position(|node| node.uuid == uuid));
                at.ok_or_else(|| Refusal::no_node(marker))? + 1
            }
        };
        let mut fitting = sorted
            .into_iter()
            .skip(after)
            .filter(|node| node.is_seen_by(call) && fits(call, node));
        let page: Vec<&Node> = fitting.by_ref().take(limit).collect();
        let config = &self.config.ironic;
        let nodes: Vec<Value> = page
            .iter()
            .map(|node| view::node(config, node, minor, fields.as_deref()))
            .collect();
        let mut body = json!({"nodes": nodes});
        // The real service links on after every full page but one found by instance, even if nothing follows.
        let full = page.len() == limit && call.param("instance_uuid").is_none();
        if let Some(last) = page.last().filter(|_| full)
            && let Some(next) = self.next_link(call, limit, last.uuid)
        {
            body["next"] = json!(next);
        }
        Ok(call::json(StatusCode::OK, &body))
    }

    fn page_size(&self, call: &Call<'_>) -> Result<usize, Refusal> {
        let most = self.config.ironic.page_limit;
        match call.param("limit") {
            None => Ok(most),
            Some(text) => match text.parse::<usize>() {
                Ok(0) => Ok(most),
                Ok(limit) => Ok(limit.min(most)),
                Err(_) => Err(Refusal::bad(format!(
                    "Invalid input for field/attribute limit. Value: '{text}'."
                ))),
            },
        }
    }

    fn sorted(&self, call: &Call<'_>) -> Result<Vec<&Node>, Refusal> {
        let mut nodes = self.nodes();
        match call.param("sort_key").unwrap_or("id") {
            "id" | "created_at" => {}
            "uuid" => nodes.sort_by_key(|node| node.uuid),
            "name" => nodes.sort_by(|a, b| a.name.cmp(&b.name)),
            key if view::since(key).is_some() => {}
            key => {
                return Err(Refusal::bad(format!(
                    "The sort_key value {key} is an invalid field for sorting"
                )));
            }
        }
        if call.param("sort_dir") == Some("desc") {
            nodes.reverse();
        }
        Ok(nodes)
    }

    fn next_link(&self, call: &Call<'_>, limit: usize, last: Uuid) -> Option<String> {
        let config = &self.config.ironic;
        if config.paging == Paging::NoNext {
            return None;
        }
        let base = &config.base_url;
        let mut query = String::from("sort_key=id&sort_dir=asc");
        // The real service forgets most filters here: the pages after the first are not filtered by them.
        for (key, value) in &call.query {
            let kept = match key.as_str() {
                "associated" | "maintenance" | "retired" => is_true(value),
                "detail" => true,
                "fields" => config.paging != Paging::ForgetsFields,
                _ => false,
            };
            if kept {
                query.push_str(&format!("&{key}={}", value.replace(' ', "+")));
            }
        }
        let path = call.path.join("/");
        let same = config.paging == Paging::SamePage;
        let marker = if same {
            call.param("marker").map(str::to_owned)
        } else {
            Some(last.to_string())
        };
        let marker = marker
            .map(|marker| format!("&marker={marker}"))
            .unwrap_or_default();
        Some(format!("{base}/{path}?{query}&limit={limit}{marker}"))
    }
}

/// The fields that a request names, none of them newer than the version.
fn fields(call: &Call<'_>, minor: u16) -> Result<Option<Vec<String>>, Refusal> {
    let Some(text) = call.param("fields") else {
        return Ok(None);
    };
    if minor < 8 {
        return Err(Refusal::not_acceptable());
    }
    let names: Vec<String> = text.split(',').map(str::to_owned).collect();
    let too_new = |name: &String| view::since(name).is_some_and(|since| since > minor);
    match names.iter().any(too_new) {
        true => Err(Refusal::not_acceptable()),
        false => Ok(Some(names)),
    }
}

fn check_filters(call: &Call<'_>, minor: u16) -> Result<(), Refusal> {
    for (key, value) in &call.query {
        match FILTERS.iter().find(|(name, _)| name == key) {
            Some((_, since)) if *since > minor => return Err(Refusal::not_acceptable()),
            Some(("provision_state", _)) if State::parse(value).is_none() && value != "None" => {
                return Err(Refusal::bad(format!("Provision state \"{value}\" is not valid")));
            }
            Some(("fault", _)) if value != "None" && !FAULTS.contains(&value.as_str()) => {
                let allowed = FAULTS.join(", ");
                return Err(Refusal::bad(format!(
                    "Unrecognized fault \"{value}\" is specified, allowed faults are ({allowed})"
                )));
            }
            Some(("instance_uuid", _)) if Uuid::parse_str(value).is_err() => {
                return Err(Refusal::bad(format!("Expected UUID for instance_uuid: {value}")));
            }
            Some(_) => {}
            None if OTHERS.contains(&key.as_str()) => {}
            None => return Err(Refusal::bad(format!("Unknown argument: \"{key}\""))),
        }
    }
    Ok(())
}

fn fits(call: &Call<'_>, node: &Node) -> bool {
    call.query.iter().all(|(key, value)| match key.as_str() {
        "instance_uuid" => node
            .instance_uuid
            .is_some_and(|uuid| uuid.to_string() == value.to_lowercase()),
        "associated" => node.instance_uuid.is_some() == is_true(value),
        "maintenance" => node.maintenance == is_true(value),
        "provision_state" => node.provision_state.as_str() == value,
        "driver" => {
            node.rest
                .get("driver")
                .and_then(Value::as_str)
                .unwrap_or("fake-hardware")
                == value
        }
        "resource_class" => node.resource_class.as_deref() == Some(value.as_str()),
        "fault" => node.fault.as_deref() == Some(value.as_str()),
        "conductor_group" => node.conductor_group == value.to_lowercase(),
        "owner" => node.owner.as_deref() == Some(value.as_str()),
        "lessee" => node.lessee.as_deref() == Some(value.as_str()),
        "retired" => node.retired == is_true(value) && (node.retired || !node.rest.contains_key("retired")),
        "shard" => value.split(',').any(|shard| node.shard.as_deref() == Some(shard)),
        "sharded" => node.shard.is_some() == is_true(value),
        _ => true,
    })
}

pub(super) fn is_true(text: &str) -> bool {
    matches!(
        text.to_lowercase().as_str(),
        "true" | "1" | "yes" | "t" | "on" | "y"
    )
}
