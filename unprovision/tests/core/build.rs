//! Small builders: a node, what Placement shows of it, and a case with a past.

use std::collections::BTreeMap;

use ironic_client::{Node, NodeUuid, PowerState, ProvisionState};
use jiff::{SignedDuration, Timestamp};
use placement_client::{
    Consumer, ConsumerAllocations, ConsumerGeneration, ConsumerUuid, Generation, Inventories, Inventory,
    ProviderTraits, ProviderUuid, ResourceClass, TraitName, Units,
};
use unprovision::core::{
    Action, Case, CaseId, Entry, Event, Found, HeldBy, Kind, Limits, Observation, Process, ProviderView,
    Refusal, RefusalKind, Tag, guard_consumer, guard_owner,
};
use uuid::Uuid;

pub(crate) const NODE: NodeUuid = NodeUuid(Uuid::from_u128(0xa));
pub(crate) const INSTANCE: Uuid = Uuid::from_u128(0x1);
/// Another instance, and another consumer.
pub(crate) const STRANGER: Uuid = Uuid::from_u128(0x2);
/// Another node's provider.
pub(crate) const ELSEWHERE: ProviderUuid = ProviderUuid(Uuid::from_u128(0xb));

/// So many seconds after the case was opened.
pub(crate) fn at(seconds: i64) -> Timestamp {
    Timestamp::from_second(1_800_000_000 + seconds).unwrap()
}

/// The states of a node that leaves its instance, or has not been made ready since.
pub(crate) const LEAVING: [&str; 6] = [
    "deleting",
    "cleaning",
    "clean wait",
    "clean hold",
    "clean failed",
    "error",
];

/// All states, and one that nobody knows.
pub(crate) fn every_state() -> Vec<ProvisionState> {
    let mut states = ProvisionState::NAMED.to_vec();
    states.push("moonwalking".into());
    states
}

pub(crate) fn secs(n: i64) -> SignedDuration {
    SignedDuration::from_secs(n)
}

pub(crate) fn guard() -> ConsumerUuid {
    guard_consumer(NODE, INSTANCE)
}

pub(crate) fn instance() -> ConsumerUuid {
    ConsumerUuid(INSTANCE)
}

pub(crate) fn class() -> ResourceClass {
    "CUSTOM_BAREMETAL".parse().unwrap()
}

pub(crate) fn other_class() -> ResourceClass {
    "CUSTOM_OTHER".parse().unwrap()
}

pub(crate) fn one_unit() -> Units {
    [(class(), 1)].into()
}

pub(crate) fn tag_name() -> TraitName {
    unprovision::core::DEFAULT_TAG.parse().unwrap()
}

/// The tag of a case that found it nowhere.
pub(crate) fn tag() -> Tag {
    Tag {
        name: tag_name(),
        on_node: false,
        on_provider: false,
    }
}

/// The node, with the tag.
pub(crate) fn tagged(mut node: Node) -> Node {
    node.traits.insert(tag_name().to_string());
    node
}

pub(crate) fn tenant() -> Consumer {
    Consumer {
        project_id: "project".to_owned(),
        user_id: "user".to_owned(),
        consumer_type: None,
    }
}

pub(crate) fn limits() -> Limits {
    Limits {
        deadline: at(100_000),
        retry_error: 0,
        reclean: 0,
        release_nova_reservations: true,
    }
}

/// A node in this state since [`at`]`(1)`, free if it is `available`.
pub(crate) fn node(state: ProvisionState) -> Node {
    Node {
        uuid: NODE,
        name: Some("node-1".to_owned()),
        provision_state: state,
        target_provision_state: None,
        provision_updated_at: Some(at(1)),
        instance_uuid: None,
        power_state: Some(PowerState::Off),
        maintenance: false,
        maintenance_reason: None,
        fault: None,
        last_error: None,
        reservation: None,
        resource_class: Some("baremetal".to_owned()),
        traits: Default::default(),
        retired: false,
        protected: false,
        conductor_group: None,
        owner: None,
        shard: None,
    }
}

/// The node as it was when the case was opened.
pub(crate) fn in_use() -> Node {
    Node {
        instance_uuid: Some(INSTANCE),
        provision_updated_at: Some(at(-1000)),
        power_state: Some(PowerState::On),
        ..node(ProvisionState::Active)
    }
}

/// A provider with one unit of the class, free.
pub(crate) fn provider() -> ProviderView {
    let inventory = Inventory {
        total: 1,
        reserved: 0,
        min_unit: 1,
        max_unit: 1,
        step_size: 1,
        allocation_ratio: 1.0,
    };
    ProviderView {
        inventories: Inventories {
            generation: Generation(7),
            inventories: [(class(), inventory)].into(),
        },
        traits: None,
        holders: BTreeMap::new(),
    }
}

pub(crate) trait ProviderExt {
    fn reserved(self, units: u32) -> Self;
    fn held_by(self, consumer: ConsumerUuid) -> Self;
    fn with_traits(self, names: &[&str]) -> Self;
    fn tagged(self) -> Self;
}

impl ProviderExt for ProviderView {
    fn reserved(mut self, units: u32) -> Self {
        self.inventories
            .inventories
            .values_mut()
            .for_each(|inventory| inventory.reserved = units);
        self
    }

    fn held_by(mut self, consumer: ConsumerUuid) -> Self {
        let owner = if consumer == guard() {
            guard_owner()
        } else {
            tenant()
        };
        let all = ConsumerAllocations {
            consumer: Some(owner),
            generation: ConsumerGeneration::At(3),
            allocations: [(ProviderUuid(NODE.0), one_unit())].into(),
        };
        let held = HeldBy {
            units: one_unit(),
            all,
            ours: consumer == guard(),
        };
        self.holders.insert(consumer, held);
        self
    }

