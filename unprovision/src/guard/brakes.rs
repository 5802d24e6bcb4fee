//! What stops the guard's writes: the pause switch, the limits of the blast (rule 14), a sweep that cannot be true (rule 13).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ironic_client::{NodeUuid, ProvisionState};
use jiff::Timestamp;
use placement_client::ResourceClass;

use super::assign::Layout;
use super::{GuardObserver, Notice, Settings};
use crate::core::{Action, Case, Ending};
use crate::orchestrator::Admission;
use crate::scope::Scope;

/// The brakes of one guard.
#[derive(Debug)]
pub struct Brakes {
    dry_run: bool,
    /// The share and the number of a class that may be held, where there are no scopes, and in each of them.
    whole: Limit,
    scopes: Vec<Limit>,
    most_at_start: usize,
    started: Timestamp,
    observer: Arc<dyn GuardObserver>,
    state: Mutex<State>,
    lifted: AtomicBool,
}

/// How much of a class may be held.
#[derive(Debug)]
struct Limit {
    share: f64,
    floor: usize,
    /// Where this counts, in words.
    place: String,
}

#[derive(Debug, Default)]
struct State {
    /// A person's word: a signal or a call.
    paused: Option<String>,
    /// The pause file is there.
    file: Option<String>,
    alarm: Option<String>,
    distrust: Option<String>,
    /// A person has seen the alarm and let it go on.
    seen_alarm: bool,
    /// A person has seen how few nodes there are.
    any_number: bool,
    /// No new holds: it stands down.
    no_holds: bool,
    /// The first interval of sweeps is over.
    settled: bool,
    released: BTreeSet<NodeUuid>,
    layout: Layout,
    held: BTreeMap<NodeUuid, ResourceClass>,
}

/// What of a status only the brakes know.
#[derive(Debug, Default)]
pub(super) struct BrakesStatus {
    pub(super) held: usize,
    pub(super) stopped: Option<String>,
    pub(super) distrust: Option<String>,
}

const GO_ON: &str = "look what happens; `kill -USR2` lets the guard go on";

impl Brakes {
    pub(super) fn new(settings: &Settings, observer: Arc<dyn GuardObserver>, started: Timestamp) -> Self {
        Self {
            dry_run: settings.dry_run,
            whole: Limit {
                share: settings.max_held_share,
                floor: settings.max_held_floor,
                place: String::new(),
            },
            scopes: settings.scopes.iter().map(Limit::of).collect(),
            most_at_start: settings.max_releases_at_start,
            started,
            observer,
            state: Mutex::default(),
            lifted: AtomicBool::new(false),
        }
    }

    /// Stops all writes.
    pub fn pause(&self, why: &str) {
        self.state().paused = Some(why.to_owned());
        self.observer.notice(&Notice::Paused(why.to_owned()));
    }

    /// Lets writes go on, also past an alarm: whoever says so has looked. A pause file stops them until it is gone.
    pub fn go_on(&self) {
        {
            let mut state = self.state();
            state.paused = None;
            state.any_number = state.distrust.take().is_some() || state.any_number;
            state.seen_alarm = state.alarm.take().is_some() || state.seen_alarm;
        }
        self.lifted.store(true, Ordering::Relaxed);
        self.observer.notice(&Notice::GoesOn);
    }

    /// The same, said before this guard was there, to one that has ended or was starting: its first sweep may show as few
    /// nodes as it likes.
    pub fn go_on_beforehand(&self) {
        self.state().any_number = true;
        self.go_on();
    }

    /// No hold is taken any more.
    pub(super) fn no_new_holds(&self) {
        self.state().no_holds = true;
    }

    /// The pause file was looked for.
    pub(super) fn pause_file(&self, there: Option<String>) {
        let before = std::mem::replace(&mut self.state().file, there.clone());
        match (before, there) {
            (None, Some(file)) => {
                let why = format!("the file {file} is there");
                self.observer.notice(&Notice::Paused(why));
            }
            (Some(_), None) => {
                self.lifted.store(true, Ordering::Relaxed);
                self.observer.notice(&Notice::GoesOn);
            }
            _ => {}
        }
    }

    /// Whether something was lifted since this was asked last: whoever waits for it should look again.
    pub(super) fn was_lifted(&self) -> bool {
        self.lifted.swap(false, Ordering::Relaxed)
    }

    pub(super) fn distrust(&self, why: &str) {
        self.doubt(why, why.to_owned());
    }

    /// The same with the cause, which may have other words each time: that is no other alarm.
    pub(super) fn distrust_after(&self, what: &str, cause: &str) {
        self.doubt(what, format!("{what}: {cause}"));
    }

    fn doubt(&self, topic: &str, why: String) {
        let before = self.state().distrust.replace(why.clone());
        if before.is_none_or(|before| !before.starts_with(topic)) {
            self.observer.notice(&Notice::Distrusts(why));
        }
    }

    pub(super) fn trust(&self, layout: Layout) {
        let mut state = self.state();
        state.layout = layout;
        let before = state.distrust.take();
        drop(state);
        if before.is_some() {
            self.lifted.store(true, Ordering::Relaxed);
            self.observer.notice(&Notice::Trusts);
        }
    }

    /// Whether the next sweep may show as few nodes as it likes.
    pub(super) fn takes_any_number(&self) -> bool {
        std::mem::take(&mut self.state().any_number)
    }

    /// The classes of the guarded nodes that the last sweep saw, and of those that are held.
    pub(super) fn classes(&self) -> BTreeSet<ResourceClass> {
        let state = self.state();
        let guarded = state.layout.sizes.keys().map(|(_, class)| class);
        guarded.chain(state.held.values()).cloned().collect()
    }

