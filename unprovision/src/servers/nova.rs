//! [`Servers`] over Nova's API.

use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use http::{HeaderMap, Request, StatusCode};
use serde_json::Value;
use unprovision_session::{Transport, TransportError, in_full};
use uuid::Uuid;

use super::{Servers, ServersError};
use crate::core::Server;

/// All that is read has been there from the first version of this API on.
const VERSION: &str = "2.1";
/// Shown to administrators only.
const HOST: &str = "OS-EXT-SRV-ATTR:hypervisor_hostname";
const TASK: &str = "OS-EXT-STS:task_state";

/// Nova's API over a [`Transport`]; it only reads. Cheap to clone.
#[derive(Clone, Debug)]
pub struct NovaServers {
    transport: Arc<dyn Transport>,
}

impl NovaServers {
    /// Asks through this transport, whose base is Nova's root: paths begin with `/v2.1`.
    pub fn new(transport: Arc<dyn Transport>) -> Self {
        Self { transport }
    }

    /// What Nova says; only an answer of these statuses, with JSON of Nova's own, is one.
    async fn get(&self, path: &str, allowed: &[StatusCode]) -> Result<(StatusCode, Value), ServersError> {
        let away = |problem: String| ServersError::Away(format!("nova: GET {path}: {problem}"));
        let request = Request::get(path)
            .header("OpenStack-API-Version", format!("compute {VERSION}"))
            .header("X-OpenStack-Nova-API-Version", VERSION)
            .header("Accept", "application/json")
            .body(Bytes::new())
            .map_err(|error| away(error.to_string()))?;
        let answer = self.transport.send(request).await.map_err(|error| match error {
            TransportError::Endpoint { .. } => ServersError::Unreadable(in_full(&error, ": ")),
            TransportError::Login { transient: false, .. } => ServersError::NotLetIn(in_full(&error, ": ")),
            _ => away(in_full(&error, ": ")),
        })?;
        let status = answer.status();
        let body: Value = serde_json::from_slice(answer.body()).unwrap_or_default();
        let id = request_id(answer.headers());
        match status {
            StatusCode::UNAUTHORIZED => Err(ServersError::NotLetIn(format!(
                "nova: GET {path}: HTTP 401: the login is not accepted{id}"
            ))),
            StatusCode::FORBIDDEN => {
                let said = body["forbidden"]["message"].as_str().unwrap_or("not allowed");
                Err(ServersError::Unreadable(format!(
                    "nova: GET {path}: HTTP 403: {}{id}",
                    tidy(said)
                )))
            }
            _ if allowed.contains(&status) && body.is_object() => Ok((status, body)),
            _ => Err(away(format!("HTTP {}{id}", status.as_u16()))),
        }
    }

    /// A list that Nova gives to those only who may see the servers of all projects.
    async fn of_all_projects(&self, query: &str) -> Result<Vec<Value>, ServersError> {
        let path = format!("/v2.1/servers/detail?all_tenants=1&{query}");
        let (_, mut body) = self.get(&path, &[StatusCode::OK]).await?;
        match body["servers"].take() {
            Value::Array(servers) => Ok(servers),
            _ => Err(ServersError::Away(format!(
                "nova: GET {path}: the answer has no list of servers"
            ))),
        }
    }
}

#[async_trait]
impl Servers for NovaServers {
    async fn can_be_seen(&self) -> Result<(), ServersError> {
        let some = self.of_all_projects("limit=1").await?;
        some.iter().try_for_each(|server| read(server).map(drop))
    }

    async fn server(&self, uuid: Uuid) -> Result<Option<Server>, ServersError> {
        let path = format!("/v2.1/servers/{uuid}");
        let (status, body) = self.get(&path, &[StatusCode::OK, StatusCode::NOT_FOUND]).await?;
        if status == StatusCode::OK {
            return read(&body["server"]).map(Some);
        }
        // Something on the way may say 404 too: that is no word about a server.
        if !body["itemNotFound"].is_object() {
            let words = format!("nova: GET {path}: HTTP 404, and not from Nova");
            return Err(ServersError::Away(words));
        }
        // To whoever may not see it Nova says the same.
        let others = self.of_all_projects(&format!("uuid={uuid}")).await?;
        match others.iter().find(|server| server["id"] == uuid.to_string()) {
            None => Ok(None),
            Some(_) => Err(ServersError::Unreadable(format!(
                "nova: server {uuid} is in the list of all, but is not shown"
            ))),
        }
    }
}

fn read(server: &Value) -> Result<Server, ServersError> {
    let Some(status) = server["status"].as_str() else {
        return Err(ServersError::Away("nova: a server without a status".to_owned()));
    };
    let Some(host) = server.get(HOST) else {
        return Err(ServersError::Unreadable(
            "nova: it does not say which node a server is on: that is shown to the role `admin` only"
                .to_owned(),
        ));
    };
    let text = |value: &Value| value.as_str().filter(|text| !text.is_empty()).map(str::to_owned);
    Ok(Server {
        status: status.to_owned(),
        task: text(&server[TASK]),
        host: text(host),
    })
}

fn request_id(headers: &HeaderMap) -> String {
    let id = headers
        .get("x-openstack-request-id")
        .and_then(|id| id.to_str().ok());
    id.map(|id| format!(" [{id}]")).unwrap_or_default()
}

/// One line without control characters, which a terminal might obey.
fn tidy(text: &str) -> String {
    let clean = text.chars().map(|c| if c.is_control() { ' ' } else { c });
    clean.take(1000).collect()
}
