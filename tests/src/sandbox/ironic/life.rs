//! A node's life: what the conductor does by itself after a verb was accepted.
//!
//! The ways follow recorded time lines: the lock is held in `deleting` and `cleaning`, free in
//! `clean wait`, and outlives the last change of state a little.

use jiff::Timestamp;
use std::time::Duration;
use uuid::Uuid;

use super::super::call::later;
use super::super::timers::Event;
use super::super::world::World;
use super::State::*;
use super::step::Step;
use super::{CleanFailure, Condition, State, Style};

const IN_MAINTENANCE: &str = "Cleaning a node in maintenance mode is not allowed";

impl World {
    /// Carries out a verb that was found legal.
    pub(super) fn ironic_verb(&mut self, uuid: Uuid, verb: &str) {
        let Some(node) = self.node(uuid) else { return };
        let (state, timing, behaviour) = (node.provision_state, self.config.ironic.timing, &node.behaviour);
        let teardown = behaviour.teardown.unwrap_or(timing.teardown);
        let agent = behaviour.style == Style::Agent;
        let short = |to| Some((timing.other, Step::Arrive(to)));
        match (verb, state) {
            ("deleted" | "undeploy", _) => {
                self.work(uuid, Deleting, Some(Available), Some((teardown, Step::TornDown)));
            }
            ("provide", _) => self.start_cleaning(uuid, Available),
            ("clean", _) => self.start_cleaning(uuid, Manageable),
            ("manage", Enroll) => self.work(uuid, Verifying, Some(Manageable), short(Manageable)),
            ("manage", _) => self.enter(uuid, Manageable, None, None),
            ("inspect", _) => self.work(uuid, Inspecting, Some(Manageable), short(Manageable)),
            ("adopt", _) => self.work(uuid, Adopting, Some(Active), short(Active)),
            ("rescue", _) => self.work(uuid, Rescuing, Some(Rescue), short(Rescue)),
            ("unrescue", _) => self.work(uuid, Unrescuing, Some(Active), short(Active)),
            ("service", _) => self.work(uuid, Servicing, Some(Active), short(Active)),
            ("active" | "deploy" | "rebuild", _) if agent => {
                self.work(
                    uuid,
                    Deploying,
                    Some(Active),
                    Some((timing.step, Step::DeployWait)),
                );
            }
            ("active" | "deploy" | "rebuild", _) => {
                self.work(
                    uuid,
                    Deploying,
                    Some(Active),
                    Some((timing.deploy, Step::Deployed)),
                );
            }
            ("abort", _) => self.abort(uuid, state),
            ("unhold", CleanHold) if agent => {
                self.enter(
                    uuid,
                    CleanWait,
                    Some(Available),
                    Some((timing.heartbeat, Step::AgentUp)),
                );
            }
            ("unhold", _) => self.unhold(uuid, state, agent),
            _ => {}
        }
    }

    /// A node goes on at its agent's next heartbeat.
    fn unhold(&mut self, uuid: Uuid, state: State, agent: bool) {
        let timing = self.config.ironic.timing;
        let (wait, target, next) = match state {
            CleanHold if agent => (CleanWait, Available, (timing.heartbeat, Step::AgentUp)),
            CleanHold => (CleanWait, Available, (timing.heartbeat, Step::WorkDone)),
            DeployHold => (DeployWait, Active, (timing.deploy, Step::Deployed)),
            _ => (ServiceWait, Active, (timing.other, Step::Arrive(Active))),
        };
        self.enter(uuid, wait, Some(target), Some(next));
    }

    /// Plays one step at its time.
    pub(crate) fn ironic_step(&mut self, uuid: Uuid, step: Step, at: Timestamp) {
        match self.conductor.condition {
            Condition::Frozen if step != Step::Flip => return self.conductor.held.push((uuid, step)),
            Condition::Dead if step.is_the_agents() => return self.conductor.held.push((uuid, step)),
            Condition::Dead if step != Step::Flip => return,
            _ => {}
        }
        let Some(node) = self.node(uuid) else { return };
        let step_time = self.config.ironic.timing.step;
        match step {
            Step::TornDown => self.torn_down(uuid),
            Step::StartCleaning(target) => self.start_cleaning(uuid, target),
            Step::AwaitAgent => self.await_agent(uuid),
            Step::AgentUp | Step::WorkDone | Step::AgentLost if node.maintenance => self.unheard(uuid, step),
            Step::AgentUp => {
                self.work(
                    uuid,
                    Cleaning,
                    Some(Available),
                    Some((step_time, Step::AwaitWork)),
                );
            }
            Step::AwaitWork => {
                let rest = self.phases(uuid).1;
                self.enter(uuid, CleanWait, Some(Available), Some((rest, Step::WorkDone)));
                self.unlock_soon(uuid, at);
                self.next_heartbeat(uuid, at);
            }
            Step::WorkDone => self.work(uuid, Cleaning, Some(Available), Some((step_time, Step::Cleaned))),
            Step::AgentLost | Step::Cleaned => self.cleaned(uuid),
            Step::Heartbeat => self.heartbeat(uuid, at),
            Step::Hold => {
                self.enter(uuid, CleanHold, Some(Available), None);
                self.unlock_soon(uuid, at);
            }
            Step::DeployWait => {
                let deploy = self.config.ironic.timing.deploy;
                self.enter(uuid, DeployWait, Some(Active), Some((deploy, Step::Deployed)));
                self.unlock_soon(uuid, at);
            }
            Step::Deployed => self.deployed_now(uuid),
            Step::Arrive(state) => self.arrive(uuid, state),
            Step::Unlock => {
                self.edit_node(uuid, |node| node.reservation = None);
            }
            Step::LateError(text) => {
                self.edit_node(uuid, |node| node.last_error = Some(text));
            }
            Step::Flip => self.ironic_take_over(uuid),
        }
    }

