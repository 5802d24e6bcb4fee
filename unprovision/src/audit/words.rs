//! What is said about a finding: what is wrong, and what to do, as words and as commands.

use ironic_client::NodeUuid;
use jiff::Timestamp;
use placement_client::{ConsumerUuid, ResourceClass, TraitName};
use uuid::Uuid;

use super::judge::is_empty;
use super::{Finding, FindingKind, Remedy, Rules, Subject};
use crate::core::{ProviderView, Road, by_hand, road, why_not_free};

/// A finding in few words, before all is added that is known.
#[derive(Clone, Copy, Debug)]
pub(super) struct Told {
    pub(super) kind: FindingKind,
    pub(super) remedy: Remedy,
    /// Whether it is the tag that is left, not an allocation.
    pub(super) is_about_tag: bool,
}

impl Told {
    pub(super) fn with(kind: FindingKind, remedy: Remedy) -> Self {
        Self {
            kind,
            remedy,
            is_about_tag: false,
        }
    }

    pub(super) fn by_hand(kind: FindingKind) -> Self {
        Self::with(kind, Remedy::ByHand)
    }

    pub(super) fn finding(self, subject: &Subject, rules: &Rules) -> Finding {
        let node = subject.node.as_ref();
        let view = subject.view();
        let class = subject.class().or_else(|| {
            let mut has = view?.inventories.inventories.keys();
            has.next().cloned()
        });
        let inventory = class
            .as_ref()
            .and_then(|class| view?.inventories.inventories.get(class));
        let told = Teller {
            subject,
            class: class.as_ref(),
            kind: self.kind,
            tag: rules.tag.as_ref().filter(|_| self.is_about_tag),
        };
        Finding {
            kind: self.kind,
            tag: told.tag.cloned(),
            node: subject.uuid,
            name: node
                .and_then(|node| node.name.clone())
                .or_else(|| Some(subject.provider.as_ref().filter(|_| node.is_none())?.name.clone())),
            provision_state: node.map(|node| node.provision_state.clone()),
            maintenance: node.map(|node| node.maintenance),
            instance: node.and_then(|node| node.instance_uuid),
            total: inventory.map(|inventory| inventory.total),
            reserved: inventory.map(|inventory| inventory.reserved),
            used: class.as_ref().and_then(|class| Some(view?.used(class))),
            consumers: view.map(|view| view.holders.keys().copied().collect()),
            traits: view.and_then(|view| Some(view.traits.as_ref()?.traits.clone())),
            age_s: told
                .since()
                .map(|since| rules.now.duration_since(since).as_secs()),
            what: told.what(),
            why: self.kind.why_it_matters(),
            advice: told.advice(self.remedy, rules),
            commands: told.commands(),
            resource_class: class,
            remedy: self.remedy,
        }
    }
}

struct Teller<'a> {
    subject: &'a Subject,
    class: Option<&'a ResourceClass>,
    kind: FindingKind,
    tag: Option<&'a TraitName>,
}