    fn with_traits(mut self, names: &[&str]) -> Self {
        self.traits = Some(ProviderTraits {
            generation: Generation(8),
            traits: names.iter().map(|name| name.parse().unwrap()).collect(),
        });
        self
    }

    fn tagged(self) -> Self {
        self.with_traits(&["CUSTOM_RACK_7", tag_name().as_str()])
    }
}

/// What is seen two hundred seconds into the case.
pub(crate) fn seen(node: impl Into<Option<Node>>, provider: impl Into<Option<ProviderView>>) -> Observation {
    Observation {
        at: at(200),
        node: node.into(),
        provider: provider.into(),
        nova: None,
    }
}

pub(crate) fn found() -> Found {
    Found {
        name: Some("node-1".to_owned()),
        provision_state: ProvisionState::Active,
        provision_updated_at: Some(at(-1000)),
        class: Some(class()),
        reserved: 0,
        owner: Some(tenant()),
        units: one_unit(),
        nova: false,
        hold: None,
        tag: None,
    }
}

/// A case's journal in the making.
#[derive(Clone, Debug)]
pub(crate) struct Story {
    pub(crate) entries: Vec<Entry>,
}

impl Story {
    pub(crate) fn new(kind: Kind, limits: Limits, found: Found) -> Self {
        let opened = Event::Opened {
            node: NODE,
            kind,
            strategy: "hand-over".to_owned(),
            limits,
            found: Box::new(found),
            cloud: None,
        };
        Self {
            entries: vec![Entry {
                at: at(0),
                event: opened,
            }],
        }
    }

    pub(crate) fn tear_down() -> Self {
        Self::new(Kind::TearDown { instance: INSTANCE }, limits(), found())
    }

    pub(crate) fn guard() -> Self {
        let kind = Kind::Guard {
            instance: Some(INSTANCE),
            since: None,
        };
        Self::new(kind, limits(), found())
    }

    pub(crate) fn then(mut self, seconds: i64, event: Event) -> Self {
        self.entries.push(Entry {
            at: at(seconds),
            event,
        });
        self
    }

    pub(crate) fn intended(self, seconds: i64, write: Action) -> Self {
        self.then(seconds, Event::Intended { write })
    }

    pub(crate) fn applied(self, seconds: i64, write: Action) -> Self {
        self.intended(seconds, write).then(seconds, Event::Applied)
    }

    pub(crate) fn unknown(self, seconds: i64, write: Action) -> Self {
        let message = "the answer was lost".to_owned();
        self.intended(seconds, write)
            .then(seconds, Event::Unknown { message })
    }

    pub(crate) fn refused(self, seconds: i64, write: Action, kind: RefusalKind) -> Self {
        self.intended(seconds, write).then(
            seconds,
            Event::Refused {
                refusal: refusal(kind),
            },
        )
    }

    /// A case whose strategy tags.
    pub(crate) fn tagging() -> Self {
        let found = Found {
            tag: Some(tag()),
            ..found()
        };
        Self::new(Kind::TearDown { instance: INSTANCE }, limits(), found)
    }

    /// Both were tagged by us right at the start.
    pub(crate) fn tagged(self) -> Self {
        self.applied(0, tag_node()).applied(0, tag_provider())
    }

    /// The instance's tear-down was accepted right at the start.
    pub(crate) fn torn_down(self) -> Self {
        self.applied(0, unprovision(&in_use()))
    }

    pub(crate) fn case(&self) -> Case {
        Case::fold(CaseId::tear_down(NODE, INSTANCE), &self.entries).unwrap()
    }
}

pub(crate) fn process(pid: u32) -> Process {
    Process {
        host: "controller-1".to_owned(),
        boot: "7f0c".to_owned(),
        namespace: "pid:[4026531836]".to_owned(),
        pid,
        started: 12345,
    }
}

pub(crate) fn refusal(kind: RefusalKind) -> Refusal {
    Refusal {
        kind,
        message: format!("{kind:?}"),
        retry_after: None,
    }
}

/// The tear-down of the node as it is.
pub(crate) fn unprovision(node: &Node) -> Action {
    Action::Unprovision {
        carries: node.instance_uuid,
        since: node.provision_updated_at,
        from: node.provision_state.clone(),
    }
}

/// The reservation of all units.
pub(crate) fn reserve() -> Action {
    Action::reserve_all(&provider(), &class()).unwrap()
}

/// The node's tag.
pub(crate) fn tag_node() -> Action {
    Action::AddNodeTrait { name: tag_name() }
}

/// The provider's tag.
pub(crate) fn tag_provider() -> Action {
    let case = Story::tagging().case();
    Action::tag_provider(&case, &provider().with_traits(&["CUSTOM_RACK_7"])).unwrap()
}

/// The end of the node's tag.
pub(crate) fn untag_node() -> Action {
    Action::RemoveNodeTrait { name: tag_name() }
}

/// The end of the provider's tag.
pub(crate) fn untag_provider() -> Action {
    let case = Story::tagging().tagged().applied(1, untag_node()).case();
    Action::untag(
        &case,
        &node(ProvisionState::Available),
        Some(&provider().tagged()),
    )
    .unwrap()
}

/// The hand-over from the instance to us.
pub(crate) fn hand_over() -> Action {
    let case = Story::tear_down().case();
    Action::hand_over(&case, &provider().held_by(instance()), &class()).unwrap()
}
