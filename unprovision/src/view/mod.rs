//! What is shown of a journal and of a cloud: rows for lists, and stories. They are values, to be drawn by whoever shows them; as
//! JSON their keys are the columns.
//!
//! The rows are pure; what gathers them comes with the feature `orchestrator`.

pub mod cases;
pub mod history;
pub mod nodes;

pub use cases::{CaseRow, Told};
pub use history::Story;
pub use nodes::NodeRow;
