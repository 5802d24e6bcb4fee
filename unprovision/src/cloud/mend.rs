//! The repairs of an audit that are one write of our own, each decided from a look immediately before it.

use std::collections::BTreeMap;

use ironic_client::{Node, NodeField, NodeFilter};
use placement_client::{ConsumerAllocations, ConsumerUuid, ProviderUuid};

use super::{CloudError, OpenStack};
use crate::audit::{Finding, Remedy, Rules, Subject, findings};
use crate::core::{Action, ProviderView};

/// What became of a repair.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Mended {
    /// The write was accepted.
    Done,
    /// Nothing was written, and why.
    Left(String),
}

impl OpenStack {
    /// Looks whether the finding is still so, without writing anything.
    ///
    /// # Errors
    ///
    /// Where the node or its provider could not be read.
    pub async fn is_still_so(&self, finding: &Finding, rules: &Rules) -> Result<bool, CloudError> {
        let subject = Subject::of(finding.node, self.look_closer(finding.node).await?);
        Ok(findings(&subject, rules)
            .iter()
            .any(|now| (now.kind, &now.tag) == (finding.kind, &finding.tag)))
    }

    /// Repairs a finding by the one write that [`Finding::remedy`] names, if it is still so at this moment. What the guard's
    /// rules repair is left to [`Guard::attend_to`](crate::guard::Guard::attend_to).
    ///
    /// # Errors
    ///
    /// Where something could not be read, or the write was not accepted.
    pub async fn mend(&self, finding: &Finding, rules: &Rules) -> Result<Mended, CloudError> {
        let Some(subject) = self.still(finding, rules).await? else {
            return Ok(Mended::Left("it is not so any more".to_owned()));
        };
        let view = subject.look.as_ref().and_then(|look| look.view.as_ref());
        let provider = ProviderUuid(subject.uuid);
        match finding.remedy {
            Remedy::LiftReservation => {
                let lifted = view.zip(finding.resource_class.as_ref());
                let lifted = lifted.and_then(|(view, class)| Action::set_reserved(view, class, 0));
                if let Some(Action::SetReserved { inventories, .. }) = lifted {
                    self.placement.replace_inventories(provider, &inventories).await?;
                }
            }
            Remedy::Untag => self.untag(&subject, rules).await?,
            Remedy::DropAllocation { consumer } => {
                if let Some(node) = self.carrier(consumer).await? {
                    return Ok(Mended::Left(format!("node {node} carries instance {consumer}")));
                }
                if let Some(rest) = view.and_then(|view| without(view, consumer, provider)) {
                    self.placement.write_consumer(consumer, &rest).await?;
                }
            }
            Remedy::DeleteProvider => self.placement.delete_provider(provider).await?,
            Remedy::ByHand | Remedy::Guard | Remedy::Release => {
                return Ok(Mended::Left(
                    "it is not repaired by a write of its own".to_owned(),
                ));
            }
        }
        Ok(Mended::Done)
    }

    /// The subject as it is now, where the same is to be done about it as before.
    async fn still(&self, finding: &Finding, rules: &Rules) -> Result<Option<Subject>, CloudError> {
        let subject = Subject::of(finding.node, self.look_closer(finding.node).await?);
        let same =
            |now: &Finding| (now.kind, now.remedy, &now.tag) == (finding.kind, finding.remedy, &finding.tag);
        Ok(findings(&subject, rules).iter().any(same).then_some(subject))
    }

    /// The node first: what Nova copies from it would come back otherwise.
    async fn untag(&self, subject: &Subject, rules: &Rules) -> Result<(), CloudError> {
        let Some(tag) = &rules.tag else { return Ok(()) };
        let carries = |node: &Node| node.traits.contains(tag.as_str());
        if let Some(node) = subject.node.as_ref().filter(|node| carries(node)) {
            self.ironic.remove_node_trait(node.uuid, tag.as_str()).await?;
        }
        let view = subject.look.as_ref().and_then(|look| look.view.as_ref());
        let traits = view.and_then(|view| view.traits.clone());
        if let Some(mut traits) = traits.filter(|read| read.traits.contains(tag)) {
            traits.traits.remove(tag);
            self.placement
                .replace_provider_traits(ProviderUuid(subject.uuid), &traits)
                .await?;
        }
        Ok(())
    }

    /// The node that carries this instance, wherever it is.
    async fn carrier(&self, consumer: ConsumerUuid) -> Result<Option<ironic_client::NodeUuid>, CloudError> {
        let filter = NodeFilter {
            instance_uuid: Some(consumer.0),
            ..NodeFilter::default()
        };
        let nodes = self
            .ironic
            .list_nodes(&filter, &[NodeField::InstanceUuid])
            .await?;
        let mut carriers = nodes
            .into_iter()
            .filter(|node| node.instance_uuid == Some(consumer.0));
        Ok(carriers.next().map(|node| node.uuid))
    }
}

/// What the consumer holds besides this provider, with the generation that was read.
fn without(
    view: &ProviderView,
    consumer: ConsumerUuid,
    provider: ProviderUuid,
) -> Option<ConsumerAllocations> {
    let all = view.holders.get(&consumer)?.all.clone();
    let rest = all.allocations.into_iter().filter(|(held, _)| *held != provider);
    Some(ConsumerAllocations {
        allocations: rest.collect::<BTreeMap<_, _>>(),
        ..all
    })
}
