//! When two states are the same: whatever nothing can depend on any more is left out.
//!
//! - Ironic's times and Placement's generations only grow, and the core only compares them. So of one that is on record it
//!   matters whether it is still the current one; of a generation also whether it is the one that was just read.
//! - Of its own clock the core asks only how long ago something was. So ages go into the key as *just now* or *long
//!   ago*, and only where something depends on them. What lies between is left to the simulation, whose clock runs.
//! - Of most writes the core asks only whether there was one.

use std::hash::{Hash, Hasher};

use ironic_client::ProvisionState;
use jiff::{SignedDuration, Timestamp};
use placement_client::ConsumerGeneration;
use unprovision::core::{
    Action, ActionKind, Attempts, Case, CaseState, Event, Giver, LastAttempt, Owner, ProviderView,
};

use super::bay::Bay;
use super::worker::Phase;

/// How far the clock goes ahead when time passes: longer than anything the core waits for or remembers.
pub const LEAP: SignedDuration = SignedDuration::from_secs(120);

/// Collects what a state consists of.
#[derive(Debug, Default)]
pub struct Key {
    mixed: Mixed,
    since: Option<Timestamp>,
    generation: i64,
    read: Option<i64>,
}

/// Two independent halves of a hash. It is for telling states apart, not for safety from anybody.
#[derive(Clone, Copy, Debug, Default)]
struct Mixed(u64, u64);

impl Mixed {
    fn word(&mut self, word: u64) {
        let fold = |state: u64, salt: u64| {
            let wide = u128::from(state ^ word ^ salt) * u128::from(salt | 1);
            (wide as u64) ^ ((wide >> 64) as u64).rotate_left(17) ^ state.rotate_left(23)
        };
        self.0 = fold(self.0, 0x9E37_79B9_7F4A_7C15);
        self.1 = fold(self.1, 0xD6E8_FEB8_6659_FD93);
    }
}

