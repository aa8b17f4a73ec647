//! Watching a run.

use std::time::Duration;

use armet_tensor::Layout;

use crate::{StepReport, ValueRef};

/// One result of a step.
#[derive(Debug, Clone, Copy)]
pub struct StepResult<'a> {
    /// Name of the value.
    pub name: &'a str,
    /// Its contents, in memory order of `layout`; dimensions are logical.
    pub value: ValueRef<'a>,
    /// How it lies in memory.
    pub layout: Layout,
    /// Set when stored integers stand for real numbers.
    pub quantization: Option<&'a armet_tensor::Quantization>,
}

/// Told about each step of a run.
pub trait Probe {
    /// Whether results are wanted; they cost a look-up per step.
    fn wants_results(&self) -> bool;
    /// A step has run.
    fn step(&mut self, report: &StepReport, duration: Duration, results: &[StepResult<'_>]);
}

/// Watches nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoProbe;

impl Probe for NoProbe {
    fn wants_results(&self) -> bool {
        false
    }

    fn step(&mut self, _: &StepReport, _: Duration, _: &[StepResult<'_>]) {}
}
