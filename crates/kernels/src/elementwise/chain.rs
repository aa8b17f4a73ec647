//! Several elementwise functions of `f32` in one pass over memory.
//!
//! A [`Chain`] is a short program whose steps are functions of operands, constants and earlier steps. It is run block by
//! block: what a step computes stays in the L1 cache until the steps that use it have run, and only the last step's values
//! are written to memory.

#![expect(unsafe_code, reason = "blocks of the output, and registers, are handed out as disjoint parts")]
#![expect(clippy::large_stack_arrays, reason = "a run must not allocate; a task needs 56 KiB of its stack")]

use std::mem::MaybeUninit;

use smallvec::SmallVec;

use super::binary::{self, Binary};
use super::broadcast::{BLOCK, Broadcast, Buffer, Operand, fill};
use super::unary::{self, Unary};
use crate::isa::Isas;
use crate::threads::{DisjointMut, Team};
use crate::transpose::LayoutError;

/// Values of steps that can be alive at one time, the last step's excepted.
const REGISTERS: usize = 6;
/// Tensors that a chain can read.
const OPERANDS: usize = 8;

/// Where a step finds a value.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Source {
    /// A tensor given to [`Chain::run`].
    Operand(usize),
    /// What an earlier step computed.
    Step(usize),
    /// The same number for all elements.
    Constant(f32),
}

/// One step of a chain.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Step {
    /// A function of one value.
    Unary(Unary, Source),
    /// A function of two values.
    Binary(Binary, Source, Source),
}

/// Why steps are not a chain.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ChainError {
    /// The operands' shapes do not meet.
    #[error(transparent)]
    Shapes(#[from] LayoutError),
    /// A chain needs a step.
    #[error("the chain has no steps")]
    Empty,
    /// A step uses an operand that there is none of, or a step that is not before it.
    #[error("step {step} uses what is not there")]
    Missing {
        /// The step.
        step: usize,
    },
    /// A step computes what no later step uses.
    #[error("step {step} is not used")]
    Unused {
        /// The step.
        step: usize,
    },
    /// More values are alive at one time, or more operands are read, than there is room for.
    #[error("the chain needs room for {needed} {what}, there is room for {limit}")]
    TooLong {
        /// What there are too many of.
        what: &'static str,
        /// How many.
        needed: usize,
        /// How many there may be.
        limit: usize,
    },
}

/// Steps run together, built once and run often.
#[derive(Debug, Clone, PartialEq)]
pub struct Chain {
    plan: Broadcast,
    /// Steps with [`Source::Step`] replaced by registers.
    steps: Vec<(Step, usize)>,
    /// How many registers they use.
    registers: usize,
}

impl Step {
    fn sources(&self) -> SmallVec<[Source; 2]> {
        match *self {
            Step::Unary(_, x) => smallvec::smallvec![x],
            Step::Binary(_, a, b) => smallvec::smallvec![a, b],
        }
    }
}

impl Chain {
    /// For operands of `shapes`, broadcast to one output shape. The last step's values are the output.
    pub fn new(shapes: &[&[usize]], steps: &[Step]) -> Result<Self, ChainError> {
        if shapes.len() > OPERANDS {
            return Err(ChainError::TooLong { what: "operands", needed: shapes.len(), limit: OPERANDS });
        }
        let plan = Broadcast::new(shapes)?;
        let Some(last) = steps.len().checked_sub(1) else { return Err(ChainError::Empty) };
        // The last step that uses each step.
        let mut last_use = vec![0; steps.len()];
        for (index, step) in steps.iter().enumerate() {
            for source in step.sources() {
                match source {
                    Source::Operand(operand) if operand >= shapes.len() => {
                        return Err(ChainError::Missing { step: index });
                    }
                    Source::Step(earlier) if earlier >= index => {
                        return Err(ChainError::Missing { step: index });
                    }
                    Source::Step(earlier) => last_use[earlier] = index,
                    _ => {}
                }
            }
        }
        if let Some(step) = (0..last).find(|&step| last_use[step] == 0) {
            return Err(ChainError::Unused { step });
        }
        // A register is free again after the last use of its value; a step never writes to a register that it reads.
        let mut free_from: SmallVec<[usize; REGISTERS]> = SmallVec::new();
        let mut registers = vec![0; steps.len()];
        let mut placed = Vec::with_capacity(steps.len());
        for (index, step) in steps.iter().enumerate() {
            let place = |source: Source| match source {
                Source::Step(earlier) => Source::Step(registers[earlier]),
                other => other,
            };
            let step = match *step {
                Step::Unary(function, x) => Step::Unary(function, place(x)),
                Step::Binary(function, a, b) => Step::Binary(function, place(a), place(b)),
            };
            if index != last {
                let register = free_from.iter().position(|&free| free < index).unwrap_or(free_from.len());
                if register == free_from.len() {
                    free_from.push(0);
                }
                free_from[register] = last_use[index];
                registers[index] = register;
            }
            placed.push((step, registers[index]));
        }
        if free_from.len() > REGISTERS {
            return Err(ChainError::TooLong { what: "values", needed: free_from.len(), limit: REGISTERS });
        }
        Ok(Self { plan, steps: placed, registers: free_from.len() })
    }

