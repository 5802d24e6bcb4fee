//! What lifts a hold without this program: plain `openstack` commands (rule 15).

use ironic_client::NodeUuid;
use placement_client::{ConsumerUuid, ResourceClass};

use super::{Action, ActionKind, Case};

/// The commands that lift this consumer's hold, or set this reservation, on the node's provider. First the node must be free.
pub fn by_hand(
    node: NodeUuid,
    consumer: Option<ConsumerUuid>,
    reserved: Option<(&ResourceClass, u32)>,
) -> Vec<String> {
    let consumer =
        consumer.map(|consumer| format!("openstack resource provider allocation delete {consumer}"));
    let reserved = reserved.map(|(class, to)| {
        format!("openstack resource provider inventory set {node} --amend --resource {class}:reserved={to}")
    });
    consumer.into_iter().chain(reserved).collect()
}

impl Case {
    /// The commands that lift what holds the node, as far as the journal tells.
    pub fn by_hand(&self) -> Vec<String> {
        let consumer = self.holds_the_unit().then(|| self.guard());
        let reserved = match self
            .attempts
            .get(&ActionKind::SetReserved)
            .map(|last| &last.action)
        {
            Some(Action::SetReserved { class, to, .. })
                if self.sent(ActionKind::SetReserved) > 0 && *to > self.found.reserved =>
            {
                Some((class, self.found.reserved))
            }
            _ => None,
        };
        by_hand(self.node, consumer, reserved)
    }
}
