//! Nova's API, as far as it can be asked for a server.

use bytes::Bytes;
use http::{Method, Response, StatusCode};
use serde_json::{Value, json};
use uuid::Uuid;

use super::super::call::{self, Call, set_header};
use super::super::world::World;
use super::Stage;

impl World {
    pub(crate) fn nova_api(&self, call: &Call<'_>) -> Response<Bytes> {
        let mut response = match (call.method, &call.parts()[..]) {
            (&Method::GET, ["v2.1", "servers", "detail"]) => self.show_servers(call),
            (&Method::GET, ["v2.1", "servers", server]) => self.show_server(call, server),
            _ => fault(StatusCode::NOT_FOUND, "The resource could not be found."),
        };
        set_header(&mut response, "x-openstack-request-id", &call.request_id);
        response
    }

    /// Whoever may not see a server is told that it is not there; its project's members are not told of its host.
    fn show_server(&self, call: &Call<'_>, server: &str) -> Response<Bytes> {
        let uuid = server.parse::<Uuid>().ok().filter(|_| call.refused.is_none());
        match uuid.and_then(|uuid| self.server_body(uuid)) {
            Some(body) => call::json(StatusCode::OK, &json!({ "server": body })),
            None => {
                let words = format!("Instance {server} could not be found.");
                let body = json!({ "itemNotFound": { "code": 404, "message": words } });
                call::json(StatusCode::NOT_FOUND, &body)
            }
        }
    }

    fn show_servers(&self, call: &Call<'_>) -> Response<Bytes> {
        if let Some(rule) = call
            .refused
            .as_ref()
            .filter(|_| call.param("all_tenants").is_some())
        {
            return fault(
                StatusCode::FORBIDDEN,
                &format!("Policy doesn't allow {rule} to be performed."),
            );
        }
        let wanted = call.param("uuid");
        let limit = call.param("limit").and_then(|limit| limit.parse().ok());
        let listed = |uuid: &Uuid| wanted.is_none_or(|wanted| wanted == uuid.to_string());
        let servers = self.nova.servers.iter();
        // A list leaves out those that may be restored, unless it is asked for them.
        let servers = servers.filter(|(uuid, server)| listed(uuid) && server.stage != Stage::SoftDeleted);
        let bodies = servers.filter_map(|(uuid, _)| self.server_body(*uuid));
        let bodies = bodies.take(limit.unwrap_or(1000)).collect::<Vec<_>>();
        call::json(StatusCode::OK, &json!({ "servers": bodies }))
    }

    fn server_body(&self, uuid: Uuid) -> Option<Value> {
        let server = self.nova.servers.get(&uuid)?;
        let (status, vm_state, task) = match server.stage {
            Stage::Scheduled => ("BUILD", "building", Some("scheduling")),
            Stage::Building => ("BUILD", "building", Some("spawning")),
            Stage::Active => ("ACTIVE", "active", None),
            Stage::Deleting => ("ACTIVE", "active", Some("deleting")),
            Stage::SoftDeleted => ("SOFT_DELETED", "soft-delete", None),
            Stage::Error => ("ERROR", "error", None),
            Stage::Deleted => return None,
        };
        Some(json!({
            "id": uuid,
            "status": status,
            "tenant_id": self.config.nova.project,
            "OS-EXT-STS:task_state": task,
            "OS-EXT-STS:vm_state": vm_state,
            "OS-EXT-SRV-ATTR:host": server.node.map(|_| "compute-1"),
            "OS-EXT-SRV-ATTR:hypervisor_hostname": server.node,
        }))
    }
}

fn fault(status: StatusCode, message: &str) -> Response<Bytes> {
    let name = match status {
        StatusCode::FORBIDDEN => "forbidden",
        _ => "badRequest",
    };
    let body = json!({ name: { "code": status.as_u16(), "message": message } });
    call::json(status, &body)
}
