//! What follows a failed tear-down or cleaning: an end with the reason, or the bounded cure that the caller asked for.

use ironic_client::{Fault, Node};

use super::rules::OnHeld;
use super::{Action, ActionKind, Case, Outcome, Stage, WaitFor};

/// `error` after a tear-down that we sent. Ironic has taken the instance from the node all the same.
pub(super) fn tear_down_failed(case: &Case, node: &Node) -> (Stage, OnHeld) {
    let again = case.spent(ActionKind::Unprovision, node) <= case.limits.retry_error;
    if again {
        return (
            Stage::InUse,
            OnHeld::Wait(WaitFor::Node(node.provision_state.clone())),
        );
    }
    let cure = "repeat it with `--retry-error 1`, or `openstack baremetal node undeploy NODE`";
    (Stage::Returning, failed("the tear-down failed", node, cure))
}

/// `error` after a tear-down that somebody else sent. Ironic may have taken the instance from the node all the same.
pub(super) fn left_in_error(node: &Node) -> OnHeld {
    failed(
        "the tear-down failed",
        node,
        "mend the cause, then `openstack baremetal node undeploy NODE`",
    )
}

/// `clean failed`: cured only where that was asked for, and never against a person's maintenance.
pub(super) fn cleaning_failed(case: &Case, node: &Node) -> OnHeld {
    if node.maintenance && node.fault != Some(Fault::CleanFailure) {
        let words = node.maintenance_reason.as_deref().unwrap_or("no reason given");
        let cure = format!(
            "somebody has put the node into maintenance ({words}); end that, then `manage` and `provide` it"
        );
        return failed("cleaning failed", node, &cure);
    }
    if case.spent(ActionKind::Provide, node) < case.limits.reclean {
        return OnHeld::Act(Action::Manage {
            since: node.provision_updated_at,
        });
    }
    let by_hand = "`openstack baremetal node manage NODE`, then `maintenance unset`, then `provide`";
    let cure = match case.is_guard() {
        true => by_hand.to_owned(),
        false => format!("repeat it with `--reclean 1`, or {by_hand}"),
    };
    failed("cleaning failed", node, &cure)
}

/// `manageable` is never free. It is on our way only while we cure a failed cleaning.
pub(super) fn manageable(case: &Case, node: &Node) -> OnHeld {
    let curing = case.spent(ActionKind::Manage, node) > case.spent(ActionKind::Provide, node);
    if !curing {
        let words = "the node is `manageable`: somebody works on it; `openstack baremetal node provide` lets it go on";
        return OnHeld::Wait(WaitFor::Person(words.to_owned()));
    }
    match (node.maintenance, &node.fault) {
        (true, Some(Fault::CleanFailure)) => OnHeld::Act(Action::ClearMaintenance {
            since: node.provision_updated_at,
        }),
        (true, _) => OnHeld::Wait(WaitFor::Maintenance(
            node.maintenance_reason.clone().unwrap_or_default(),
        )),
        (false, _) => OnHeld::Act(Action::Provide {
            since: node.provision_updated_at,
        }),
    }
}

fn failed(what: &str, node: &Node, cure: &str) -> OnHeld {
    match node.last_error.as_deref().filter(|text| !text.is_empty()) {
        Some(text) => OnHeld::End(Outcome::Failed, format!("{what}: {text}; {cure}")),
        None => OnHeld::Text(format!("{what}, Ironic gives no reason; {cure}")),
    }
}
