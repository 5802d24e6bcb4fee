//! The cloud as the orchestrator sees it: look, and do one write.

mod clock;
mod fleet;
mod lookout;
mod mend;
mod openstack;
mod survey;

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use async_trait::async_trait;
use ironic_client::{Node, NodeUuid};
use placement_client::ConsumerUuid;
use unprovision_session::Class;

use crate::core::{Action, Event, Observation, Refusal, RefusalKind};

pub use clock::{Clock, SystemClock};
pub use fleet::Fleet;
pub(crate) use fleet::{class_of, classes};
pub use lookout::{Lookout, Offer};
pub use mend::Mended;
pub use openstack::OpenStack;
pub use survey::{Asked, LOOKS, Survey};

/// What to read besides what every decision needs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reads {
    /// The provider's traits.
    pub traits: bool,
    /// Who probably holds a unit: what else it holds is asked at the same time, instead of once that is known.
    pub holder: Option<ConsumerUuid>,
}

impl Reads {
    /// Whatever there is to know of a provider that nothing is known of.
    pub fn everything() -> Self {
        Self {
            traits: true,
            holder: None,
        }
    }
}

/// A cloud: Ironic and Placement together.
///
/// # Errors
///
/// A [`CloudError`] says which call failed, what the server said, and by its class what one can do.
#[async_trait]
pub trait Cloud: fmt::Debug + Send + Sync {
    /// The node of this UUID or name. `None` where Ironic does not know it.
    async fn find(&self, uuid_or_name: &str) -> Result<Option<Node>, CloudError>;

    /// The nodes of these UUIDs; one that Ironic does not know is missing in the answer.
    async fn nodes(&self, nodes: &[NodeUuid]) -> Result<BTreeMap<NodeUuid, Node>, CloudError>;

    /// One look at the node and its provider: Placement first, Ironic last.
    async fn observe(&self, node: NodeUuid, reads: Reads) -> Result<Observation, CloudError>;

    /// Sends one write. A tear-down is sent only if a look immediately before still shows the instance and the time that it
    /// was decided from, and never twice.
    async fn apply(&self, node: NodeUuid, action: &Action) -> Result<(), CloudError>;
}

/// A call to the cloud that failed.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct CloudError {
    /// What one can do about it.
    pub class: Class,
    /// Why, where it was a refusal.
    pub kind: RefusalKind,
    /// Which call, and what the server said.
    pub message: String,
    /// When the server asked to be tried again.
    pub retry_after: Option<Duration>,
    /// The client's error.
    #[source]
    pub source: Option<Box<dyn std::error::Error + Send + Sync>>,
}

impl CloudError {
    /// Whether nobody knows if the write was applied. An answer that cannot be understood tells nothing about that, either.
    pub fn leaves_in_doubt(&self) -> bool {
        matches!(self.class, Class::Unknown | Class::Bug)
    }

    /// Whether it is the login that is refused. To whoever was let in before, that is a Keystone that is not well.
    pub fn is_refused_login(&self) -> bool {
        (self.class, self.kind) == (Class::Refused, RefusalKind::Away)
    }

    /// What became of the write, as it goes into the journal.
    pub fn outcome(&self) -> Event {
        match self.leaves_in_doubt() {
            true => Event::Unknown {
                message: self.to_string(),
            },
            false => Event::Refused {
                refusal: self.refusal(),
            },
        }
    }

    /// The error as it goes into the journal.
    pub fn refusal(&self) -> Refusal {
        Refusal {
            kind: self.kind,
            message: self.message.clone(),
            retry_after: self.retry_after,
        }
    }
}
