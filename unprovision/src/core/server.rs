//! A server as Nova shows it, and what it has to do with a node.

use ironic_client::NodeUuid;
use uuid::Uuid;

/// A server, as far as Nova shows it to an administrator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Server {
    /// `ACTIVE`, `ERROR`, `SOFT_DELETED`, ...
    pub status: String,
    /// What is being done to it: `deleting`, ...
    pub task: Option<String>,
    /// What it is on: for bare metal the node's UUID. `None` where it is on nothing.
    pub host: Option<String>,
}

/// What a server has to do with a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tie {
    /// It is there, and nobody deletes it.
    Lives,
    /// It is there, and Nova is deleting it.
    Deleting,
    /// Its owner has deleted it, and may restore it until Nova deletes it for good (deferred delete).
    SoftDeleted,
    /// It is there, and something has failed; often its deletion.
    Failed,
    /// It is somewhere else, or nowhere.
    Elsewhere,
}

impl Server {
    /// What it has to do with the node.
    pub fn tie(&self, node: NodeUuid) -> Tie {
        let on = self.host.as_deref().and_then(|host| host.parse::<Uuid>().ok());
        if on != Some(node.0) {
            return Tie::Elsewhere;
        }
        let task = self.task.as_deref().unwrap_or_default();
        match (self.status.as_str(), task) {
            // `soft-deleting` becomes the state of that name.
            (_, "deleting" | "soft-deleting") | ("DELETED", _) => Tie::Deleting,
            ("SOFT_DELETED", "restoring") => Tie::Lives,
            ("SOFT_DELETED", _) => Tie::SoftDeleted,
            ("ERROR", _) => Tie::Failed,
            _ => Tie::Lives,
        }
    }
}
