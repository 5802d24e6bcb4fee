//! The lab's Nova: servers on the lab's nodes, and nova-compute with one rule or the other.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::time::Duration;

use http::{Method, StatusCode};
use placement_client::ResourceClass;
use serde_json::{Value, json};
use uuid::Uuid;

use super::api::client;
use super::{Lab, LabError};

/// The lab's image service has one image, under any name.
const IMAGE: Uuid = Uuid::nil();

/// Nova's rule for `reserved`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// As shipped: a node in use is reserved.
    Current,
    /// As before 26.1 and 27.0.0: a node in use is not.
    Old,
}

/// How nova-compute is started.
#[derive(Clone, Copy, Debug)]
pub struct Compute {
    /// Its rule.
    pub rule: Rule,
    /// Between two passes of its tracker.
    pub interval: Duration,
    /// How long deletes are deferred; not at all where it is zero.
    pub reclaim: Duration,
    /// Two of them, which share the nodes.
    pub second: bool,
}

impl Compute {
    /// One, which defers nothing.
    pub fn new(rule: Rule, interval: Duration) -> Self {
        Self {
            rule,
            interval,
            reclaim: Duration::ZERO,
            second: false,
        }
    }
}

/// A project's administrator at Nova. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Nova {
    http: reqwest::Client,
    url: String,
    token: String,
}

/// A server, as far as it matters here.
#[derive(Clone, Debug)]
pub struct Server {
    /// `BUILD`, `ACTIVE`, `ERROR`, ...
    pub status: String,
    /// The node that it is on.
    pub node: Option<Uuid>,
    /// What went wrong.
    pub fault: Option<String>,
}

impl Lab {
    /// Calls to Nova.
    ///
    /// # Errors
    ///
    /// Where there is none, or Keystone does not let us in.
    pub async fn nova(&self) -> Result<Nova, LabError> {
        let http = client()?;
        Ok(Nova {
            url: self.file.nova_url.clone().ok_or(LabError::NoNova)?,
            token: self.login(&http, &self.project()).await?,
            http,
        })
    }

    /// Starts nova-compute, or starts it anew.
    ///
    /// # Errors
    ///
    /// Where the script fails; so for all that follow.
    pub async fn compute(&self, how: &Compute) -> Result<(), LabError> {
        let rule = match how.rule {
            Rule::Current => "current",
            Rule::Old => "old",
        };
        let (interval, reclaim) = (
            how.interval.as_secs().to_string(),
            how.reclaim.as_secs().to_string(),
        );
        let mut args = vec![rule, "--interval", &interval, "--reclaim", &reclaim];
        if how.second {
            args.push("--second");
        }
        self.run("compute", args).await.map(drop)
    }

    /// Takes one service of a lab with a Nova away.
    pub async fn stop(&self, service: &str) -> Result<(), LabError> {
        self.run("down", ["--only", service]).await.map(drop)
    }

    /// Brings back what was taken away, but nova-compute.
    pub async fn bring_back(&self) -> Result<(), LabError> {
        let dir = self.file.dir.clone().into_os_string();
        let args = ["--nova", "current", "--proxied", "--notify", "--dir"].map(OsString::from);
        super::lab("up", args.into_iter().chain([dir])).await.map(drop)
    }

    /// What nova-compute has logged so far.
    pub fn log_of_compute(&self) -> Result<String, LabError> {
        let path = self.file.dir.join("log/nova-compute.log");
        std::fs::read_to_string(&path).map_err(|error| LabError::File {
            path,
            problem: error.to_string(),
        })
    }
}

impl Nova {
    async fn ask(&self, method: Method, path: &str, body: &Value) -> Result<(StatusCode, Value), LabError> {
        let failed = |error: reqwest::Error| LabError::Call {
            call: format!("{method} {path}"),
            problem: error.to_string(),
        };
        let mut request = self
            .http
            .request(method.clone(), format!("{}{path}", self.url))
            .header("X-Auth-Token", &self.token)
            .header("X-OpenStack-Nova-API-Version", "2.90");
        if !body.is_null() {
            request = request.json(body);
        }
        let answer = request.send().await.map_err(failed)?;
        let status = answer.status();
        let bytes = answer.bytes().await.map_err(failed)?;
        Ok((status, serde_json::from_slice(&bytes).unwrap_or_default()))
    }

