//! [`Cloud`] over the two clients.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures::future::try_join_all;
use ironic_client::{ErrorKind as IronicKind, Fault, Ironic, Node, NodeField, NodeFilter, NodeUuid, Verb};
use jiff::Timestamp;
use placement_client::{
    Consumer, ConsumerAllocations, ConsumerGeneration, ConsumerUuid, ErrorKind as PlacementKind, Placement,
    ProviderUuid, Units,
};
use unprovision_session::{ApiError, Class, TransportError};

use super::{Clock, Cloud, CloudError, Reads};
use crate::core::{Action, Giver, HeldBy, Observation, ProviderView, RefusalKind, guard_owner};

/// From so many nodes on, one list is cheaper than a request for each.
const LIST_FROM: usize = 10;
/// A tear-down that was not sent so soon after the look before it is dropped (rule 3).
const SEND_WITHIN: Duration = Duration::from_secs(2);

/// Ironic and Placement behind their traits.
#[derive(Clone, Debug)]
pub struct OpenStack {
    pub(super) ironic: Arc<dyn Ironic>,
    pub(super) placement: Arc<dyn Placement>,
    clock: Arc<dyn Clock>,
    owner: Consumer,
}

impl OpenStack {
    /// The cloud behind these two clients.
    pub fn new(ironic: Arc<dyn Ironic>, placement: Arc<dyn Placement>, clock: Arc<dyn Clock>) -> Self {
        Self {
            ironic,
            placement,
            clock,
            owner: guard_owner(),
        }
    }

    /// Whom the consumers that we make belong to.
    #[must_use]
    pub fn with_owner(mut self, owner: Consumer) -> Self {
        self.owner = owner;
        self
    }

    /// By project and type; a Placement before API 1.38 knows no types.
    fn is_ours(&self, owner: &Consumer) -> bool {
        let typed = owner.consumer_type.is_none() || owner.consumer_type == self.owner.consumer_type;
        owner.project_id == self.owner.project_id && typed
    }

