//! The version documents, conductors and drivers.

use bytes::Bytes;
use http::{Response, StatusCode};
use serde_json::{Value, json};

use super::super::call;
use super::super::world::World;
use super::{Answer, Condition, Refusal, view};

/// The collections of the version document and the minor version that brought each.
const COLLECTIONS: &[(&str, u16)] = &[
    ("chassis", 1),
    ("nodes", 1),
    ("ports", 1),
    ("drivers", 1),
    ("lookup", 22),
    ("heartbeat", 22),
    ("portgroups", 23),
    ("volume", 32),
    ("conductors", 49),
    ("allocations", 52),
    ("events", 54),
    ("deploy_templates", 55),
    ("shards", 82),
    ("continue_inspection", 84),
    ("runbooks", 92),
    ("inspection_rules", 96),
];

impl World {
    pub(super) fn ironic_root(&self) -> Response<Bytes> {
        let version = self.ironic_version_document();
        let body = json!({
            "name": "OpenStack Ironic API",
            "description": "Ironic is an OpenStack project which enables the provision and management of \
                            baremetal machines.",
            "default_version": version,
            "versions": [version],
        });
        call::json(StatusCode::OK, &body)
    }

    pub(super) fn ironic_v1(&self, minor: u16) -> Response<Bytes> {
        let base = &self.config.ironic.base_url;
        let docs = "https://docs.openstack.org//ironic/latest/contributor//webapi.html";
        let mut body = json!({
            "id": "v1",
            "links": [
                {"href": format!("{base}/v1/"), "rel": "self"},
                {"href": docs, "rel": "describedby", "type": "text/html"},
            ],
            "media_types": {"base": "application/json", "type": "application/vnd.openstack.ironic.v1+json"},
            "version": self.ironic_version_document(),
        });
        if let Value::Object(body) = &mut body {
            for (name, _) in COLLECTIONS.iter().filter(|(_, since)| *since <= minor) {
                body.insert(
                    (*name).to_owned(),
                    view::links(&self.config.ironic, &format!("{name}/")),
                );
            }
        }
        call::json(StatusCode::OK, &body)
    }

    fn ironic_version_document(&self) -> Value {
        let config = &self.config.ironic;
        json!({
            "id": "v1",
            "links": [{"href": format!("{}/v1/", config.base_url), "rel": "self"}],
            "status": "CURRENT",
            "min_version": format!("1.{}", config.min_minor),
            "version": format!("1.{}", config.max_minor),
        })
    }

    pub(super) fn list_conductors(&self, minor: u16) -> Answer {
        if minor < 49 {
            return Err(Refusal::new(StatusCode::NOT_FOUND, "Not Found"));
        }
        let host = &self.config.ironic.conductor;
        let alive = self.conductor.condition == Condition::Alive;
        let conductor = json!({
            "hostname": host,
            "conductor_group": "",
            "alive": alive,
            "links": view::links(&self.config.ironic, &format!("conductors/{host}")),
        });
        Ok(call::json(StatusCode::OK, &json!({"conductors": [conductor]})))
    }

    pub(super) fn list_drivers(&self) -> Response<Bytes> {
        let driver = json!({
            "name": "fake-hardware",
            "hosts": [self.config.ironic.conductor],
            "type": "dynamic",
            "links": view::links(&self.config.ironic, "drivers/fake-hardware"),
        });
        call::json(StatusCode::OK, &json!({"drivers": [driver]}))
    }
}
