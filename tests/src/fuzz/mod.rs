//! What is fed to everything that reads what others have written: bodies of both services, `next` links, `clouds.yaml`,
//! notifications, rows of the journal. The program's own file is its own matter: `config::tests::chance` in `bin/`.
//!
//! `tests/fuzz` has libFuzzer find inputs by their coverage; the suite `fuzz` tries some thousand that are made by chance from
//! the same seeds. A finding is a panic, a request without end, or a write that the veto would not let pass.

mod answers;
mod chance;
mod files;
mod messages;
mod rows;

use std::sync::LazyLock;

pub use chance::changed;

/// Something that reads.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    /// Its name.
    pub name: &'static str,
    /// What it reads when all is well.
    pub seeds: fn() -> Vec<Vec<u8>>,
    /// Reads this. Panics with a finding.
    pub read: fn(&[u8]),
}

/// All of them.
pub const TARGETS: [Target; 5] = [
    Target {
        name: "ironic",
        seeds: answers::ironic_seeds,
        read: answers::ironic,
    },
    Target {
        name: "placement",
        seeds: answers::placement_seeds,
        read: answers::placement,
    },
    Target {
        name: "clouds",
        seeds: files::seeds,
        read: files::clouds,
    },
    Target {
        name: "notifications",
        seeds: messages::seeds,
        read: messages::notification,
    },
    Target {
        name: "journal",
        seeds: rows::seeds,
        read: rows::journal,
    },
];

/// A runtime for what is asynchronous; nothing waits here.
#[allow(clippy::expect_used, reason = "without a runtime nothing can be tried")]
static RUNTIME: LazyLock<tokio::runtime::Runtime> = LazyLock::new(|| {
    let mut builder = tokio::runtime::Builder::new_current_thread();
    builder.enable_all().build().expect("a runtime")
});
