//! The bodies whose shape on the wire is not the one of our values.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;
use serde_json::{Value, json};
use unprovision_session::Microversion;

use crate::{
    Candidate, Consumer, ConsumerAllocations, ConsumerGeneration, ConsumerType, Feature, ProviderUuid,
    ResourceProvider, TraitName, Units,
};

/// `GET /resource_providers`.
#[derive(Debug, Deserialize)]
pub(crate) struct Providers {
    pub(crate) resource_providers: Vec<ResourceProvider>,
}

#[derive(Debug, Deserialize)]
struct Resources {
    resources: Units,
}

/// `GET /allocations/{consumer}`. A consumer that holds nothing has only `allocations`, empty.
#[derive(Debug, Deserialize)]
pub(crate) struct Holdings {
    allocations: BTreeMap<ProviderUuid, Resources>,
    project_id: Option<String>,
    user_id: Option<String>,
    #[serde(default)]
    consumer_type: Value,
    consumer_generation: Option<i64>,
}

impl From<Holdings> for ConsumerAllocations {
    fn from(wire: Holdings) -> Self {
        // `unknown`, which consumers from before 1.38 read as, is no name that could be written back.
        let consumer_type = wire
            .consumer_type
            .as_str()
            .and_then(|text| text.parse::<ConsumerType>().ok());
        let consumer = wire.project_id.zip(wire.user_id);
        Self {
            consumer: consumer.map(|(project_id, user_id)| Consumer {
                project_id,
                user_id,
                consumer_type,
            }),
            generation: ConsumerGeneration::from(wire.consumer_generation),
            allocations: wire
                .allocations
                .into_iter()
                .map(|(provider, held)| (provider, held.resources))
                .collect(),
        }
    }
}

/// The body that writes all that one consumer shall hold; the error is what is missing.
pub(crate) fn holdings(version: Microversion, new: &ConsumerAllocations) -> Result<Value, &'static str> {
    let owner = new
        .consumer
        .as_ref()
        .ok_or("a write must name the consumer's project and user")?;
    let allocations: BTreeMap<_, _> = new
        .allocations
        .iter()
        .map(|(provider, units)| (provider.to_string(), json!({ "resources": units })))
        .collect();
    let mut body = json!({
        "project_id": owner.project_id,
        "user_id": owner.user_id,
        "allocations": allocations,
        "consumer_generation": new.generation,
    });
    if version >= Feature::ConsumerTypes.since() {
        body["consumer_type"] = json!(owner.consumer_type.clone().unwrap_or_else(ConsumerType::instance));
    }
    Ok(body)
}

/// `GET /allocation_candidates`.
#[derive(Debug, Deserialize)]
pub(crate) struct Candidates {
    allocation_requests: Vec<AllocationRequest>,
    provider_summaries: BTreeMap<ProviderUuid, Summary>,
}

#[derive(Debug, Deserialize)]
struct AllocationRequest {
    allocations: BTreeMap<ProviderUuid, Resources>,
}

#[derive(Debug, Deserialize)]
struct Summary {
    #[serde(default)]
    traits: BTreeSet<TraitName>,
}

impl From<Candidates> for Vec<Candidate> {
    /// Those that something would be allocated of, by UUID; the summaries name their relatives as well.
    fn from(mut wire: Candidates) -> Self {
        let offered = wire
            .allocation_requests
            .into_iter()
            .flat_map(|request| request.allocations.into_keys());
        let offered: BTreeSet<ProviderUuid> = offered.collect();
        let mut traits_of = |provider| {
            wire.provider_summaries
                .remove(&provider)
                .map(|summary| summary.traits)
        };
        let candidate = |provider| Candidate {
            provider,
            traits: traits_of(provider).unwrap_or_default(),
        };
        offered.into_iter().map(candidate).collect()
    }
}
