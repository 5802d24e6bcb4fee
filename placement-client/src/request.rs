//! Builds the requests; no IO.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use http::{Method, Request, header};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Serialize;
use serde_json::{Map, Value, json};
use unprovision_session::{Microversion, Resend};
use uuid::Uuid;

use crate::error::fail;
use crate::{
    CandidateQuery, ConsumerAllocations, ConsumerUuid, Error, ErrorKind, Feature, Inventories,
    ProviderFilter, ProviderTraits, ProviderUuid, ResourceClass, Right, SUPPORTED, TraitName, Units, wire,
};

/// The header that asks for a microversion, and that names the one of the answer.
pub(crate) const VERSION_HEADER: &str = "openstack-api-version";

/// What an answer is held against.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    /// The call in words, with its object.
    pub(crate) call: String,
    /// The microversion asked for.
    pub(crate) version: Microversion,
    /// How often it may be sent; a read is always [`Resend::Safe`].
    pub(crate) resend: Resend,
}

/// A request, and what its answer is held against.
#[derive(Debug)]
pub(crate) struct Call {
    pub(crate) asked: Asked,
    pub(crate) request: Request<Bytes>,
}

impl Call {
    fn new(
        call: String,
        version: Microversion,
        method: Method,
        path: &str,
        body: Option<Value>,
    ) -> Result<Self, Error> {
        let mut builder = Request::builder()
            .method(method)
            .uri(path)
            .header(header::ACCEPT, "application/json")
            .header(VERSION_HEADER, format!("placement {version}"));
        if body.is_some() {
            builder = builder.header(header::CONTENT_TYPE, "application/json");
        }
        let bytes = body.map(|body| Bytes::from(body.to_string())).unwrap_or_default();
        let request = builder
            .body(bytes)
            .map_err(|error| fail(&call, ErrorKind::BadRequest, error.to_string()))?;
        let resend = Resend::of(&request);
        Ok(Self {
            asked: Asked {
                call,
                version,
                resend,
            },
            request,
        })
    }

    fn get(call: String, version: Microversion, path: &str) -> Result<Self, Error> {
        Self::new(call, version, Method::GET, path, None)
    }
}

/// What stays as it is in a query: beside the unreserved characters those that Placement's own syntax uses.
const KEPT: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~')
    .remove(b',')
    .remove(b':')
    .remove(b'!');

/// The path with those parameters that have a value.
fn with_query(path: &str, pairs: &[(&str, Option<String>)]) -> String {
    let pairs = pairs.iter().filter_map(|(key, value)| {
        let value = value.as_ref().filter(|value| !value.is_empty())?;
        Some(format!("{key}={}", utf8_percent_encode(value, KEPT)))
    });
    let query = pairs.collect::<Vec<_>>().join("&");
    if query.is_empty() {
        path.to_owned()
    } else {
        format!("{path}?{query}")
    }
}

/// `T1,!T2`: all of the first, none of the second.
fn traits(required: &BTreeSet<TraitName>, forbidden: &BTreeSet<TraitName>) -> String {
    let required = required.iter().map(ToString::to_string);
    let forbidden = forbidden.iter().map(|name| format!("!{name}"));
    required.chain(forbidden).collect::<Vec<_>>().join(",")
}

fn resources(units: &Units) -> String {
    units
        .iter()
        .map(|(class, count)| format!("{class}:{count}"))
        .collect::<Vec<_>>()
        .join(",")
}

/// A body that is on the wire as it is here.
fn body(call: &str, value: &impl Serialize) -> Result<Value, Error> {
    serde_json::to_value(value).map_err(|error| fail(call, ErrorKind::BadRequest, error.to_string()))
}

/// `GET /`, at the lowest microversion of ours, so that the answer also tells whether the header arrives.
pub(crate) fn discovery() -> Result<Call, Error> {
    Call::get("read the API versions".into(), SUPPORTED.min, "/")
}

/// A read of no provider at all, for services whose `/` is not readable: at our highest microversion it is answered,
/// or refused with the range.
pub(crate) fn probe() -> Result<Call, Error> {
    let path = "/resource_providers?uuid=00000000-0000-0000-0000-000000000000";
    Call::get(
        "read the API versions from the providers".into(),
        SUPPORTED.max,
        path,
    )
}

/// `GET /resource_providers/{provider}`.
pub(crate) fn show_provider(version: Microversion, provider: ProviderUuid) -> Result<Call, Error> {
    Call::get(
        format!("show provider {provider}"),
        version,
        &format!("/resource_providers/{provider}"),
    )
}

/// `DELETE /resource_providers/{provider}`.
pub(crate) fn delete_provider(version: Microversion, provider: ProviderUuid) -> Result<Call, Error> {
    Call::new(
        format!("delete provider {provider}"),
        version,
        Method::DELETE,
        &format!("/resource_providers/{provider}"),
        None,
    )
}

/// `GET /resource_providers`.
pub(crate) fn list_providers(version: Microversion, filter: &ProviderFilter) -> Result<Call, Error> {
    let pairs = [
        ("uuid", filter.uuid.map(|uuid| uuid.to_string())),
        ("name", filter.name.clone()),
        ("resources", Some(resources(&filter.resources))),
        ("required", Some(traits(&filter.required, &filter.forbidden))),
    ];
    Call::get(
        "list providers".into(),
        version,
        &with_query("/resource_providers", &pairs),
    )
}

