//! What the core sees of a bay: the same types as from the real services.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use ironic_client::{Fault, Node, PowerState, ProvisionState};
use placement_client::{
    Consumer, ConsumerAllocations, ConsumerGeneration, ConsumerUuid, Generation, Inventories, Inventory,
    ProviderTraits, ProviderUuid, ResourceClass, TraitName, Units,
};
use unprovision::core::{HeldBy, ProviderView, guard_owner};
use uuid::Uuid;

use super::bay::{Held, Machine, Maintenance, Provider};

/// The resource class of every node, as Ironic spells it.
pub const NODE_CLASS: &str = "metal";

/// Some other provider, of which a consumer may hold a unit too.
pub const ELSEWHERE: ProviderUuid = ProviderUuid(Uuid::from_u128(0xe15e));

static CLASS: LazyLock<Option<ResourceClass>> =
    LazyLock::new(|| ResourceClass::of_node_class(NODE_CLASS).ok());
static NOVAS: LazyLock<BTreeSet<TraitName>> = LazyLock::new(|| {
    let names = ["COMPUTE_NODE", "OWNER_NOVA"];
    names.iter().filter_map(|name| name.parse().ok()).collect()
});

/// Whether the trait is one that Nova keeps on every provider of its own.
pub fn is_novas(name: &TraitName) -> bool {
    NOVAS.contains(name)
}

/// One unit of the class.
pub fn one_unit() -> Units {
    CLASS.iter().map(|class| (class.clone(), 1)).collect()
}

/// The owner of every instance.
pub fn tenant() -> Consumer {
    Consumer {
        project_id: "project".to_owned(),
        user_id: "user".to_owned(),
        consumer_type: None,
    }
}

/// The node as a show of it reads.
pub fn node(of: &Machine) -> Node {
    let fault = (of.maintenance == Maintenance::CleanFailure).then_some(Fault::CleanFailure);
    let failed = matches!(of.state, ProvisionState::Error | ProvisionState::CleanFailed);
    Node {
        uuid: of.uuid,
        name: None,
        provision_state: of.state.clone(),
        target_provision_state: None,
        provision_updated_at: Some(of.since),
        instance_uuid: of.instance,
        power_state: of.powered.then_some(PowerState::Off),
        maintenance: of.maintenance != Maintenance::No,
        maintenance_reason: None,
        fault,
        last_error: (failed && of.explained).then(|| "it failed".to_owned()),
        reservation: of.locked.then(|| "conductor".to_owned()),
        resource_class: Some(NODE_CLASS.to_owned()),
        traits: of.traits.clone(),
        retired: of.retired,
        protected: of.protected,
        conductor_group: None,
        owner: None,
        shard: None,
    }
}

/// The provider as a look at it reads.
pub fn provider(of: &Provider, uuid: ProviderUuid, ours: ConsumerUuid) -> ProviderView {
    let inventory = Inventory {
        total: 1,
        reserved: of.reserved,
        min_unit: 1,
        max_unit: 1,
        step_size: 1,
        allocation_ratio: 1.0,
    };
    let inventories = CLASS.iter().map(|class| (class.clone(), inventory.clone()));
    let mut traits = of.traits.clone();
    if of.nova {
        traits.extend(NOVAS.iter().cloned());
    }
    let here = of.holders.iter().filter(|(_, held)| held.here);
    ProviderView {
        inventories: Inventories {
            generation: Generation(of.generation),
            inventories: inventories.collect(),
        },
        traits: Some(ProviderTraits {
            generation: Generation(of.generation),
            traits,
        }),
        holders: here
            .map(|(consumer, held)| (*consumer, held_by(held, uuid, *consumer == ours)))
            .collect(),
    }
}

fn held_by(held: &Held, here: ProviderUuid, ours: bool) -> HeldBy {
    let units = one_unit();
    let mut allocations = BTreeMap::from([(here, units.clone())]);
    if held.elsewhere {
        allocations.insert(ELSEWHERE, units.clone());
    }
    let all = ConsumerAllocations {
        consumer: Some(if ours { guard_owner() } else { tenant() }),
        generation: ConsumerGeneration::At(held.generation),
        allocations,
    };
    HeldBy { units, all, ours }
}
