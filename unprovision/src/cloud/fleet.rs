//! All nodes at once: what the guard looks at instead of one node after the other.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use async_trait::async_trait;
use ironic_client::{Node, NodeField, NodeFilter, NodeUuid, ProvisionState};
use placement_client::{ErrorKind as PlacementKind, ProviderFilter, ResourceClass};

use super::{CloudError, OpenStack};

/// What every look at a node on its way needs.
const FEW: [NodeField; 4] = [
    NodeField::ProvisionState,
    NodeField::ProvisionUpdatedAt,
    NodeField::InstanceUuid,
    NodeField::Maintenance,
];
/// What tells whether a node is free, and which provider is its own.
const SWEPT: [NodeField; 8] = [
    NodeField::Name,
    NodeField::ProvisionState,
    NodeField::ProvisionUpdatedAt,
    NodeField::InstanceUuid,
    NodeField::PowerState,
    NodeField::Maintenance,
    NodeField::ResourceClass,
    NodeField::Retired,
];

/// Looks at many nodes in few requests. A list that cannot be read to its end is an error (rule 13).
///
/// # Errors
///
/// A [`CloudError`] says which call failed, what the server said, and by its class what one can do.
#[async_trait]
pub trait Fleet: fmt::Debug + Send + Sync {
    /// The nodes in this state, with the few fields that tell a change: state and since when, instance, maintenance.
    async fn nodes_in(&self, state: &ProvisionState) -> Result<Vec<Node>, CloudError>;

    /// All nodes, with what tells whether they are free.
    async fn all_nodes(&self) -> Result<Vec<Node>, CloudError>;

    /// The nodes whose provider has a free unit of the class, in one request.
    async fn offered(&self, class: &ResourceClass) -> Result<BTreeSet<NodeUuid>, CloudError>;
}

#[async_trait]
impl Fleet for OpenStack {
    async fn nodes_in(&self, state: &ProvisionState) -> Result<Vec<Node>, CloudError> {
        // Ironic's filter takes one state a request.
        let filter = NodeFilter {
            provision_state: Some(state.clone()),
            ..NodeFilter::default()
        };
        let listed = self.ironic.list_nodes(&filter, &FEW).await?;
        // The service forgets the filter on the pages after the first.
        Ok(listed
            .into_iter()
            .filter(|node| node.provision_state == *state)
            .collect())
    }

    async fn all_nodes(&self) -> Result<Vec<Node>, CloudError> {
        Ok(self.ironic.list_nodes(&NodeFilter::default(), &SWEPT).await?)
    }

    async fn offered(&self, class: &ResourceClass) -> Result<BTreeSet<NodeUuid>, CloudError> {
        let filter = ProviderFilter {
            resources: [(class.clone(), 1)].into(),
            ..ProviderFilter::default()
        };
        match self.placement.list_providers(&filter).await {
            Ok(providers) => Ok(providers
                .into_iter()
                .map(|provider| NodeUuid(provider.uuid.0))
                .collect()),
            // Placement does not know the class: nothing of it is offered.
            Err(error) if error.kind == PlacementKind::BadRequest => Ok(BTreeSet::new()),
            Err(error) => Err(error.into()),
        }
    }
}

/// Placement's classes of the nodes, with how many there are of each.
pub(crate) fn classes(nodes: &[Node]) -> BTreeMap<ResourceClass, usize> {
    let mut classes = BTreeMap::new();
    let named = nodes.iter().filter_map(|node| node.resource_class.as_deref());
    for class in named.filter_map(|name| ResourceClass::of_node_class(name).ok()) {
        *classes.entry(class).or_default() += 1;
    }
    classes
}