impl Teller<'_> {
    fn view(&self) -> Option<&ProviderView> {
        self.subject.view()
    }

    fn node(&self) -> NodeUuid {
        NodeUuid(self.subject.uuid)
    }

    fn instance(&self) -> Option<Uuid> {
        self.subject.node.as_ref()?.instance_uuid
    }

    /// Since when it can have been so: whatever of the two changed last.
    fn since(&self) -> Option<Timestamp> {
        let node = self.subject.node.as_ref()?.provision_updated_at;
        let allocated = self.subject.look.as_ref().and_then(|look| look.newest_allocation);
        match self.kind {
            FindingKind::AllocationWithoutInstance | FindingKind::TwoConsumers | FindingKind::StaleHold => {
                allocated.max(node)
            }
            _ => node,
        }
    }

    fn class(&self) -> &str {
        self.class.map_or("CUSTOM_CLASS", ResourceClass::as_str)
    }

    /// The consumers, or those of them that are not the instance.
    fn consumers(&self, others: bool) -> Vec<ConsumerUuid> {
        let instance = self.instance().map(ConsumerUuid);
        let all = self
            .view()
            .into_iter()
            .flat_map(|view| view.holders.keys().copied());
        all.filter(|consumer| !others || Some(*consumer) != instance)
            .collect()
    }

    /// Who holds the provider, in words.
    fn held_by(&self) -> String {
        let all = self.consumers(false);
        all.iter()
            .map(ToString::to_string)
            .collect::<Vec<_>>()
            .join(" and ")
    }

    /// The classes that the provider has, as far as they were seen.
    fn classes(&self) -> String {
        let offered = self.subject.offered.iter();
        let classes = match self.view() {
            Some(view) => view
                .inventories
                .inventories
                .keys()
                .map(ToString::to_string)
                .collect(),
            None => offered.map(ToString::to_string).collect::<Vec<_>>(),
        };
        classes.join(", ")
    }

    fn what(&self) -> String {
        let node = self.subject.node.as_ref();
        match self.kind {
            FindingKind::OfferedNotFree => match node.and_then(why_not_free) {
                Some(why) => format!("{why}, and Placement offers it"),
                None => "Placement offers it".to_owned(),
            },
            FindingKind::FreeNotOffered => self.why_hidden(),
            FindingKind::ProviderMissing => match self.subject.namesake {
                Some(other) => format!("Placement has no provider of this UUID; {other} is called like it"),
                None => "Placement has no provider of this UUID".to_owned(),
            },
            FindingKind::ProviderOrphaned => match self.view().is_some_and(|view| !view.holders.is_empty()) {
                true => format!(
                    "Ironic does not know the node; {} holds the provider",
                    self.held_by()
                ),
                false => "Ironic does not know the node".to_owned(),
            },
            FindingKind::WrongResourceClass => {
                format!(
                    "the node should be {} and its provider has {}",
                    self.class(),
                    self.classes()
                )
            }
            FindingKind::NoResourceClass => "the node has no resource class".to_owned(),
            FindingKind::AllocationWithoutInstance => {
                format!(
                    "{} holds the provider, and the node carries no instance",
                    self.held_by()
                )
            }
            FindingKind::InstanceWithoutAllocation => match self.consumers(true).as_slice() {
                [] => "the instance does not hold the provider; nobody does".to_owned(),
                _ => format!("the instance does not hold the provider; {} does", self.held_by()),
            },
            FindingKind::TwoConsumers => format!("{} hold the provider", self.held_by()),
            FindingKind::InventoryEmpty => format!("the provider has nothing of {}", self.class()),
            FindingKind::StaleHold if let Some(tag) = self.tag => {
                format!("the tag {tag} is set, and the journal has no open case")
            }
            FindingKind::StaleHold => {
                format!(
                    "{}, which is ours, holds the provider, and the journal has no open case",
                    self.held_by()
                )
            }
        }
    }

    fn why_hidden(&self) -> String {
        let Some(view) = self.view() else {
            return "the node is free, and Placement does not offer it".to_owned();
        };
        let reserved = self.class.is_some_and(|class| view.is_reserved(class));
        match (self.consumers(false).as_slice(), reserved) {
            ([], true) if view.is_novas() => {
                "the node is free and reserved, by Nova's rule no longer".to_owned()
            }
            ([], true) => "the node is free and reserved; nobody can tell by whom".to_owned(),
            ([], false) => "the node is free, and its provider has nothing to offer".to_owned(),
            _ => format!("the node is free, and {} holds its provider", self.held_by()),
        }
    }

    fn advice(&self, remedy: Remedy, rules: &Rules) -> String {
        let by_us = match remedy.needs(self.kind) {
            Some(kind) => return format!("{}: `unprovision audit --fix {kind}`", remedy.words()),
            None => self.by_person(),
        };
        match rules.open.contains_key(&self.node()) {
            true => format!("a case is open for it: see `unprovision show {}`", self.node()),
            false => by_us.to_owned(),
        }
    }

    fn by_person(&self) -> &'static str {
        match self.kind {
            FindingKind::OfferedNotFree => {
                "give the instance its allocation back; on a reserved provider that is refused"
            }
            FindingKind::FreeNotOffered => "look at the provider, and lift what hides it",
            FindingKind::ProviderMissing => {
                "see why no nova-compute makes it: its log, its host's service, the node's conductor group or shard"
            }
            FindingKind::ProviderOrphaned => {
                "see whether the consumer still exists, then delete its allocation and the provider"
            }
            FindingKind::WrongResourceClass => {
                "correct the class on the side that is wrong; held units go first"
            }
            FindingKind::NoResourceClass => "give the node a resource class",
            FindingKind::AllocationWithoutInstance => "see whose the consumer is",
            FindingKind::InstanceWithoutAllocation => "give the instance its allocation back",
            FindingKind::TwoConsumers => "see which of them exists; the other one's allocation goes",
            FindingKind::InventoryEmpty => "see why no nova-compute fills it, or fill it",
            FindingKind::StaleHold if self.tag.is_some() => {
                "it keeps a node that is not free from whoever forbids the tag: once it is free, audit again"
            }
            FindingKind::StaleHold if self.is_in_use() => {
                "somebody deployed around Placement: see who, before you lift anything"
            }
            FindingKind::StaleHold => {
                "it keeps a node that is not free from being offered: once it is free, audit again"
            }
        }
    }

    fn is_in_use(&self) -> bool {
        self.subject
            .node
            .as_ref()
            .is_some_and(|node| road(node) == Road::InUse)
    }

    fn commands(&self) -> Vec<String> {
        let node = self.node();
        let list = || format!("openstack resource provider inventory list {node}");
        match self.kind {
            FindingKind::OfferedNotFree if self.instance().is_some() => self.heal(),
            FindingKind::OfferedNotFree => self.reserve(self.total()),
            FindingKind::FreeNotOffered => match (self.view(), self.consumers(false).is_empty()) {
                (None, _) => vec![
                    list(),
                    format!("openstack resource provider show --allocations {node}"),
                ],
                (Some(view), true) if self.class.is_some_and(|class| is_empty(view, class)) => {
                    vec![self.fill()]
                }
                (Some(_), true) => self.reserve(0),
                (Some(_), false) => self.give_up(),
            },
            FindingKind::ProviderMissing => match self.subject.namesake {
                Some(other) => vec![format!("openstack resource provider delete {other}")],
                None => vec![
                    format!("openstack resource provider create --uuid {node} {node}"),
                    self.fill(),
                ],
            },
            FindingKind::ProviderOrphaned => {
                let delete = format!("openstack resource provider delete {node}");
                self.give_up().into_iter().chain([delete]).collect()
            }
            FindingKind::WrongResourceClass => vec![list(), self.fill()],
            FindingKind::NoResourceClass => {
                vec![format!(
                    "openstack baremetal node set {node} --resource-class CLASS"
                )]
            }
            FindingKind::InstanceWithoutAllocation => self.heal().into_iter().chain(self.give_up()).collect(),
            FindingKind::StaleHold if let Some(tag) = self.tag => self.untag(tag),
            FindingKind::AllocationWithoutInstance | FindingKind::TwoConsumers | FindingKind::StaleHold => {
                self.give_up()
            }
            FindingKind::InventoryEmpty => vec![self.fill()],
        }
    }

    /// The instance gets its allocation back; only Nova knows whose it is.
    fn heal(&self) -> Vec<String> {
        let heal = |instance| format!("nova-manage placement heal_allocations --instance {instance}");
        self.instance().map(heal).into_iter().collect()
    }

    fn reserve(&self, to: u32) -> Vec<String> {
        let reserve = |class| by_hand(self.node(), None, Some((class, to)));
        self.class.map(reserve).unwrap_or_default()
    }

    /// The provider gets the inventory that Nova would give it.
    fn fill(&self) -> String {
        let (node, class) = (self.node(), self.class());
        format!(
            "openstack resource provider inventory set {node} --resource {class}=1 --resource {class}:max_unit=1"
        )
    }

    /// All consumers but the instance give up what they hold; each is shown first.
    fn give_up(&self) -> Vec<String> {
        let mut commands = Vec::new();
        for consumer in self.consumers(true) {
            commands.push(format!("openstack resource provider allocation show {consumer}"));
            commands.extend(by_hand(self.node(), Some(consumer), None));
        }
        commands
    }

    /// The node first: what Nova copies from it comes back otherwise. Placement takes all traits that shall stay at once.
    fn untag(&self, tag: &TraitName) -> Vec<String> {
        let node = self.node();
        let on_node = self.subject.node.as_ref();
        let on_node = on_node.is_some_and(|node| node.traits.contains(tag.as_str()));
        let from_node = on_node.then(|| format!("openstack baremetal node remove trait {node} {tag}"));
        let traits = self.view().and_then(|view| view.traits.as_ref());
        let stay = traits.into_iter().flat_map(|read| read.traits.iter());
        let stay = stay
            .filter(|name| *name != tag)
            .map(|name| format!(" --trait {name}"));
        let set = format!(
            "openstack resource provider trait set {node}{}",
            stay.collect::<String>()
        );
        from_node.into_iter().chain([set]).collect()
    }

    fn total(&self) -> u32 {
        let inventory = || self.view()?.inventories.inventories.get(self.class?);
        inventory().map_or(1, |inventory| inventory.total)
    }
}
