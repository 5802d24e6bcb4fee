//! What is asked of the cloud. Nothing in here can change anything.

use std::sync::Arc;

use bytes::Bytes;
use futures::{StreamExt, stream};
use http::{Request, Response, header};
use ironic_client::{
    ErrorKind as IronicKind, Ironic, IronicClient, Node, NodeField, NodeFilter, Right as InIronic,
};
use jiff::fmt::rfc2822;
use jiff::{SignedDuration, Timestamp};
use placement_client::{
    ErrorKind as PlacementKind, Placement, PlacementClient, ProviderFilter, ResourceProvider,
    Right as InPlacement,
};
use serde_json::Value;
use unprovision::cloud::{Clock, SystemClock};
use unprovision::servers::ServersError;
use unprovision_session::{
    ApiError, HttpTransport, Microversion, Service, Transport, TransportError, VersionRange, in_full,
};

use super::facts::{BrokerState, Facts, Side, Step, Tried};
use super::fleet::{Cleaning, Fleet, Provider};
use super::journal;
use crate::config::{Ask, Config};
use crate::failure::chain;
use crate::wire::{self, Tls};

/// So many nodes are looked at closer.
const LOOKS: usize = 20;
/// The versions from which Ironic tells of these.
const AUTOMATED_CLEAN: Microversion = Microversion::new(1, 47);
const CONDUCTORS: Microversion = Microversion::new(1, 49);

/// Finds out all there is.
pub(super) async fn everything(config: &Config, tls: &Tls) -> Facts {
    let (ironic, placement) = futures::join!(
        Way::find(config, tls, Service::Ironic),
        Way::find(config, tls, Service::Placement)
    );
    let (ironic, ironic_client) = ironic.with_ironic().await;
    let (placement, placement_client) = placement.with_placement().await;
    let mut fleet = Fleet::default();
    let nodes = nodes(&ironic, ironic_client.as_ref(), &mut fleet).await;
    let providers = providers(placement_client.as_ref(), &mut fleet).await;
    let worth = fleet.count(&nodes, &providers);
    let ways = ironic.transport.as_ref().zip(placement.transport.as_ref());
    let mut here = None;
    if let Some((one, other)) = ways {
        here = Some(wire::identity(one, other));
        let clock: Arc<dyn Clock> = Arc::new(SystemClock);
        let cloud = wire::cloud(config, Arc::clone(one) as _, Arc::clone(other) as _, &clock);
        let looks = stream::iter(worth.into_iter().take(LOOKS).map(|uuid| cloud.look_closer(uuid)));
        let looks = looks.buffered(config.concurrency.get()).collect::<Vec<_>>().await;
        fleet.seen = looks.iter().flatten().filter_map(Provider::of).collect();
        let failed = looks.iter().find_map(|look| look.as_ref().err());
        fleet.unseen = failed.map(|error| in_full(error, ": "));
    }
    Facts {
        in_ironic: in_ironic(ironic_client.as_ref(), &nodes).await,
        in_placement: in_placement(placement_client.as_ref()).await,
        ironic: ironic.side,
        placement: placement.side,
        servers: servers(config, tls, &fleet).await,
        nova_required: config.nova.ask == Ask::Required,
        fleet,
        broker: broker(config).await,
        journal: journal::look(&config.journal, here.as_deref(), SystemClock.now()).await,
        strategy: config.strategy.clone(),
    }
}

/// Whether Nova can be asked for servers, where that matters.
async fn servers(config: &Config, tls: &Tls, fleet: &Fleet) -> Option<Result<(), ServersError>> {
    let matters = fleet.nova().is_there() || config.nova.ask == Ask::Required;
    let servers = wire::servers(config, tls).await.filter(|_| matters)?;
    Some(servers.can_be_seen().await)
}

/// The way to a service, as far as it leads.
struct Way {
    side: Side,
    transport: Option<Arc<HttpTransport>>,
}

impl Way {
    async fn find(config: &Config, tls: &Tls, service: Service) -> Self {
        let mut way = Self {
            side: Side::new(service),
            transport: None,
        };
        match wire::way(config, tls, service).await {
            Err(error) => way.side.trouble = Some((Step::Configuration, error.to_string())),
            Ok(transport) => {
                way.side.trouble = enter(&mut way.side, &transport).await.err();
                way.transport = way.side.trouble.is_none().then(|| Arc::new(transport));
            }
        }
        way
    }

