//! All nodes, as both services see them.

use std::collections::BTreeMap;

use ironic_client::{NodeUuid, ProvisionState};
use serde::Serialize;
use uuid::Uuid;

use crate::audit::{Lists, Subject, join};
#[cfg(feature = "orchestrator")]
use crate::cloud::{CloudError, OpenStack};
use crate::core::{Case, is_free};
use crate::watch::{Look, Phase};

/// A node, as both services see it.
#[derive(Clone, Debug, Serialize)]
pub struct NodeRow {
    /// The node.
    pub node: Uuid,
    /// Its name.
    pub name: Option<String>,
    /// Its state.
    pub provision_state: ProvisionState,
    /// Whether it is in maintenance.
    pub maintenance: bool,
    /// The instance that it carries.
    pub instance: Option<Uuid>,
    /// Its class, as Placement calls it.
    pub resource_class: Option<String>,
    /// Whether Placement has a provider for it.
    pub provider: bool,
    /// Whether Placement offers it: a free node as its own class, one that is not free as any class of nodes.
    pub offered: bool,
    /// What it is to those who might get it.
    pub phase: Phase,
    /// Why it is not free.
    pub reason: Option<String>,
    /// The strategy of its open case.
    pub case: Option<String>,
}

/// The columns, which are the keys of the JSON.
pub const COLUMNS: [&str; 11] = [
    "node",
    "name",
    "provision_state",
    "maintenance",
    "instance",
    "resource_class",
    "provider",
    "offered",
    "phase",
    "reason",
    "case",
];

/// The nodes of the lists by name, with the open cases of a journal.
pub fn rows(lists: Lists, open: &[Case]) -> Vec<NodeRow> {
    let open = open
        .iter()
        .map(|case| (case.node, case.strategy.as_str()))
        .collect::<BTreeMap<_, _>>();
    let mut rows = join(lists)
        .into_iter()
        .filter_map(|subject| row(subject, &open))
        .collect::<Vec<_>>();
    rows.sort_by(|one, other| (&one.name, one.node).cmp(&(&other.name, other.node)));
    rows
}

fn row(subject: Subject, open: &BTreeMap<NodeUuid, &str>) -> Option<NodeRow> {
    let class = subject.class();
    let node = subject.node?;
    // Whoever asks for the node's class gets a free one; of one that is not free, any offer is wrong.
    let offered = match (is_free(&node), &class) {
        (true, Some(class)) => subject.offered.contains(class),
        _ => !subject.offered.is_empty(),
    };
    let look = Look::new(Some(&node), offered);
    Some(NodeRow {
        node: subject.uuid,
        phase: look.phase(),
        reason: look.not_free.as_ref().map(ToString::to_string),
        offered: look.offered,
        resource_class: class.map(|class| class.to_string()),
        provider: subject.provider.is_some(),
        case: open.get(&node.uuid).map(|strategy| (*strategy).to_owned()),
        name: node.name,
        provision_state: node.provision_state,
        maintenance: node.maintenance,
        instance: node.instance_uuid,
    })
}

/// Lists the nodes of a cloud: two lists and one for each resource class.
///
/// # Errors
///
/// Where one of the lists could not be read to its end.
#[cfg(feature = "orchestrator")]
pub async fn gather(cloud: &OpenStack, open: &[Case]) -> Result<Vec<NodeRow>, CloudError> {
    let lists = cloud.lists(&std::collections::BTreeSet::new(), None).await?;
    Ok(rows(lists, open))
}
