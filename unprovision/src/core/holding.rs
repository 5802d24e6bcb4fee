//! Who holds a node's provider, from the point of view of its case.

use ironic_client::Node;
use placement_client::{ConsumerUuid, ResourceClass};
use uuid::Uuid;

use super::{
    Action, ActionKind, Attempts, Case, Kind, LastAttempt, Owner, ProviderView, guard_consumer,
    guard_consumer_since,
};

impl Case {
    /// The instance that leaves, where anybody knows it.
    pub fn instance(&self) -> Option<Uuid> {
        self.kind.instance()
    }

    /// Whether somebody else tears down.
    pub fn is_guard(&self) -> bool {
        matches!(self.kind, Kind::Guard { .. })
    }

    /// The consumer that holds the provider on our behalf.
    pub fn guard(&self) -> ConsumerUuid {
        let derived = || match self.kind {
            Kind::TearDown { instance }
            | Kind::Guard {
                instance: Some(instance),
                ..
            } => guard_consumer(self.node, instance),
            Kind::Guard { since, .. } => guard_consumer_since(self.node, since),
        };
        self.found.hold.unwrap_or_else(derived)
    }

    /// The consumer of ours that holds the provider now. For the guard that is any of ours: another process may have come first.
    pub fn holder_of_ours(&self, view: &ProviderView) -> Option<ConsumerUuid> {
        let own = Some(self.guard()).filter(|own| view.holders.contains_key(own));
        own.or_else(|| view.our_hold().filter(|_| self.is_guard()))
    }

    /// The instance as a consumer.
    pub fn instance_consumer(&self) -> Option<ConsumerUuid> {
        self.instance().map(ConsumerUuid)
    }

    /// Whether Nova made the provider, as far as anybody has looked.
    pub fn is_novas(&self, view: &ProviderView) -> bool {
        self.found.nova || view.is_novas()
    }

    /// Whether our consumer holds the unit, as far as the journal tells. Placement deletes no provider of which somebody holds
    /// a unit: if it does not show the provider then, it is not the Placement that the case was begun with.
    pub fn holds_the_unit(&self) -> bool {
        let released = matches!(
            self.attempts.get(&ActionKind::Release),
            Some(Attempts {
                action: Action::Release {
                    whose: Owner::Guard,
                    ..
                },
                last: LastAttempt::Applied,
                ..
            })
        );
        (self.sent(ActionKind::HandOver) > 0 || self.found.hold.is_some()) && !released
    }

    /// Whether more of the class is reserved than was found, and by us.
    pub fn has_reserved(&self, view: &ProviderView, class: &ResourceClass) -> bool {
        let now = view
            .inventories
            .inventories
            .get(class)
            .map(|inventory| inventory.reserved);
        self.sent(ActionKind::SetReserved) > 0 && now.is_some_and(|now| now > self.found.reserved)
    }

    /// Whether the node carries the instance that leaves.
    pub(super) fn is_carried_by(&self, node: &Node) -> bool {
        node.instance_uuid.is_some() && node.instance_uuid == self.instance()
    }

    /// Whether anybody holds a unit of the class.
    pub(super) fn is_used(&self, view: &ProviderView) -> bool {
        let class = self.found.class.as_ref();
        class.is_some_and(|class| view.used(class) > 0)
    }

    /// Whether the instance that the node carries next holds a unit: that hides the node, whatever else is lifted.
    pub(super) fn next_one_holds(&self, node: &Node, view: &ProviderView) -> bool {
        let next = node
            .instance_uuid
            .filter(|carried| Some(*carried) != self.instance());
        let held = next.and_then(|next| view.holders.get(&ConsumerUuid(next)));
        let class = self.found.class.as_ref();
        held.zip(class)
            .is_some_and(|(held, class)| held.units.contains_key(class))
    }

    /// Whether something of ours may hold the provider, as far as the journal tells.
    pub fn may_hold(&self) -> bool {
        let reserved = match self.attempts.get(&ActionKind::SetReserved) {
            Some(Attempts {
                action: Action::SetReserved { to, .. },
                sent,
                ..
            }) => *sent > 0 && *to > self.found.reserved,
            _ => false,
        };
        reserved || self.holds_the_unit() || self.may_be_tagged() || self.keeps_the_instances()
    }

    /// Whether the instance's own allocation may be what is left to release after a tear-down of ours, as far as the journal
    /// tells.
    fn keeps_the_instances(&self) -> bool {
        let release = self.attempts.get(&ActionKind::Release);
        let in_doubt = release.is_some_and(|release| {
            let instances = matches!(
                release.action,
                Action::Release {
                    whose: Owner::Instance,
                    ..
                }
            );
            instances && release.last == LastAttempt::Unknown
        });
        !self.is_guard()
            && self.sent(ActionKind::Unprovision) > 0
            && !self.found.units.is_empty()
            && (self.freed_at.is_none() || in_doubt)
    }
}
