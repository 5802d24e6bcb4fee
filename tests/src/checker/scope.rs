//! What a small world contains, and how much may go wrong in it.

use unprovision::strategy::Gap;

use crate::model::nova::Rule;

/// A small world: who is in it, and how often each may disturb.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Scope {
    /// Its name.
    pub name: &'static str,
    /// Nova beside us, with this rule; `None`: another scheduler, which rewrites nothing.
    pub nova: Option<Rule>,
    /// Placement from before 14.0.0.
    pub old_placement: bool,
    /// What a person has reserved before we came.
    pub found_reserved: bool,
    /// The instance holds a unit of another provider too.
    pub elsewhere: bool,
    /// How much may go wrong.
    pub budget: Budget,
}

/// How often each disturbance may still happen, and all of them together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Budget {
    /// All disturbances together.
    pub all: u8,
    /// A process dies.
    pub crashes: u8,
    /// A second replica takes the case over while the first is frozen, before it sends.
    pub takeovers: u8,
    /// A write's answer is lost.
    pub lost: u8,
    /// A write is refused for a reason outside of the world: a limit, a proxy.
    pub refused: u8,
    /// A tear-down or a cleaning fails.
    pub failures: u8,
    /// A conductor takes the lock.
    pub locks: u8,
    /// An operator edits.
    pub edits: u8,
    /// The time is up.
    pub late: u8,
    /// A user deletes the server at Nova.
    pub deletes: u8,
}

impl Budget {
    /// Everything the world may contain, with so many disturbances in all.
    pub const fn full(all: u8) -> Self {
        Self {
            all,
            crashes: 2,
            takeovers: 1,
            lost: 2,
            refused: 1,
            failures: 1,
            locks: 1,
            edits: 2,
            late: 1,
            deletes: 1,
        }
    }

    /// Only what happens to our own processes: two die, or one is frozen and overtaken.
    pub const fn of_ours(all: u8) -> Self {
        let full = Self::full(all);
        Self {
            lost: 0,
            refused: 0,
            failures: 0,
            locks: 0,
            edits: 0,
            late: 0,
            deletes: 0,
            ..full
        }
    }

    /// In words: how much may go wrong.
    pub fn words(&self) -> String {
        match (self.all, *self == Self::of_ours(self.all)) {
            (0, _) => "nothing".to_owned(),
            (all, true) => format!("{all} deaths of our own processes"),
            (all, false) => format!("any {all}"),
        }
    }

    /// What cannot be spent any more makes no difference.
    pub(super) fn cap(&mut self) {
        let all = self.all;
        let purses = [
            &mut self.crashes,
            &mut self.takeovers,
            &mut self.lost,
            &mut self.refused,
            &mut self.failures,
            &mut self.locks,
            &mut self.edits,
            &mut self.late,
            &mut self.deletes,
        ];
        purses.into_iter().for_each(|purse| *purse = all.min(*purse));
    }
}

impl Scope {
    /// A world without rivals, with so many disturbances.
    pub const fn alone(all: u8) -> Self {
        Self {
            name: "alone",
            nova: None,
            old_placement: false,
            found_reserved: false,
            elsewhere: false,
            budget: Budget::full(all),
        }
    }

    /// Whether somebody beside whom a strategy may leave a gap is in this world.
    pub fn has(&self, gap: Gap) -> bool {
        match gap {
            Gap::OldTracker => self.nova == Some(Rule::Old),
            Gap::Tracker => self.nova.is_some(),
            Gap::NovaDeletes => self.nova.is_some() && self.budget.deletes.min(self.budget.all) > 0,
            Gap::AdoptedReservation => {
                self.nova == Some(Rule::Old) && self.old_placement && self.found_reserved
            }
            Gap::PlainQueries => true,
            Gap::FrozenWriter => self.budget.takeovers.min(self.budget.all) > 0,
        }
    }

    /// All worlds that a strategy is searched in. Where nobody rewrites the provider, twice as much may go wrong; where somebody
    /// does, twice as much of what happens to our own processes.
    pub fn all(disturbances: u8) -> Vec<Self> {
        let twice = disturbances.saturating_mul(2);
        let alone = Self::alone(twice);
        let mut worlds = vec![
            alone,
            Self {
                name: "reserved by a person",
                found_reserved: true,
                elsewhere: true,
                ..alone
            },
        ];
        for beside in Self::beside_nova(alone) {
            worlds.push(Self {
                budget: Budget::full(disturbances),
                ..beside
            });
            worlds.extend((disturbances > 0).then_some(Self {
                budget: Budget::of_ours(twice),
                ..beside
            }));
        }
        worlds
    }

    fn beside_nova(alone: Self) -> [Self; 4] {
        [
            Self {
                name: "beside Nova before 26.1",
                nova: Some(Rule::Old),
                ..alone
            },
            Self {
                name: "beside Nova since 26.1",
                nova: Some(Rule::Current),
                elsewhere: true,
                ..alone
            },
            Self {
                name: "beside Nova since 26.1, Placement before 14.0.0",
                nova: Some(Rule::Current),
                old_placement: true,
                ..alone
            },
            Self {
                name: "reserved by a person, beside Nova before 26.1, Placement before 14.0.0",
                nova: Some(Rule::Old),
                old_placement: true,
                found_reserved: true,
                ..alone
            },
        ]
    }
}
