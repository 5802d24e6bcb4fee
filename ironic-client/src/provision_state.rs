//! Where a node is in its life, and what may be asked of it there.

use std::fmt;

use serde::{Deserialize, Serialize};
use unprovision_session::Microversion;

use crate::Feature;

/// A node's provision state, as Ironic 39.0.0 knows them.
///
/// On the wire it is Ironic's own word, such as `wait call-back`; `Display` prints that word.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(from = "Option<String>", into = "String")]
pub enum ProvisionState {
    /// `enroll`: known, not managed yet.
    Enroll,
    /// `verifying`: the credentials of its BMC are tried.
    Verifying,
    /// `manageable`: for the operator, never offered to users.
    Manageable,
    /// `available`: may be deployed.
    Available,
    /// `deploying`
    Deploying,
    /// `wait call-back`: a deployment waits for the agent.
    DeployWait,
    /// `deploy failed`
    DeployFailed,
    /// `deploy hold`: a deployment waits for an operator.
    DeployHold,
    /// `active`: carries an instance.
    Active,
    /// `deleting`: is torn down.
    Deleting,
    /// `cleaning`
    Cleaning,
    /// `clean wait`: cleaning waits for the agent.
    CleanWait,
    /// `clean failed`: an operator must act.
    CleanFailed,
    /// `clean hold`: cleaning waits for an operator.
    CleanHold,
    /// `error`: a tear-down failed.
    Error,
    /// `rebuild`: a word for the verb; as a state it is not seen today.
    Rebuild,
    /// `inspecting`
    Inspecting,
    /// `inspect wait`
    InspectWait,
    /// `inspect failed`
    InspectFailed,
    /// `adopting`
    Adopting,
    /// `adopt failed`
    AdoptFailed,
    /// `rescue`: runs the rescue system; still carries its instance.
    Rescue,
    /// `rescuing`
    Rescuing,
    /// `rescue wait`
    RescueWait,
    /// `rescue failed`
    RescueFailed,
    /// `unrescuing`
    Unrescuing,
    /// `unrescue failed`
    UnrescueFailed,
    /// `servicing`
    Servicing,
    /// `service wait`
    ServiceWait,
    /// `service failed`
    ServiceFailed,
    /// `service hold`
    ServiceHold,
    /// Any other word, which is kept; JSON `null` is kept as `null`. Nothing is known of such a node, so it is never
    /// free.
    Other(String),
}

impl ProvisionState {
    /// All states that have a name here.
    pub const NAMED: [Self; 31] = [
        Self::Enroll,
        Self::Verifying,
        Self::Manageable,
        Self::Available,
        Self::Deploying,
        Self::DeployWait,
        Self::DeployFailed,
        Self::DeployHold,
        Self::Active,
        Self::Deleting,
        Self::Cleaning,
        Self::CleanWait,
        Self::CleanFailed,
        Self::CleanHold,
        Self::Error,
        Self::Rebuild,
        Self::Inspecting,
        Self::InspectWait,
        Self::InspectFailed,
        Self::Adopting,
        Self::AdoptFailed,
        Self::Rescue,
        Self::Rescuing,
        Self::RescueWait,
        Self::RescueFailed,
        Self::Unrescuing,
        Self::UnrescueFailed,
        Self::Servicing,
        Self::ServiceWait,
        Self::ServiceFailed,
        Self::ServiceHold,
    ];

    /// Ironic's word for the state.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Enroll => "enroll",
            Self::Verifying => "verifying",
            Self::Manageable => "manageable",
            Self::Available => "available",
            Self::Deploying => "deploying",
            Self::DeployWait => "wait call-back",
            Self::DeployFailed => "deploy failed",
            Self::DeployHold => "deploy hold",
            Self::Active => "active",
            Self::Deleting => "deleting",
            Self::Cleaning => "cleaning",
            Self::CleanWait => "clean wait",
            Self::CleanFailed => "clean failed",
            Self::CleanHold => "clean hold",
            Self::Error => "error",
            Self::Rebuild => "rebuild",
            Self::Inspecting => "inspecting",
            Self::InspectWait => "inspect wait",
            Self::InspectFailed => "inspect failed",
            Self::Adopting => "adopting",
            Self::AdoptFailed => "adopt failed",
            Self::Rescue => "rescue",
            Self::Rescuing => "rescuing",
            Self::RescueWait => "rescue wait",
            Self::RescueFailed => "rescue failed",
            Self::Unrescuing => "unrescuing",
            Self::UnrescueFailed => "unrescue failed",
            Self::Servicing => "servicing",
            Self::ServiceWait => "service wait",
            Self::ServiceFailed => "service failed",
            Self::ServiceHold => "service hold",
            Self::Other(word) => word,
        }
    }

    /// The state that the verb leads to from here, at first; `None` where Ironic refuses the verb.
    ///
    /// ```
    /// use ironic_client::{ProvisionState, Verb};
    /// assert_eq!(ProvisionState::Active.after(Verb::Deleted), Some(ProvisionState::Deleting));
    /// assert_eq!(ProvisionState::Cleaning.after(Verb::Deleted), None);
    /// ```
    pub fn after(&self, verb: Verb) -> Option<ProvisionState> {
        TRANSITIONS
            .iter()
            .find(|t| t.from == *self && t.verb == verb)
            .map(|t| t.to.clone())
    }

    /// Whether Ironic takes the verb in this state. Its lock, maintenance or protection may still stand in the way.
    pub fn accepts(&self, verb: Verb) -> bool {
        self.after(verb).is_some()
    }
}

