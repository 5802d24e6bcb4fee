//! Whether the credentials allow something, found out without doing it.

use std::fmt;

use crate::{Error, ErrorKind, IronicClient, NodeUuid, request};

/// Something that a policy of Ironic's may forbid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Right {
    /// To change provision states: a tear-down.
    ChangeStates,
    /// To set a node's traits.
    SetTraits,
}

impl fmt::Display for Right {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::ChangeStates => "change provision states",
            Self::SetTraits => "set traits of nodes",
        })
    }
}

impl IronicClient {
    /// Asks for nonsense that Ironic refuses after it has looked at the right: a verb that does not exist, traits without
    /// any trait. Nothing can come of it, and it needs no lock. The node must be one that these credentials see: of any
    /// other Ironic says nothing, whatever the rights.
    ///
    /// # Errors
    /// [`ErrorKind::Forbidden`] where the right is missing; anything else where that could not be found out.
    pub async fn may(&self, right: Right, node: NodeUuid) -> Result<(), Error> {
        use crate::Ironic;
        let version = self.microversion().await?;
        let call = match right {
            Right::ChangeStates => request::no_provision_state(version, node)?,
            Right::SetTraits => request::no_traits(version, node)?,
        };
        match self.write(call).await {
            Err(error) => match error.kind {
                ErrorKind::BadRequest | ErrorKind::IllegalTransition => Ok(()),
                ErrorKind::Locked | ErrorKind::Conflict => Ok(()),
                _ => Err(error),
            },
            done => done,
        }
    }
}
