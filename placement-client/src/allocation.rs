//! Allocations: who holds what of which provider.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::{ConsumerType, ConsumerUuid, Generation, ProviderUuid, ResourceClass};

/// Units by resource class.
pub type Units = BTreeMap<ResourceClass, u32>;

/// A consumer's generation as it stands in a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(from = "Option<i64>", into = "Option<i64>")]
pub enum ConsumerGeneration {
    /// The consumer must not exist yet; `null` on the wire.
    New,
    /// The consumer must be at exactly this generation.
    At(i64),
}

impl From<Option<i64>> for ConsumerGeneration {
    fn from(wire: Option<i64>) -> Self {
        wire.map_or(Self::New, Self::At)
    }
}

impl From<ConsumerGeneration> for Option<i64> {
    fn from(generation: ConsumerGeneration) -> Self {
        match generation {
            ConsumerGeneration::New => None,
            ConsumerGeneration::At(number) => Some(number),
        }
    }
}

/// Whose a consumer is.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Consumer {
    /// The project; any text up to 255 characters, a UUID in practice.
    pub project_id: String,
    /// The user.
    pub user_id: String,
    /// The consumer's type (API 1.38). `None` where the service is older, or reads `unknown`, as it does for
    /// consumers of Nova; a write then says `INSTANCE`.
    pub consumer_type: Option<ConsumerType>,
}

/// All that one consumer holds, as read or as it shall be.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConsumerAllocations {
    /// Whose it is. Reading a consumer without allocations tells nothing, so it is `None` then.
    pub consumer: Option<Consumer>,
    /// The generation that was read; the one that a write relies on.
    pub generation: ConsumerGeneration,
    /// Units by provider; empty: the consumer holds nothing.
    pub allocations: BTreeMap<ProviderUuid, Units>,
}

/// What one consumer holds of one provider.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnitsOf {
    /// The units.
    #[serde(rename = "resources")]
    pub units: Units,
    /// The consumer's generation (API 1.28).
    #[serde(default, rename = "consumer_generation")]
    pub generation: Option<i64>,
}

/// Who holds what of one provider.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProviderAllocations {
    /// The provider's generation.
    #[serde(rename = "resource_provider_generation")]
    pub generation: Generation,
    /// By consumer.
    pub allocations: BTreeMap<ConsumerUuid, UnitsOf>,
    /// When the newest of them was made, to the second; `None` where there is none, or the service does not say.
    #[serde(skip)]
    pub newest: Option<Timestamp>,
}
