//! Tables and properties of the pure core: no runtime, no clock, no IO.

mod build;
mod deadline;
mod fold;
mod free;
mod journal_format;
mod pace;
mod property;
mod start;
mod strategies;
mod vetoes;
