//! The HTTP interface of a running guard.

use std::net::SocketAddr;

use serde::{Deserialize, Serialize};

use super::HumanDuration;
use super::check::Wrong;

/// The HTTP interface of a running guard.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Api {
    /// The address to listen on; empty: nowhere.
    pub(crate) listen: String,
    /// Whether everybody on this machine may stop the guard's writes, and let them go on.
    pub(crate) trust_local: bool,
    /// So long what is under way may take when the guard is stopped.
    pub(crate) drain: HumanDuration,
}

impl Default for Api {
    fn default() -> Self {
        Self {
            listen: String::new(),
            trust_local: false,
            drain: HumanDuration::from_secs(10),
        }
    }
}

impl Api {
    pub(super) fn check(&self) -> Result<(), Wrong> {
        self.address()
            .map(drop)
            .map_err(|problem| ("api.listen", problem))
    }

    /// Where to listen, if anywhere.
    pub(crate) fn address(&self) -> Result<Option<SocketAddr>, String> {
        if self.listen.is_empty() {
            return Ok(None);
        }
        let listen = &self.listen;
        let address = listen.parse::<SocketAddr>();
        let address = address
            .map_err(|_| format!("`{listen}` is no address; write it like 127.0.0.1:8784 or [::1]:8784"))?;
        match address.ip().is_loopback() {
            true => Ok(Some(address)),
            false => Err(format!(
                "`{listen}` can be reached from other machines, and the interface asks nobody for a login; listen on 127.0.0.1 or \
                 [::1], behind a proxy that does"
            )),
        }
    }
}
