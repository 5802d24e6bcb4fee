//! A cloud in memory: Keystone, Ironic, Placement and a Nova that writes beside us.
//!
//! [`World`] is a pure value: requests and times go in, responses come out, and nothing else
//! happens. [`Sandbox`] puts a clock, faults and transports around one; `serve` puts it behind real
//! sockets. What happened is read from the [`log`], and [`judge`] says when a node was offered
//! although it was not free.
//!
//! ```
//! use unprovision_testkit::sandbox::{Sandbox, judge};
//! use std::time::Duration;
//!
//! # #[tokio::main(flavor = "current_thread", start_paused = true)]
//! # async fn main() {
//! let sandbox = Sandbox::builder().nodes(1).deployed(1).cleaning(Duration::from_secs(30)).build();
//! let (node, instance) = sandbox.with(|world, _| world.deployed()).remove(0);
//! sandbox.with(|world, now| world.nova_delete(instance, now));
//! tokio::time::sleep(Duration::from_secs(120)).await;
//! // Nova released the unit while the node was still being cleaned.
//! assert!(!judge::exposure(&sandbox.log(), node).total.is_zero());
//! # }
//! ```

mod ask;
mod build;
mod call;
pub mod config;
pub mod drift;
pub mod faults;
mod fingerprint;
pub mod handle;
pub mod ironic;
pub mod judge;
pub mod keystone;
pub mod log;
pub mod nova;
pub mod placement;
pub mod serve;
mod timers;
pub mod world;

pub use ask::Reply;
pub use build::Builder;
pub use call::Caller;
pub use config::Config;
pub use faults::Fault;
pub use handle::Sandbox;
pub use world::World;

use std::fmt;

/// One of the services that the sandbox plays.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Service {
    /// The identity service.
    Keystone,
    /// The bare metal service.
    Ironic,
    /// The inventory of what can be scheduled.
    Placement,
    /// The service of servers, as far as it can be asked for one.
    Nova,
}

impl Service {
    /// The name that errors and logs use.
    pub fn name(self) -> &'static str {
        match self {
            Self::Keystone => "keystone",
            Self::Ironic => "ironic",
            Self::Placement => "placement",
            Self::Nova => "nova",
        }
    }
}

impl fmt::Display for Service {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
