//! Nova, as far as it is asked: for one server, where there is doubt (rule 10).

mod memory;
mod nova;

use std::fmt;

use async_trait::async_trait;
use uuid::Uuid;

use crate::core::Server;

pub use memory::MemoryServers;
pub use nova::NovaServers;

/// Whoever knows servers: Nova.
///
/// # Errors
///
/// A [`ServersError`] says whether asking again later can help. That a server is *not there* is an answer, no error, and is only
/// given where the servers of all projects can be seen.
#[async_trait]
pub trait Servers: fmt::Debug + Send + Sync {
    /// Whether the servers of all projects can be seen, each with the node that it is on.
    async fn can_be_seen(&self) -> Result<(), ServersError>;

    /// The server. `None` where nobody knows it, also one that was deleted.
    async fn server(&self, uuid: Uuid) -> Result<Option<Server>, ServersError>;
}

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ServersError {
    /// These credentials, this catalog or this configuration do not let us ask.
    #[error("{0}")]
    Unreadable(String),
    /// These credentials are not known. Where they were before, it passes.
    #[error("{0}")]
    NotLetIn(String),
    /// There is none now.
    #[error("{0}")]
    Away(String),
}
