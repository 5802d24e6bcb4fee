//! Resource providers and what they offer.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::{ProviderUuid, ResourceClass, TraitName};

/// A resource provider's generation: it moves with every change of the provider, and a write that names
/// an old one is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Generation(pub i64);

/// A resource provider.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResourceProvider {
    /// Its UUID; the node's, where Nova made the provider for an Ironic node.
    pub uuid: ProviderUuid,
    /// Its name; again the node's UUID on a provider that Nova made.
    pub name: String,
    /// Its generation.
    pub generation: Generation,
    /// The provider that it is a part of, where it is one; a node's provider never is.
    #[serde(default, rename = "parent_provider_uuid")]
    pub parent: Option<ProviderUuid>,
}

/// What a provider has of one resource class.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Inventory {
    /// Units there are.
    pub total: u32,
    /// Units that are not to be offered.
    #[serde(default)]
    pub reserved: u32,
    /// The least that one allocation takes.
    #[serde(default = "one")]
    pub min_unit: u32,
    /// The most that one allocation takes.
    #[serde(default = "max")]
    pub max_unit: u32,
    /// Allocations are multiples of this.
    #[serde(default = "one")]
    pub step_size: u32,
    /// Over-commitment; 1.0 on bare metal.
    #[serde(default = "one_to_one")]
    pub allocation_ratio: f64,
}

fn one() -> u32 {
    1
}

fn max() -> u32 {
    i32::MAX as u32
}

fn one_to_one() -> f64 {
    1.0
}

/// A provider's inventories and the generation they were read at.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Inventories {
    /// The provider's generation.
    #[serde(rename = "resource_provider_generation")]
    pub generation: Generation,
    /// By resource class.
    pub inventories: BTreeMap<ResourceClass, Inventory>,
}

/// A provider's traits and the generation they were read at.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProviderTraits {
    /// The provider's generation.
    #[serde(rename = "resource_provider_generation")]
    pub generation: Generation,
    /// The traits.
    pub traits: BTreeSet<TraitName>,
}

/// A provider that Placement offers for a query.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Candidate {
    /// The provider.
    pub provider: ProviderUuid,
    /// Its traits (from API 1.17 on the answer carries them).
    pub traits: BTreeSet<TraitName>,
}
