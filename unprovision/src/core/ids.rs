//! Identifiers that are derived from what they name, so that they are found again without memory.

use std::fmt;

use ironic_client::NodeUuid;
use jiff::Timestamp;
use placement_client::{Consumer, ConsumerType, ConsumerUuid};
use serde::{Deserialize, Serialize};
use uuid::{Uuid, uuid};

/// The namespace of our UUIDv5 identifiers.
const NAMESPACE: Uuid = uuid!("6d1c7c80-52a4-5d0c-9a1e-0c6e3f5b7a21");

/// The project that our consumers carry in Placement, unless configured otherwise.
pub const GUARD_PROJECT: &str = "2f9b6d4e-7b1a-5c3d-8e0f-a1b2c3d4e5f6";
/// The user that our consumers carry in Placement, unless configured otherwise.
pub const GUARD_USER: &str = "8a7c1e2f-3d4b-5a69-9788-b7c6d5e4f3a2";
/// The type that our consumers carry in Placement (API 1.38).
const GUARD_TYPE: &str = "UNPROVISION";

/// One node's way back. Asking twice for the same tear-down names the same case.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct CaseId(pub Uuid);

impl CaseId {
    /// The case of tearing down this instance on this node.
    pub fn tear_down(node: NodeUuid, instance: Uuid) -> Self {
        Self(derive(&format!("case/tear-down/{node}/{instance}")))
    }

    /// The case of a node that somebody else tears down.
    pub fn guard(node: NodeUuid, instance: Option<Uuid>, since: Option<Timestamp>) -> Self {
        Self(derive(&format!("case/guard/{node}/{}", leaving(instance, since))))
    }
}

impl fmt::Display for CaseId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The consumer that holds a node's provider on our behalf while this instance's node is on its way.
///
/// One per node *and* instance: Placement starts a consumer anew at generation 0 once it is empty, so a late
/// release of an old hold could match a new hold if both had the same UUID.
pub fn guard_consumer(node: NodeUuid, instance: Uuid) -> ConsumerUuid {
    ConsumerUuid(derive(&format!("hold/{node}/{instance}")))
}

/// The consumer of ours where nobody knows which instance leaves: one per node and departure.
pub fn guard_consumer_since(node: NodeUuid, since: Option<Timestamp>) -> ConsumerUuid {
    ConsumerUuid(derive(&format!("hold/{node}/{}", leaving(None, since))))
}

fn leaving(instance: Option<Uuid>, since: Option<Timestamp>) -> String {
    match (instance, since) {
        (Some(instance), _) => instance.to_string(),
        (None, Some(since)) => format!("since/{since}"),
        (None, None) => "unknown".to_owned(),
    }
}

/// Whom our consumers belong to.
pub fn guard_owner() -> Consumer {
    Consumer {
        project_id: GUARD_PROJECT.to_owned(),
        user_id: GUARD_USER.to_owned(),
        consumer_type: ConsumerType::try_from(GUARD_TYPE.to_owned()).ok(),
    }
}

fn derive(name: &str) -> Uuid {
    Uuid::new_v5(&NAMESPACE, name.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hold_belongs_to_one_node_and_one_instance() {
        let (node, other_node) = (NodeUuid(Uuid::from_u128(1)), NodeUuid(Uuid::from_u128(2)));
        let (old, new) = (Uuid::from_u128(3), Uuid::from_u128(4));
        assert_eq!(guard_consumer(node, old), guard_consumer(node, old));
        assert_ne!(guard_consumer(node, old), guard_consumer(node, new));
        assert_ne!(guard_consumer(node, old), guard_consumer(other_node, old));
        assert_ne!(guard_consumer(node, old).0, CaseId::tear_down(node, old).0);
    }

    #[test]
    fn a_case_is_shown_by_its_identifier() {
        let id = CaseId(Uuid::from_u128(7));
        assert_eq!(id.to_string(), "00000000-0000-0000-0000-000000000007");
    }

    #[test]
    fn the_guards_type_is_one_that_placement_takes() {
        assert_eq!(guard_owner().consumer_type.unwrap().as_str(), GUARD_TYPE);
    }
}
