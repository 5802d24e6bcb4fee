//! Provision states by their names on the wire.

use std::fmt;

macro_rules! states {
    ($($(#[$doc:meta])* $variant:ident = $text:literal,)*) => {
        /// A node's provision state.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum State {
            $($(#[$doc])* $variant,)*
        }

        impl State {
            /// All states.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// The name on the wire.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $text,)* }
            }
        }
    };
}

states! {
    /// Just created.
    Enroll = "enroll",
    /// Its management access is being checked.
    Verifying = "verifying",
    /// Known, not to be given out.
    Manageable = "manageable",
    /// Ready for an instance.
    Available = "available",
    /// An instance is being written.
    Deploying = "deploying",
    /// The agent is awaited in a deployment.
    DeployWait = "wait call-back",
    /// A deployment failed.
    DeployFailed = "deploy failed",
    /// A deployment waits for `unhold`.
    DeployHold = "deploy hold",
    /// In use.
    Active = "active",
    /// The instance is being torn down.
    Deleting = "deleting",
    /// Being cleaned.
    Cleaning = "cleaning",
    /// The agent is awaited in cleaning.
    CleanWait = "clean wait",
    /// Cleaning failed.
    CleanFailed = "clean failed",
    /// Cleaning waits for `unhold`.
    CleanHold = "clean hold",
    /// A tear-down failed.
    Error = "error",
    /// Being inspected.
    Inspecting = "inspecting",
    /// The agent is awaited in an inspection.
    InspectWait = "inspect wait",
    /// An inspection failed.
    InspectFailed = "inspect failed",
    /// An instance from elsewhere is being taken over.
    Adopting = "adopting",
    /// That failed.
    AdoptFailed = "adopt failed",
    /// In rescue mode.
    Rescue = "rescue",
    /// On the way into it.
    Rescuing = "rescuing",
    /// The agent is awaited on that way.
    RescueWait = "rescue wait",
    /// That failed.
    RescueFailed = "rescue failed",
    /// On the way out of it.
    Unrescuing = "unrescuing",
    /// That failed.
    UnrescueFailed = "unrescue failed",
    /// Being serviced while in use.
    Servicing = "servicing",
    /// The agent is awaited in servicing.
    ServiceWait = "service wait",
    /// Servicing failed.
    ServiceFailed = "service failed",
    /// Servicing waits for `unhold`.
    ServiceHold = "service hold",
    /// One that a later Ironic may add; nobody here knows what it means.
    Quarantined = "quarantined",
}

impl State {
    /// The state of a name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|state| state.as_str() == name)
    }

    /// Whether nodes may be patched here although a transition is under way.
    pub(crate) fn may_be_patched(self) -> bool {
        use State::*;
        matches!(
            self,
            DeployFailed
                | Inspecting
                | InspectFailed
                | InspectWait
                | CleanFailed
                | Error
                | Verifying
                | AdoptFailed
                | RescueFailed
                | UnrescueFailed
                | ServiceHold
                | ServiceFailed
        )
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
