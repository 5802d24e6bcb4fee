//! Answers of Ironic and Placement, as the clients read them.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock};

use async_trait::async_trait;
use bytes::Bytes;
use http::{Request, Response, StatusCode};
use ironic_client::{Ironic, IronicClient, NodeField, NodeFilter, NodeUuid};
use placement_client::{
    CandidateQuery, ConsumerUuid, Placement, PlacementClient, ProviderFilter, ProviderUuid,
};
use unprovision_session::{Transport, TransportError};
use uuid::Uuid;

use super::RUNTIME;
use crate::sandbox::Sandbox;

/// No list of pages that are all alike is asked for longer.
const MOST_REQUESTS: usize = 10;
const STATUS: [u16; 8] = [200, 200, 200, 202, 400, 404, 409, 503];
const UNKNOWN: Uuid = Uuid::from_u128(7);

static SANDBOX: LazyLock<Sandbox> = LazyLock::new(|| Sandbox::builder().nodes(3).deployed(2).build());

/// What Ironic is asked: the first byte of the input chooses.
const IRONIC: [&str; 5] = [
    "/v1",
    "/v1/nodes/{node}",
    "/v1/nodes",
    "/v1/nodes/{node}/traits",
    "/",
];
/// What Placement is asked.
const PLACEMENT: [&str; 7] = [
    "/",
    "/resource_providers/{node}",
    "/resource_providers",
    "/resource_providers/{node}/inventories",
    "/resource_providers/{node}/traits",
    "/allocation_candidates?resources=CUSTOM_BAREMETAL:1",
    "/allocations/{instance}",
];

/// Says the same to everybody; who asks for the versions hears the truth, unless that is what is tried.
#[derive(Debug)]
struct Echo {
    honest: Option<Arc<dyn Transport>>,
    status: StatusCode,
    body: Bytes,
    asked: AtomicUsize,
}

#[async_trait]
impl Transport for Echo {
    async fn send(&self, request: Request<Bytes>) -> Result<Response<Bytes>, TransportError> {
        let asks_for_versions = matches!(request.uri().path(), "/" | "/v1" | "/v1/");
        if let (true, Some(honest)) = (asks_for_versions, &self.honest) {
            return honest.send(request).await;
        }
        let asked = self.asked.fetch_add(1, Ordering::Relaxed);
        assert!(asked < MOST_REQUESTS, "asked again and again: {}", request.uri());
        let mut response = Response::new(self.body.clone());
        *response.status_mut() = self.status;
        let headers = response.headers_mut();
        for (name, value) in [
            ("content-type", "application/json"),
            ("x-openstack-ironic-api-version", "1.115"),
            ("x-openstack-ironic-api-minimum-version", "1.1"),
            ("x-openstack-ironic-api-maximum-version", "1.115"),
            ("openstack-api-version", "placement 1.39"),
            ("retry-after", "1"),
        ] {
            headers.insert(name, http::HeaderValue::from_static(value));
        }
        Ok(response)
    }
}

/// The call that is chosen, and the transport that answers it.
fn split(input: &[u8], calls: usize, honest: Arc<dyn Transport>) -> Option<(usize, Arc<Echo>)> {
    let (&[call, status], body) = input.split_first_chunk()?;
    let call = usize::from(call) % calls;
    let status = STATUS[usize::from(status) % STATUS.len()];
    let echo = Echo {
        honest: (call != 0).then_some(honest),
        status: StatusCode::from_u16(status).unwrap_or_default(),
        body: Bytes::copy_from_slice(body),
        asked: AtomicUsize::new(0),
    };
    Some((call, Arc::new(echo)))
}

pub(super) fn ironic(input: &[u8]) {
    let Some((call, echo)) = split(input, IRONIC.len(), SANDBOX.ironic()) else {
        return;
    };
    let client = IronicClient::new(echo);
    let node = NodeUuid(UNKNOWN);
    RUNTIME.block_on(async {
        let error = match call {
            0 | 4 => client.versions().await.err(),
            1 => client.show_node("node-1").await.err(),
            2 => client
                .list_nodes(&NodeFilter::default(), &NodeField::ALL)
                .await
                .err(),
            _ => client.node_traits(node).await.err(),
        };
        error.iter().for_each(told);
    });
}

pub(super) fn placement(input: &[u8]) {
    let Some((call, echo)) = split(input, PLACEMENT.len(), SANDBOX.placement()) else {
        return;
    };
    let client = PlacementClient::new(echo);
    let provider = ProviderUuid(UNKNOWN);
    let Ok(class) = "CUSTOM_BAREMETAL".parse() else {
        return;
    };
    RUNTIME.block_on(async {
        let error = match call {
            0 => client.versions().await.err(),
            1 => client.show_provider(provider).await.err(),
            2 => client.list_providers(&ProviderFilter::default()).await.err(),
            3 => client.inventories(provider).await.err(),
            4 => client.provider_traits(provider).await.err(),
            5 => client.candidates(&CandidateQuery::of(class)).await.err(),
            _ => client.consumer_allocations(ConsumerUuid(UNKNOWN)).await.err(),
        };
        error.iter().for_each(told);
    });
}

/// An error is told, however strange it is.
fn told(error: &(impl std::error::Error + ?Sized)) {
    assert!(
        !error.to_string().is_empty() && error.to_string().len() < 10_000,
        "{error}"
    );
}

pub(super) fn ironic_seeds() -> Vec<Vec<u8>> {
    seeds(
        &IRONIC,
        &SANDBOX.ironic(),
        &[("x-openstack-ironic-api-version", "1.99")],
    )
}

pub(super) fn placement_seeds() -> Vec<Vec<u8>> {
    seeds(
        &PLACEMENT,
        &SANDBOX.placement(),
        &[("openstack-api-version", "placement 1.39")],
    )
}

/// What the sandbox says to each call.
fn seeds(calls: &[&str], transport: &Arc<dyn Transport>, headers: &[(&str, &str)]) -> Vec<Vec<u8>> {
    let (node, instance) = SANDBOX.deployed().first().copied().unwrap_or_default();
    let answers = calls.iter().enumerate().filter_map(|(call, path)| {
        let path = path.replace("{node}", &node.to_string());
        let mut request = Request::get(path.replace("{instance}", &instance.to_string()));
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.body(Bytes::new()).ok()?;
        let answer = RUNTIME.block_on(transport.send(request)).ok()?;
        let mut seed = vec![u8::try_from(call).ok()?, 0];
        seed.extend_from_slice(answer.body());
        Some(seed)
    });
    answers.collect()
}
