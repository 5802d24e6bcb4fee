//! The transitions, from `ironic/common/state_machine.py` of Ironic 39.0.0.

use super::ProvisionState::{self as S, *};
use super::{Transition, Verb as V};

const fn t(from: S, verb: V, to: S) -> Transition {
    Transition { from, verb, to }
}

/// Every transition that a user's verb starts. Those that Ironic makes by itself (done, fail, wait, resume, hold, and
/// `manage` at the end of a manual cleaning) are not here.
pub static TRANSITIONS: &[Transition] = &[
    t(Active, V::Deleted, Deleting),
    t(Active, V::Rebuild, Deploying),
    t(Active, V::Rescue, Rescuing),
    t(Active, V::Service, Servicing),
    t(AdoptFailed, V::Adopt, Adopting),
    t(AdoptFailed, V::Manage, Manageable),
    t(Available, V::Active, Deploying),
    t(Available, V::Manage, Manageable),
    t(CleanFailed, V::Manage, Manageable),
    t(CleanHold, V::Abort, CleanFailed),
    t(CleanHold, V::Unhold, CleanWait),
    t(CleanWait, V::Abort, CleanFailed),
    t(DeployFailed, V::Deleted, Deleting),
    t(DeployFailed, V::Active, Deploying),
    t(DeployFailed, V::Rebuild, Deploying),
    t(DeployHold, V::Abort, DeployFailed),
    t(DeployHold, V::Unhold, DeployWait),
    t(Enroll, V::Manage, Verifying),
    t(Error, V::Deleted, Deleting),
    t(Error, V::Rebuild, Deploying),
    t(InspectFailed, V::Inspect, Inspecting),
    t(InspectFailed, V::Manage, Manageable),
    t(InspectWait, V::Abort, InspectFailed),
    t(Manageable, V::Adopt, Adopting),
    t(Manageable, V::Clean, Cleaning),
    t(Manageable, V::Inspect, Inspecting),
    t(Manageable, V::Provide, Cleaning),
    t(Rescue, V::Deleted, Deleting),
    t(Rescue, V::Rescue, Rescuing),
    t(Rescue, V::Unrescue, Unrescuing),
    t(RescueFailed, V::Deleted, Deleting),
    t(RescueFailed, V::Rescue, Rescuing),
    t(RescueFailed, V::Unrescue, Unrescuing),
    t(RescueWait, V::Abort, RescueFailed),
    t(RescueWait, V::Deleted, Deleting),
    t(ServiceFailed, V::Abort, Active),
    t(ServiceFailed, V::Deleted, Deleting),
    t(ServiceFailed, V::Rescue, Rescuing),
    t(ServiceFailed, V::Service, Servicing),
    t(ServiceHold, V::Abort, ServiceFailed),
    t(ServiceHold, V::Service, Servicing),
    t(ServiceHold, V::Unhold, ServiceWait),
    t(ServiceWait, V::Abort, ServiceFailed),
    t(ServiceWait, V::Deleted, Deleting),
    t(UnrescueFailed, V::Deleted, Deleting),
    t(UnrescueFailed, V::Rescue, Rescuing),
    t(UnrescueFailed, V::Unrescue, Unrescuing),
    t(DeployWait, V::Abort, DeployFailed),
    t(DeployWait, V::Deleted, Deleting),
];
