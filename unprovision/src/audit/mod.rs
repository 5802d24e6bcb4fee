//! The audit: what does not fit between Ironic's nodes and Placement's providers.
//!
//! Pure, like the core: [`join`] puts the lists of both services together, and [`findings`] judges one [`Subject`] by what
//! the lists tell and, once it was looked at closer, by that look alone. Whatever may be a change under way is no finding.

mod finding;
mod join;
mod judge;
mod kind;
mod words;

pub use finding::{Finding, Remedy};
pub use join::{Lists, Look, Subject, join};
pub use judge::{Rules, findings, is_plainly_right};
pub use kind::{FindingKind, UnknownKind};
