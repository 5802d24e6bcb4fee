//! Both services seen from outside: it can look, and nothing else.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use futures::future::try_join_all;
use ironic_client::{Ironic, Node, NodeField, NodeFilter, NodeUuid};
use placement_client::{CandidateQuery, Placement, ProviderUuid, ResourceClass, TraitName};

use super::{Clock, Cloud, CloudError, OpenStack};
use crate::watch::{Look, Phase, Sample};

/// Looks at Ironic and Placement. There is no way to write through it.
#[derive(Clone, Debug)]
pub struct Lookout {
    cloud: OpenStack,
    clock: Arc<dyn Clock>,
}

/// A provider that Placement offers, and the node behind it.
#[derive(Clone, Debug, PartialEq)]
pub struct Offer {
    /// The provider.
    pub provider: ProviderUuid,
    /// Its node; `None` where Ironic does not know it, or does not show it to these credentials.
    pub node: Option<Node>,
    /// What it looks like.
    pub look: Look,
}

impl Lookout {
    /// A lookout over these two clients.
    pub fn new(ironic: Arc<dyn Ironic>, placement: Arc<dyn Placement>, clock: Arc<dyn Clock>) -> Self {
        Self {
            cloud: OpenStack::new(ironic, placement, Arc::clone(&clock)),
            clock,
        }
    }

    /// The node of this UUID or name. `None` where Ironic does not know it.
    ///
    /// # Errors
    ///
    /// Where Ironic could not be asked.
    pub async fn find(&self, uuid_or_name: &str) -> Result<Option<Node>, CloudError> {
        self.cloud.find(uuid_or_name).await
    }

    /// The resource classes of all nodes, in Ironic's spelling.
    ///
    /// # Errors
    ///
    /// Where the list could not be read.
    pub async fn classes(&self) -> Result<BTreeSet<String>, CloudError> {
        let fields = [NodeField::ResourceClass];
        let nodes = self
            .cloud
            .ironic
            .list_nodes(&NodeFilter::default(), &fields)
            .await?;
        Ok(nodes.into_iter().filter_map(|node| node.resource_class).collect())
    }

    /// What Placement offers now, in its order. Two lists; where one of the nodes is not free, Placement is asked once more, so
    /// that a node that was given away in between is not mistaken for one that is offered although it is not free.
    ///
    /// # Errors
    ///
    /// Where one of the lists could not be read.
    pub async fn offers(&self, query: &CandidateQuery) -> Result<Vec<Offer>, CloudError> {
        let candidates = self.cloud.placement.candidates(query).await?;
        if candidates.is_empty() {
            return Ok(Vec::new());
        }
        let nodes = self
            .cloud
            .ironic
            .list_nodes(&NodeFilter::default(), &NodeField::ALL)
            .await?;
        let mut nodes = nodes
            .into_iter()
            .map(|node| (node.uuid.0, node))
            .collect::<BTreeMap<_, _>>();
        let mut offers = Vec::with_capacity(candidates.len());
        for candidate in candidates {
            let node = nodes.remove(&candidate.provider.0);
            offers.push(Offer {
                provider: candidate.provider,
                look: Look::new(node.as_ref(), true),
                node,
            });
        }
        if offers.iter().any(|offer| !offer.look.is_free()) {
            let all = CandidateQuery {
                limit: None,
                ..query.clone()
            };
            let still = self.offered([all]).await?;
            offers.retain(|offer| offer.look.is_free() || still.contains(&offer.provider));
        }
        Ok(offers)
    }

    /// One look at these nodes: one request for each of their classes, with these traits, and the nodes. If one seems to be
    /// offered although it is not free, its class is asked for once more, as in [`Lookout::offers`].
    ///
    /// # Errors
    ///
    /// Where one of the requests failed.
    pub async fn sample(
        &self,
        watched: &BTreeMap<NodeUuid, ResourceClass>,
        required: &BTreeSet<TraitName>,
        forbidden: &BTreeSet<TraitName>,
    ) -> Result<Sample, CloudError> {
        let ask = |class: &ResourceClass| CandidateQuery {
            required: required.clone(),
            forbidden: forbidden.clone(),
            ..CandidateQuery::of(class.clone())
        };
        let classes = watched.values().collect::<BTreeSet<_>>();
        let offered = self.offered(classes.into_iter().map(ask)).await?;
        let nodes = self
            .cloud
            .nodes(&watched.keys().copied().collect::<Vec<_>>())
            .await?;
        let mut looks = BTreeMap::new();
        let mut doubtful = BTreeSet::new();
        for (uuid, class) in watched {
            let look = Look::new(nodes.get(uuid), offered.contains(&ProviderUuid(uuid.0)));
            if look.phase() == Phase::Exposed {
                doubtful.insert(class);
            }
            looks.insert(*uuid, look);
        }
        if !doubtful.is_empty() {
            let still = self.offered(doubtful.into_iter().map(ask)).await?;
            for (uuid, look) in &mut looks {
                look.offered = look.offered && (look.is_free() || still.contains(&ProviderUuid(uuid.0)));
            }
        }
        Ok(Sample {
            at: self.clock.now(),
            looks: Some(looks),
        })
    }

    async fn offered(
        &self,
        queries: impl IntoIterator<Item = CandidateQuery>,
    ) -> Result<BTreeSet<ProviderUuid>, CloudError> {
        let asked = queries
            .into_iter()
            .map(|query| async move { self.cloud.placement.candidates(&query).await });
        let all = try_join_all(asked).await?;
        Ok(all
            .into_iter()
            .flatten()
            .map(|candidate| candidate.provider)
            .collect())
    }
}
