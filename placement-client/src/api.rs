//! The trait [`Placement`].

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use async_trait::async_trait;
use unprovision_session::{Microversion, VersionRange};

use crate::{
    Candidate, ConsumerAllocations, ConsumerUuid, Error, Inventories, ProviderAllocations, ProviderTraits,
    ProviderUuid, ResourceClass, ResourceProvider, TraitName, Units,
};

/// Which providers a list holds; all conditions must be met. The default takes all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProviderFilter {
    /// Only the provider of this UUID.
    pub uuid: Option<ProviderUuid>,
    /// Only the provider of this name.
    pub name: Option<String>,
    /// Only providers that could give these units now.
    pub resources: Units,
    /// Only providers with all of these traits.
    pub required: BTreeSet<TraitName>,
    /// Only providers with none of these traits (API 1.22).
    pub forbidden: BTreeSet<TraitName>,
}

/// What is asked of `GET /allocation_candidates`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CandidateQuery {
    /// One unit of this class.
    pub resource_class: ResourceClass,
    /// Only providers with all of these traits.
    pub required: BTreeSet<TraitName>,
    /// Only providers with none of these traits (API 1.22).
    pub forbidden: BTreeSet<TraitName>,
    /// At most so many candidates.
    pub limit: Option<u32>,
    /// Only this provider (API 1.31).
    pub in_tree: Option<ProviderUuid>,
}

impl CandidateQuery {
    /// All that can give one unit of the class.
    pub fn of(resource_class: ResourceClass) -> Self {
        Self {
            resource_class,
            required: BTreeSet::new(),
            forbidden: BTreeSet::new(),
            limit: None,
            in_tree: None,
        }
    }
}

/// OpenStack Placement: the calls that this workspace needs.
///
/// Object-safe; every method is one call to the service. Writes carry the generations they rely on, so a
/// write that was applied although its answer was lost cannot be applied twice. Futures may be dropped at
/// any time; a write may or may not have been applied by then.
///
/// # Errors
///
/// Every method fails with an [`Error`] that names the call and the object;
/// [`ErrorKind::class`](crate::ErrorKind::class) of its `kind` says what one can do about it.
#[cfg_attr(
    feature = "mock",
    doc = r#"
# Unit tests with the mock

With the feature `mock`, `MockPlacement` plays the service; an unexpected call fails the test.

```
use placement_client::{CandidateQuery, MockPlacement, Placement, ProviderUuid, ResourceClass};

/// The code under test: whether Placement would give this provider away now.
async fn is_offered(
    placement: &dyn Placement,
    provider: ProviderUuid,
    class: ResourceClass,
) -> Result<bool, placement_client::Error> {
    let query = CandidateQuery { in_tree: Some(provider), ..CandidateQuery::of(class) };
    Ok(placement.candidates(&query).await?.iter().any(|candidate| candidate.provider == provider))
}

# #[tokio::main(flavor = "current_thread")]
# async fn main() -> Result<(), Box<dyn std::error::Error>> {
let provider = ProviderUuid("126b5922-7723-40d2-bb13-cb1c6beb2ade".parse()?);
let mut placement = MockPlacement::new();
placement
    .expect_candidates()
    .withf(move |query| query.in_tree == Some(provider) && query.resource_class.as_str() == "CUSTOM_BM")
    .times(1)
    .returning(|_| Ok(Vec::new()));
assert!(!is_offered(&placement, provider, ResourceClass::of_node_class("bm")?).await?);
# Ok(())
# }
```
"#
)]
#[cfg_attr(feature = "mock", mockall::automock)]
#[async_trait]
pub trait Placement: fmt::Debug + Send + Sync {
    /// The microversions that the service speaks (`GET /`).
    async fn versions(&self) -> Result<VersionRange, Error>;

    /// The microversion that this client uses, negotiated once.
    async fn microversion(&self) -> Result<Microversion, Error>;

    /// The provider with this UUID.
    async fn show_provider(&self, provider: ProviderUuid) -> Result<ResourceProvider, Error>;

    /// All providers that meet the filter, in one answer: Placement has no pages.
    async fn list_providers(&self, filter: &ProviderFilter) -> Result<Vec<ResourceProvider>, Error>;

    /// Deletes the provider. Placement refuses that while anybody holds units of it
    /// ([`ErrorKind::Conflict`](crate::ErrorKind::Conflict)).
    async fn delete_provider(&self, provider: ProviderUuid) -> Result<(), Error>;

    /// What the provider has.
    async fn inventories(&self, provider: ProviderUuid) -> Result<Inventories, Error>;

    /// Replaces all of the provider's inventories, if its generation is still the given one. `reserved == total`
    /// needs API 1.26.
    async fn replace_inventories(
        &self,
        provider: ProviderUuid,
        new: &Inventories,
    ) -> Result<Inventories, Error>;

    /// The provider's traits.
    async fn provider_traits(&self, provider: ProviderUuid) -> Result<ProviderTraits, Error>;

    /// Replaces all of the provider's traits, if its generation is still the given one. A trait that does not exist
    /// is refused: create it first.
    async fn replace_provider_traits(
        &self,
        provider: ProviderUuid,
        new: &ProviderTraits,
    ) -> Result<ProviderTraits, Error>;

    /// Makes sure that a custom trait exists.
    async fn create_trait(&self, name: &TraitName) -> Result<(), Error>;

    /// Makes sure that a custom resource class exists.
    async fn create_resource_class(&self, name: &ResourceClass) -> Result<(), Error>;

    /// All that a consumer holds. A consumer that does not exist holds nothing (and is [`ConsumerGeneration::New`](crate::ConsumerGeneration::New)).
    async fn consumer_allocations(&self, consumer: ConsumerUuid) -> Result<ConsumerAllocations, Error>;

    /// Who holds what of a provider.
    async fn provider_allocations(&self, provider: ProviderUuid) -> Result<ProviderAllocations, Error>;

    /// Writes all that one consumer shall hold (API 1.28); empty: it holds nothing any more and ceases to exist.
    async fn write_consumer(&self, consumer: ConsumerUuid, new: &ConsumerAllocations) -> Result<(), Error>;

    /// Writes all that several consumers shall hold, all or nothing, in one request (API 1.28).
    async fn write_consumers(&self, new: &BTreeMap<ConsumerUuid, ConsumerAllocations>) -> Result<(), Error>;

    /// What Placement offers now. A trait or class that does not exist is
    /// [`ErrorKind::BadRequest`](crate::ErrorKind::BadRequest), not an empty answer.
    async fn candidates(&self, query: &CandidateQuery) -> Result<Vec<Candidate>, Error>;
}
