//! Logging in at Keystone: what is sent, and what is read from the answer.

use std::time::Duration;

use async_trait::async_trait;
use http::header::LOCATION;
use http::{HeaderMap, StatusCode};
use jiff::Timestamp;
use openstack::{Error, ErrorKind};
use reqwest::Client;
use secrecy::{ExposeSecret, SecretString};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::time::Instant;
use url::Url;

use super::catalog::Catalog;
use super::cloud_config::{ApplicationCredential, Domain, Identity, Named, Scope};
use super::http_client::{BodyError, causes, read_body};
use super::standing::Said;
use super::token_cache::{Login, Token};

/// The largest catalogs of real clouds have some 100 kB.
const MAX_ANSWER: usize = 8 * 1024 * 1024;

/// As much of Keystone's words as goes into a message.
const MAX_MESSAGE: usize = 500;

/// Logs in at one Keystone as one identity.
pub(super) struct Keystone {
    pub(super) client: Client,
    /// Ends with `/v3`.
    pub(super) auth_url: Url,
    pub(super) identity: Identity,
    pub(super) scope: Option<Scope>,
}

#[derive(Deserialize)]
struct Answer {
    token: TokenBody,
}

#[derive(Deserialize)]
struct TokenBody {
    issued_at: Timestamp,
    expires_at: Timestamp,
    catalog: Option<Catalog>,
    #[serde(flatten)]
    said: Said,
}

#[async_trait]
impl Login for Keystone {
    async fn login(&self) -> Result<Token, Error> {
        let result = self.try_login().await;
        match &result {
            Ok(_) => tracing::info!(keystone = %self.auth_url, "logged in"),
            Err(error) => tracing::warn!(keystone = %self.auth_url, %error, "login failed"),
        }
        result
    }
}

impl Keystone {
    async fn try_login(&self) -> Result<Token, Error> {
        // The life of the token begins no later than now; what its answer takes is lost.
        let asked = Instant::now();
        let url = format!("{}/auth/tokens", self.auth_url);
        let request = self
            .client
            .post(url)
            .header("accept", "application/json")
            .json(&self.body());
        let response = request.send().await.map_err(|error| self.unreachable(&error))?;
        let (status, headers) = (response.status(), response.headers().clone());
        let body = read_body(response, MAX_ANSWER)
            .await
            .map_err(|error| match error {
                BodyError::TooLarge => self.error(ErrorKind::InvalidResponse, "its answer is too large"),
                BodyError::Broken(error) => self.unreachable(&error),
            })?;
        if !status.is_success() {
            return Err(self.refused(status, &headers, &body));
        }
        self.token(asked, &headers, &body)
    }

    fn token(&self, asked: Instant, headers: &HeaderMap, body: &[u8]) -> Result<Token, Error> {
        let unreadable = |what: &str| self.error(ErrorKind::InvalidResponse, what);
        let value = headers
            .get("x-subject-token")
            .ok_or_else(|| unreadable("its answer has no X-Subject-Token; is this Keystone?"))?;
        // Not serde's message: it quotes what it does not understand.
        let answer: Answer = serde_json::from_slice(body)
            .map_err(|_| unreadable("its answer is not what describes a token"))?;
        // Both by Keystone's clock: so ours may be wrong.
        let lifetime = answer.token.expires_at.duration_since(answer.token.issued_at);
        let lifetime = Duration::try_from(lifetime).unwrap_or_default();
        let catalog = answer.token.catalog.unwrap_or_default();
        let token = Token::new(value.clone(), catalog, asked, lifetime);
        Ok(token.of(answer.token.said.into()))
    }

    fn refused(&self, status: StatusCode, headers: &HeaderMap, body: &[u8]) -> Error {
        let kind = match status {
            // Not a verdict on us: these pass.
            StatusCode::TOO_MANY_REQUESTS | StatusCode::REQUEST_TIMEOUT => ErrorKind::OperationFailed,
            other => ErrorKind::from(other),
        };
        let mut message = format!("HTTP {}", status.as_u16());
        if let Some(to) = headers.get(LOCATION).and_then(|to| to.to_str().ok()) {
            message.push_str(&format!(
                ", it has moved to {to}: that is not followed, correct auth_url"
            ));
        }
        let words = serde_json::from_slice::<Value>(body)
            .ok()
            .and_then(|body| body.pointer("/error/message")?.as_str().map(str::to_owned));
        if let Some(words) = words {
            message.push_str(": ");
            message.extend(self.without_secrets(words).chars().take(MAX_MESSAGE));
        }
        if let Some(id) = headers
            .get("x-openstack-request-id")
            .and_then(|id| id.to_str().ok())
        {
            message.push_str(&format!(" [{id}]"));
        }
        self.error(kind, &message).with_status(status)
    }

    /// Keystone may quote what it did not like of a request.
    fn without_secrets(&self, text: String) -> String {
        match self.secret().expose_secret() {
            "" => text,
            secret => text.replace(secret, "***"),
        }
    }

    fn unreachable(&self, error: &reqwest::Error) -> Error {
        let kind = if error.is_timeout() {
            ErrorKind::OperationTimedOut
        } else {
            ErrorKind::ProtocolError
        };
        self.error(kind, &causes(error))
    }

    fn error(&self, kind: ErrorKind, message: &str) -> Error {
        Error::new(kind, format!("Keystone at {}: {message}", self.auth_url))
    }

    fn secret(&self) -> &SecretString {
        match &self.identity {
            Identity::Password { password, .. } => password,
            Identity::Token(token) => token,
            Identity::ApplicationCredential { secret, .. } => secret,
        }
    }

    fn body(&self) -> Value {
        let secret = self.secret().expose_secret();
        let identity = match &self.identity {
            Identity::Password { user, .. } => {
                let mut user = named(user);
                user["password"] = secret.into();
                json!({"methods": ["password"], "password": {"user": user}})
            }
            Identity::Token(_) => json!({"methods": ["token"], "token": {"id": secret}}),
            Identity::ApplicationCredential { credential, .. } => {
                let credential = match credential {
                    ApplicationCredential::Id(id) => json!({"id": id, "secret": secret}),
                    ApplicationCredential::Name { name, user } => {
                        json!({"name": name, "user": named(user), "secret": secret})
                    }
                };
                json!({"methods": ["application_credential"], "application_credential": credential})
            }
        };
        let mut auth = json!({"identity": identity});
        match &self.scope {
            Some(Scope::Project(project)) => auth["scope"] = json!({"project": named(project)}),
            Some(Scope::Domain(own)) => auth["scope"] = json!({"domain": domain(own)}),
            Some(Scope::System) => auth["scope"] = json!({"system": {"all": true}}),
            None => {}
        }
        json!({"auth": auth})
    }
}

fn named(named: &Named) -> Value {
    match named {
        Named::Id(id) => json!({"id": id}),
        Named::Name { name, domain: own } => json!({"name": name, "domain": domain(own)}),
    }
}

fn domain(domain: &Domain) -> Value {
    match domain {
        Domain::Id(id) => json!({"id": id}),
        Domain::Name(name) => json!({"name": name}),
    }
}
