//! Plain calls to the lab's services: an operator, or an unfixed Nova, or a witness. Shares no code with the program
//! under test.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use http::{Method, StatusCode};
use serde_json::{Value, json};
use unprovision_session::Service;
use uuid::Uuid;

use super::{Lab, LabError, Proxies};

/// A locked node answers after three seconds, a busy machine later.
const TIMEOUT: Duration = Duration::from_secs(60);

/// Makes calls, as the system's administrator to Ironic and the project's to Placement. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Api {
    http: reqwest::Client,
    keystone: String,
    ironic: String,
    placement: String,
    system_token: String,
    project_token: String,
}

/// Whether a node is free for the next instance, by what Ironic says of it. Its own idea, so that it cannot share a
/// mistake with what it judges.
pub fn is_free(node: &Value) -> bool {
    node["provision_state"] == "available"
        && node["instance_uuid"].is_null()
        && node["maintenance"] == false
        && node["power_state"].as_str().is_some_and(|power| power != "error")
        && node["retired"] != true
}

pub(super) fn client() -> Result<reqwest::Client, LabError> {
    let client = reqwest::Client::builder()
        .timeout(TIMEOUT)
        .pool_max_idle_per_host(0)
        .no_proxy();
    client.build().map_err(|error| LabError::Setup(error.to_string()))
}

impl Lab {
    /// Calls directly to the services.
    ///
    /// # Errors
    ///
    /// Where Keystone does not let us in.
    pub async fn api(&self) -> Result<Api, LabError> {
        let http = client()?;
        Ok(Api {
            system_token: self.login(&http, &json!({ "system": { "all": true } })).await?,
            project_token: self.login(&http, &self.project()).await?,
            http,
            keystone: self.file.keystone_url.clone(),
            ironic: self.file.ironic_url.clone(),
            placement: self.file.placement_url.clone(),
        })
    }

    /// The administrator's project, as a scope.
    pub(super) fn project(&self) -> Value {
        let domain = json!({ "id": self.file.admin.project_domain_id });
        json!({ "project": { "name": self.file.admin.project_name, "domain": domain } })
    }

    pub(super) async fn login(&self, http: &reqwest::Client, scope: &Value) -> Result<String, LabError> {
        let who = &self.file.admin;
        let user =
            json!({ "name": who.username, "password": who.password, "domain": { "id": who.user_domain_id } });
        let identity = json!({ "methods": ["password"], "password": { "user": user } });
        let failed = |problem: String| LabError::Call {
            call: "log in".to_owned(),
            problem,
        };
        let url = format!("{}/auth/tokens", self.file.keystone_url);
        let body = json!({ "auth": { "identity": identity, "scope": scope } });
        let answer = http.post(url).json(&body).send().await;
        let answer = answer.map_err(|error| failed(error.to_string()))?;
        let token = answer.headers().get("x-subject-token");
        let token = token.and_then(|token| token.to_str().ok());
        token
            .map(str::to_owned)
            .ok_or_else(|| failed(answer.status().to_string()))
    }
}

impl Api {
    /// The same calls through proxies, so that they are on record.
    #[must_use]
    pub fn through(&self, proxies: &Proxies) -> Self {
        let (ironic, placement) = (
            proxies.ironic.url().to_owned(),
            proxies.placement.url().to_owned(),
        );
        Self {
            ironic,
            placement,
            ..self.clone()
        }
    }

    /// One call; an answer of any status is fine.
    ///
    /// # Errors
    ///
    /// Where there is no answer.
    pub async fn ask(
        &self,
        service: Service,
        method: Method,
        path: &str,
        body: &Value,
    ) -> Result<(StatusCode, Value), LabError> {
        let (root, token, name, version) = match service {
            Service::Ironic => (
                &self.ironic,
                &self.system_token,
                "X-OpenStack-Ironic-API-Version",
                "1.90",
            ),
            Service::Placement => (
                &self.placement,
                &self.project_token,
                "OpenStack-API-Version",
                "placement 1.39",
            ),
            Service::Nova => return Err(LabError::NoNova),
        };
        let mut request = self.http.request(method.clone(), format!("{root}{path}"));
        request = request.header("X-Auth-Token", token).header(name, version);
        if !body.is_null() {
            request = request.json(body);
        }
        let failed = |error: reqwest::Error| LabError::Call {
            call: format!("{method} {path}"),
            problem: error.to_string(),
        };
        let answer = request.send().await.map_err(failed)?;
        let status = answer.status();
        let bytes = answer.bytes().await.map_err(failed)?;
        Ok((status, serde_json::from_slice(&bytes).unwrap_or_default()))
    }

    /// One call that must succeed.
    ///
    /// # Errors
    ///
    /// Where it does not.
    pub async fn call(
        &self,
        service: Service,
        method: Method,
        path: &str,
        body: &Value,
    ) -> Result<Value, LabError> {
        let (status, answer) = self.ask(service, method.clone(), path, body).await?;
        if status.is_success() {
            return Ok(answer);
        }
        Err(LabError::Call {
            call: format!("{method} {path}"),
            problem: format!("{status} {answer}"),
        })
    }