    /// Takes the lock and enters a state.
    pub(super) fn work(
        &mut self,
        uuid: Uuid,
        state: State,
        target: Option<State>,
        next: Option<(Duration, Step)>,
    ) {
        self.timers
            .cancel(|event| matches!(event, Event::Ironic(id, Step::Unlock) if *id == uuid));
        let host = self.config.ironic.conductor.clone();
        self.edit_node(uuid, |node| node.reservation = Some(host));
        self.enter(uuid, state, target, next);
    }

    /// Enters a state; unless the node is made to get stuck in it, the next step follows.
    pub(super) fn enter(
        &mut self,
        uuid: Uuid,
        state: State,
        target: Option<State>,
        next: Option<(Duration, Step)>,
    ) {
        let now = self.now();
        self.ironic_forget_steps(uuid);
        self.edit_node(uuid, |node| {
            node.provision_state = state;
            node.target_provision_state = target;
            node.provision_updated_at = Some(now);
            node.paused = None;
        });
        let stuck = self
            .node(uuid)
            .and_then(|node| node.behaviour.stuck)
            .filter(|stuck| stuck.state == state);
        let (after, step) = match (stuck, next) {
            (None, Some(next)) => next,
            (Some(stuck), _) => {
                self.edit_node(uuid, |node| node.behaviour.stuck = None);
                let Some(after) = stuck.flip_after else { return };
                (after, Step::Flip)
            }
            (None, None) => return,
        };
        self.timers.add(later(now, after), Event::Ironic(uuid, step));
    }

    /// Forgets what was due in the state that a node leaves.
    pub(crate) fn ironic_forget_steps(&mut self, uuid: Uuid) {
        self.timers.cancel(
            |event| matches!(event, Event::Ironic(id, step) if *id == uuid && step.ends_with_the_state()),
        );
    }

    /// Frees the lock after the tail that the real service shows.
    pub(super) fn unlock_soon(&mut self, uuid: Uuid, at: Timestamp) {
        let tail = self.config.ironic.timing.lock_tail;
        self.timers
            .cancel(|event| matches!(event, Event::Ironic(id, Step::Unlock) if *id == uuid));
        self.timers
            .add(later(at, tail), Event::Ironic(uuid, Step::Unlock));
    }

    fn torn_down(&mut self, uuid: Uuid) {
        let now = self.now();
        let failed = self.spend(uuid, |behaviour| &mut behaviour.teardown_failures);
        // The instance goes in any case, and before cleaning begins.
        self.edit_node(uuid, |node| {
            node.instance_uuid = None;
            node.power_state = node.power_state.as_ref().map(|_| "power off".to_owned());
        });
        if failed {
            self.enter(uuid, Error, None, None);
            self.set_error(uuid, "Failed to tear down: the BMC does not answer".into());
            self.unlock_soon(uuid, now);
            return;
        }
        let wait = if self.will_clean(uuid) {
            self.config.ironic.timing.step
        } else {
            Duration::from_millis(1)
        };
        self.timers.add(
            later(now, wait),
            Event::Ironic(uuid, Step::StartCleaning(Available)),
        );
    }

    fn will_clean(&self, uuid: Uuid) -> bool {
        let own = self.node(uuid).and_then(|node| node.automated_clean);
        own.unwrap_or(self.config.ironic.automated_clean)
    }

    fn start_cleaning(&mut self, uuid: Uuid, target: State) {
        let Some(node) = self.node(uuid) else { return };
        let (maintenance, style, hold) = (node.maintenance, node.behaviour.style, node.behaviour.hold);
        let timing = self.config.ironic.timing;
        let cleaning = node.behaviour.cleaning.unwrap_or(timing.cleaning);
        let next = match style {
            _ if target == Available && !self.will_clean(uuid) => {
                (Duration::from_millis(1), Step::Arrive(Available))
            }
            _ if hold => (timing.step, Step::Hold),
            Style::Fake => (cleaning, Step::Cleaned),
            Style::Agent => (timing.step, Step::AwaitAgent),
        };
        self.edit_node(uuid, |node| {
            node.last_error = None;
            node.behaviour.hold = false;
        });
        self.work(uuid, Cleaning, Some(target), Some(next));
        if maintenance && !self.config.ironic.allow_provisioning_in_maintenance {
            self.fail_cleaning(uuid, IN_MAINTENANCE.into(), false);
        }
    }

