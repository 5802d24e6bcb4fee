//! Why a run could not be carried on.

use ironic_client::NodeUuid;

use crate::cloud::CloudError;
use crate::core::{CannotOpen, CaseId, Process};
use crate::journal::JournalError;

/// Why a run could not be carried on. What is held stays held.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The cloud could not be looked at.
    #[error(transparent)]
    Cloud(#[from] CloudError),
    /// The journal did not take an entry.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// The tear-down may not begin.
    #[error(transparent)]
    CannotOpen(#[from] CannotOpen),
    /// The journal names a strategy that this version does not have.
    #[error("case {case} was begun with the strategy `{strategy}`, which this version does not have")]
    NoStrategy {
        /// The case.
        case: CaseId,
        /// The strategy.
        strategy: String,
    },
    /// The case belongs to another cloud than this one. Nothing was written.
    #[error(
        "the tear-down of node {node} was begun in the cloud {begun}, and this is {here}: use that one's settings. If it is the \
         same cloud at another address, `unprovision resume {node} --cloud-moved` goes on"
    )]
    OtherCloud {
        /// The node.
        node: NodeUuid,
        /// The cloud that the case was begun in.
        begun: String,
        /// This cloud.
        here: String,
    },
    /// Another process works on the case. Nothing was written.
    #[error(
        "node {node} is worked on by {by}. If that has ended, its lease runs out within half a minute; then `unprovision resume` \
         goes on"
    )]
    Theirs {
        /// The node.
        node: NodeUuid,
        /// The process.
        by: Process,
    },
    /// Nothing is to be released without Nova's word, and Nova cannot be asked.
    #[error("Nova is to be asked before each release, and cannot be: {0}")]
    NovaRequired(String),
    /// The journal has no such case.
    #[error("the journal has no readable case {0}")]
    NoCase(CaseId),
}
