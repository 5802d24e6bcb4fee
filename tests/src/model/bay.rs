//! One node and its provider.

use std::collections::{BTreeMap, BTreeSet};

use ironic_client::{NodeUuid, ProvisionState, Verb};
use jiff::{SignedDuration, Timestamp};
use placement_client::{ConsumerUuid, TraitName};
use unprovision::core::RefusalKind;
use uuid::Uuid;

/// One node with the provider that has its UUID.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Bay {
    /// Ironic's half.
    pub node: Machine,
    /// Placement's half.
    pub provider: Provider,
}

/// A node, as far as the core looks at it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Machine {
    /// Its UUID, and its provider's.
    pub uuid: NodeUuid,
    /// Where it is in its life.
    pub state: ProvisionState,
    /// Since when, by Ironic's clock, which is nobody else's.
    pub since: Timestamp,
    /// What it carries.
    pub instance: Option<Uuid>,
    /// Whether it is in maintenance, and by whom.
    pub maintenance: Maintenance,
    /// Whether a conductor holds its lock.
    pub locked: bool,
    /// Whether it is going out of use.
    pub retired: bool,
    /// Whether it may not be torn down.
    pub protected: bool,
    /// Whether its power is known.
    pub powered: bool,
    /// Whether Ironic has said why it failed.
    pub explained: bool,
    /// Its own traits.
    pub traits: BTreeSet<String>,
}

/// Who has put a node into maintenance.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Maintenance {
    /// Nobody.
    #[default]
    No,
    /// A person.
    Person,
    /// Ironic, because a clean step failed.
    CleanFailure,
}

/// A provider with one unit of one class.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Provider {
    /// Moves with every change.
    pub generation: i64,
    /// Units that are not offered.
    pub reserved: u32,
    /// Who has reserved them. Placement does not know that, and nothing is decided by it: it is for the judge.
    pub by: Author,
    /// Whether Nova made it.
    pub nova: bool,
    /// Its traits, without those of Nova's own.
    pub traits: BTreeSet<TraitName>,
    /// Who holds something.
    pub holders: BTreeMap<ConsumerUuid, Held>,
}

/// Whose a reservation is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Author {
    /// There is none.
    #[default]
    Nobody,
    /// Ours.
    Us,
    /// Nova's tracker's.
    Nova,
    /// A person's.
    Operator,
    /// A person's, from while a case held by a reservation. It carries no mark, so nobody can tell it from the case's own.
    Unclear,
}

/// What a consumer holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Held {
    /// Moves with every change of the consumer.
    pub generation: i64,
    /// The unit of this provider.
    pub here: bool,
    /// A unit of some other provider.
    pub elsewhere: bool,
}

impl Bay {
    /// A node in use by an instance that holds its unit.
    pub fn in_use(uuid: NodeUuid, instance: Uuid, since: Timestamp) -> Self {
        let held = Held {
            generation: 1,
            here: true,
            elsewhere: false,
        };
        Self {
            node: Machine {
                uuid,
                state: ProvisionState::Active,
                since,
                instance: Some(instance),
                maintenance: Maintenance::No,
                locked: false,
                retired: false,
                protected: false,
                powered: true,
                explained: false,
                traits: BTreeSet::new(),
            },
            provider: Provider {
                generation: 1,
                reserved: 0,
                by: Author::Nobody,
                nova: false,
                traits: BTreeSet::new(),
                holders: [(ConsumerUuid(instance), held)].into(),
            },
        }
    }
}

impl Machine {
    /// Enters a state.
    pub fn enter(&mut self, state: ProvisionState, at: Timestamp) {
        self.state = state;
        self.since = at;
        self.explained = false;
    }

    /// The next moment by Ironic's clock, where nobody needs to know how long it took.
    pub fn next_moment(&self) -> Timestamp {
        self.since + SignedDuration::from_secs(1)
    }

    /// A verb, as Ironic's API takes it.
    ///
    /// # Errors
    ///
    /// Locked, protected, or not legal in the node's state.
    pub fn ask(&mut self, verb: Verb, at: Timestamp) -> Result<(), RefusalKind> {
        let Some(next) = self.state.after(verb) else {
            return Err(match self.locked {
                true => RefusalKind::Locked,
                false => RefusalKind::Illegal,
            });
        };
        if self.locked {
            return Err(RefusalKind::Locked);
        }
        if self.protected && verb == Verb::Deleted {
            return Err(RefusalKind::Forbidden);
        }
        self.locked = matches!(next, ProvisionState::Deleting | ProvisionState::Cleaning);
        self.enter(next, at);
        Ok(())
    }

    /// Ends maintenance and its fault, whoever set it.
    ///
    /// # Errors
    ///
    /// Where the node is locked.
    pub fn end_maintenance(&mut self) -> Result<(), RefusalKind> {
        if self.locked {
            return Err(RefusalKind::Locked);
        }
        self.maintenance = Maintenance::No;
        Ok(())
    }
}

impl Provider {
    /// Whether a plain query for the class returns it.
    pub fn is_offered(&self) -> bool {
        self.reserved == 0 && !self.holders.values().any(|held| held.here)
    }

    /// Whether a query for the class that forbids the tag returns it; a plain one where there is no tag.
    pub fn is_offered_without(&self, tag: Option<&TraitName>) -> bool {
        self.is_offered() && tag.is_none_or(|tag| !self.traits.contains(tag))
    }

    /// Moves the generation.
    pub fn touch(&mut self) {
        self.generation += 1;
    }

    /// Writes the reservation, whoever does it.
    pub fn reserve(&mut self, units: u32, by: Author) {
        if units != self.reserved {
            self.by = if units == 0 { Author::Nobody } else { by };
        }
        self.reserved = units;
        self.touch();
    }

    /// A consumer loses all it holds, without a look at generations: Nova's way.
    pub fn drop_consumer(&mut self, consumer: ConsumerUuid) {
        if let Some(held) = self.holders.remove(&consumer)
            && held.here
        {
            self.touch();
        }
    }
}