    fn dyn_transport(&self) -> Option<Arc<dyn Transport>> {
        self.transport
            .as_ref()
            .map(|transport| Arc::clone(transport) as Arc<dyn Transport>)
    }

    async fn with_ironic(mut self) -> (Self, Option<IronicClient>) {
        let Some(transport) = self.dyn_transport() else {
            return (self, None);
        };
        let client = IronicClient::new(transport);
        speak(&mut self.side, client.versions(), client.microversion()).await;
        let works = self.side.works();
        (self, works.then_some(client))
    }

    async fn with_placement(mut self) -> (Self, Option<PlacementClient>) {
        let Some(transport) = self.dyn_transport() else {
            return (self, None);
        };
        let client = PlacementClient::new(transport);
        speak(&mut self.side, client.versions(), client.microversion()).await;
        let works = self.side.works();
        (self, works.then_some(client))
    }
}

/// Logs in, finds the service, and looks at its clock.
async fn enter(side: &mut Side, transport: &HttpTransport) -> Result<(), (Step, String)> {
    let step = |error: TransportError| {
        let step = match error {
            TransportError::Login { .. } => Step::Login,
            TransportError::Endpoint { .. } => Step::Endpoint,
            _ => Step::Answer,
        };
        (step, in_full(&error, ": "))
    };
    side.standing = transport.standing().await.map_err(step)?;
    side.endpoint = Some(transport.endpoint().await.map_err(step)?.to_string());
    let before = SystemClock.now();
    let root = match side.service {
        Service::Ironic => "/v1",
        Service::Placement | Service::Nova => "/",
    };
    let request = Request::get(root).body(Bytes::new());
    let request = request.map_err(|error| (Step::Answer, error.to_string()))?;
    let answer = transport.send(request).await.map_err(step)?;
    side.ahead = said_at(&answer).map(|at| ahead(at, before, SystemClock.now()));
    Ok(())
}

fn said_at(answer: &Response<Bytes>) -> Option<Timestamp> {
    let date = answer.headers().get(header::DATE)?.to_str().ok()?;
    Some(rfc2822::parse(date).ok()?.timestamp())
}

/// How far a clock is ahead that read `at`, in whole seconds, some time between `before` and `after`.
fn ahead(at: Timestamp, before: Timestamp, after: Timestamp) -> SignedDuration {
    let earliest = at.duration_since(after);
    let latest = at.duration_since(before) + SignedDuration::from_secs(1);
    // Whatever lies within what could be told apart is no difference.
    if earliest > SignedDuration::ZERO {
        earliest
    } else if latest < SignedDuration::ZERO {
        latest
    } else {
        SignedDuration::ZERO
    }
}

/// Agrees on a version.
async fn speak<K: std::fmt::Debug + std::fmt::Display + 'static>(
    side: &mut Side,
    versions: impl Future<Output = Result<VersionRange, ApiError<K>>>,
    spoken: impl Future<Output = Result<Microversion, ApiError<K>>>,
) {
    match versions.await {
        Err(error) => side.trouble = Some((Step::Answer, in_full(&error, ": "))),
        Ok(range) => {
            side.versions = Some(range);
            match spoken.await {
                Ok(version) => side.spoken = Some(version),
                Err(error) => side.trouble = Some((Step::Version, in_full(&error, ": "))),
            }
        }
    }
}

async fn nodes(way: &Way, client: Option<&IronicClient>, fleet: &mut Fleet) -> Vec<Node> {
    let (Some(client), Some(transport)) = (client, &way.transport) else {
        return Vec::new();
    };
    match client.list_nodes(&NodeFilter::default(), &NodeField::ALL).await {
        Err(error) => {
            fleet.nodes = Some(Err(in_full(&error, ": ")));
            Vec::new()
        }
        Ok(nodes) => {
            fleet.nodes = Some(Ok(nodes.len()));
            let speaks = |since| way.side.spoken.is_some_and(|spoken| spoken >= since);
            if speaks(AUTOMATED_CLEAN) {
                fleet.cleaning = cleaning(transport).await;
            }
            if speaks(CONDUCTORS) {
                fleet.conductors = conductors(transport).await;
            }
            nodes
        }
    }
}

