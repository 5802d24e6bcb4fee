//! Whether the guard takes a node under its care: somebody else tears down, we only keep Placement right.

use ironic_client::{Node, ProvisionState};
use jiff::Timestamp;
use placement_client::{ConsumerUuid, ResourceClass};
use uuid::Uuid;

use super::free::{NotFree, why_not_free, why_not_free_for_nova};
use super::{CaseId, Entry, Event, Found, Kind, Limits, Observation, ProviderView};
use crate::strategy::{HandOver, Strategy, by_name};

/// Where a node is, seen by somebody who never changes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Road {
    /// Somebody uses it, or is about to (rule 2): nothing of it is ours to correct.
    InUse,
    /// An instance leaves it, or has left it, and it is not free again yet.
    Leaving,
    /// It has no instance and is not free for another reason.
    NotFree(NotFree),
    /// It is free.
    Free,
}

/// Where the node is.
pub fn road(node: &Node) -> Road {
    use ProvisionState as P;
    match &node.provision_state {
        // Nova takes the instance for gone in any of these, whether the node still names it or not.
        P::Deleting | P::Cleaning | P::CleanWait | P::CleanHold | P::CleanFailed | P::Error => Road::Leaving,
        _ if node.instance_uuid.is_some() => Road::InUse,
        P::Available => why_not_free(node).map_or(Road::Free, Road::NotFree),
        P::Enroll | P::Verifying | P::Manageable | P::Inspecting | P::InspectWait | P::InspectFailed => {
            Road::NotFree(NotFree::State(node.provision_state.clone()))
        }
        P::Other(_) => Road::NotFree(NotFree::State(node.provision_state.clone())),
        _ => Road::InUse,
    }
}

/// How the guard guards.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GuardPolicy<'a> {
    /// The strategy's name.
    pub strategy: &'a str,
    /// Whether to lift the reservation that Nova leaves on a free node until its next pass.
    pub release_nova_reservations: bool,
}

/// Why the guard has nothing to do with a node.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotGuarded {
    /// Ironic does not know it.
    #[error("Ironic does not know the node")]
    NoNode,
    /// Somebody uses it.
    #[error("the node is in use")]
    InUse,
    /// Somebody uses it and Placement offers it all the same. That is for a person to correct (rule 2).
    #[error(
        "the node is `{0}` and in use, but Placement offers it: its allocation is missing. Nothing is written; see \
         `nova-manage placement heal_allocations`"
    )]
    InUseAndOffered(ProvisionState),
    /// It is not free, and Placement does not offer it.
    #[error("{0}, and Placement does not offer it")]
    NotOffered(NotFree),
    /// It is free, and nothing of ours or Nova's hides it.
    #[error("the node is free")]
    Free,
    /// Nobody knows what it is called in Placement.
    #[error(
        "the node has no resource class, so nothing can be held; set one with `openstack baremetal node set {0} \
         --resource-class CLASS`"
    )]
    NoResourceClass(String),
    /// The strategy cannot keep what somebody else tears down (rule 8).
    #[error("nothing is guarded: {0}")]
    Strategy(&'static str),
    /// Its provider has other classes.
    #[error(
        "the node should be {expected} in Placement, but its provider has {has}; nothing can be held until the wrong one is \
         corrected"
    )]
    WrongResourceClass {
        /// The class by the node.
        expected: ResourceClass,
        /// The classes of the provider.
        has: String,
    },
}

impl NotGuarded {
    /// Whether somebody ought to look at it.
    pub fn is_finding(&self) -> bool {
        match self {
            Self::NoNode | Self::InUse | Self::NotOffered(_) | Self::Free => false,
            Self::InUseAndOffered(_) | Self::NoResourceClass(_) => true,
            Self::WrongResourceClass { .. } | Self::Strategy(_) => true,
        }
    }
}

