//! Contract files: requests and their expected answers as data, asked of the sandbox and of real services.
//!
//! The sandbox is only worth something as long as it answers what the real services answer. Each file in
//! `tests/contract` states a few facts about Keystone, Ironic or Placement; the same file runs against the
//! sandbox and against real services, so a difference shows up as a failing test on one of the two sides.
//! The format is described in `tests/contract/README.md`.
//!
//! ```no_run
//! use unprovision_testkit::contract::{HttpTarget, Seed, load_dir, run_file};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), unprovision_testkit::contract::Error> {
//! let mut target = HttpTarget::from_lab("lab.json".as_ref())?;
//! for file in load_dir("tests/contract".as_ref())? {
//!     let report = run_file(&file, &mut target, &Seed::from("a run of its own")).await;
//!     println!("{report}");
//! }
//! # Ok(())
//! # }
//! ```

mod format;
mod matching;
mod report;
mod run;
mod target;
mod vars;

pub use format::{Defaults, Expect, File, RepeatUntil, Service, Status, Step, Token, load_dir, load_file};
pub use matching::{Difference, compare};
pub use report::{Answer, Failure, Outcome, Report, StepReport};
pub use run::{log_in, run_file, version_header};
pub use target::{HttpTarget, Identity, Target};
pub use vars::Seed;

use std::path::PathBuf;

/// Why a contract could not be tried at all.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A file cannot be read.
    #[error("cannot read {path}")]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system says.
        #[source]
        source: std::io::Error,
    },
    /// A file is not what it should be.
    #[error("{path} is not understood: {problem}")]
    Parse {
        /// The file.
        path: PathBuf,
        /// What is wrong and where.
        problem: String,
    },
    /// A request got no answer.
    #[error("no answer from {url}: {problem}")]
    NoAnswer {
        /// Where the request went.
        url: String,
        /// What happened.
        problem: String,
    },
    /// A request cannot be built, or must not be sent.
    #[error("not a request that can be sent: {0}")]
    Request(String),
    /// Keystone gives no token.
    #[error("no token: {0}")]
    NoToken(String),
    /// A variable is used that nothing has set.
    #[error("${{{0}}} is not set")]
    Unset(String),
}
