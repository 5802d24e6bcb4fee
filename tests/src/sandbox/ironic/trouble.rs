//! What goes wrong with a node or its conductor, and what is left behind.

use uuid::Uuid;

use super::super::call::later;
use super::super::timers::Event;
use super::super::world::World;
use super::State::*;
use super::step::Step;
use super::{Condition, State};

impl World {
    /// Freezes the conductor: what it holds stays held, nothing goes on.
    pub fn freeze_conductor(&mut self) {
        self.conductor.condition = Condition::Frozen;
    }

    /// Kills the conductor: what it was doing is lost, its locks stay.
    pub fn kill_conductor(&mut self) {
        self.conductor.condition = Condition::Dead;
    }

    /// The conductor goes on, if it was frozen, or starts anew, if it had died: then it frees its locks and
    /// fails what it finds half done.
    pub fn revive_conductor(&mut self) {
        let before = std::mem::take(&mut self.conductor);
        if before.condition == Condition::Dead {
            let nodes: Vec<Uuid> = self.nodes.keys().copied().collect();
            for node in nodes {
                self.ironic_take_over(node);
            }
        }
        for (node, step) in before.held {
            self.ironic_step(node, step, self.now());
        }
    }

    /// A conductor starts or takes over: the lock goes, and what cannot be resumed fails.
    pub(super) fn ironic_take_over(&mut self, uuid: Uuid) {
        let Some(node) = self.node(uuid) else { return };
        let failed = match node.provision_state {
            Deleting => Some(Error),
            Cleaning => Some(CleanFailed),
            Deploying => Some(DeployFailed),
            Verifying => Some(Enroll),
            Inspecting => Some(InspectFailed),
            Adopting => Some(AdoptFailed),
            Rescuing => Some(RescueFailed),
            Unrescuing => Some(UnrescueFailed),
            Servicing => Some(ServiceFailed),
            _ => None,
        };
        self.timers
            .cancel(|event| matches!(event, Event::Ironic(id, Step::Unlock) if *id == uuid));
        self.edit_node(uuid, |node| node.reservation = None);
        let Some(failed) = failed else { return };
        let text = format!("The conductor went away while the node was in state {}", failed);
        if failed == CleanFailed {
            return self.fail_cleaning(uuid, text, true);
        }
        self.enter(uuid, failed, None, None);
        self.set_error(uuid, text);
    }

    pub(super) fn fail_cleaning(&mut self, uuid: Uuid, text: String, by_step: bool) {
        let target = self.node(uuid).and_then(|node| node.target_provision_state);
        if by_step {
            self.edit_node(uuid, |node| {
                node.maintenance = true;
                node.maintenance_reason = Some(text.clone());
                node.fault = Some("clean failure".into());
            });
        }
        self.enter(uuid, CleanFailed, target, None);
        self.set_error(uuid, text);
        self.unlock_soon(uuid, self.now());
    }

    pub(super) fn abort(&mut self, uuid: Uuid, state: State) {
        let (to, what) = match state {
            CleanWait | CleanHold => (CleanFailed, "clean"),
            DeployWait | DeployHold => (DeployFailed, "deploy"),
            InspectWait => (InspectFailed, "inspection"),
            RescueWait => (RescueFailed, "rescue"),
            ServiceFailed => return self.arrive(uuid, Active),
            _ => (ServiceFailed, "service"),
        };
        let target = self.node(uuid).and_then(|node| node.target_provision_state);
        self.work(uuid, to, target, None);
        self.set_error(uuid, format!("By request, the {what} operation was aborted"));
        self.unlock_soon(uuid, self.now());
    }

    /// Sets `last_error`, or later where the node is made to be late with it.
    pub(super) fn set_error(&mut self, uuid: Uuid, text: String) {
        match self.node(uuid).and_then(|node| node.behaviour.late_error) {
            Some(wait) => {
                self.edit_node(uuid, |node| node.last_error = None);
                self.timers.add(
                    later(self.now(), wait),
                    Event::Ironic(uuid, Step::LateError(text)),
                );
            }
            None => {
                self.edit_node(uuid, |node| node.last_error = Some(text));
            }
        }
    }
}
