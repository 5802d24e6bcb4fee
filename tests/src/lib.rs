//! A sandbox cloud and conformance suites for unprovision.
#![warn(missing_docs)]

pub mod checker;
pub mod conformance;
pub mod contract;
pub mod fuzz;
pub mod lab;
pub mod model;
pub mod proxy;
pub mod relay;
pub mod rig;
pub mod sandbox;
pub mod simulate;

/// The book's code is compiled.
#[cfg(doctest)]
#[doc = include_str!("../../docs/embedding.md")]
pub struct Embedding;
