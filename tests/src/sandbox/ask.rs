//! Asking a world directly, for tests and searches that need no client.

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, Request, StatusCode, Uri};
use serde_json::Value;

use super::Service;
use super::call::Caller;
use super::world::World;

/// What a service said.
#[derive(Clone, Debug)]
pub struct Reply {
    /// The status.
    pub status: StatusCode,
    /// The headers.
    pub headers: HeaderMap,
    /// The body, or null where there is none.
    pub body: Value,
}

impl Reply {
    /// Ironic's error text, or Placement's; empty where there is none.
    pub fn error(&self) -> String {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        match self.body["error_message"].as_str() {
            Some(inner) => {
                let inner: Value = serde_json::from_str(inner).unwrap_or(Value::Null);
                let key = if inner["faultstring"].is_string() {
                    "faultstring"
                } else {
                    "description"
                };
                text(&inner[key])
            }
            None => text(&self.body["errors"][0]["detail"]),
        }
    }

    /// Placement's error code; empty where there is none.
    pub fn code(&self) -> &str {
        self.body["errors"][0]["code"].as_str().unwrap_or_default()
    }
}

impl World {
    /// Asks a service something at the present time, without authentication, in its newest version.
    pub fn ask(&mut self, service: Service, method: Method, path: &str, body: Option<Value>) -> Reply {
        self.ask_in(service, "latest", method, path, body)
    }

    /// The same in a version such as `1.80`; an empty one sends none.
    pub fn ask_in(
        &mut self,
        service: Service,
        version: &str,
        method: Method,
        path: &str,
        body: Option<Value>,
    ) -> Reply {
        let bytes = body.map(|body| body.to_string()).unwrap_or_default();
        let mut request = Request::new(Bytes::from(bytes));
        *request.method_mut() = method;
        *request.uri_mut() = path.parse().unwrap_or_else(|_| Uri::from_static("/"));
        request.extensions_mut().insert(Caller("test".into()));
        let header = match service {
            Service::Ironic => Some(("x-openstack-ironic-api-version", version.to_owned())),
            Service::Placement => Some(("openstack-api-version", format!("placement {version}"))),
            Service::Nova => Some(("openstack-api-version", format!("compute {version}"))),
            Service::Keystone => None,
        };
        if let Some((name, value)) = header.filter(|_| !version.is_empty())
            && let Ok(value) = HeaderValue::from_str(&value)
        {
            request.headers_mut().insert(name, value);
        }
        let response = self.handle(service, &request, self.now());
        Reply {
            status: response.status(),
            headers: response.headers().clone(),
            body: serde_json::from_slice(response.body()).unwrap_or(Value::Null),
        }
    }
}