impl Hasher for Mixed {
    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.word(u64::from_le_bytes(word));
        }
    }

    fn write_u8(&mut self, word: u8) {
        self.word(word.into());
    }

    fn write_u32(&mut self, word: u32) {
        self.word(word.into());
    }

    fn write_u64(&mut self, word: u64) {
        self.word(word);
    }

    fn write_usize(&mut self, word: usize) {
        self.word(word as u64);
    }

    fn write_isize(&mut self, word: isize) {
        self.word(word as u64);
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

impl Key {
    /// Something that is compared by its value.
    pub fn put(&mut self, value: &(impl Hash + ?Sized)) {
        value.hash(&mut self.mixed);
    }

    /// What is current: from here on, times and generations are compared with it.
    pub fn begin(&mut self, bay: &Bay, phase: Option<&Phase>) {
        *self = Self {
            mixed: Mixed::default(),
            since: Some(bay.node.since),
            generation: bay.provider.generation,
            read: match phase {
                Some(Phase::Half(view)) => Some(view.inventories.generation.0),
                _ => None,
            },
        };
    }

    /// The key.
    pub fn end(&self) -> u128 {
        u128::from(self.mixed.0) << 64 | u128::from(self.mixed.1)
    }

    fn is_current(&self, since: Option<Timestamp>) -> bool {
        since == self.since
    }

    fn generation(&mut self, generation: i64) {
        let class: u8 = match generation {
            g if g == self.generation => 0,
            g if Some(g) == self.read => 1,
            _ => 2,
        };
        self.put(&class);
    }

    /// A bay.
    pub fn bay(&mut self, bay: &Bay) {
        let node = &bay.node;
        self.put(&(&node.state, node.instance, node.maintenance, node.locked));
        self.put(&(node.retired, node.protected, node.powered, node.explained));
        self.put(&node.traits);
        let provider = &bay.provider;
        self.put(&(provider.reserved, provider.by, provider.nova, &provider.traits));
        self.put(&provider.holders);
    }

    /// A case, at this time.
    pub fn case(&mut self, case: &Case, now: Timestamp) {
        use ProvisionState as P;
        let limits = &case.limits;
        self.put(&(limits.retry_error, limits.reclean, limits.deadline <= now));
        let found = &case.found;
        self.put(&(&found.provision_state, found.reserved, found.owner.is_some()));
        self.put(&(found.units.len(), found.nova, case.freed_at.is_some()));
        self.put(&self.is_current(found.provision_updated_at));
        self.put(&match &case.state {
            CaseState::Open => (0, None, false),
            CaseState::Suspended(ending) => (1, Some(ending.outcome), ending.held),
            CaseState::Closed(ending) => (2, Some(ending.outcome), ending.held),
        });
        match &case.seen {
            // The text of a failure is waited for.
            Some((state @ (P::Error | P::CleanFailed), at)) => self.put(&(state, is_old(*at, now))),
            Some((state, _)) => self.put(state),
            None => self.put(&()),
        }
        self.put(&case.pending.is_some());
        case.pending.iter().for_each(|action| self.action(action));
        self.put(&case.attempts.len());
        for (kind, attempts) in &case.attempts {
            self.attempts(*kind, attempts, now);
        }
    }

    fn attempts(&mut self, kind: ActionKind, attempts: &Attempts, now: Timestamp) {
        let counted = matches!(
            kind,
            ActionKind::Unprovision | ActionKind::Manage | ActionKind::Provide
        );
        // One whose answer was lost may turn out not to have been sent.
        let most = if attempts.last == LastAttempt::Unknown {
            2
        } else {
            1
        };
        let sent = if counted {
            attempts.sent
        } else {
            attempts.sent.min(most)
        };
        self.put(&(kind, sent, attempts.refused_in_row.min(4)));
        self.put(&attempts.lost_at.is_some_and(|at| !is_old(at, now)));
        let since = attempts.action.since();
        let marks = attempts.action.is_to_ironic() && !attempts.action.drives_the_node();
        let fresh = marks || (since.is_some() && self.is_current(since));
        match &attempts.last {
            LastAttempt::Applied if fresh => {
                self.put(&(0, is_old(attempts.at, now)));
                self.action(&attempts.action);
            }
            LastAttempt::Applied => {
                // Only of a unit it cannot be told whether a look is older than that.
                self.put(&(1, kind == ActionKind::HandOver && is_old(attempts.at, now)));
                self.trace(&attempts.action);
            }
            LastAttempt::Unknown => {
                self.put(&(2, is_old(attempts.at, now)));
                self.action(&attempts.action);
            }
            LastAttempt::Refused(refusal) => {
                self.put(&(3, refusal.kind, is_old(attempts.at, now)));
                self.action(&attempts.action);
            }
        }
    }

    /// What is remembered of a write that was applied and is not compared with another any more.
    fn trace(&mut self, action: &Action) {
        match action {
            Action::SetReserved { to, .. } => self.put(to),
            Action::HandOver { giver, .. } => {
                self.put(&giver.as_ref().is_some_and(|giver| !giver.rest.is_empty()));
            }
            Action::Release { whose, .. } => self.put(&matches!(whose, Owner::Guard)),
            _ => {}
        }
    }

    /// A write.
    pub fn action(&mut self, action: &Action) {
        self.put(&action.kind());
        match action {
            Action::Unprovision { .. }
            | Action::Abort { .. }
            | Action::Manage { .. }
            | Action::ClearMaintenance { .. }
            | Action::Provide { .. } => self.put(&self.is_current(action.since())),
            Action::AddNodeTrait { .. } | Action::RemoveNodeTrait { .. } => {}
            Action::AddProviderTrait { traits, .. } | Action::RemoveProviderTrait { traits, .. } => {
                self.generation(traits.generation.0);
                self.put(&traits.traits);
            }
            Action::SetReserved { to, inventories, .. } => {
                self.put(to);
                self.generation(inventories.generation.0);
                let reserved = inventories
                    .inventories
                    .values()
                    .map(|inventory| inventory.reserved);
                self.put(&reserved.collect::<Vec<_>>());
            }
            Action::HandOver {
                generation, giver, ..
            } => {
                self.put(generation);
                self.giver(giver.as_ref());
            }
            Action::HandBack { generation, to, .. } => {
                self.put(generation);
                self.giver(Some(to));
            }
            Action::Release { whose, consumer } => {
                self.put(&matches!(whose, Owner::Guard));
                self.giver(Some(consumer));
            }
        }
    }

    fn giver(&mut self, giver: Option<&Giver>) {
        self.put(&giver.map(|giver| (giver.uuid, giver.generation, giver.rest.len())));
    }

    /// A worker's phase.
    pub fn phase(&mut self, phase: &Phase) {
        match phase {
            Phase::Idle => self.put(&0),
            Phase::Half(view) => {
                self.put(&1);
                self.view(view);
            }
            Phase::Sends(outgoing) => {
                self.put(&(2, outgoing.saw));
                self.action(&outgoing.action);
            }
            Phase::Knows(event) => self.put(&match event {
                Event::Applied => (3, None),
                Event::Refused { refusal } => (4, Some(refusal.kind)),
                _ => (5, None),
            }),
        }
    }

    fn view(&mut self, view: &ProviderView) {
        self.generation(view.inventories.generation.0);
        let reserved = view
            .inventories
            .inventories
            .values()
            .map(|inventory| inventory.reserved);
        self.put(&reserved.collect::<Vec<_>>());
        self.put(&view.traits.as_ref().map(|read| &read.traits));
        let holders = view.holders.iter().map(|(consumer, held)| {
            let generation: ConsumerGeneration = held.all.generation;
            (*consumer, generation, held.all.allocations.len())
        });
        self.put(&holders.collect::<Vec<_>>());
    }
}

/// Whether it is too long ago for anything to depend on it.
fn is_old(at: Timestamp, now: Timestamp) -> bool {
    now.duration_since(at) >= LEAP
}