    /// How long the agent boots and how long it works, so that all of cleaning takes as long as it should.
    fn phases(&self, uuid: Uuid) -> (Duration, Duration) {
        let timing = self.config.ironic.timing;
        let own = self.node(uuid).and_then(|node| node.behaviour.cleaning);
        let waits = own.unwrap_or(timing.cleaning).saturating_sub(timing.step * 3);
        let boot = timing.agent_boot.min(waits / 2);
        (boot, waits - boot)
    }

    fn await_agent(&mut self, uuid: Uuid) {
        let (boot, rest) = self.phases(uuid);
        let target = self.node(uuid).and_then(|node| node.target_provision_state);
        let lost = self.node(uuid).is_some_and(|node| {
            node.behaviour.clean_failures > 0 && node.behaviour.clean_failure == CleanFailure::Timeout
        });
        let next = if lost {
            (boot + rest, Step::AgentLost)
        } else {
            (boot, Step::AgentUp)
        };
        self.enter(uuid, CleanWait, target, Some(next));
        self.unlock_soon(uuid, self.now());
        self.next_heartbeat(uuid, self.now());
    }

    fn next_heartbeat(&mut self, uuid: Uuid, at: Timestamp) {
        if let Some(every) = self.config.ironic.heartbeats {
            self.timers
                .add(later(at, every), Event::Ironic(uuid, Step::Heartbeat));
        }
    }

    fn heartbeat(&mut self, uuid: Uuid, at: Timestamp) {
        let host = self.config.ironic.conductor.clone();
        self.edit_node(uuid, |node| node.reservation = Some(host));
        self.unlock_soon(uuid, at);
        self.next_heartbeat(uuid, at);
    }

    /// A heartbeat of a node in maintenance: it pauses cleaning, or ends it where that is not allowed.
    fn unheard(&mut self, uuid: Uuid, step: Step) {
        if self.config.ironic.allow_provisioning_in_maintenance {
            self.edit_node(uuid, |node| node.paused = Some(step));
        } else {
            self.fail_cleaning(uuid, IN_MAINTENANCE.into(), false);
        }
    }

    /// Goes on with what maintenance had paused, at the next heartbeat.
    pub(crate) fn ironic_maintenance_lifted(&mut self, uuid: Uuid) {
        let Some(step) = self.node(uuid).and_then(|node| node.paused.clone()) else {
            return;
        };
        self.edit_node(uuid, |node| node.paused = None);
        let at = later(self.now(), self.config.ironic.timing.heartbeat);
        self.timers.add(at, Event::Ironic(uuid, step));
    }

    fn cleaned(&mut self, uuid: Uuid) {
        if self.spend(uuid, |behaviour| &mut behaviour.clean_failures) {
            let kind = self
                .node(uuid)
                .map(|node| node.behaviour.clean_failure)
                .unwrap_or_default();
            let (text, by_step) = match kind {
                CleanFailure::Step => {
                    let text = format!("Clean step deploy.erase_devices failed on node {uuid}. told to fail");
                    (text, true)
                }
                CleanFailure::Timeout => {
                    let text = "Timeout reached while cleaning the node. Please check if the ramdisk \
                                responsible for the cleaning is running on the node. Failed on step {}.";
                    (text.to_owned(), false)
                }
            };
            return self.fail_cleaning(uuid, text, by_step);
        }
        let node = self.node(uuid);
        let retired = node.is_some_and(|node| node.retired);
        let target = node
            .and_then(|node| node.target_provision_state)
            .unwrap_or(Available);
        self.arrive(uuid, if retired { Manageable } else { target });
    }

    fn deployed_now(&mut self, uuid: Uuid) {
        if self.spend(uuid, |behaviour| &mut behaviour.deploy_failures) {
            self.enter(uuid, DeployFailed, Some(Active), None);
            self.set_error(uuid, "Deploy step deploy.deploy failed: told to fail".into());
            self.unlock_soon(uuid, self.now());
        } else {
            self.edit_node(uuid, |node| {
                node.power_state = node.power_state.as_ref().map(|_| "power on".to_owned());
            });
            self.arrive(uuid, Active);
        }
    }

    pub(super) fn arrive(&mut self, uuid: Uuid, state: State) {
        self.edit_node(uuid, |node| {
            node.last_error = None;
            // Looking at a node's power is what verifying is.
            if node.provision_state == Verifying && node.power_state.is_none() {
                node.power_state = Some("power off".to_owned());
            }
        });
        self.enter(uuid, state, None, None);
        self.unlock_soon(uuid, self.now());
    }

    /// Uses up one of a counter of failures, if any is left.
    fn spend(&mut self, uuid: Uuid, counter: impl Fn(&mut super::Behaviour) -> &mut u32) -> bool {
        let mut spent = false;
        self.edit_node(uuid, |node| {
            let left = counter(&mut node.behaviour);
            spent = *left > 0;
            *left = left.saturating_sub(1);
        });
        spent
    }
}