    pub(super) async fn show(&self, node: &str) -> Result<Option<Node>, CloudError> {
        match self.ironic.show_node(node).await {
            Ok(node) => Ok(Some(node)),
            Err(error) if error.kind == IronicKind::NotFound => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// The provider, and when the newest of its allocations was made.
    pub(super) async fn provider(
        &self,
        node: NodeUuid,
        reads: Reads,
    ) -> Result<Option<(ProviderView, Option<Timestamp>)>, CloudError> {
        let uuid = ProviderUuid(node.0);
        let traits = async {
            match reads.traits {
                true => self.placement.provider_traits(uuid).await.map(Some),
                false => Ok(None),
            }
        };
        let probable = async {
            match reads.holder {
                Some(holder) => self.placement.consumer_allocations(holder).await.map(Some),
                None => Ok(None),
            }
        };
        let read = futures::try_join!(
            self.placement.inventories(uuid),
            self.placement.provider_allocations(uuid),
            traits,
            probable
        );
        let (inventories, allocations, traits, probable) = match read {
            Ok(read) => read,
            Err(error) if error.kind == PlacementKind::NotFound => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        let known = |consumer| probable.clone().filter(|_| reads.holder == Some(consumer));
        let holders = allocations.allocations.into_iter().map(|(consumer, of)| {
            let known = known(consumer);
            async move {
                let all = match known {
                    Some(known) => known,
                    None => self.placement.consumer_allocations(consumer).await?,
                };
                let (units, ours) = (
                    of.units,
                    all.consumer.as_ref().is_some_and(|owner| self.is_ours(owner)),
                );
                Ok::<_, CloudError>((consumer, HeldBy { units, all, ours }))
            }
        });
        let holders = try_join_all(holders).await?.into_iter().collect();
        let view = ProviderView {
            inventories,
            traits,
            holders,
        };
        Ok(Some((view, allocations.newest)))
    }

    /// Rule 3: the world must still be the one that was decided from, and the request leaves right away.
    async fn drive(&self, node: NodeUuid, action: &Action) -> Result<(), CloudError> {
        let looked = self.clock.elapsed();
        let now = self.show(&node.to_string()).await?;
        if !now.is_some_and(|now| is_unchanged(&now, action)) {
            let words = format!("node {node} has changed since it was decided to {action}");
            return Err(changed(words));
        }
        if self.clock.elapsed().saturating_sub(looked) > SEND_WITHIN {
            let words = format!("the look at node {node} took too long to {action} after it");
            return Err(changed(words));
        }
        let verb = match action {
            Action::Unprovision { .. } => Verb::Deleted,
            Action::Abort { .. } => Verb::Abort,
            Action::Manage { .. } => Verb::Manage,
            Action::Provide { .. } => Verb::Provide,
            _ => return Ok(self.ironic.clear_maintenance(node).await?),
        };
        Ok(self.ironic.set_provision_state(node, &verb.into()).await?)
    }

    async fn write(&self, node: NodeUuid, action: &Action) -> Result<(), CloudError> {
        let here = ProviderUuid(node.0);
        let with_unit = |giver: &Giver, units: &Units| {
            let mut all = keeps(giver);
            all.allocations.insert(here, units.clone());
            all
        };
        match action {
            Action::AddNodeTrait { .. }
            | Action::RemoveNodeTrait { .. }
            | Action::AddProviderTrait { .. }
            | Action::RemoveProviderTrait { .. } => self.mark(node, action).await?,
            Action::SetReserved { inventories, .. } => {
                self.placement.replace_inventories(here, inventories).await?;
            }
            Action::HandOver {
                receiver,
                generation,
                units,
                giver,
            } => {
                let ours = self.ours(*generation, [(here, units.clone())].into());
                match giver {
                    Some(giver) => self.swap([(giver.uuid, keeps(giver)), (*receiver, ours)]).await?,
                    None => self.placement.write_consumer(*receiver, &ours).await?,
                }
            }
            Action::HandBack {
                from,
                generation,
                units,
                to,
            } => {
                let ours = self.ours(*generation, BTreeMap::new());
                self.swap([(*from, ours), (to.uuid, with_unit(to, units))])
                    .await?;
            }
            Action::Release { consumer, .. } => {
                self.placement
                    .write_consumer(consumer.uuid, &keeps(consumer))
                    .await?;
            }
            Action::Unprovision { .. }
            | Action::Abort { .. }
            | Action::Manage { .. }
            | Action::Provide { .. }
            | Action::ClearMaintenance { .. } => self.drive(node, action).await?,
        }
        Ok(())
    }

    async fn mark(&self, node: NodeUuid, action: &Action) -> Result<(), CloudError> {
        let here = ProviderUuid(node.0);
        match action {
            Action::AddNodeTrait { name } => self.ironic.add_node_trait(node, name.as_str()).await?,
            Action::RemoveNodeTrait { name } => self.ironic.remove_node_trait(node, name.as_str()).await?,
            Action::AddProviderTrait { name, traits } => {
                // Placement takes no trait for a provider that it does not know yet.
                self.placement.create_trait(name).await?;
                self.placement.replace_provider_traits(here, traits).await?;
            }
            Action::RemoveProviderTrait { traits, .. } => {
                self.placement.replace_provider_traits(here, traits).await?;
            }
            _ => {}
        }
        Ok(())
    }

    fn ours(
        &self,
        generation: ConsumerGeneration,
        allocations: BTreeMap<ProviderUuid, Units>,
    ) -> ConsumerAllocations {
        ConsumerAllocations {
            consumer: Some(self.owner.clone()),
            generation,
            allocations,
        }
    }

    async fn swap(
        &self,
        both: [(ConsumerUuid, ConsumerAllocations); 2],
    ) -> Result<(), placement_client::Error> {
        self.placement.write_consumers(&both.into()).await
    }
}

#[async_trait]
impl Cloud for OpenStack {
    async fn find(&self, uuid_or_name: &str) -> Result<Option<Node>, CloudError> {
        self.show(uuid_or_name).await
    }

    async fn nodes(&self, nodes: &[NodeUuid]) -> Result<BTreeMap<NodeUuid, Node>, CloudError> {
        if nodes.len() < LIST_FROM {
            let shown = nodes
                .iter()
                .map(|node| async move { self.show(&node.to_string()).await });
            let shown = try_join_all(shown).await?;
            return Ok(shown
                .into_iter()
                .flatten()
                .map(|node| (node.uuid, node))
                .collect());
        }
        let wanted = nodes.iter().copied().collect::<BTreeSet<_>>();
        let all = self
            .ironic
            .list_nodes(&NodeFilter::default(), &NodeField::ALL)
            .await?;
        Ok(all
            .into_iter()
            .filter(|node| wanted.contains(&node.uuid))
            .map(|node| (node.uuid, node))
            .collect())
    }

    async fn observe(&self, node: NodeUuid, reads: Reads) -> Result<Observation, CloudError> {
        let provider = self.provider(node, reads).await?.map(|(view, _)| view);
        let node = self.show(&node.to_string()).await?;
        Ok(Observation {
            at: self.clock.now(),
            node,
            provider,
            nova: None,
        })
    }

    async fn apply(&self, node: NodeUuid, action: &Action) -> Result<(), CloudError> {
        self.write(node, action).await
    }
}

/// What a consumer keeps beside this provider.
fn keeps(giver: &Giver) -> ConsumerAllocations {
    ConsumerAllocations {
        consumer: Some(giver.owner.clone()),
        generation: giver.generation,
        allocations: giver.rest.clone(),
    }
}

/// Whether the node is still the one that a write to it was decided from.
fn is_unchanged(now: &Node, action: &Action) -> bool {
    let same = match action {
        Action::Unprovision { carries, from, .. } => {
            (now.instance_uuid, &now.provision_state) == (*carries, from)
        }
        Action::ClearMaintenance { .. } => now.fault == Some(Fault::CleanFailure),
        _ => true,
    };
    same && now.provision_updated_at == action.since()
}

fn changed(message: String) -> CloudError {
    CloudError {
        class: Class::Conflict,
        kind: RefusalKind::Conflict,
        message,
        retry_after: None,
        source: None,
    }
}

impl From<ApiError<IronicKind>> for CloudError {
    fn from(error: ApiError<IronicKind>) -> Self {
        let kind = match &error.kind {
            IronicKind::Locked => RefusalKind::Locked,
            IronicKind::Busy => RefusalKind::Busy,
            IronicKind::NoConductor => RefusalKind::NoConductor,
            IronicKind::Conflict => RefusalKind::Locked,
            IronicKind::IllegalTransition => RefusalKind::Illegal,
            IronicKind::Forbidden => RefusalKind::Forbidden,
            IronicKind::NotFound => RefusalKind::NotFound,
            IronicKind::Unauthorized | IronicKind::NoAnswer(Class::Transient) => RefusalKind::Away,
            IronicKind::NoAnswer(_) if is_login(&error) => RefusalKind::Away,
            _ => RefusalKind::Other,
        };
        Self::of(error.kind.class(), kind, error)
    }
}

impl From<ApiError<PlacementKind>> for CloudError {
    fn from(error: ApiError<PlacementKind>) -> Self {
        let kind = match &error.kind {
            PlacementKind::ConcurrentUpdate | PlacementKind::Conflict(_) => RefusalKind::Conflict,
            PlacementKind::NoCapacity => RefusalKind::NoCapacity,
            PlacementKind::Busy => RefusalKind::Busy,
            PlacementKind::Forbidden => RefusalKind::Forbidden,
            PlacementKind::NotFound => RefusalKind::NotFound,
            PlacementKind::Unauthorized | PlacementKind::NoAnswer(Class::Transient) => RefusalKind::Away,
            PlacementKind::NoAnswer(_) if is_login(&error) => RefusalKind::Away,
            _ => RefusalKind::Other,
        };
        Self::of(error.kind.class(), kind, error)
    }
}

/// Whether it was Keystone that did not let us in.
fn is_login<K>(error: &ApiError<K>) -> bool {
    matches!(error.source, Some(TransportError::Login { .. }))
}

impl CloudError {
    fn of<K>(class: Class, kind: RefusalKind, error: ApiError<K>) -> Self
    where
        K: std::fmt::Debug + std::fmt::Display + Send + Sync + 'static,
    {
        Self {
            class,
            kind,
            message: error.to_string(),
            retry_after: error.retry_after,
            source: Some(Box::new(error)),
        }
    }
}