    async fn get(&self, service: Service, path: &str) -> Result<Value, LabError> {
        self.call(service, Method::GET, path, &Value::Null).await
    }

    /// A node.
    ///
    /// # Errors
    ///
    /// As of [`Api::call`]; so for all that follow.
    pub async fn node(&self, node: Uuid) -> Result<Value, LabError> {
        self.get(Service::Ironic, &format!("/v1/nodes/{node}")).await
    }

    /// All nodes of a class, as far as it matters whether they are free.
    pub async fn nodes(&self, resource_class: &str) -> Result<BTreeMap<Uuid, Value>, LabError> {
        let fields = "uuid,provision_state,instance_uuid,maintenance,power_state,retired";
        let path = format!("/v1/nodes?resource_class={resource_class}&fields={fields}");
        let answer = self.get(Service::Ironic, &path).await?;
        let nodes = answer["nodes"].as_array().into_iter().flatten();
        Ok(nodes
            .filter_map(|node| Some((node["uuid"].as_str()?.parse().ok()?, node.clone())))
            .collect())
    }

    /// Asks for a provision state.
    pub async fn provision(&self, node: Uuid, target: &str) -> Result<(), LabError> {
        let path = format!("/v1/nodes/{node}/states/provision");
        self.call(Service::Ironic, Method::PUT, &path, &json!({ "target": target }))
            .await
            .map(drop)
    }

    /// The providers that Placement offers for one unit of a class.
    pub async fn candidates(&self, class: &str) -> Result<BTreeSet<Uuid>, LabError> {
        let path = format!("/allocation_candidates?resources={class}:1");
        let answer = self.get(Service::Placement, &path).await?;
        let providers = answer["provider_summaries"].as_object().into_iter().flatten();
        Ok(providers.filter_map(|(uuid, _)| uuid.parse().ok()).collect())
    }

    /// The same for a query that forbids this trait, which must exist.
    pub async fn candidates_forbidding(&self, class: &str, name: &str) -> Result<BTreeSet<Uuid>, LabError> {
        let path = format!("/allocation_candidates?resources={class}:1&required=!{name}");
        let answer = self.get(Service::Placement, &path).await?;
        let providers = answer["provider_summaries"].as_object().into_iter().flatten();
        Ok(providers.filter_map(|(uuid, _)| uuid.parse().ok()).collect())
    }

    /// Makes sure that Placement knows a trait.
    pub async fn create_trait(&self, name: &str) -> Result<(), LabError> {
        let path = format!("/traits/{name}");
        self.call(Service::Placement, Method::PUT, &path, &Value::Null)
            .await
            .map(drop)
    }

    /// Who holds something of a provider.
    pub async fn holders(&self, provider: Uuid) -> Result<BTreeSet<Uuid>, LabError> {
        let answer = self
            .get(
                Service::Placement,
                &format!("/resource_providers/{provider}/allocations"),
            )
            .await?;
        let holders = answer["allocations"].as_object().into_iter().flatten();
        Ok(holders.filter_map(|(uuid, _)| uuid.parse().ok()).collect())
    }

    /// What a consumer holds, as Placement says it.
    pub async fn consumer(&self, consumer: Uuid) -> Result<Value, LabError> {
        self.get(Service::Placement, &format!("/allocations/{consumer}"))
            .await
    }

    /// A provider's inventories, as Placement says them.
    pub async fn inventories(&self, provider: Uuid) -> Result<Value, LabError> {
        self.get(
            Service::Placement,
            &format!("/resource_providers/{provider}/inventories"),
        )
        .await
    }

    /// Replaces a provider's inventories.
    pub async fn set_inventories(&self, provider: Uuid, new: &Value) -> Result<(), LabError> {
        let path = format!("/resource_providers/{provider}/inventories");
        self.call(Service::Placement, Method::PUT, &path, new)
            .await
            .map(drop)
    }

    /// Takes everything from a consumer without asking for its generation, as Nova does.
    pub async fn drop_consumer(&self, consumer: Uuid) -> Result<(), LabError> {
        let path = format!("/allocations/{consumer}");
        self.call(Service::Placement, Method::DELETE, &path, &Value::Null)
            .await
            .map(drop)
    }

    /// Makes a token of anybody's worthless.
    pub async fn revoke(&self, token: &http::HeaderValue) -> Result<(), LabError> {
        let request = self.http.delete(format!("{}/auth/tokens", self.keystone));
        let request = request
            .header("X-Auth-Token", &self.system_token)
            .header("X-Subject-Token", token);
        let failed = |problem: String| LabError::Call {
            call: "revoke a token".to_owned(),
            problem,
        };
        let answer = request.send().await.map_err(|error| failed(error.to_string()))?;
        match answer.status() {
            StatusCode::NO_CONTENT => Ok(()),
            other => Err(failed(other.to_string())),
        }
    }
}
