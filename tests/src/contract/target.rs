//! Where contracts are asked: whatever answers HTTP requests to the three services.

use async_trait::async_trait;
use bytes::Bytes;
use http::{Request, Response};
use serde::Deserialize;
use serde_json::{Map, Value};
use std::fs;
use std::path::Path;
use std::time::Duration;

use super::{Error, Service};

/// How long one request may take. A locked node answers after three seconds, a busy machine later.
const TIMEOUT: Duration = Duration::from_secs(60);

/// Three services that answer.
#[async_trait]
pub trait Target: Send {
    /// Where a service is, without a trailing slash; for Keystone without `/v3`.
    fn root(&self, service: Service) -> &str;

    /// Who asks: an administrator.
    fn identity(&self) -> &Identity;

    /// Further variables for files that need more than an administrator.
    fn variables(&self) -> Vec<(String, String)> {
        Vec::new()
    }

    /// Sends one request, exactly as it is, and waits for the answer.
    async fn send(&mut self, request: Request<Bytes>) -> Result<Response<Bytes>, Error>;
}

/// A user with rights on the whole system and in a project.
#[derive(Clone, Debug, Deserialize)]
pub struct Identity {
    /// The user's name.
    pub username: String,
    /// The user's password.
    pub password: String,
    /// The user's domain, by ID.
    pub user_domain_id: String,
    /// The project's name.
    pub project_name: String,
    /// The project's domain, by ID.
    pub project_domain_id: String,
}

/// Services behind sockets.
#[derive(Clone, Debug)]
pub struct HttpTarget {
    client: reqwest::Client,
    keystone: String,
    ironic: String,
    placement: String,
    identity: Identity,
    variables: Vec<(String, String)>,
}

/// What `lab.json` says, as far as it matters here.
#[derive(Deserialize)]
struct Lab {
    keystone_url: String,
    ironic_url: String,
    placement_url: String,
    admin: Identity,
    #[serde(flatten)]
    rest: Map<String, Value>,
}

/// Where `lab.json` has the values of further variables.
const LAB_VARIABLES: [(&str, &str); 7] = [
    ("reader_username", "/reader/username"),
    ("reader_password", "/reader/password"),
    ("service_username", "/service_user/username"),
    ("service_password", "/service_user/password"),
    ("service_project", "/service_user/project_name"),
    ("application_id", "/application_credential/id"),
    ("application_secret", "/application_credential/secret"),
];

impl HttpTarget {
    /// Services at these URLs; Keystone's may end in `/v3`.
    pub fn new(keystone: &str, ironic: &str, placement: &str, identity: Identity) -> Result<Self, Error> {
        let client = reqwest::Client::builder()
            .timeout(TIMEOUT)
            // A kept connection that the server closes would look like a wrong answer.
            .pool_max_idle_per_host(0)
            .redirect(reqwest::redirect::Policy::none())
            .no_proxy()
            .build()
            .map_err(|error| Error::Request(error.to_string()))?;
        let keystone = keystone.trim_end_matches('/');
        Ok(Self {
            client,
            keystone: keystone.strip_suffix("/v3").unwrap_or(keystone).to_owned(),
            ironic: ironic.trim_end_matches('/').to_owned(),
            placement: placement.trim_end_matches('/').to_owned(),
            identity,
            variables: Vec::new(),
        })
    }

    /// The services that a `lab.json` describes, as `tests/lab/lab up` writes it.
    pub fn from_lab(path: &Path) -> Result<Self, Error> {
        let text = fs::read(path).map_err(|source| Error::Read {
            path: path.to_owned(),
            source,
        })?;
        let lab: Lab = serde_json::from_slice(&text).map_err(|error| Error::Parse {
            path: path.to_owned(),
            problem: error.to_string(),
        })?;
        let mut target = Self::new(&lab.keystone_url, &lab.ironic_url, &lab.placement_url, lab.admin)?;
        let rest = Value::Object(lab.rest);
        let text = |pointer: &str| rest.pointer(pointer).and_then(Value::as_str).map(str::to_owned);
        let values = LAB_VARIABLES
            .iter()
            .filter_map(|(name, place)| Some(((*name).to_owned(), text(place)?)));
        target.variables = values.collect();
        Ok(target)
    }
}

#[async_trait]
impl Target for HttpTarget {
    fn root(&self, service: Service) -> &str {
        match service {
            Service::Keystone => &self.keystone,
            Service::Ironic => &self.ironic,
            Service::Placement => &self.placement,
        }
    }

    fn identity(&self) -> &Identity {
        &self.identity
    }

    fn variables(&self) -> Vec<(String, String)> {
        self.variables.clone()
    }

    async fn send(&mut self, request: Request<Bytes>) -> Result<Response<Bytes>, Error> {
        let url = request.uri().to_string();
        let no_answer = |error: reqwest::Error| Error::NoAnswer {
            url: url.clone(),
            problem: causes(&error),
        };
        let request = reqwest::Request::try_from(request).map_err(no_answer)?;
        let response: Response<reqwest::Body> = self.client.execute(request).await.map_err(no_answer)?.into();
        let (head, body) = response.into_parts();
        let body = reqwest::Response::from(Response::new(body))
            .bytes()
            .await
            .map_err(no_answer)?;
        Ok(Response::from_parts(head, body))
    }
}

/// An error and all that caused it, in one line.
fn causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        next = cause.source();
    }
    text
}
