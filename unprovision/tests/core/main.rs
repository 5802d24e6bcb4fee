//! Tables and properties of the pure core: no runtime, no clock, no IO.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "clippy's exception for tests does not see helpers beside them"
)]

mod again;
mod audit;
mod audit_looks;
mod begin;
mod build;
mod by_hand;
mod claims;
mod cures;
mod deadline;
mod declared;
mod doubt;
mod ends;
mod fold;
mod free;
mod guard_in_use;
mod guard_open;
mod guard_rules;
mod journal_format;
mod kept;
mod late;
mod nova;
mod observation;
mod old_reads;
mod pace;
mod pace_kinds;
mod property;
mod property_nova;
mod property_tags;
mod rash;
mod scopes;
mod start;
mod strategies;
mod tags;
mod undo;
mod vetoes;
mod vetoes_guard;
mod vetoes_placement;
mod vetoes_tags;
mod waits;
mod watch;