/// `GET /resource_providers/{provider}/{part}`: its `inventories`, `traits` or `allocations`.
pub(crate) fn part_of_provider(
    version: Microversion,
    provider: ProviderUuid,
    part: &str,
) -> Result<Call, Error> {
    Call::get(
        format!("read {part} of provider {provider}"),
        version,
        &format!("/resource_providers/{provider}/{part}"),
    )
}

/// `PUT /resource_providers/{provider}/inventories`.
pub(crate) fn replace_inventories(
    version: Microversion,
    provider: ProviderUuid,
    new: &Inventories,
) -> Result<Call, Error> {
    let call = format!("replace inventories of provider {provider}");
    let body = body(&call, new)?;
    Call::new(
        call,
        version,
        Method::PUT,
        &format!("/resource_providers/{provider}/inventories"),
        Some(body),
    )
}

/// `PUT /resource_providers/{provider}/traits`.
pub(crate) fn replace_provider_traits(
    version: Microversion,
    provider: ProviderUuid,
    new: &ProviderTraits,
) -> Result<Call, Error> {
    let call = format!("replace traits of provider {provider}");
    let body = body(&call, new)?;
    Call::new(
        call,
        version,
        Method::PUT,
        &format!("/resource_providers/{provider}/traits"),
        Some(body),
    )
}

/// `PUT /traits/{name}`.
pub(crate) fn create_trait(version: Microversion, name: &TraitName) -> Result<Call, Error> {
    Call::new(
        format!("create trait {name}"),
        version,
        Method::PUT,
        &format!("/traits/{name}"),
        None,
    )
}

/// `PUT /resource_classes/{name}`.
pub(crate) fn create_resource_class(version: Microversion, name: &ResourceClass) -> Result<Call, Error> {
    let path = format!("/resource_classes/{name}");
    Call::new(
        format!("create resource class {name}"),
        version,
        Method::PUT,
        &path,
        None,
    )
}

/// `GET /allocations/{consumer}`.
pub(crate) fn consumer_allocations(version: Microversion, consumer: ConsumerUuid) -> Result<Call, Error> {
    Call::get(
        format!("read allocations of consumer {consumer}"),
        version,
        &format!("/allocations/{consumer}"),
    )
}

/// Writes that nothing can come of: to what does not exist, with a body that is refused.
pub(crate) fn nonsense(version: Microversion, right: Right) -> Vec<Result<Call, Error>> {
    let nobody = Uuid::nil();
    let calls = match right {
        Right::WriteAllocations => vec![
            (Method::POST, "/allocations".to_owned()),
            (Method::PUT, format!("/allocations/{nobody}")),
        ],
        Right::WriteInventories => vec![(Method::PUT, format!("/resource_providers/{nobody}/inventories"))],
        Right::WriteTraits => vec![
            (Method::PUT, format!("/resource_providers/{nobody}/traits")),
            // Only `CUSTOM_...` may be created.
            (Method::PUT, "/traits/UNPROVISION_DOCTOR".to_owned()),
        ],
    };
    let call = format!("find out whether these credentials may {right}");
    let built = calls
        .into_iter()
        .map(|(method, path)| Call::new(call.clone(), version, method, &path, Some(json!([]))));
    built.collect()
}

/// `PUT /allocations/{consumer}`.
pub(crate) fn write_consumer(
    version: Microversion,
    consumer: ConsumerUuid,
    new: &ConsumerAllocations,
) -> Result<Call, Error> {
    let call = format!("write allocations of consumer {consumer}");
    let body = wire::holdings(version, new).map_err(|missing| fail(&call, ErrorKind::BadRequest, missing))?;
    Call::new(
        call,
        version,
        Method::PUT,
        &format!("/allocations/{consumer}"),
        Some(body),
    )
}

/// `POST /allocations`.
pub(crate) fn write_consumers(
    version: Microversion,
    new: &BTreeMap<ConsumerUuid, ConsumerAllocations>,
) -> Result<Call, Error> {
    let names = new.keys().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    let call = format!("write allocations of consumers {names}");
    let mut bodies = Map::new();
    for (consumer, new) in new {
        let body = wire::holdings(version, new).map_err(|missing| {
            fail(
                &call,
                ErrorKind::BadRequest,
                format!("consumer {consumer}: {missing}"),
            )
        })?;
        bodies.insert(consumer.to_string(), body);
    }
    Call::new(call, version, Method::POST, "/allocations", Some(json!(bodies)))
}

/// `GET /allocation_candidates`.
pub(crate) fn candidates(version: Microversion, query: &CandidateQuery) -> Result<Call, Error> {
    let call = format!("list candidates of {}", query.resource_class);
    if query.in_tree.is_some() && version < Feature::InTree.since() {
        let since = Feature::InTree.since();
        let message =
            format!("`in_tree` needs API {since}, and the service speaks at most {version} with this client");
        return Err(fail(&call, ErrorKind::Unsupported, message));
    }
    let pairs = [
        ("resources", Some(format!("{}:1", query.resource_class))),
        ("required", Some(traits(&query.required, &query.forbidden))),
        ("limit", query.limit.map(|limit| limit.to_string())),
        ("in_tree", query.in_tree.map(|provider| provider.to_string())),
    ];
    Call::get(call, version, &with_query("/allocation_candidates", &pairs))
}
