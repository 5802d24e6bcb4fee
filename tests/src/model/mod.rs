//! A cloud small enough to be searched: nodes and providers as plain values, and the rules by which the services and
//! their users change them.
//!
//! The sandbox speaks the wire and is bound to the real services by contract files. This model has no wire, so that
//! the checker and the simulation can make millions of steps through the real core; it is bound to the sandbox by
//! `tests/tests/model.rs`, which sends the same writes to both and compares what comes of them.

pub mod apply;
pub mod bay;
pub mod judge;
pub mod key;
pub mod nova;
pub mod product;
pub mod view;
pub mod worker;

pub use apply::{Services, apply};
pub use bay::{Author, Bay, Held, Machine, Maintenance, Provider};
pub use judge::{Breach, Watch};
pub use key::Key;
pub use product::{AsIs, Product, Sent};
pub use worker::{Outgoing, Phase, Saw, Thought};
