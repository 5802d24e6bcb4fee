//! Keystone: version documents, tokens, the catalog; and what a token opens at the other services.

mod entry;
mod login;

use bytes::Bytes;
use http::{Response, StatusCode};
use jiff::Timestamp;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use uuid::Uuid;

use super::call::{self, Call, set_header};
use super::world::{World, named_uuid};

/// The tokens given out, by their text.
pub(crate) type Tokens = BTreeMap<String, Arc<Token>>;

/// A token.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Token {
    user: String,
    scope: Scope,
    roles: Vec<String>,
    methods: Vec<String>,
    issued: Timestamp,
    expires: Timestamp,
}

/// What a token is for.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Scope {
    /// Nothing but further tokens.
    None,
    /// A project, by name.
    Project(String),
    /// The whole system.
    System,
    /// The domain.
    Domain,
}

impl World {
    /// Answers a request to Keystone.
    pub(crate) fn keystone(&mut self, call: &Call<'_>) -> Response<Bytes> {
        let parts = call.parts();
        let mut response = match (call.method.as_str(), parts.as_slice()) {
            ("GET", []) => self.keystone_root(),
            ("GET", ["v3"]) => call::json(StatusCode::OK, &json!({"version": self.keystone_version()})),
            ("POST", ["v3", "auth", "tokens"]) => self.log_in(call),
            ("GET" | "HEAD", ["v3", "auth", "tokens"]) => self.validate(call),
            ("DELETE", ["v3", "auth", "tokens"]) => self.revoke(call),
            ("GET", ["v3", "auth", "catalog"]) => {
                call::json(StatusCode::OK, &json!({"catalog": self.catalog()}))
            }
            _ => error(StatusCode::NOT_FOUND, "The resource could not be found."),
        };
        if response.status() == StatusCode::UNAUTHORIZED {
            self.challenge(&mut response);
        }
        set_header(&mut response, "vary", "X-Auth-Token");
        set_header(&mut response, "x-openstack-request-id", &call.request_id);
        response
    }

    fn keystone_root(&self) -> Response<Bytes> {
        let body = json!({"versions": {"values": [self.keystone_version()]}});
        let mut response = call::json(StatusCode::MULTIPLE_CHOICES, &body);
        set_header(
            &mut response,
            "location",
            &format!("{}/v3/", self.config.keystone.base_url),
        );
        response
    }

    fn keystone_version(&self) -> Value {
        json!({
            "id": "v3.14",
            "status": "stable",
            "updated": "2020-04-07T00:00:00Z",
            "links": [{"rel": "self", "href": format!("{}/v3/", self.config.keystone.base_url)}],
            "media-types": [
                {"base": "application/json", "type": "application/vnd.openstack.identity-v3+json"},
            ],
        })
    }

    /// The header that tells where to log in.
    fn challenge(&self, response: &mut Response<Bytes>) {
        let value = format!("Keystone uri=\"{}/v3\"", self.config.keystone.base_url);
        set_header(response, "www-authenticate", &value);
    }

    fn catalog(&self) -> Value {
        let config = &self.config;
        let nova = ("compute", "nova", config.nova.base_url.clone());
        let services = [
            ("identity", "keystone", format!("{}/v3", config.keystone.base_url)),
            ("baremetal", "ironic", config.ironic.base_url.clone()),
            ("placement", "placement", config.placement.base_url.clone()),
        ];
        let region = &config.keystone.region;
        let services = services.into_iter().chain(config.nova.in_catalog.then_some(nova));
        let entries = services.map(|(kind, name, url)| {
            let endpoints = ["public", "internal", "admin"].map(|interface| {
                json!({
                    "id": id(&format!("endpoint/{kind}/{interface}")),
                    "interface": interface,
                    "region_id": region,
                    "region": region,
                    "url": url,
                })
            });
            json!({"endpoints": endpoints, "id": id(&format!("service/{kind}")), "type": kind, "name": name})
        });
        json!(entries.collect::<Vec<_>>())
    }

    /// A token that is known and not too old.
    fn token(&self, text: &str) -> Option<Arc<Token>> {
        self.tokens
            .get(text)
            .filter(|token| token.expires > self.now())
            .cloned()
    }

    /// Takes back all tokens, as a restart with lost keys does.
    pub fn revoke_all_tokens(&mut self) {
        self.tokens.clear();
    }
}

/// The id of a thing by its name, without dashes as Keystone writes ids.
pub fn id(name: &str) -> String {
    simple(named_uuid(name))
}

fn simple(uuid: Uuid) -> String {
    uuid.simple().to_string()
}

/// An error in Keystone's shape, which its middleware uses too.
fn error(status: StatusCode, message: &str) -> Response<Bytes> {
    let title = status.canonical_reason().unwrap_or_default();
    let body = json!({"error": {"code": status.as_u16(), "title": title, "message": message}});
    call::json(status, &body)
}

fn unauthorized() -> Response<Bytes> {
    error(
        StatusCode::UNAUTHORIZED,
        "The request you have made requires authentication.",
    )
}
