//! When a node is really free: one predicate for the tear-down, the guard and the audit.

use std::fmt;

use ironic_client::{Node, PowerState, ProvisionState};

/// What keeps a node from being free.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotFree {
    /// It is not `available`.
    State(ProvisionState),
    /// It carries an instance.
    Instance(uuid::Uuid),
    /// It is in maintenance.
    Maintenance,
    /// Its power is unknown or in error.
    Power,
    /// It is retired. Nova does not look at that: the one point in which our rule is stricter.
    Retired,
}

impl fmt::Display for NotFree {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::State(state) => write!(f, "the node is `{state}`"),
            Self::Instance(instance) => write!(f, "the node carries instance {instance}"),
            Self::Maintenance => f.write_str("the node is in maintenance"),
            Self::Power => f.write_str("the node's power is unknown or in error"),
            Self::Retired => f.write_str("the node is retired"),
        }
    }
}

/// What keeps the node from being free by the rule of Nova's Ironic driver.
pub fn why_not_free_for_nova(node: &Node) -> Option<NotFree> {
    if node.provision_state != ProvisionState::Available {
        return Some(NotFree::State(node.provision_state.clone()));
    }
    if let Some(instance) = node.instance_uuid {
        return Some(NotFree::Instance(instance));
    }
    if node.maintenance {
        return Some(NotFree::Maintenance);
    }
    matches!(node.power_state, None | Some(PowerState::Error)).then_some(NotFree::Power)
}

/// What keeps the node from being free: Nova's rule, and a retired node is not free either.
pub fn why_not_free(node: &Node) -> Option<NotFree> {
    why_not_free_for_nova(node).or_else(|| node.retired.then_some(NotFree::Retired))
}

/// Whether the node is really free: **the** predicate, for the tear-down, the guard and the audit alike.
pub fn is_free(node: &Node) -> bool {
    why_not_free(node).is_none()
}
