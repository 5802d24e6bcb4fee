//! Seeded simulation: bigger worlds, a clock that runs, and everything that goes wrong in them.
//!
//! A run is made of worlds, each with its own dice, so that one can be played again by seed and number. A world has some
//! nodes, all with a case, one process of ours with a second in reserve, and the rivals. What the checker leaves to
//! chance or cuts short runs here by the clock: pauses, patience, deadlines, cleanings of two days, a process that stands
//! still for an hour.

mod dice;
mod fleet;
mod ours;
mod rivals;
mod run;
mod slot;
mod tally;

pub use dice::Dice;
pub use fleet::{Fleet, Nature};
pub use run::{Plan, Report, run, world};
pub use tally::{Tally, Violation};
