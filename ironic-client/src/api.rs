//! The trait [`Ironic`].

use std::collections::BTreeSet;
use std::fmt;

use async_trait::async_trait;
use unprovision_session::{Microversion, VersionRange};

use crate::{Error, Node, NodeField, NodeUuid, ProvisionState, Verb};

/// Which nodes a list holds; all conditions must be met. The default takes all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodeFilter {
    /// Only nodes in this provision state.
    pub provision_state: Option<ProvisionState>,
    /// Only the node that carries this instance.
    pub instance_uuid: Option<uuid::Uuid>,
    /// Only nodes with (`true`) or without (`false`) an instance.
    pub associated: Option<bool>,
    /// Only nodes in (`true`) or not in (`false`) maintenance.
    pub maintenance: Option<bool>,
    /// Only nodes of this resource class, in Ironic's spelling.
    pub resource_class: Option<String>,
    /// Only nodes of this conductor group (API 1.46).
    pub conductor_group: Option<String>,
    /// Only nodes of this owner (API 1.50).
    pub owner: Option<String>,
    /// Only nodes of this shard (API 1.82).
    pub shard: Option<String>,
}

/// A step of a manual cleaning, for [`Verb::Clean`].
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct CleanStep {
    /// The interface that runs it, such as `deploy`.
    pub interface: String,
    /// The step's name, such as `erase_devices`.
    pub step: String,
    /// The step's arguments.
    pub args: serde_json::Map<String, serde_json::Value>,
}

/// A change of the provision state that is asked for.
#[derive(Clone, Debug, PartialEq)]
pub struct ProvisionRequest {
    /// What is asked for.
    pub verb: Verb,
    /// The steps, where the verb is [`Verb::Clean`]; empty otherwise.
    pub clean_steps: Vec<CleanStep>,
}

impl From<Verb> for ProvisionRequest {
    fn from(verb: Verb) -> Self {
        Self {
            verb,
            clean_steps: Vec::new(),
        }
    }
}

/// OpenStack Ironic: the calls that this workspace needs.
///
/// Object-safe; every method is one call to the service, except [`Ironic::list_nodes`], which
/// follows the pages to the end. Futures may be dropped at any time; a write may or may not have
/// been applied by then.
///
/// # Errors
///
/// Every method fails with an [`Error`] that names the call and the object;
/// [`ErrorKind::class`](crate::ErrorKind::class) of its `kind` says what one can do about it.
#[cfg_attr(
    feature = "mock",
    doc = r#"
# Unit tests with the mock

With the feature `mock`, `MockIronic` plays the service; an unexpected call fails the test.

```
use ironic_client::{Ironic, MockIronic, Node, NodeUuid, ProvisionState, Verb};
use serde_json::json;

/// The code under test: asks for the tear-down where Ironic would take it.
async fn tear_down(ironic: &dyn Ironic, node: NodeUuid) -> Result<bool, ironic_client::Error> {
    let legal = ironic.show_node(&node.to_string()).await?.provision_state.accepts(Verb::Deleted);
    if legal {
        ironic.set_provision_state(node, &Verb::Deleted.into()).await?;
    }
    Ok(legal)
}

# #[tokio::main(flavor = "current_thread")]
# async fn main() -> Result<(), Box<dyn std::error::Error>> {
let uuid: NodeUuid = "126b5922-7723-40d2-bb13-cb1c6beb2ade".parse()?;
let active: Node = serde_json::from_value(json!({ "uuid": uuid, "provision_state": "active" }))?;
let mut ironic = MockIronic::new();
ironic.expect_show_node().return_once(|_| Ok(active));
ironic
    .expect_set_provision_state()
    .withf(move |node, request| *node == uuid && request.verb == Verb::Deleted)
    .times(1)
    .returning(|_, _| Ok(()));
assert!(tear_down(&ironic, uuid).await?);
# Ok(())
# }
```
"#
)]
#[cfg_attr(feature = "mock", mockall::automock)]
#[async_trait]
pub trait Ironic: fmt::Debug + Send + Sync {
    /// The microversions that the service speaks (`GET /v1`).
    async fn versions(&self) -> Result<VersionRange, Error>;

    /// The microversion that this client uses, negotiated once.
    async fn microversion(&self) -> Result<Microversion, Error>;

    /// The node with this UUID or name; [`ErrorKind::NotFound`](crate::ErrorKind::NotFound) also
    /// where the credentials may not see it.
    async fn show_node(&self, uuid_or_name: &str) -> Result<Node, Error>;

    /// All nodes that meet the filter, with the UUID, the provision state and these fields. The list is complete:
    /// a page that cannot be read fails the whole call.
    async fn list_nodes(&self, filter: &NodeFilter, fields: &[NodeField]) -> Result<Vec<Node>, Error>;

    /// Asks for a change of the provision state; the service accepts (202) and goes on by itself.
    ///
    /// Never sent twice by the transport: look at the node before each call.
    async fn set_provision_state(&self, node: NodeUuid, request: &ProvisionRequest) -> Result<(), Error>;

    /// The node's traits (API 1.37).
    async fn node_traits(&self, node: NodeUuid) -> Result<BTreeSet<String>, Error>;

    /// Adds one trait to the node; needs the node's lock (API 1.37).
    async fn add_node_trait(&self, node: NodeUuid, name: &str) -> Result<(), Error>;

    /// Removes one trait from the node; needs the node's lock (API 1.37).
    async fn remove_node_trait(&self, node: NodeUuid, name: &str) -> Result<(), Error>;

    /// Puts the node into maintenance, with a reason.
    async fn set_maintenance(&self, node: NodeUuid, reason: &str) -> Result<(), Error>;

    /// Ends the node's maintenance.
    async fn clear_maintenance(&self, node: NodeUuid) -> Result<(), Error>;
}
