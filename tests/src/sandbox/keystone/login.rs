//! Logging in: password, token, application credential; and looking at or revoking a token.

use bytes::Bytes;
use http::{Response, StatusCode};
use jiff::Timestamp;
use serde_json::{Value, json};
use std::sync::Arc;

use super::super::call::{self, Call, later, set_header};
use super::super::config::User;
use super::super::world::World;
use super::{Scope, Token, error, id, unauthorized};

impl World {
    pub(super) fn log_in(&mut self, call: &Call<'_>) -> Response<Bytes> {
        let Ok(body) = call.json() else {
            return error(
                StatusCode::BAD_REQUEST,
                "Expecting to find valid JSON in the request body.",
            );
        };
        let auth = &body["auth"];
        let Some(methods) = auth["identity"]["methods"].as_array() else {
            return error(StatusCode::BAD_REQUEST, "'identity' is a required property");
        };
        let methods: Vec<String> = methods
            .iter()
            .filter_map(Value::as_str)
            .map(str::to_owned)
            .collect();
        let by_credential = methods.iter().any(|method| method == "application_credential");
        let Some(user) = self.find_user(&auth["identity"], &methods).cloned() else {
            return unauthorized();
        };
        // An application credential belongs to its project; naming another scope beside it is an error.
        let scope = if by_credential && auth["scope"].is_null() {
            Some(Scope::Project(user.project.clone()))
        } else {
            scope(&auth["scope"], &user)
        };
        let Some(scope) = scope else { return unauthorized() };
        let now = self.now();
        let token = Token {
            roles: if scope == Scope::None {
                Vec::new()
            } else {
                user.roles.clone()
            },
            user: user.name,
            scope,
            methods,
            issued: now,
            expires: later(now, self.config.keystone.token_life),
        };
        let text = format!("gAAAA{}", super::simple(self.new_uuid("token")));
        let mut response = call::json(StatusCode::CREATED, &self.token_body(&token));
        set_header(&mut response, "x-subject-token", &text);
        self.tokens.insert(text, Arc::new(token));
        response
    }

    /// The user whom all methods prove.
    fn find_user(&self, identity: &Value, methods: &[String]) -> Option<&User> {
        let users = &self.config.keystone.users;
        let mut found: Option<&User> = None;
        for method in methods {
            let proven = match method.as_str() {
                "password" => {
                    let given = &identity["password"]["user"];
                    let user = users.iter().find(|user| is_named(given, &user.name, "user"))?;
                    (given["password"] == json!(user.password)).then_some(user)
                }
                "token" => {
                    let token = self.token(identity["token"]["id"].as_str()?)?;
                    users.iter().find(|user| user.name == token.user)
                }
                "application_credential" => {
                    let given = &identity["application_credential"];
                    users.iter().find(|user| {
                        let Some((id, name, secret)) = &user.application_credential else {
                            return false;
                        };
                        let by_name =
                            given["name"] == json!(name) && is_named(&given["user"], &user.name, "user");
                        given["secret"] == json!(secret) && (given["id"] == json!(id) || by_name)
                    })
                }
                _ => None,
            }?;
            if found.is_some_and(|other| other.name != proven.name) {
                return None;
            }
            found = Some(proven);
        }
        found
    }

    pub(super) fn validate(&self, call: &Call<'_>) -> Response<Bytes> {
        let known = |name: &str| call.header(name).and_then(|text| self.token(text));
        if known("x-auth-token").is_none() {
            return unauthorized();
        }
        match known("x-subject-token") {
            Some(token) => {
                let mut response = call::json(StatusCode::OK, &self.token_body(&token));
                set_header(
                    &mut response,
                    "x-subject-token",
                    call.header("x-subject-token").unwrap_or_default(),
                );
                response
            }
            None => error(StatusCode::NOT_FOUND, "This is not a recognized Fernet token"),
        }
    }

    pub(super) fn revoke(&mut self, call: &Call<'_>) -> Response<Bytes> {
        if call
            .header("x-auth-token")
            .and_then(|text| self.token(text))
            .is_none()
        {
            return unauthorized();
        }
        match call
            .header("x-subject-token")
            .and_then(|text| self.tokens.remove(text))
        {
            Some(_) => call::empty(StatusCode::NO_CONTENT),
            None => error(StatusCode::NOT_FOUND, "Could not find token."),
        }
    }

    fn token_body(&self, token: &Token) -> Value {
        let domain = json!({"id": "default", "name": "Default"});
        let user = id(&format!("user/{}", token.user));
        let roles: Vec<Value> = token
            .roles
            .iter()
            .map(|role| json!({"id": id(&format!("role/{role}")), "name": role}))
            .collect();
        let mut body = json!({
            "methods": token.methods,
            "user": {"domain": domain, "id": user, "name": token.user, "password_expires_at": null},
            "audit_ids": [id(&format!("audit/{}/{}", token.user, token.issued))],
            "expires_at": time(token.expires),
            "issued_at": time(token.issued),
        });
        match &token.scope {
            Scope::None => return json!({"token": body}),
            Scope::System => body["system"] = json!({"all": true}),
            Scope::Domain => body["domain"] = domain,
            Scope::Project(name) => {
                let project = id(&format!("project/{name}"));
                body["project"] = json!({"domain": domain, "id": project, "name": name});
                body["is_domain"] = json!(false);
            }
        }
        body["roles"] = json!(roles);
        body["catalog"] = self.catalog();
        json!({"token": body})
    }
}

/// The scope asked for, where the user may have it.
fn scope(asked: &Value, user: &User) -> Option<Scope> {
    if asked.is_null() || asked == "unscoped" {
        return Some(Scope::None);
    }
    if asked["system"]["all"] == json!(true) {
        return user.system.then_some(Scope::System);
    }
    if asked["project"].is_object() {
        let fits = is_named(&asked["project"], &user.project, "project");
        return fits.then(|| Scope::Project(user.project.clone()));
    }
    let domain = &asked["domain"];
    (domain["id"] == "default" || domain["name"] == "Default").then_some(Scope::Domain)
}

/// Whether JSON names a thing, by id or by name and domain.
fn is_named(given: &Value, name: &str, kind: &str) -> bool {
    let domain = &given["domain"];
    let by_name = given["name"] == json!(name) && (domain["id"] == "default" || domain["name"] == "Default");
    by_name || given["id"] == json!(id(&format!("{kind}/{name}")))
}

/// The time as Keystone writes it.
fn time(at: Timestamp) -> String {
    at.strftime("%Y-%m-%dT%H:%M:%S.%6fZ").to_string()
}
