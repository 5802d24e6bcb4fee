//! Whether a tear-down may begin: everything that is wrong is told before anything is touched.

use ironic_client::{Node, NodeUuid};
use jiff::Timestamp;
use placement_client::{ConsumerUuid, ResourceClass, TraitName};
use uuid::Uuid;

use super::tear_down::{Start, start_of};
use super::{
    CaseId, DEFAULT_TAG, Entry, Event, Found, Kind, Limits, NotATag, Observation, ProviderView, Tag,
    guard_consumer, tag_name,
};
use crate::strategy::by_name;

/// A tear-down that somebody asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TearDownRequest {
    /// The node.
    pub node: NodeUuid,
    /// The instance that it must carry.
    pub instance: Uuid,
    /// The strategy's name.
    pub strategy: String,
    /// The tag of a strategy that tags; [`DEFAULT_TAG`] where there is none.
    pub tag: Option<TraitName>,
    /// How long and how often.
    pub limits: Limits,
    /// The caller knows that Nova keeps its record of the server.
    pub nova_record_remains: bool,
}

/// Why a tear-down does not begin. Nothing was touched.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs)] // the texts say it
pub enum CannotOpen {
    #[error("Ironic does not know the node {0} (or does not show it to these credentials)")]
    NoNode(NodeUuid),
    #[error("node {node} carries instance {carries}, not {asked}")]
    OtherInstance {
        node: String,
        carries: Uuid,
        asked: Uuid,
    },
    #[error(
        "node {node} is `{state}` and does not carry instance {asked}, nor does Placement know that it did; a tear-down \
         that was begun is carried on with `unprovision resume`"
    )]
    NoInstance {
        node: String,
        state: String,
        asked: Uuid,
    },
    #[error("node {node} is `{state}`: {why}")]
    WrongState {
        node: String,
        state: String,
        why: &'static str,
    },
    #[error("node {0} is protected; end that with `openstack baremetal node unset {0} --protected` first")]
    Protected(String),
    #[error(
        "Nova manages node {node}: delete the server with `openstack server delete {instance}`, or say \
         --nova-record-remains if Nova shall keep a record of a server that is gone{said}"
    )]
    NovaManages {
        node: String,
        instance: Uuid,
        said: String,
    },
    #[error(
        "Placement has no provider for node {0}, so nothing could be held: check the endpoint and region of Placement, and \
         whether nova-compute has made the provider yet"
    )]
    NoProvider(String),
    #[error(
        "node {0} has no resource class; set one with `openstack baremetal node set {0} --resource-class CLASS`"
    )]
    NoResourceClass(String),
    #[error(
        "node {node} should be {expected} in Placement, but its provider has {has}; correct the one that is wrong"
    )]
    WrongResourceClass {
        node: String,
        expected: String,
        has: String,
    },
    #[error("Placement says that {holder} holds node {node}, not instance {asked}")]
    OtherHolder {
        node: String,
        holder: ConsumerUuid,
        asked: Uuid,
    },
    #[error("node {node} cannot be tagged: {why}")]
    Tag { node: String, why: NotATag },
    #[error(
        "node {node} has as many traits as Ironic allows, so it cannot be tagged with {tag}: remove one, or use another strategy"
    )]
    TooManyTraits { node: String, tag: TraitName },
    #[error("node {node}: {why}")]
    Strategy { node: String, why: &'static str },
}

/// The first entry of the tear-down's case, or why there is none.
pub fn open(request: &TearDownRequest, seen: &Observation, now: Timestamp) -> Result<Entry, CannotOpen> {
    let node = seen.node.as_ref().ok_or(CannotOpen::NoNode(request.node))?;
    let shown = node.name.clone().unwrap_or_else(|| node.uuid.to_string());
    carries(request, node, seen, &shown)?;
    state_fits(node, &shown)?;
    // Without the provider nobody knows either whether Nova manages the node.
    let Some(provider) = &seen.provider else {
        return Err(CannotOpen::NoProvider(shown));
    };
    let class = class(request, node, provider, &shown)?;
    let nova = provider.is_novas();
    let said = seen.nova.as_ref();
    let lets_go = || said.is_some_and(|said| said.lets_go(request.instance, request.node));
    if nova && !request.nova_record_remains && !lets_go() {
        return Err(CannotOpen::NovaManages {
            node: shown,
            instance: request.instance,
            said: said
                .map(|said| format!(" ({})", said.words(request.node)))
                .unwrap_or_default(),
        });
    }
    let mut found = found(request, node, provider, class, nova);
    if let Some(strategy) = by_name(&request.strategy) {
        if strategy.uses_tag() {
            found.tag = Some(tag(request, node, provider, &shown)?);
        }
        let node = shown;
        strategy
            .may_begin(&found)
            .map_err(|why| CannotOpen::Strategy { node, why })?;
    }
    let event = Event::Opened {
        node: request.node,
        kind: Kind::TearDown {
            instance: request.instance,
        },
        strategy: request.strategy.clone(),
        limits: request.limits,
        found: Box::new(found),
        cloud: None,
    };
    Ok(Entry { at: now, event })
}

