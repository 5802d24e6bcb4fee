//! All nodes at once: what the guard looks at instead of one node after the other.

use std::collections::BTreeSet;
use std::fmt;

use async_trait::async_trait;
use ironic_client::{
    Error as IronicError, ErrorKind as IronicKind, Node, NodeField, NodeFilter, NodeUuid, ProvisionState,
};
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
    /// The nodes in this state, with the few fields that tell a change (state and since when, instance, maintenance), and
    /// these. A field that Ironic's API does not have yet is an error.
    async fn nodes_in(
        &self,
        state: &ProvisionState,
        also: &BTreeSet<NodeField>,
    ) -> Result<Vec<Node>, CloudError>;

    /// All nodes, with what tells whether they are free, and these fields.
    async fn all_nodes(&self, also: &BTreeSet<NodeField>) -> Result<Vec<Node>, CloudError>;

    /// Whether Ironic's API has all of these fields.
    async fn knows(&self, fields: &BTreeSet<NodeField>) -> Result<(), CloudError>;

    /// The nodes whose provider has a free unit of the class, in one request.
    async fn offered(&self, class: &ResourceClass) -> Result<BTreeSet<NodeUuid>, CloudError>;
}

#[async_trait]
impl Fleet for OpenStack {
    async fn nodes_in(
        &self,
        state: &ProvisionState,
        also: &BTreeSet<NodeField>,
    ) -> Result<Vec<Node>, CloudError> {
        self.knows(also).await?;
        // Ironic's filter takes one state a request.
        let filter = NodeFilter {
            provision_state: Some(state.clone()),
            ..NodeFilter::default()
        };
        let listed = self.ironic.list_nodes(&filter, &with(&FEW, also)).await?;
        // The service forgets the filter on the pages after the first.
        Ok(listed
            .into_iter()
            .filter(|node| node.provision_state == *state)
            .collect())
    }

    async fn all_nodes(&self, also: &BTreeSet<NodeField>) -> Result<Vec<Node>, CloudError> {
        self.knows(also).await?;
        let fields = with(&SWEPT, also);
        Ok(self.ironic.list_nodes(&NodeFilter::default(), &fields).await?)
    }

    async fn knows(&self, fields: &BTreeSet<NodeField>) -> Result<(), CloudError> {
        let needed = fields
            .iter()
            .filter_map(|field| Some((field, field.feature()?.since())));
        let Some((field, since)) = needed.max_by_key(|(_, since)| *since) else {
            return Ok(());
        };
        let speaks = self.ironic.microversion().await?;
        if since <= speaks {
            return Ok(());
        }
        // A list without the field would look as if no node had one.
        let error = IronicError {
            service: "ironic",
            call: format!("list nodes with `{}`", field.as_str()),
            kind: IronicKind::Unsupported,
            status: None,
            message: format!("that field needs Ironic API {since}, and {speaks} is spoken"),
            request_id: None,
            retry_after: None,
            source: None,
        };
        Err(error.into())
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

fn with(fields: &[NodeField], also: &BTreeSet<NodeField>) -> Vec<NodeField> {
    fields.iter().copied().chain(also.iter().copied()).collect()
}

/// Placement's classes of the nodes.
pub(crate) fn classes<'a>(nodes: impl IntoIterator<Item = &'a Node>) -> BTreeSet<ResourceClass> {
    nodes.into_iter().filter_map(class_of).collect()
}

/// The node's class in Placement.
pub(crate) fn class_of(node: &Node) -> Option<ResourceClass> {
    ResourceClass::of_node_class(node.resource_class.as_deref()?).ok()
}
