//! The door of Ironic and Placement: who comes in, and what they may do there.

use bytes::Bytes;
use http::{Method, Response, StatusCode};
use serde_json::json;
use std::sync::Arc;

use super::super::Service;
use super::super::call::{self, Call, set_header};
use super::super::config::Auth;
use super::super::world::World;
use super::{Scope, Token, id, unauthorized};

/// Who came in, or the answer at the door.
type Entry = Result<String, Box<Response<Bytes>>>;

impl World {
    /// Finds out who sends a request, and notes in the call what they may not do.
    pub(crate) fn authenticate(&self, service: Service, call: &mut Call<'_>) -> Entry {
        let auth = match service {
            Service::Keystone => return Ok(String::new()),
            Service::Ironic => &self.config.ironic.auth,
            Service::Placement => &self.config.placement.auth,
            Service::Nova => &Auth::Keystone,
        };
        if is_open(service, call) {
            return Ok(String::new());
        }
        match auth {
            Auth::Off => Ok("anonymous".into()),
            Auth::Keystone => self.by_token(service, call),
            Auth::HttpBasic { user, password } => by_password(call, user, password),
            Auth::NoAuth2 => by_name(call),
        }
    }

    fn by_token(&self, service: Service, call: &mut Call<'_>) -> Entry {
        let Some(token) = call.header("x-auth-token").and_then(|text| self.token(text)) else {
            let mut response = unauthorized();
            self.challenge(&mut response);
            set_header(&mut response, "x-openstack-request-id", &call.request_id);
            return Err(Box::new(response));
        };
        match service {
            Service::Ironic => self.at_ironic(call, &token),
            Service::Nova => self.at_nova(call, &token),
            _ => self.at_placement(call, &token),
        }
        Ok(token.user.clone())
    }

    fn at_ironic(&self, call: &mut Call<'_>, token: &Arc<Token>) {
        let has = |role: &str| token.roles.iter().any(|own| own == role);
        if token.roles.is_empty() {
            call.refused = Some("baremetal:node:list".into());
        } else if call.method != Method::GET
            && !["admin", "manager", "member", "service"].into_iter().any(has)
        {
            call.refused = Some("baremetal:node:update".into());
        }
        if let Scope::Project(project) = &token.scope
            && self.config.keystone.strict_scopes
            && !has("service")
        {
            call.only_of = Some(id(&format!("project/{project}")));
        }
    }

    /// Servers of other projects, and the hosts of one's own, are for administrators of a project.
    fn at_nova(&self, call: &mut Call<'_>, token: &Arc<Token>) {
        let allowed = token.roles.iter().any(|role| role == "admin");
        let wrong_scope = token.scope == Scope::System && self.config.keystone.strict_scopes;
        if !allowed || wrong_scope {
            call.refused = Some("os_compute_api:servers:index:get_all_tenants".into());
        }
    }

    fn at_placement(&self, call: &mut Call<'_>, token: &Arc<Token>) {
        let allowed = token
            .roles
            .iter()
            .any(|role| role == "admin" || role == "service");
        let wrong_scope = token.scope == Scope::System && self.config.keystone.strict_scopes;
        if !allowed || wrong_scope {
            call.refused = Some("placement:resource_providers:list".into());
        }
    }
}

/// Version documents need no login.
fn is_open(service: Service, call: &Call<'_>) -> bool {
    let parts = call.parts();
    call.method == Method::GET && (parts.is_empty() || (service == Service::Ironic && parts == ["v1"]))
}

fn by_password(call: &Call<'_>, user: &str, password: &str) -> Entry {
    let expected = format!("Basic {}", base64(format!("{user}:{password}").as_bytes()));
    let message = match call.header("authorization") {
        Some(given) if given == expected => return Ok(user.to_owned()),
        Some(_) => "Incorrect username or password",
        None => "Authorization required",
    };
    let body = json!({"error": {"message": message, "code": 401}});
    let mut response = call::json(StatusCode::UNAUTHORIZED, &body);
    set_header(&mut response, "www-authenticate", "Basic realm=\"Baremetal API\"");
    Err(Box::new(response))
}

fn by_name(call: &mut Call<'_>) -> Entry {
    let Some(token) = call.header("x-auth-token").map(str::to_owned) else {
        let message = "This server could not verify that you are authorized to access the document you \
                       requested. Either you supplied the wrong credentials (e.g., bad password), or your \
                       browser does not understand how to supply the credentials required.<br /><br />\n\n\n";
        let body = json!({"message": message, "code": "401 Unauthorized", "title": "Unauthorized"});
        return Err(Box::new(call::json(StatusCode::UNAUTHORIZED, &body)));
    };
    let user = token.split(':').next().unwrap_or_default().to_owned();
    if user != "admin" {
        call.refused =
            Some("Policy does not allow placement:resource_providers:list to be performed.".into());
    }
    Ok(user)
}

/// Base64 with padding, as basic authentication writes it.
fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for chunk in bytes.chunks(3) {
        let word = chunk
            .iter()
            .fold(0_u32, |word, byte| (word << 8) | u32::from(*byte))
            << (8 * (3 - chunk.len()));
        for place in 0..4 {
            let digit = DIGITS[(word >> (18 - 6 * place) & 63) as usize];
            text.push(if place <= chunk.len() { digit as char } else { '=' });
        }
    }
    text
}