/// The first entry of the node's case, or why there is none. `remembered` is the instance that the node carried when it was
/// last seen with one.
///
/// # Errors
///
/// [`NotGuarded`] where there is nothing to do; [`NotGuarded::is_finding`] where a person ought to look.
pub fn open_guard(
    seen: &Observation,
    remembered: Option<Uuid>,
    policy: &GuardPolicy<'_>,
    now: Timestamp,
) -> Result<(CaseId, Entry), NotGuarded> {
    let node = seen.node.as_ref().ok_or(NotGuarded::NoNode)?;
    by_name(policy.strategy)
        .ok_or("there is no such strategy")
        .and_then(|strategy| strategy.guards())
        .map_err(NotGuarded::Strategy)?;
    let road = road(node);
    let view = seen.provider.as_ref();
    let class = match class(node, view) {
        Ok(class) => class,
        // What nobody needs to hold needs no name.
        Err(_) if matches!(road, Road::InUse | Road::Free) => return Err(road.nothing_to_do()),
        Err(finding) => return Err(finding),
    };
    let offered = view.is_some_and(|view| view.offers(&class));
    let instance = match road {
        Road::InUse if offered => {
            return Err(NotGuarded::InUseAndOffered(node.provision_state.clone()));
        }
        Road::Leaving => node.instance_uuid.or(remembered),
        Road::NotFree(_) if offered => None,
        Road::Free if view.is_some_and(|view| hidden_without_need(view, &class, policy)) => None,
        Road::InUse | Road::NotFree(_) | Road::Free => return Err(road.nothing_to_do()),
    };
    let since = node.provision_updated_at;
    let event = Event::Opened {
        node: node.uuid,
        kind: Kind::Guard { instance, since },
        strategy: strategy(node, policy).to_owned(),
        limits: Limits {
            deadline: Timestamp::MAX,
            retry_error: 0,
            reclean: 0,
            release_nova_reservations: policy.release_nova_reservations,
        },
        found: Box::new(found(node, instance, view, class)),
        cloud: None,
    };
    let id = CaseId::guard(node.uuid, instance, since);
    Ok((id, Entry { at: now, event }))
}

impl Road {
    fn nothing_to_do(self) -> NotGuarded {
        match self {
            Self::InUse | Self::Leaving => NotGuarded::InUse,
            Self::NotFree(why) => NotGuarded::NotOffered(why),
            Self::Free => NotGuarded::Free,
        }
    }
}

/// The node's class by Nova's rule, checked against what its provider really has: a wrong name would hold nothing.
fn class(node: &Node, view: Option<&ProviderView>) -> Result<ResourceClass, NotGuarded> {
    let nameless = || NotGuarded::NoResourceClass(node.uuid.to_string());
    let named = node.resource_class.as_deref().ok_or_else(nameless)?;
    let class = ResourceClass::of_node_class(named).map_err(|_| nameless())?;
    let has = view.map(|view| &view.inventories.inventories);
    match has {
        Some(has) if !has.is_empty() && !has.contains_key(&class) => {
            let names = has.keys().map(ResourceClass::as_str).collect::<Vec<_>>();
            Err(NotGuarded::WrongResourceClass {
                expected: class,
                has: names.join(", "),
            })
        }
        _ => Ok(class),
    }
}

/// Whether a free node is hidden by a hold of ours, or by the reservation that Nova has not lifted yet. Any other reservation is
/// an operator's (rule 6).
fn hidden_without_need(view: &ProviderView, class: &ResourceClass, policy: &GuardPolicy<'_>) -> bool {
    let novas = policy.release_nova_reservations
        && view.is_novas()
        && view.is_reserved(class)
        && view.used(class) == 0;
    novas || view.our_hold().is_some()
}

/// A reservation that is stricter than Nova's rule would be taken back by its tracker again and again (rule 6).
fn strategy<'a>(node: &Node, policy: &GuardPolicy<'a>) -> &'a str {
    match why_not_free_for_nova(node) {
        None if node.retired => HandOver.name(),
        _ => policy.strategy,
    }
}

fn found(node: &Node, instance: Option<Uuid>, view: Option<&ProviderView>, class: ResourceClass) -> Found {
    let held = instance.and_then(|instance| view?.holders.get(&ConsumerUuid(instance)));
    let inventory = view.and_then(|view| view.inventories.inventories.get(&class));
    Found {
        name: node.name.clone(),
        provision_state: node.provision_state.clone(),
        provision_updated_at: node.provision_updated_at,
        reserved: inventory.map_or(0, |inventory| inventory.reserved),
        class: Some(class),
        owner: held.and_then(|held| held.all.consumer.clone()),
        units: held.map(|held| held.units.clone()).unwrap_or_default(),
        nova: view.is_some_and(ProviderView::is_novas),
        hold: view.and_then(ProviderView::our_hold),
        tag: None,
    }
}
