//! What the audit asks of both services.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures::StreamExt;
use futures::TryStreamExt;
use futures::future::try_join_all;
use futures::stream;
use ironic_client::{Node, NodeField, NodeUuid};
use placement_client::{ErrorKind as PlacementKind, ProviderFilter, ProviderUuid, TraitName};
use uuid::Uuid;

use super::{CloudError, Fleet, OpenStack, Reads, classes};
use crate::audit::{Finding, FindingKind, Lists, Look, Rules, Subject, findings, is_plainly_right, join};
use crate::scope::Scopes;

/// Unless all are looked at, so many of those that look wrong in the lists are looked at closer.
pub const LOOKS: usize = 100;

/// What an audit is to look at, and how fast.
#[derive(Clone, Debug)]
pub struct Asked {
    /// What subjects are judged by.
    pub rules: Rules,
    /// How many are looked at closer at the same time.
    pub concurrency: NonZeroUsize,
    /// The scopes that are guarded; without any, the whole cloud.
    pub scopes: Scopes,
    /// Only the nodes of this scope, by its name.
    pub only: Option<String>,
}

impl Asked {
    /// Why nothing is written about this subject, if so.
    fn unguarded(&self, subject: &Subject) -> Option<(Uuid, String)> {
        if self.scopes.is_empty() {
            return None;
        }
        let why = match subject.node.as_ref().map(|node| self.scopes.of(node)) {
            Some(Some((_, scope))) if scope.care.is_some() => return None,
            Some(Some((_, scope))) => format!("its scope `{}` is audit-only", scope.name),
            Some(None) => "it is in no scope".to_owned(),
            None => "no node tells its scope".to_owned(),
        };
        Some((subject.uuid, why))
    }
}

/// What an audit has found.
#[derive(Clone, Debug, PartialEq)]
pub struct Survey {
    /// All findings, by kind and then by node.
    pub findings: Vec<Finding>,
    /// How many nodes Ironic shows.
    pub nodes: usize,
    /// How many providers of theirs there are, those without a node included.
    pub providers: usize,
    /// How many that look wrong in the lists were not looked at closer: some of them may be changes under way.
    pub unconfirmed: usize,
    /// What nothing is written about, since no scope guards it, and why.
    pub unguarded: BTreeMap<Uuid, String>,
}

impl Survey {
    /// Why nothing may be concluded from a provider that has no node, if so: an Ironic that hides nodes from these
    /// credentials looks the same as one that has lost them (rule 13).
    pub fn hides_nodes(&self) -> Option<String> {
        let orphans = self
            .findings
            .iter()
            .filter(|finding| finding.kind == FindingKind::ProviderOrphaned)
            .count();
        (orphans > 0 && orphans * 2 > self.providers).then(|| {
            format!(
                "{orphans} of {} providers have no node, and Ironic shows {} nodes: it may hide the others from these \
                 credentials, which need the system scope",
                self.providers, self.nodes
            )
        })
    }
}

impl OpenStack {
    /// Looks for what does not fit. One list of nodes (in pages), one of providers, one of those with the tag, one for each resource class; then
    /// [`LOOKS`] closer looks at most, or with [`Rules::deep`] one request for each provider and closer looks at all that are
    /// not plainly right.
    ///
    /// # Errors
    ///
    /// Where something could not be read: what is incomplete decides nothing (rule 13).
    pub async fn audit(&self, asked: &Asked) -> Result<Survey, CloudError> {
        self.audit_telling(asked, &|_, _| ()).await
    }

    /// The same, and `tell` hears how many of all providers were looked at.
    ///
    /// # Errors
    ///
    /// The same.
    pub async fn audit_telling(
        &self,
        asked: &Asked,
        tell: &(dyn Fn(usize, usize) + Sync),
    ) -> Result<Survey, CloudError> {
        let mut also = asked.scopes.reads();
        also.extend(asked.rules.tag.is_some().then_some(NodeField::Traits));
        let lists = self.lists(&also, asked.rules.tag.as_ref()).await?;
        let mut subjects = join(lists);
        if let Some(only) = &asked.only {
            let is_in = |node: &Node| {
                asked
                    .scopes
                    .of(node)
                    .is_some_and(|(_, scope)| scope.name == *only)
            };
            subjects.retain(|subject| subject.node.as_ref().is_some_and(is_in));
        }
        let nodes = subjects.iter().filter(|subject| subject.node.is_some()).count();
        let unguarded = subjects
            .iter()
            .filter_map(|subject| asked.unguarded(subject))
            .collect();
        let providers = subjects
            .iter()
            .filter(|subject| subject.provider.is_some())
            .count();
        let (suspects, rest) = self.suspects(subjects, asked, tell).await?;
        let looked = stream::iter(suspects)
            .map(|subject| async move {
                let look = self.look_closer(subject.uuid).await?;
                Ok::<_, CloudError>(subject.seen(look))
            })
            .buffer_unordered(asked.concurrency.get())
            .try_collect::<Vec<_>>()
            .await?;
        let mut found = looked
            .iter()
            .chain(&rest)
            .flat_map(|subject| findings(subject, &asked.rules))
            .collect::<Vec<_>>();
        found.sort_by_key(|finding| (finding.kind, finding.node));
        Ok(Survey {
            findings: found,
            nodes,
            providers,
            unconfirmed: rest.len(),
            unguarded,
        })
    }

