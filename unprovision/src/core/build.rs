//! Builds the writes from what was seen, so that each carries the generations it relies on.

use ironic_client::Node;
use placement_client::{ConsumerGeneration, ConsumerUuid, ProviderUuid, ResourceClass};

use super::{Action, Case, Giver, HeldBy, Owner, ProviderView};

impl Action {
    /// Reserves all units of the class. `None` where the provider has no such class.
    pub fn reserve_all(view: &ProviderView, class: &ResourceClass) -> Option<Self> {
        let total = view.inventories.inventories.get(class)?.total;
        Self::set_reserved(view, class, total)
    }

    /// Sets the reserved units of the class; all else stays as it was read. `None` where the provider has no such
    /// class.
    pub fn set_reserved(view: &ProviderView, class: &ResourceClass, to: u32) -> Option<Self> {
        let mut inventories = view.inventories.clone();
        inventories.inventories.get_mut(class)?.reserved = to;
        Some(Self::SetReserved {
            class: class.clone(),
            to,
            inventories,
        })
    }

    /// Moves the unit from the instance, or from nobody, to our consumer.
    pub fn hand_over(case: &Case, view: &ProviderView, class: &ResourceClass) -> Option<Self> {
        let instance = held_by_instance(case, view);
        let giver = match instance {
            Some((uuid, held)) => Some(giver(case, uuid, held)?),
            None => None,
        };
        let claimed = || [(class.clone(), 1)].into();
        Some(Self::HandOver {
            receiver: case.guard(),
            generation: ConsumerGeneration::New,
            units: instance.map_or_else(claimed, |(_, held)| held.units.clone()),
            giver,
        })
    }

    /// Moves the unit from our consumer back to the instance. `None` where we do not hold it, or nobody knows any
    /// more whose the instance was.
    pub fn hand_back(case: &Case, view: &ProviderView) -> Option<Self> {
        let guard = case.holder_of_ours(view)?;
        let ours = view.holders.get(&guard)?;
        let to = held_by_instance(case, view).and_then(|(uuid, held)| giver(case, uuid, held));
        let anew = || {
            Some(Giver {
                uuid: case.instance_consumer()?,
                generation: case.handed_over_generation(),
                owner: case.found.owner.clone()?,
                rest: case.handed_over_rest(),
            })
        };
        Some(Self::HandBack {
            from: guard,
            generation: ours.all.generation,
            units: ours.units.clone(),
            to: to.or_else(anew)?,
        })
    }

    /// Takes the provider from our consumer or from the instance. `None` where that one does not hold it.
    pub fn release(case: &Case, view: &ProviderView, whose: Owner) -> Option<Self> {
        let uuid = match whose {
            Owner::Guard => case.holder_of_ours(view)?,
            Owner::Instance => case.instance_consumer()?,
        };
        let consumer = giver(case, uuid, view.holders.get(&uuid)?)?;
        Some(Self::Release { whose, consumer })
    }

    /// Tags the node. `None` where the tag is there.
    pub fn tag_node(case: &Case, node: &Node) -> Option<Self> {
        let name = &case.found.tag.as_ref()?.name;
        let missing = !node.traits.contains(name.as_str());
        missing.then(|| Self::AddNodeTrait { name: name.clone() })
    }

    /// Tags the provider; its other traits stay. `None` where the tag is there.
    pub fn tag_provider(case: &Case, view: &ProviderView) -> Option<Self> {
        let (name, mut traits) = (case.found.tag.as_ref()?.name.clone(), view.traits.clone()?);
        traits
            .traits
            .insert(name.clone())
            .then_some(Self::AddProviderTrait { name, traits })
    }

    /// Takes our tag away: from the node first, since Nova copies a node's traits to its provider; from there also where a look
    /// does not show it, since that may come from a lagging replica. `None` where none of ours is left.
    pub fn untag(case: &Case, node: &Node, view: Option<&ProviderView>) -> Option<Self> {
        let name = case.found.tag.as_ref()?.name.clone();
        let is_there = case.may_have_tagged_node() && node.traits.contains(name.as_str());
        if is_there || case.owes_the_node_an_untag() {
            return Some(Self::RemoveNodeTrait { name });
        }
        let mut traits = view?.traits.clone().filter(|_| case.may_have_tagged_provider())?;
        traits
            .traits
            .remove(&name)
            .then_some(Self::RemoveProviderTrait { name, traits })
    }
}

fn held_by_instance<'a>(case: &Case, view: &'a ProviderView) -> Option<(ConsumerUuid, &'a HeldBy)> {
    let uuid = case.instance_consumer()?;
    Some((uuid, view.holders.get(&uuid)?))
}

fn giver(case: &Case, uuid: ConsumerUuid, held: &HeldBy) -> Option<Giver> {
    let mut rest = held.all.allocations.clone();
    rest.remove(&ProviderUuid(case.node.0));
    Some(Giver {
        uuid,
        generation: held.all.generation,
        owner: held.all.consumer.clone()?,
        rest,
    })
}
