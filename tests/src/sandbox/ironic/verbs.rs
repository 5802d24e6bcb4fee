//! What may be asked of a node: provision verbs, power, maintenance.
//!
//! The table of verbs is this sandbox's own, so that a client's table is checked against another one.

use http::StatusCode;
use serde_json::{Value, json};
use uuid::Uuid;

use super::super::call::{self, Call, set_header};
use super::super::world::World;
use super::State::{self, *};
use super::{Answer, Refusal, change, object};

/// A verb: its names, the minor version that brought it, and the states in which it is legal.
struct Verb {
    name: &'static str,
    since: u16,
    from: &'static [State],
}

const DELETABLE: &[State] = &[
    Active,
    DeployWait,
    DeployFailed,
    Error,
    Rescue,
    RescueWait,
    RescueFailed,
    UnrescueFailed,
    ServiceWait,
    ServiceFailed,
];
const ABORTABLE: &[State] = &[
    CleanWait,
    CleanHold,
    DeployWait,
    DeployHold,
    InspectWait,
    RescueWait,
    ServiceWait,
    ServiceHold,
    ServiceFailed,
];

#[rustfmt::skip]
const VERBS: &[Verb] = &[
    Verb { name: "active", since: 1, from: &[Available, DeployFailed] },
    Verb { name: "deploy", since: 73, from: &[Available, DeployFailed] },
    Verb { name: "rebuild", since: 1, from: &[Active, DeployFailed, Error] },
    Verb { name: "deleted", since: 1, from: DELETABLE },
    Verb { name: "undeploy", since: 73, from: DELETABLE },
    Verb { name: "manage", since: 4, from: &[Enroll, Available, CleanFailed, InspectFailed, AdoptFailed] },
    Verb { name: "provide", since: 4, from: &[Manageable] },
    Verb { name: "inspect", since: 6, from: &[Manageable, InspectFailed] },
    Verb { name: "abort", since: 13, from: ABORTABLE },
    Verb { name: "clean", since: 15, from: &[Manageable] },
    Verb { name: "adopt", since: 17, from: &[Manageable, AdoptFailed] },
    Verb { name: "rescue", since: 38, from: &[Active, Rescue, RescueFailed, UnrescueFailed, ServiceFailed] },
    Verb { name: "unrescue", since: 38, from: &[Rescue, RescueFailed, UnrescueFailed] },
    Verb { name: "unhold", since: 85, from: &[CleanHold, DeployHold, ServiceHold] },
    Verb { name: "service", since: 87, from: &[Active, ServiceFailed, ServiceHold] },
];

impl World {
    pub(super) fn set_provision(&mut self, call: &Call<'_>, minor: u16, uuid: Uuid) -> Answer {
        let body = object(call)?;
        let target = body["target"]
            .as_str()
            .ok_or_else(|| Refusal::bad("Missing mandatory parameter: target"))?;
        let node = self.have(uuid)?;
        let state = node.provision_state;
        let verb = VERBS.iter().find(|verb| verb.name == target);
        let too_new = verb.is_some_and(|verb| verb.since > minor);
        // Of the newest verbs the real service looks at the state first.
        let looked_at_late = matches!(target, "unhold" | "service");
        if too_new && !looked_at_late {
            return Err(Refusal::not_acceptable());
        }
        if matches!(target, "active" | "deploy" | "rebuild") && node.maintenance {
            return Err(in_maintenance(uuid, "provisioning"));
        }
        if !verb.is_some_and(|verb| verb.from.contains(&state)) {
            // A node at work is a conflict, not a mistake: the client shall come again.
            if let Some(host) = &node.reservation {
                return Err(Refusal::locked(node, host));
            }
            return Err(Refusal::bad(format!(
                "The requested action \"{target}\" can not be performed on node \"{uuid}\" while it is in \
                 state \"{state}\"."
            )));
        }
        if too_new {
            return Err(Refusal::not_acceptable());
        }
        check_parameters(target, &body)?;
        self.take_lock(uuid)?;
        self.check_limits(uuid, target)?;
        self.ironic_verb(uuid, target);
        let mut response = call::empty(StatusCode::ACCEPTED);
        let location = format!("{}/v1/nodes/{uuid}/states", self.config.ironic.base_url);
        set_header(&mut response, "location", &location);
        Ok(response)
    }

