//! Watching a run.

use std::time::Duration;

use armet_tensor::{Layout, Tensor};
use smallvec::SmallVec;

use crate::{StepReport, ValueRef};

/// One result of a step: a value that it wrote, or one that is the bytes of such a value under another shape.
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

impl StepResult<'_> {
    /// A copy of the tensor in plain layout, stored numbers as they are; `None` for values that are no numbers.
    pub fn to_tensor(&self) -> Option<Tensor> {
        let view = self.value.view()?;
        let rank = view.shape().len();
        let order = self.layout.permutation(rank);
        if order.is_sorted() {
            return Some(view.to_tensor());
        }
        let size = view.element().byte_size()?;
        let from = armet_tensor::strides(&self.layout.physical(view.shape()));
        // Where each logical axis lies in memory gives its stride there.
        let mut stride: SmallVec<[usize; 6]> = SmallVec::from_elem(0, rank);
        for (place, &axis) in order.iter().enumerate() {
            stride[axis] = from[place];
        }
        let mut bytes = Vec::with_capacity(view.bytes().len());
        let mut index: SmallVec<[usize; 6]> = SmallVec::from_elem(0, rank);
        while bytes.len() < view.bytes().len() {
            let at: usize = index.iter().zip(&stride).map(|(i, s)| i * s).sum();
            bytes.extend_from_slice(&view.bytes()[at * size..(at + 1) * size]);
            for axis in (0..rank).rev() {
                index[axis] += 1;
                if index[axis] < view.shape()[axis] {
                    break;
                }
                index[axis] = 0;
            }
        }
        Tensor::from_bytes(view.element(), view.shape(), &bytes).ok()
    }
}

/// Told about each step of a run.
pub trait Probe {
    /// Whether results are wanted; they cost a look-up per step.
    fn wants_results(&self) -> bool;
    /// Whether the run is to end with [`RunError::Stopped`](crate::RunError::Stopped); asked before each step, and so in
    /// each turn of a loop.
    fn wants_stop(&self) -> bool {
        false
    }
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
