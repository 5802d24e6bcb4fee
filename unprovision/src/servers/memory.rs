//! Servers in memory: for tests, and for whoever embeds the guard and knows its servers otherwise.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use uuid::Uuid;

use super::{Servers, ServersError};
use crate::core::Server;

/// Servers in memory.
#[derive(Debug, Default)]
pub struct MemoryServers {
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    servers: BTreeMap<Uuid, Server>,
    trouble: Option<ServersError>,
    asked: u64,
}

impl MemoryServers {
    /// Nobody knows a server yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// The server is so from now on; `None`: it is gone.
    pub fn set(&self, uuid: Uuid, server: Option<Server>) {
        let mut inner = self.lock();
        match server {
            Some(server) => inner.servers.insert(uuid, server),
            None => inner.servers.remove(&uuid),
        };
    }

    /// From now on there is no answer, or one again.
    pub fn fail(&self, trouble: Option<ServersError>) {
        self.lock().trouble = trouble;
    }

    /// How often somebody has asked for a server.
    pub fn asked(&self) -> u64 {
        self.lock().asked
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        // No code that holds the lock can panic half-way through a change.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl Servers for MemoryServers {
    async fn can_be_seen(&self) -> Result<(), ServersError> {
        self.lock().trouble.clone().map_or(Ok(()), Err)
    }

    async fn server(&self, uuid: Uuid) -> Result<Option<Server>, ServersError> {
        let mut inner = self.lock();
        inner.asked += 1;
        let trouble = inner.trouble.clone().map_or(Ok(()), Err);
        trouble.map(|()| inner.servers.get(&uuid).cloned())
    }
}
