//! Placement's API 1.0 to 1.39, as far as bare metal needs it: the routes, and what all answers share.

mod allocations;
mod candidates;
mod claim;
mod inventories;
mod names;
mod providers;
mod query;
mod state;

pub use state::{Consumer, Inventory, Placement, Provider};

use bytes::Bytes;
use http::{Response, StatusCode};
use serde_json::{Value, json};
use uuid::Uuid;

use super::call::{self, Call, http_date, set_header};
use super::world::World;

/// The code of errors that have no code of their own.
const UNDEFINED: &str = "placement.undefined_code";
const CONCURRENT: &str = "placement.concurrent_update";

/// A refusal, in the words after the status's own sentence.
#[derive(Debug)]
pub(crate) struct Refusal {
    status: StatusCode,
    text: String,
    code: &'static str,
}

impl Refusal {
    fn new(status: StatusCode, text: impl Into<String>) -> Self {
        Self {
            status,
            text: text.into(),
            code: UNDEFINED,
        }
    }

    fn bad(text: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, text)
    }

    fn not_found(text: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, text)
    }

    fn conflict(text: impl Into<String>, code: &'static str) -> Self {
        Self {
            status: StatusCode::CONFLICT,
            text: text.into(),
            code,
        }
    }

    fn json(error: impl std::fmt::Display) -> Self {
        Self::bad(format!("JSON does not validate: {error}"))
    }

    fn forbidden(rule: &str) -> Self {
        Self::new(StatusCode::FORBIDDEN, rule)
    }

    fn into_response(self, minor: Option<u16>, request_id: &str) -> Response<Bytes> {
        let sentence = match self.status.as_u16() {
            400 => {
                "The server could not comply with the request since it is either malformed or otherwise \
                    incorrect."
            }
            403 => "Access was denied to this resource.",
            404 => "The resource could not be found.",
            405 => "The method specified is not allowed for this resource.",
            406 => {
                "The resource could not be generated that was acceptable to your browser (content of type \
                    application/json. "
            }
            _ => "There was a conflict when trying to complete your request.",
        };
        let mut error = json!({
            "status": self.status.as_u16(),
            "title": self.status.canonical_reason().unwrap_or_default(),
            "detail": format!("{sentence}\n\n {}  ", self.text),
            "request_id": request_id,
        });
        if minor.is_some_and(|minor| minor >= 23) {
            error["code"] = json!(self.code);
        }
        call::json(self.status, &json!({"errors": [error]}))
    }
}

type Answer = Result<Response<Bytes>, Refusal>;

impl World {
    /// Answers a request to Placement.
    pub(crate) fn placement(&mut self, call: &Call<'_>) -> Response<Bytes> {
        let mut response = match self.placement_version(call) {
            Ok(minor) => {
                let answer = match &call.refused {
                    Some(rule) => Err(Refusal::forbidden(rule)),
                    None => self.placement_route(call, minor),
                };
                let mut response =
                    answer.unwrap_or_else(|refusal| refusal.into_response(Some(minor), &call.request_id));
                set_header(
                    &mut response,
                    "openstack-api-version",
                    &format!("placement 1.{minor}"),
                );
                set_header(&mut response, "vary", "openstack-api-version");
                response
            }
            Err(response) => *response,
        };
        set_header(&mut response, "x-openstack-request-id", &call.request_id);
        response
    }

    fn placement_version(&self, call: &Call<'_>) -> Result<u16, Box<Response<Bytes>>> {
        let config = &self.config.placement;
        let all = call
            .headers
            .get_all("openstack-api-version")
            .iter()
            .filter_map(|value| value.to_str().ok());
        let mut named = all
            .flat_map(|value| value.split(','))
            .filter_map(|one| one.trim().split_once(' '));
        let Some((_, asked)) = named.find(|(service, _)| *service == "placement") else {
            return Ok(config.min_minor);
        };
        if asked == "latest" {
            return Ok(config.max_minor);
        }
        let number = |text: &str| text.parse::<u16>().ok();
        match asked
            .split_once('.')
            .and_then(|(major, minor)| number(major).zip(number(minor)))
        {
            Some((1, minor)) if (config.min_minor..=config.max_minor).contains(&minor) => Ok(minor),
            Some(_) => {
                let text = format!("Invalid microversion: Unacceptable version header: {asked}");
                let refusal = Refusal::new(StatusCode::NOT_ACCEPTABLE, text);
                let response = refusal.into_response(None, &call.request_id);
                Err(Box::new(with_range(response, config.min_minor, config.max_minor)))
            }
            None => {
                let text = format!(
                    "Invalid microversion: invalid version string: {asked}; invalid literal for int() with \
                     base 10: '{asked}'"
                );
                Err(Box::new(Refusal::bad(text).into_response(None, &call.request_id)))
            }
        }
    }