    /// The node is guarded by this scope, whatever the last sweep saw.
    pub(super) fn belongs(&self, node: NodeUuid, scope: Option<usize>) {
        if scope.is_some() {
            self.state().layout.of.insert(node, scope);
        }
    }

    /// The first interval of sweeps is over: what is released from now on has come up while it guarded.
    pub(super) fn settle(&self) {
        let mut state = self.state();
        state.settled = true;
        state.released.clear();
    }

    /// The journal says that this node is held.
    pub(super) fn holds(&self, case: &Case) {
        if let Some(class) = case.found.class.clone().filter(|_| case.may_hold()) {
            self.state().held.insert(case.node, class);
        }
    }

    /// The node's case has ended.
    pub(super) fn ended(&self, node: NodeUuid) {
        self.state().held.remove(&node);
    }

    pub(super) fn status(&self) -> BrakesStatus {
        let state = self.state();
        BrakesStatus {
            held: state.held.len(),
            stopped: state.stopped(),
            distrust: state.distrust.clone(),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // No code that holds the lock can panic half-way through a change.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn hold(&self, state: &mut State, case: &Case) -> Result<(), String> {
        if state.no_holds {
            return Err("the guard stands down".to_owned());
        }
        if state.held.contains_key(&case.node) {
            return Ok(());
        }
        state.is_ours(case)?;
        let Some(class) = case.found.class.clone() else {
            return Ok(());
        };
        let scope = state.scope_of(case.node);
        let held = state.held.iter();
        let held = held.filter(|(node, other)| **other == class && state.scope_of(**node) == scope);
        let held = held.count();
        let size = state.layout.sizes.get(&(scope, class.clone()));
        let size = size.copied().unwrap_or_default();
        let limit = scope
            .and_then(|scope| self.scopes.get(scope))
            .unwrap_or(&self.whole);
        let allowed = allowed(size, limit.share).max(limit.floor);
        if held >= allowed && !state.seen_alarm {
            return Err(state.raise(format!(
                "{} of {size} nodes of {class}{} would be held, and `max_held_share` allows {allowed}; {GO_ON}",
                held + 1,
                limit.place
            )));
        }
        // Below the limit again, the next alarm counts anew.
        state.seen_alarm = state.seen_alarm && held >= allowed;
        state.held.insert(case.node, class);
        Ok(())
    }

    fn release(&self, state: &mut State, case: &Case) -> Result<(), String> {
        state.is_ours(case)?;
        if let Some(why) = &state.distrust {
            return Err(format!("nothing is released: {why}"));
        }
        // What comes up while it guards is no surprise, however much it is.
        let was_there =
            case.opened_at < self.started || case.found.provision_state == ProvisionState::Available;
        if !state.settled && was_there {
            state.released.insert(case.node);
            if state.released.len() > self.most_at_start && !state.seen_alarm {
                return Err(state.raise(format!(
                    "more than {} nodes would be released right after the start (`max_releases_at_start`); {GO_ON}",
                    self.most_at_start
                )));
            }
        }
        Ok(())
    }
}

impl Limit {
    fn of(scope: &Scope) -> Self {
        let care = scope.care.as_ref();
        Self {
            share: care.map_or(0.0, |care| care.max_held_share),
            floor: care.map_or(0, |care| care.max_held_floor),
            place: format!(" in scope `{}`", scope.name),
        }
    }
}

impl State {
    /// The scope that guards the node.
    fn scope_of(&self, node: NodeUuid) -> Option<usize> {
        self.layout.of.get(&node).copied().flatten()
    }

    /// Of a node that has left every scope only what is held is lifted, and nothing else is written.
    fn is_ours(&self, case: &Case) -> Result<(), String> {
        match self.layout.of.get(&case.node) {
            Some(None) if !case.may_hold() => {
                Err("its node is in no scope that is guarded, and nothing of ours holds it".to_owned())
            }
            _ => Ok(()),
        }
    }

    /// Why nothing is written, if so.
    fn stopped(&self) -> Option<String> {
        let paused = self.paused.as_ref().map(|why| format!("paused: {why}"));
        let file = self
            .file
            .as_ref()
            .map(|file| format!("paused: the file {file} is there"));
        let alarm = self.alarm.as_ref().map(|why| format!("ALARM: {why}"));
        alarm.or(paused).or(file)
    }

    fn raise(&mut self, why: String) -> String {
        self.alarm = Some(why.clone());
        why
    }
}

impl Admission for Brakes {
    fn admits(&self, case: &Case, write: &Action) -> Result<(), String> {
        if self.dry_run {
            return Err("this is a dry run".to_owned());
        }
        let mut state = self.state();
        if let Some(why) = state.stopped() {
            return Err(why);
        }
        let answer = match write {
            Action::Release { .. } => self.release(&mut state, case),
            Action::SetReserved {
                class,
                to,
                inventories,
            } if inventories
                .inventories
                .get(class)
                .is_some_and(|all| *to < all.total) =>
            {
                self.release(&mut state, case)
            }
            Action::SetReserved { .. } | Action::HandOver { .. } => self.hold(&mut state, case),
            _ => Ok(()),
        };
        let alarm = answer.is_err().then(|| state.alarm.clone()).flatten();
        drop(state);
        if let Some(why) = alarm {
            self.observer.notice(&Notice::Alarm(why));
        }
        answer
    }

    fn closes(&self, _: &Case, _: &Ending) -> Result<(), String> {
        match &self.state().distrust {
            Some(why) => Err(format!("nothing is closed: {why}")),
            None => Ok(()),
        }
    }
}

/// So many of a class may be held, by the share.
#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    reason = "the number of nodes of a class is far from where this matters"
)]
fn allowed(size: usize, share: f64) -> usize {
    (size as f64 * share.clamp(0.0, 1.0)).ceil() as usize
}