impl fmt::Display for ProvisionState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl From<&str> for ProvisionState {
    fn from(word: &str) -> Self {
        let named = Self::NAMED.into_iter().find(|state| state.as_str() == word);
        named.unwrap_or_else(|| Self::Other(word.to_owned()))
    }
}

impl From<Option<String>> for ProvisionState {
    fn from(word: Option<String>) -> Self {
        word.as_deref().unwrap_or("null").into()
    }
}

impl From<ProvisionState> for String {
    fn from(state: ProvisionState) -> Self {
        state.as_str().to_owned()
    }
}

/// What can be asked of a node. (`deploy` and `undeploy`, other words for `active` and `deleted`, are left out.)
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verb {
    /// `manage`: verify an enrolled node, or take a node into the operator's hand.
    Manage,
    /// `provide`: make a manageable node available, by cleaning it first where that is switched on.
    Provide,
    /// `inspect`: read the node's properties.
    Inspect,
    /// `abort`: stop what waits for the agent or an operator.
    Abort,
    /// `active`: deploy.
    Active,
    /// `rebuild`: deploy again, for the same instance.
    Rebuild,
    /// `deleted`: tear the instance down, and clean.
    Deleted,
    /// `adopt`: take over an instance that runs already.
    Adopt,
    /// `clean`: run the given steps; needs them in [`ProvisionRequest::clean_steps`](crate::ProvisionRequest).
    Clean,
    /// `rescue`: needs a password, which this client does not send: Ironic refuses it as a bad request.
    Rescue,
    /// `unrescue`: back from the rescue system to the instance.
    Unrescue,
    /// `service` (API 1.87): needs steps, which this client does not send: Ironic refuses it as a bad request.
    Service,
    /// `unhold` (API 1.85): go on from a hold.
    Unhold,
}

impl Verb {
    /// All verbs.
    pub const ALL: [Self; 13] = [
        Self::Manage,
        Self::Provide,
        Self::Inspect,
        Self::Abort,
        Self::Active,
        Self::Rebuild,
        Self::Deleted,
        Self::Adopt,
        Self::Clean,
        Self::Rescue,
        Self::Unrescue,
        Self::Service,
        Self::Unhold,
    ];

    /// Ironic's word for the verb.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Manage => "manage",
            Self::Provide => "provide",
            Self::Inspect => "inspect",
            Self::Abort => "abort",
            Self::Active => "active",
            Self::Rebuild => "rebuild",
            Self::Deleted => "deleted",
            Self::Adopt => "adopt",
            Self::Clean => "clean",
            Self::Rescue => "rescue",
            Self::Unrescue => "unrescue",
            Self::Service => "service",
            Self::Unhold => "unhold",
        }
    }

    /// The first microversion that takes the verb. `abort` needs more in two states:
    /// [`Feature::InspectAbort`] and [`Feature::DeployAbort`].
    pub fn since(self) -> Microversion {
        match self {
            Self::Active | Self::Rebuild | Self::Deleted => Microversion::new(1, 1),
            Self::Manage | Self::Provide => Microversion::new(1, 4),
            Self::Inspect => Microversion::new(1, 6),
            Self::Abort => Microversion::new(1, 13),
            Self::Clean => Microversion::new(1, 15),
            Self::Adopt => Microversion::new(1, 17),
            Self::Rescue | Self::Unrescue => Microversion::new(1, 38),
            Self::Unhold => Feature::Unhold.since(),
            Self::Service => Feature::Service.since(),
        }
    }
}

impl fmt::Display for Verb {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// A change that a verb starts.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Transition {
    /// The state the node is in.
    pub from: ProvisionState,
    /// What is asked of it.
    pub verb: Verb,
    /// The state that it is in next.
    pub to: ProvisionState,
}

mod table;
pub use table::TRANSITIONS;

#[cfg(test)]
mod tests;