    fn placement_route(&mut self, call: &Call<'_>, minor: u16) -> Answer {
        let parts = call.parts();
        match (call.method.as_str(), parts.as_slice()) {
            ("GET", []) => Ok(shown(call, minor, &self.placement_root())),
            ("GET", ["resource_providers"]) => self.list_providers(call, minor),
            ("POST", ["resource_providers"]) => self.create_provider(call, minor),
            (_, ["resource_providers", uuid, rest @ ..]) => self.provider_route(call, minor, uuid, rest),
            ("POST", ["allocations"]) => self.post_allocations(call, minor),
            ("GET", ["allocations", consumer]) => self.show_consumer(call, minor, consumer),
            ("PUT", ["allocations", consumer]) => self.put_allocations(call, minor, consumer),
            ("DELETE", ["allocations", consumer]) => self.delete_allocations(consumer),
            ("GET", ["allocation_candidates"]) => self.candidates(call, minor),
            ("GET", ["usages"]) => self.project_usages(call, minor),
            (method, ["traits", rest @ ..]) => self.trait_names(call, method, minor, rest),
            (method, ["resource_classes", rest @ ..]) => self.class_names(call, method, minor, rest),
            (_, [] | ["resource_providers" | "allocations" | "allocation_candidates" | "usages"])
            | (_, ["allocations", _]) => Err(Refusal::new(StatusCode::METHOD_NOT_ALLOWED, " ")),
            _ => Err(Refusal::not_found(" ")),
        }
    }

    fn provider_route(&mut self, call: &Call<'_>, minor: u16, uuid: &str, rest: &[&str]) -> Answer {
        if let ("PUT", ["traits"]) = (call.method.as_str(), rest)
            && minor >= 6
        {
            names::asked_traits(call)?;
        }
        let provider = self.find_provider(uuid)?;
        match (call.method.as_str(), rest) {
            ("GET", []) => self.show_provider(call, minor, provider),
            ("PUT", []) => self.rename_provider(call, minor, provider),
            ("DELETE", []) => self.delete_provider(provider),
            ("GET", ["inventories"]) => self.show_inventories(call, minor, provider),
            ("PUT", ["inventories"]) => self.put_inventories(call, minor, provider),
            ("DELETE", ["inventories"]) => self.delete_inventories(provider),
            ("GET", ["inventories", class]) => self.show_inventory(call, minor, provider, class),
            ("PUT", ["inventories", class]) => self.put_inventory(call, minor, provider, class),
            ("DELETE", ["inventories", class]) => self.delete_inventory(provider, class),
            ("GET", ["usages"]) => self.provider_usages(call, minor, provider),
            ("GET", ["allocations"]) => self.show_holders(call, minor, provider),
            (method, ["aggregates"]) => self.provider_aggregates(call, method, minor, provider),
            (method, ["traits"]) => self.provider_traits(call, method, minor, provider),
            _ => Err(Refusal::new(StatusCode::METHOD_NOT_ALLOWED, " ")),
        }
    }

    fn placement_root(&self) -> Value {
        let config = &self.config.placement;
        let version = json!({
            "id": "v1.0",
            "max_version": format!("1.{}", config.max_minor),
            "min_version": format!("1.{}", config.min_minor),
            "status": "CURRENT",
            "links": [{"rel": "self", "href": ""}],
        });
        json!({"versions": [version]})
    }

    fn find_provider(&self, text: &str) -> Result<Uuid, Refusal> {
        let uuid = Uuid::parse_str(text)
            .ok()
            .filter(|uuid| self.placement.providers.contains_key(uuid));
        uuid.ok_or_else(|| no_provider(text))
    }

    fn have_provider(&self, provider: Uuid) -> Result<&Provider, Refusal> {
        self.provider(provider)
            .ok_or_else(|| no_provider(&provider.to_string()))
    }
}

fn no_provider(uuid: &str) -> Refusal {
    Refusal::not_found(format!("No resource provider with uuid {uuid} found"))
}

fn with_range(response: Response<Bytes>, min: u16, max: u16) -> Response<Bytes> {
    let Ok(mut body) = serde_json::from_slice::<Value>(response.body()) else {
        return response;
    };
    body["errors"][0]["min_version"] = json!(format!("1.{min}"));
    body["errors"][0]["max_version"] = json!(format!("1.{max}"));
    call::json(response.status(), &body)
}

/// An answer with a body, with the cache headers that came with 1.15.
fn shown(call: &Call<'_>, minor: u16, body: &Value) -> Response<Bytes> {
    let mut response = call::json(StatusCode::OK, body);
    fresh(call, minor, &mut response);
    response
}

fn fresh(call: &Call<'_>, minor: u16, response: &mut Response<Bytes>) {
    if minor >= 15 {
        set_header(response, "last-modified", &http_date(call.now));
        set_header(response, "cache-control", "no-cache");
    }
}

/// A JSON object from a request's body.
fn object(call: &Call<'_>) -> Result<serde_json::Map<String, Value>, Refusal> {
    match call.json() {
        Ok(Value::Object(object)) => Ok(object),
        Ok(other) => Err(Refusal::json(format!("{other} is not of type 'object'"))),
        Err(error) => Err(Refusal::bad(format!("Malformed JSON: {error}"))),
    }
}