/// A setting that a node may have for itself; of the first thousand nodes.
async fn cleaning(transport: &HttpTransport) -> Cleaning {
    let path = "/v1/nodes?fields=automated_clean&limit=1000";
    let body = get(transport, path, AUTOMATED_CLEAN).await.unwrap_or_default();
    let nodes = body["nodes"].as_array().cloned().unwrap_or_default();
    let set = |to| nodes.iter().filter(|node| node["automated_clean"] == to).count();
    Cleaning {
        asked: nodes.len(),
        on: set(true),
        off: set(false),
    }
}

async fn conductors(transport: &HttpTransport) -> Option<(usize, usize)> {
    let body = get(transport, "/v1/conductors", CONDUCTORS).await?;
    let all = body["conductors"].as_array()?;
    let alive = all.iter().filter(|one| one["alive"] == true).count();
    Some((all.len(), alive))
}

/// What Ironic says, where it says yes.
async fn get(transport: &HttpTransport, path: &str, version: Microversion) -> Option<Value> {
    let request = Request::get(path)
        .header("x-openstack-ironic-api-version", version.to_string())
        .body(Bytes::new());
    let answer = transport.send(request.ok()?).await.ok()?;
    let body = serde_json::from_slice(answer.body()).ok();
    body.filter(|_| answer.status().is_success())
}

async fn providers(client: Option<&PlacementClient>, fleet: &mut Fleet) -> Vec<ResourceProvider> {
    let Some(client) = client else {
        return Vec::new();
    };
    match client.list_providers(&ProviderFilter::default()).await {
        Ok(providers) => {
            fleet.providers = Some(Ok(providers.len()));
            providers
        }
        Err(error) => {
            fleet.providers = Some(Err(in_full(&error, ": ")));
            Vec::new()
        }
    }
}

/// Looks whether the guard would hear anything; nothing is declared there.
async fn broker(config: &Config) -> BrokerState {
    match wire::try_broker(config).await {
        Ok(None) => BrokerState::None,
        Ok(Some(name)) => BrokerState::Reached(name),
        Err(error) => BrokerState::Trouble(chain(&error, ": ")),
    }
}

/// Rights show at a node only: of any other Ironic says nothing.
async fn in_ironic(client: Option<&IronicClient>, nodes: &[Node]) -> Vec<(InIronic, Tried)> {
    let Some(client) = client else {
        return Vec::new();
    };
    let mut tried = Vec::new();
    for right in [InIronic::ChangeStates, InIronic::SetTraits] {
        let outcome = match nodes.first() {
            None => Tried::Unclear("there is no node to try it at".to_owned()),
            Some(node) => outcome(client.may(right, node.uuid).await, &IronicKind::Forbidden),
        };
        tried.push((right, outcome));
    }
    tried
}

async fn in_placement(client: Option<&PlacementClient>) -> Vec<(InPlacement, Tried)> {
    let Some(client) = client else {
        return Vec::new();
    };
    let mut tried = Vec::new();
    for right in [
        InPlacement::WriteAllocations,
        InPlacement::WriteInventories,
        InPlacement::WriteTraits,
    ] {
        tried.push((right, outcome(client.may(right).await, &PlacementKind::Forbidden)));
    }
    tried
}

fn outcome<K: PartialEq + std::fmt::Debug + std::fmt::Display + 'static>(
    answer: Result<(), ApiError<K>>,
    forbidden: &K,
) -> Tried {
    match answer {
        Ok(()) => Tried::Allowed,
        Err(error) if error.kind == *forbidden => {
            let id = error.request_id.map(|id| format!(" [{id}]")).unwrap_or_default();
            Tried::Forbidden(format!("{}{id}", error.message))
        }
        Err(error) => Tried::Unclear(in_full(&error, ": ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_that_tells_whole_seconds_is_believed_within_them() {
        let at = |text: &str| text.parse::<Timestamp>().unwrap();
        let (before, after) = (at("2026-11-30T10:00:00.2Z"), at("2026-11-30T10:00:00.3Z"));
        for (said, expected) in [
            ("2026-11-30T10:00:00Z", 0),
            ("2026-11-30T09:59:59Z", -200),
            ("2026-11-30T10:00:05Z", 4_700),
            ("2026-11-30T09:59:55Z", -4_200),
        ] {
            let expected = SignedDuration::from_millis(expected);
            assert_eq!(ahead(at(said), before, after), expected, "{said}");
        }
    }
}