    async fn call(&self, method: Method, path: &str, body: &Value) -> Result<Value, LabError> {
        let (status, answer) = self.ask(method.clone(), path, body).await?;
        if status.is_success() {
            return Ok(answer);
        }
        Err(LabError::Call {
            call: format!("{method} {path}"),
            problem: format!("{status} {answer}"),
        })
    }

    /// A new flavor for one unit of a class, and nothing else.
    ///
    /// # Errors
    ///
    /// Where Nova refuses; so for all that follow.
    pub async fn flavor(&self, class: &ResourceClass) -> Result<String, LabError> {
        let new = json!({ "flavor": { "name": class.as_str(), "vcpus": 1, "ram": 1, "disk": 1 } });
        let made = self.call(Method::POST, "/flavors", &new).await?;
        let id = text(&made["flavor"]["id"])?;
        let resources = json!({ "extra_specs": {
            format!("resources:{class}"): "1",
            "resources:VCPU": "0", "resources:MEMORY_MB": "0", "resources:DISK_GB": "0",
        } });
        let path = format!("/flavors/{id}/os-extra_specs");
        self.call(Method::POST, &path, &resources).await?;
        Ok(id)
    }

    /// Asks for a server; where a node is named, the scheduler is asked for just that one.
    pub async fn create(&self, name: &str, flavor: &str, on: Option<Uuid>) -> Result<Uuid, LabError> {
        let mut server = json!({ "name": name, "flavorRef": flavor, "imageRef": IMAGE, "networks": "none" });
        if let Some(node) = on {
            server["hypervisor_hostname"] = json!(node);
        }
        let made = self
            .call(Method::POST, "/servers", &json!({ "server": server }))
            .await?;
        uuid(&made["server"]["id"])
    }

    /// A server, if there is one.
    pub async fn server(&self, server: Uuid) -> Result<Option<Server>, LabError> {
        let path = format!("/servers/{server}");
        let (status, answer) = self.ask(Method::GET, &path, &Value::Null).await?;
        if status == StatusCode::NOT_FOUND {
            return Ok(None);
        }
        let shown = &answer["server"];
        Ok(Some(Server {
            status: text(&shown["status"])?,
            node: uuid(&shown["OS-EXT-SRV-ATTR:hypervisor_hostname"]).ok(),
            fault: shown["fault"]["message"].as_str().map(str::to_owned),
        }))
    }

    /// Asks for a server's deletion.
    pub async fn delete(&self, server: Uuid) -> Result<(), LabError> {
        self.call(Method::DELETE, &format!("/servers/{server}"), &Value::Null)
            .await
            .map(drop)
    }

    /// Says that nova-compute is down, or no more, without waiting for Nova to notice.
    pub async fn force_down(&self, down: bool) -> Result<(), LabError> {
        let path = "/os-services?binary=nova-compute";
        let services = self.call(Method::GET, path, &Value::Null).await?;
        for service in services["services"].as_array().into_iter().flatten() {
            let path = format!("/os-services/{}", text(&service["id"])?);
            self.call(Method::PUT, &path, &json!({ "forced_down": down }))
                .await?;
        }
        Ok(())
    }

    /// The nodes that Nova knows.
    pub async fn nodes(&self) -> Result<BTreeSet<Uuid>, LabError> {
        let answer = self.call(Method::GET, "/os-hypervisors", &Value::Null).await?;
        let nodes = answer["hypervisors"].as_array().into_iter().flatten();
        Ok(nodes
            .filter_map(|node| uuid(&node["hypervisor_hostname"]).ok())
            .collect())
    }
}

fn text(value: &Value) -> Result<String, LabError> {
    let text = value.as_str().map(str::to_owned);
    text.ok_or_else(|| LabError::Setup(format!("Nova says {value} where a text should be")))
}

fn uuid(value: &Value) -> Result<Uuid, LabError> {
    text(value)?
        .parse()
        .map_err(|_| LabError::Setup(format!("Nova says {value} where a UUID should be")))
}
