//! Ironic has no conditional request: before each write to a node it is looked at once more.

use std::sync::Arc;

use ironic_client::{Fault, MockIronic, Node, NodeUuid, ProvisionState};
use jiff::Timestamp;
use placement_client::MockPlacement;
use serde_json::json;
use unprovision::cloud::{Cloud, OpenStack, SystemClock};
use unprovision::core::{Action, RefusalKind};
use uuid::Uuid;

const NODE: NodeUuid = NodeUuid(Uuid::from_u128(0xa));
const INSTANCE: Uuid = Uuid::from_u128(0x1);

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_800_000_000 + second).unwrap()
}

fn node(changed_at: Timestamp) -> Node {
    let node = json!({
        "uuid": NODE, "provision_state": "active", "instance_uuid": INSTANCE, "fault": "clean failure",
    });
    Node {
        provision_updated_at: Some(changed_at),
        ..serde_json::from_value(node).unwrap()
    }
}

/// An Ironic that shows this node, and takes this many writes.
fn cloud(shown: Node, writes: usize) -> OpenStack {
    let mut ironic = MockIronic::new();
    ironic
        .expect_show_node()
        .times(1)
        .returning(move |_| Ok(shown.clone()));
    if writes > 0 {
        ironic.expect_set_provision_state().returning(|_, _| Ok(()));
        ironic.expect_clear_maintenance().returning(|_| Ok(()));
    }
    OpenStack::new(
        Arc::new(ironic),
        Arc::new(MockPlacement::new()),
        Arc::new(SystemClock),
    )
}

fn writes() -> [Action; 5] {
    let since = Some(at(0));
    [
        Action::Unprovision {
            carries: Some(INSTANCE),
            since,
            from: ProvisionState::Active,
        },
        Action::Abort {
            since,
            from: ProvisionState::DeployHold,
        },
        Action::Manage { since },
        Action::ClearMaintenance { since },
        Action::Provide { since },
    ]
}

#[tokio::test]
async fn a_write_to_a_node_that_has_changed_does_not_leave() {
    for action in writes() {
        let refused = cloud(node(at(1)), 0).apply(NODE, &action).await.unwrap_err();
        assert_eq!(refused.kind, RefusalKind::Conflict, "{action}: {refused}");
        cloud(node(at(0)), 1).apply(NODE, &action).await.unwrap();
    }
}

#[tokio::test]
async fn a_persons_maintenance_is_not_ended() {
    let of_a_person = Node {
        fault: None::<Fault>,
        ..node(at(0))
    };
    let action = Action::ClearMaintenance { since: Some(at(0)) };
    let refused = cloud(of_a_person, 0).apply(NODE, &action).await.unwrap_err();
    assert_eq!(refused.kind, RefusalKind::Conflict, "{refused}");
}
