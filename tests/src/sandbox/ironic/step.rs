//! The steps that a conductor, or a node's agent, takes by itself.

use super::State;

/// A conductor's next step with a node.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Step {
    /// The tear-down ends.
    TornDown,
    /// Cleaning begins; it leads to the state given.
    StartCleaning(State),
    /// The agent is booted and awaited.
    AwaitAgent,
    /// The agent reports for the first time.
    AgentUp,
    /// The agent works and is awaited.
    AwaitWork,
    /// The agent has done its work.
    WorkDone,
    /// No agent reported in time.
    AgentLost,
    /// Cleaning ends.
    Cleaned,
    /// Cleaning stops for `unhold`.
    Hold,
    /// The agent of a deployment is awaited.
    DeployWait,
    /// The deployment ends.
    Deployed,
    /// A short way ends in the state given.
    Arrive(State),
    /// An agent's heartbeat takes the lock for a moment.
    Heartbeat,
    /// The lock is freed.
    Unlock,
    /// The text of an error appears.
    LateError(String),
    /// Some conductor finds the node stuck and fails it.
    Flip,
}

impl Step {
    /// Whether the step is the agent's doing, which a dead conductor cannot lose.
    pub(super) fn is_the_agents(&self) -> bool {
        matches!(
            self,
            Self::AgentUp | Self::WorkDone | Self::AgentLost | Self::Heartbeat
        )
    }

    /// Whether a change of state makes the step meaningless.
    pub(super) fn ends_with_the_state(&self) -> bool {
        !matches!(self, Self::Unlock | Self::LateError(_))
    }
}