    /// What the conductor checks before it starts.
    fn check_limits(&self, uuid: Uuid, target: &str) -> Result<(), Refusal> {
        let node = self.have(uuid)?;
        let config = &self.config.ironic;
        let action = match target {
            "deleted" | "undeploy" => "unprovisioning",
            "clean" => "cleaning",
            _ => "",
        };
        let busy = || {
            let states = [Deleting, Cleaning, CleanWait];
            self.nodes
                .values()
                .filter(|node| states.contains(&node.provision_state))
                .count()
        };
        if !action.is_empty() && config.max_concurrent_clean.is_some_and(|most| busy() >= most) {
            let text = format!(
                "Unable to process request at this time. The concurrent action limit for {action} has been \
                 reached. Please contact your administrator and try again later."
            );
            return Err(Refusal::new(StatusCode::SERVICE_UNAVAILABLE, text));
        }
        if node.protected && matches!(target, "deleted" | "undeploy" | "rebuild") {
            return Err(change::protected(uuid));
        }
        let refused_in_maintenance = match target {
            "provide" => Some("providing"),
            "clean" => Some("cleaning"),
            "rescue" | "unrescue" => Some("rescuing"),
            _ => None,
        };
        if let Some(what) = refused_in_maintenance
            && node.maintenance
            && !config.allow_provisioning_in_maintenance
        {
            return Err(in_maintenance(uuid, what));
        }
        if target == "provide" && node.retired {
            let text =
                format!("The providing operation can't be performed on node {uuid} because it is retired.");
            return Err(Refusal::bad(text));
        }
        Ok(())
    }

    pub(super) fn set_power(&mut self, call: &Call<'_>, uuid: Uuid) -> Answer {
        let body = object(call)?;
        let state = match body["target"].as_str() {
            Some("power on" | "rebooting" | "soft rebooting") => "power on",
            Some("power off" | "soft power off") => "power off",
            other => {
                let text = format!("Invalid power state '{}' requested", other.unwrap_or_default());
                return Err(Refusal::bad(text));
            }
        };
        self.take_lock(uuid)?;
        self.edit_node(uuid, |node| node.power_state = Some(state.to_owned()));
        let mut response = call::empty(StatusCode::ACCEPTED);
        let location = format!("{}/v1/nodes/{uuid}/states", self.config.ironic.base_url);
        set_header(&mut response, "location", &location);
        Ok(response)
    }

    pub(super) fn set_maintenance(&mut self, call: &Call<'_>, uuid: Uuid, on: bool) -> Answer {
        let reason = if on && !call.body.is_empty() {
            object(call)?["reason"].as_str().map(str::to_owned)
        } else {
            None
        };
        self.take_lock(uuid)?;
        self.edit_node(uuid, |node| {
            node.maintenance = on;
            node.maintenance_reason = reason;
            if !on {
                node.fault = None;
            }
        });
        Ok(call::empty(StatusCode::ACCEPTED))
    }
}

/// Some verbs say nothing without a parameter.
fn check_parameters(target: &str, body: &Value) -> Result<(), Refusal> {
    let (needed, other) = match target {
        "clean" => ("clean_steps", "runbook"),
        "service" => ("service_steps", "runbook"),
        "rescue" => ("rescue_password", "rescue_password"),
        _ => return Ok(()),
    };
    let given = |key: &str| {
        body.get(key)
            .is_some_and(|value| !value.is_null() && *value != json!([]))
    };
    if given(needed) || given(other) {
        return Ok(());
    }
    Err(Refusal::bad(format!(
        "A \"{needed}\" is required when setting target provision state to {target}"
    )))
}

fn in_maintenance(uuid: Uuid, what: &str) -> Refusal {
    let text =
        format!("The {what} operation can't be performed on node {uuid} because it's in maintenance mode.");
    Refusal::bad(text)
}
