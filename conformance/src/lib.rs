//! Suites that hold every backend to the operators' meaning.

pub mod resources;
