//! Whether the credentials allow something, found out without doing it.

use std::fmt;

use crate::{Error, ErrorKind, Placement, PlacementClient, request};

/// Something that a policy of Placement's may forbid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Right {
    /// To write allocations, of one consumer and of several at once.
    WriteAllocations,
    /// To write inventories: a reservation.
    WriteInventories,
    /// To create traits, and to set those of providers.
    WriteTraits,
}

impl fmt::Display for Right {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::WriteAllocations => "write allocations",
            Self::WriteInventories => "write inventories",
            Self::WriteTraits => "write traits",
        })
    }
}

impl PlacementClient {
    /// Sends writes that Placement refuses after it has looked at the right: to a provider that does not exist, with a body
    /// that makes no sense, of a trait that nobody may create. Nothing can come of them.
    ///
    /// # Errors
    /// [`ErrorKind::Forbidden`] where the right is missing; anything else where that could not be found out.
    pub async fn may(&self, right: Right) -> Result<(), Error> {
        let version = self.microversion().await?;
        for call in request::nonsense(version, right) {
            match self.write(call?).await {
                Err(error) if !matches!(error.kind, ErrorKind::BadRequest | ErrorKind::NotFound) => {
                    return Err(error);
                }
                _ => {}
            }
        }
        Ok(())
    }
}
