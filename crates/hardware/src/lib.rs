//! What this board is: processor, clusters, caches, limits, memory, clocks and temperatures.
//!
//! Contract: everything is read below a [`Root`], so a captured folder serves as a board in tests; what cannot be read is
//! `None` or empty, never an error, since boards and containers lack any part of `/sys`. Only instruction sets and the
//! page size come from the running machine itself. Nothing is cached: each call reads anew.
#![forbid(unsafe_code)]

mod cpu;
mod features;
mod limits;
mod memory;
mod root;
mod sensors;

pub use self::{
    cpu::{Cache, CacheKind, Cluster, Cpu},
    features::features,
    memory::{Memory, ProcessMemory, page_size},
    root::Root,
    sensors::{Sensors, Temperature},
};