    /// A closer look at one node and its provider: Placement first, Ironic last.
    ///
    /// # Errors
    ///
    /// Where one of them could not be read.
    pub async fn look_closer(&self, uuid: Uuid) -> Result<Look, CloudError> {
        let provider = self.provider(NodeUuid(uuid), Reads::everything()).await?;
        let (view, newest_allocation) = provider.unzip();
        Ok(Look {
            view,
            newest_allocation: newest_allocation.flatten(),
            node: self.show(&uuid.to_string()).await?,
        })
    }

    /// Those to look at closer, and those that look wrong and are not looked at.
    async fn suspects(
        &self,
        subjects: Vec<Subject>,
        asked: &Asked,
        tell: &(dyn Fn(usize, usize) + Sync),
    ) -> Result<(Vec<Subject>, Vec<Subject>), CloudError> {
        let looks_wrong = |subject: &Subject| !findings(subject, &asked.rules).is_empty();
        if !asked.rules.deep {
            let mut suspects = subjects;
            suspects.retain(looks_wrong);
            let rest = suspects.split_off(LOOKS.min(suspects.len()));
            return Ok((suspects, rest));
        }
        let (all, done) = (subjects.len(), AtomicUsize::new(0));
        let done = &done;
        let suspects = stream::iter(subjects)
            .map(|subject| async move {
                let wrong = looks_wrong(&subject) || !self.is_plainly_right(&subject).await?;
                tell(done.fetch_add(1, Ordering::Relaxed) + 1, all);
                Ok::<_, CloudError>(wrong.then_some(subject))
            })
            .buffer_unordered(asked.concurrency.get())
            .try_filter_map(|suspect| async move { Ok(suspect) })
            .try_collect()
            .await?;
        Ok((suspects, Vec::new()))
    }

    async fn is_plainly_right(&self, subject: &Subject) -> Result<bool, CloudError> {
        if subject.provider.is_none() {
            return Ok(true);
        }
        match self
            .placement
            .provider_allocations(ProviderUuid(subject.uuid))
            .await
        {
            Ok(holders) => Ok(is_plainly_right(subject, &holders)),
            Err(error) if error.kind == PlacementKind::NotFound => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// What both services list; of the nodes also these fields, and which providers carry the tag, if one is named.
    ///
    /// # Errors
    ///
    /// Where one of the lists could not be read to its end.
    pub async fn lists(
        &self,
        also: &BTreeSet<NodeField>,
        tag: Option<&TraitName>,
    ) -> Result<Lists, CloudError> {
        let all = ProviderFilter::default();
        let providers = async { Ok::<_, CloudError>(self.placement.list_providers(&all).await?) };
        let (providers, tagged, nodes) =
            futures::try_join!(providers, self.tagged(tag), self.all_nodes(also))?;
        let offered = try_join_all(classes(&nodes).into_iter().map(|class| async move {
            let offering = self.offered(&class).await?;
            let providers = offering.into_iter().map(|node| ProviderUuid(node.0)).collect();
            Ok::<_, CloudError>((class, providers))
        }));
        Ok(Lists {
            offered: offered.await?.into_iter().collect(),
            nodes,
            providers,
            tagged,
        })
    }

    /// The providers that carry the tag, in one request.
    async fn tagged(&self, tag: Option<&TraitName>) -> Result<BTreeSet<ProviderUuid>, CloudError> {
        let Some(tag) = tag else {
            return Ok(BTreeSet::new());
        };
        let carrying = ProviderFilter {
            required: [tag.clone()].into(),
            ..ProviderFilter::default()
        };
        match self.placement.list_providers(&carrying).await {
            Ok(providers) => Ok(providers.into_iter().map(|provider| provider.uuid).collect()),
            // Placement does not know the trait: nobody carries it.
            Err(error) if error.kind == PlacementKind::BadRequest => Ok(BTreeSet::new()),
            Err(error) => Err(error.into()),
        }
    }
}