impl TearDownRequest {
    /// The identifier of its case.
    pub fn case(&self) -> CaseId {
        CaseId::tear_down(self.node, self.instance)
    }
}

/// The node carries the instance, or is on its way out of it: then Placement still knows.
fn carries(
    request: &TearDownRequest,
    node: &Node,
    seen: &Observation,
    shown: &str,
) -> Result<(), CannotOpen> {
    let asked = request.instance;
    let known = |consumer| {
        seen.provider
            .as_ref()
            .is_some_and(|view| view.holders.contains_key(&consumer))
    };
    match node.instance_uuid {
        Some(carries) if carries == asked => Ok(()),
        Some(carries) => Err(CannotOpen::OtherInstance {
            node: shown.to_owned(),
            carries,
            asked,
        }),
        None if known(ConsumerUuid(asked)) || known(guard_consumer(node.uuid, asked)) => Ok(()),
        None => {
            let state = node.provision_state.to_string();
            Err(CannotOpen::NoInstance {
                node: shown.to_owned(),
                state,
                asked,
            })
        }
    }
}

fn state_fits(node: &Node, shown: &str) -> Result<(), CannotOpen> {
    if node.protected {
        return Err(CannotOpen::Protected(shown.to_owned()));
    }
    match start_of(&node.provision_state) {
        // Without an instance the way back has begun already, and all that is left is to wait and to release.
        Start::Never(why) if node.instance_uuid.is_some() => {
            let state = node.provision_state.to_string();
            Err(CannotOpen::WrongState {
                node: shown.to_owned(),
                state,
                why,
            })
        }
        _ => Ok(()),
    }
}

/// The provider's class by Nova's rule, checked against what the provider really has: a wrong name would hold nothing.
fn class(
    request: &TearDownRequest,
    node: &Node,
    view: &ProviderView,
    shown: &str,
) -> Result<ResourceClass, CannotOpen> {
    let named = node
        .resource_class
        .as_deref()
        .ok_or_else(|| CannotOpen::NoResourceClass(shown.to_owned()))?;
    let class =
        ResourceClass::of_node_class(named).map_err(|_| CannotOpen::NoResourceClass(shown.to_owned()))?;
    if !view.inventories.inventories.is_empty() && !view.inventories.inventories.contains_key(&class) {
        let names = view
            .inventories
            .inventories
            .keys()
            .map(ResourceClass::as_str)
            .collect::<Vec<_>>();
        return Err(CannotOpen::WrongResourceClass {
            node: shown.to_owned(),
            expected: class.to_string(),
            has: names.join(", "),
        });
    }
    let known = [
        ConsumerUuid(request.instance),
        guard_consumer(node.uuid, request.instance),
    ];
    let other = view
        .holders
        .iter()
        .find(|(uuid, held)| !known.contains(uuid) && held.units.contains_key(&class));
    match other {
        Some((holder, _)) if node.instance_uuid.is_some() => Err(CannotOpen::OtherHolder {
            node: shown.to_owned(),
            holder: *holder,
            asked: request.instance,
        }),
        _ => Ok(class),
    }
}

fn found(
    request: &TearDownRequest,
    node: &Node,
    view: &ProviderView,
    class: ResourceClass,
    nova: bool,
) -> Found {
    let held = view.holders.get(&ConsumerUuid(request.instance));
    let inventory = view.inventories.inventories.get(&class);
    Found {
        name: node.name.clone(),
        provision_state: node.provision_state.clone(),
        provision_updated_at: node.provision_updated_at,
        reserved: inventory.map_or(0, |inventory| inventory.reserved),
        class: Some(class),
        owner: held.and_then(|held| held.all.consumer.clone()),
        units: held.map(|held| held.units.clone()).unwrap_or_default(),
        nova,
        hold: None,
        tag: None,
    }
}

/// The tag, and where it is already.
fn tag(
    request: &TearDownRequest,
    node: &Node,
    provider: &ProviderView,
    shown: &str,
) -> Result<Tag, CannotOpen> {
    let text = request.tag.as_ref().map_or(DEFAULT_TAG, TraitName::as_str);
    let name = tag_name(text).map_err(|why| CannotOpen::Tag {
        node: shown.to_owned(),
        why,
    })?;
    let unread = || CannotOpen::Strategy {
        node: shown.to_owned(),
        why: "the traits of its provider were not read",
    };
    let tag = Tag::find(name, node, provider).ok_or_else(unread)?;
    if tag.fits(node) {
        return Ok(tag);
    }
    Err(CannotOpen::TooManyTraits {
        node: shown.to_owned(),
        tag: tag.name,
    })
}