    /// How the operands meet.
    pub fn broadcast(&self) -> &Broadcast {
        &self.plan
    }

    /// Computes the output.
    ///
    /// # Panics
    /// When there are not as many operands as shapes, or a slice does not have its shape's number of elements.
    pub fn run(&self, isas: Isas, team: &Team, operands: &[&[f32]], y: &mut [f32]) {
        self.run_blocks(isas, team, operands, None, y);
    }

    /// As [`Chain::run`], where operand `overwritten` is `y` itself; what `operands` holds in its place is not read.
    ///
    /// # Panics
    /// As [`Chain::run`], and when that operand does not have the output's shape.
    pub fn run_over(&self, isas: Isas, team: &Team, operands: &[&[f32]], overwritten: usize, y: &mut [f32]) {
        assert!(self.plan.is_same(overwritten), "operand {overwritten} does not have the output's shape");
        self.run_blocks(isas, team, operands, Some(overwritten), y);
    }

    fn run_blocks(
        &self,
        isas: Isas,
        team: &Team,
        operands: &[&[f32]],
        overwritten: Option<usize>,
        y: &mut [f32],
    ) {
        assert_eq!(operands.len(), self.plan.operands(), "the chain has another number of operands");
        for (index, operand) in operands.iter().enumerate() {
            if overwritten != Some(index) {
                self.plan.check_operand(index, operand.len());
            }
        }
        assert_eq!(y.len(), self.plan.length(), "the output's length differs from the broadcast's");
        let output = DisjointMut::new(y);
        self.plan.for_blocks(team, &|blocks| {
            let mut buffers: [Buffer<f32>; OPERANDS] = std::array::from_fn(|_| Buffer::new());
            let mut registers = [const { MaybeUninit::uninit() }; REGISTERS * BLOCK];
            let stride = self.plan.length().min(BLOCK);
            let registers = fill(&mut registers[..self.registers * stride], 0.0);
            for range in blocks {
                // SAFETY: blocks do not meet.
                let y = unsafe { output.slice_mut(range.start, range.len()) };
                let mut loaded = [Operand::Scalar(0.0); OPERANDS];
                for (index, buffer) in buffers[..operands.len()].iter_mut().enumerate() {
                    loaded[index] = if overwritten == Some(index) {
                        Operand::Slice(buffer.copy(y))
                    } else {
                        self.plan.operand(index, operands[index], range.clone(), buffer)
                    };
                }
                self.run_block(isas, &loaded, (&mut *registers, stride), y);
            }
        });
    }

    fn run_block(
        &self,
        isas: Isas,
        operands: &[Operand<'_, f32>; OPERANDS],
        (registers, stride): (&mut [f32], usize),
        y: &mut [f32],
    ) {
        let length = y.len();
        let registers = DisjointMut::new(registers);
        let load = |source: Source| match source {
            Source::Operand(index) => operands[index],
            Source::Constant(value) => Operand::Scalar(value),
            Source::Step(register) => {
                // SAFETY: no step writes to a register that it reads, so this part is only read while it is in use.
                Operand::Slice(unsafe { registers.slice_mut(register * stride, length) })
            }
        };
        for (index, &(step, register)) in self.steps.iter().enumerate() {
            let target = if index + 1 == self.steps.len() {
                &mut *y
            } else {
                // SAFETY: this step reads other registers only.
                unsafe { registers.slice_mut(register * stride, length) }
            };
            match step {
                Step::Unary(function, x) => match load(x) {
                    Operand::Slice(x) => unary::block(isas, function, x, target),
                    Operand::Scalar(x) => {
                        let mut value = [0.0];
                        unary::block(isas, function, &[x], &mut value);
                        target.fill(value[0]);
                    }
                },
                Step::Binary(function, a, b) => binary::block(isas, function, load(a), load(b), target),
            }
        }
    }
}
