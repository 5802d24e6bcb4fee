//! Whether the cloud knows us: a login that is refused says something else before the first answer than after it.

use std::sync::atomic::{AtomicBool, Ordering};

use ironic_client::NodeUuid;

use super::Parts;
use crate::cloud::{CloudError, Reads};
use crate::core::Observation;

/// Whether these credentials have let us in once.
#[derive(Debug, Default)]
pub(crate) struct LetIn(AtomicBool);

impl LetIn {
    pub(crate) fn was(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    pub(crate) fn is(&self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl Parts {
    /// One look, and what it says of our credentials.
    pub(crate) async fn observe(&self, node: NodeUuid, reads: Reads) -> Result<Observation, CloudError> {
        let seen = self.cloud.observe(node, reads).await?;
        self.let_in.is();
        Ok(seen)
    }
}
