//! Functions of two numbers of one type, and choices between two tensors.

#![expect(unsafe_code, reason = "blocks of the output are handed to tasks")]

use super::broadcast::{BLOCK, Broadcast, Buffer, Operand};
use super::number::{Integer, Number};
use crate::dispatch::{Loop, dispatch};
use crate::isa::Isas;
use crate::threads::{DisjointMut, Team};

/// Arithmetic of two numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Binary {
    /// `a + b`.
    Add,
    /// `a - b`.
    Sub,
    /// `a * b`.
    Mul,
    /// `a / b`, towards zero for integers.
    Div,
    /// `a` to the power of `b`.
    Pow,
    /// The smaller one; NaN if either is.
    Min,
    /// The larger one; NaN if either is.
    Max,
    /// The remainder with the sign of `b`: ONNX `Mod` with `fmod = 0`.
    Modulo,
    /// The remainder with the sign of `a`: ONNX `Mod` with `fmod = 1`.
    Remainder,
    /// `a` where it is not negative, else `a * b`.
    PRelu,
    /// `(a - b)` squared.
    SquaredDifference,
}

/// Comparisons; the result is one or zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say it")]
pub enum Comparison {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

/// Functions of the bits of two integers; on tensors of booleans (bytes of one and zero) they are the logical ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bits {
    /// Set in both.
    And,
    /// Set in either.
    Or,
    /// Set in one of the two.
    Xor,
    /// `a` with its bits moved up by `b`.
    ShiftLeft,
    /// `a` with its bits moved down by `b`.
    ShiftRight,
}

/// What is computed of a block of two operands.
type Body<'a, A, B, O> = &'a (dyn Fn(Operand<'_, A>, Operand<'_, B>, &mut [O]) + Sync);

/// Runs `body` on every block of two operands and the output.
fn blocks<A, B, O>(plan: &Broadcast, team: &Team, (a, b): (&[A], &[B]), y: &mut [O], body: Body<'_, A, B, O>)
where
    A: Copy + Sync,
    B: Copy + Sync,
    O: Send,
{
    assert_eq!(plan.operands(), 2, "the broadcast is not of two operands");
    plan.check_operand(0, a.len());
    plan.check_operand(1, b.len());
    assert_eq!(y.len(), plan.length(), "the output's length differs from the broadcast's");
    let output = DisjointMut::new(y);
    plan.for_blocks(team, &|blocks| {
        let (mut a_buffer, mut b_buffer) = (Buffer::new(), Buffer::new());
        for range in blocks {
            // SAFETY: blocks do not meet.
            let y = unsafe { output.slice_mut(range.start, range.len()) };
            body(
                plan.operand(0, a, range.clone(), &mut a_buffer),
                plan.operand(1, b, range, &mut b_buffer),
                y,
            );
        }
    });
}

/// `y = function(a, b)` with operands broadcast by `plan`.
///
/// # Panics
/// When a slice does not have the plan's number of elements.
pub fn binary<T: Number>(
    isas: Isas,
    team: &Team,
    function: Binary,
    plan: &Broadcast,
    (a, b): (&[T], &[T]),
    y: &mut [T],
) {
    blocks(plan, team, (a, b), y, &|a, b, y| block(isas, function, a, b, y));
}

/// One block on the calling thread; slices have the output's length.
pub(crate) fn block<T: Number>(
    isas: Isas,
    function: Binary,
    a: Operand<'_, T>,
    b: Operand<'_, T>,
    y: &mut [T],
) {
    match (a, b) {
        (Operand::Slice(a), b) => dispatch(isas, BinaryLoop { function, a, b, y }),
        (Operand::Scalar(a), Operand::Slice(b)) => match function {
            Binary::Add | Binary::Mul | Binary::Min | Binary::Max | Binary::SquaredDifference => {
                dispatch(isas, BinaryLoop { function, a: b, b: Operand::Scalar(a), y });
            }
            _ => {
                let mut buffer = Buffer::new();
                let a = &*buffer.repeat(a, b.len().min(BLOCK));
                for (b, y) in b.chunks(BLOCK).zip(y.chunks_mut(BLOCK)) {
                    let (a, b) = (&a[..b.len()], Operand::Slice(b));
                    dispatch(isas, BinaryLoop { function, a, b, y });
                }
            }
        },
        (Operand::Scalar(a), Operand::Scalar(b)) => {
            let mut value = [T::default()];
            dispatch(isas, BinaryLoop { function, a: &[a], b: Operand::Scalar(b), y: &mut value });
            y.fill(value[0]);
        }
    }
}

struct BinaryLoop<'a, T> {
    function: Binary,
    a: &'a [T],
    b: Operand<'a, T>,
    y: &'a mut [T],
}

/// A loop over two operands of which the second may be a scalar.
macro_rules! zip {
    ($this:ident, $a:ident, $b:ident => $value:expr) => {
        match $this.b {
            Operand::Slice(b) => {
                for ((y, &$a), &$b) in $this.y.iter_mut().zip($this.a).zip(b) {
                    *y = $value;
                }
            }
            Operand::Scalar($b) => {
                for (y, &$a) in $this.y.iter_mut().zip($this.a) {
                    *y = $value;
                }
            }
        }
    };
}

impl<T: Number> Loop for BinaryLoop<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<const FMA: bool>(self) {
        match self.function {
            Binary::Add => zip!(self, a, b => a.add(b)),
            Binary::Sub => zip!(self, a, b => a.subtract(b)),
            Binary::Mul => zip!(self, a, b => a.multiply(b)),
            Binary::Div => zip!(self, a, b => a.divide(b)),
            Binary::Pow => match self.b {
                Operand::Scalar(b) if b == T::TWO => {
                    self.y.iter_mut().zip(self.a).for_each(|(y, &a)| *y = a.multiply(a));
                }
                Operand::Scalar(b) if b == T::THREE => {
                    self.y.iter_mut().zip(self.a).for_each(|(y, &a)| *y = a.multiply(a).multiply(a));
                }
                _ => zip!(self, a, b => a.power(b)),
            },
            Binary::Min => zip!(self, a, b => a.minimum(b)),
            Binary::Max => zip!(self, a, b => a.maximum(b)),
            Binary::Modulo => zip!(self, a, b => a.modulo(b)),
            Binary::Remainder => zip!(self, a, b => a.remainder(b)),
            Binary::PRelu => zip!(self, a, b => if a < T::default() { a.multiply(b) } else { a }),
            Binary::SquaredDifference => {
                zip!(self, a, b => { let difference = a.subtract(b); difference.multiply(difference) });
            }
        }
    }
}

/// The operand's elements side by side.
fn spread<'a, T: Copy>(operand: Operand<'a, T>, length: usize, buffer: &'a mut Buffer<T>) -> &'a [T] {
    match operand {
        Operand::Slice(slice) => slice,
        Operand::Scalar(value) => buffer.repeat(value, length),
    }
}

/// `y = comparison(a, b)` as bytes of one and zero, with operands broadcast by `plan`.
///
/// # Panics
/// When a slice does not have the plan's number of elements.
pub fn compare<T: Copy + PartialOrd + Sync>(
    isas: Isas,
    team: &Team,
    comparison: Comparison,
    plan: &Broadcast,
    (a, b): (&[T], &[T]),
    y: &mut [u8],
) {
    blocks(plan, team, (a, b), y, &|a, b, y| {
        let (mut a_buffer, mut b_buffer) = (Buffer::new(), Buffer::new());
        let a = spread(a, y.len(), &mut a_buffer);
        let b = spread(b, y.len(), &mut b_buffer);
        dispatch(isas, CompareLoop { comparison, a, b, y });
    });
}

struct CompareLoop<'a, T> {
    comparison: Comparison,
    a: &'a [T],
    b: &'a [T],
    y: &'a mut [u8],
}

impl<T: Copy + PartialOrd> Loop for CompareLoop<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<const FMA: bool>(self) {
        let all = self.y.iter_mut().zip(self.a).zip(self.b);
        match self.comparison {
            Comparison::Equal => all.for_each(|((y, a), b)| *y = u8::from(a == b)),
            Comparison::NotEqual => all.for_each(|((y, a), b)| *y = u8::from(a != b)),
            Comparison::Less => all.for_each(|((y, a), b)| *y = u8::from(a < b)),
            Comparison::LessOrEqual => all.for_each(|((y, a), b)| *y = u8::from(a <= b)),
            Comparison::Greater => all.for_each(|((y, a), b)| *y = u8::from(a > b)),
            Comparison::GreaterOrEqual => all.for_each(|((y, a), b)| *y = u8::from(a >= b)),
        }
    }
}

/// `y = function(a, b)` bit by bit, with operands broadcast by `plan`.
///
/// # Panics
/// When a slice does not have the plan's number of elements.
pub fn bits<T: Integer>(
    isas: Isas,
    team: &Team,
    function: Bits,
    plan: &Broadcast,
    (a, b): (&[T], &[T]),
    y: &mut [T],
) {
    blocks(plan, team, (a, b), y, &|a, b, y| {
        let (mut a_buffer, mut b_buffer) = (Buffer::new(), Buffer::new());
        let a = spread(a, y.len(), &mut a_buffer);
        let b = spread(b, y.len(), &mut b_buffer);
        dispatch(isas, BitsLoop { function, a, b, y });
    });
}

struct BitsLoop<'a, T> {
    function: Bits,
    a: &'a [T],
    b: &'a [T],
    y: &'a mut [T],
}

impl<T: Integer> Loop for BitsLoop<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<const FMA: bool>(self) {
        let all = self.y.iter_mut().zip(self.a).zip(self.b);
        match self.function {
            Bits::And => all.for_each(|((y, &a), &b)| *y = a.and(b)),
            Bits::Or => all.for_each(|((y, &a), &b)| *y = a.or(b)),
            Bits::Xor => all.for_each(|((y, &a), &b)| *y = a.exclusive_or(b)),
            Bits::ShiftLeft => all.for_each(|((y, &a), &b)| *y = a.shift_left(b)),
            Bits::ShiftRight => all.for_each(|((y, &a), &b)| *y = a.shift_right(b)),
        }
    }
}

/// `y = !x`, bit by bit.
///
/// # Panics
/// When `x` and `y` differ in length.
pub fn complement<T: Integer>(x: &[T], y: &mut [T]) {
    assert_eq!(x.len(), y.len(), "input and output differ in length");
    y.iter_mut().zip(x).for_each(|(y, &x)| *y = x.complement());
}

/// `y = 1 - x` for bytes of one and zero: the logical complement.
///
/// # Panics
/// When `x` and `y` differ in length.
pub fn not(x: &[u8], y: &mut [u8]) {
    assert_eq!(x.len(), y.len(), "input and output differ in length");
    y.iter_mut().zip(x).for_each(|(y, &x)| *y = u8::from(x == 0));
}

/// ONNX `Where`: `y = a` where `condition` is not zero, else `b`; `plan` broadcasts condition, `a` and `b`, in this order.
///
/// # Panics
/// When a slice does not have the plan's number of elements.
pub fn select<T: Copy + Send + Sync>(
    isas: Isas,
    team: &Team,
    plan: &Broadcast,
    condition: &[u8],
    (a, b): (&[T], &[T]),
    y: &mut [T],
) {
    assert_eq!(plan.operands(), 3, "the broadcast is not of three operands");
    plan.check_operand(0, condition.len());
    plan.check_operand(1, a.len());
    plan.check_operand(2, b.len());
    assert_eq!(y.len(), plan.length(), "the output's length differs from the broadcast's");
    let output = DisjointMut::new(y);
    plan.for_blocks(team, &|blocks| {
        let (mut condition_buffer, mut condition_spread) = (Buffer::new(), Buffer::new());
        let (mut a_buffer, mut a_spread) = (Buffer::new(), Buffer::new());
        let (mut b_buffer, mut b_spread) = (Buffer::new(), Buffer::new());
        for range in blocks {
            // SAFETY: blocks do not meet.
            let y = unsafe { output.slice_mut(range.start, range.len()) };
            let condition = plan.operand(0, condition, range.clone(), &mut condition_buffer);
            let a = plan.operand(1, a, range.clone(), &mut a_buffer);
            let b = plan.operand(2, b, range, &mut b_buffer);
            let condition = spread(condition, y.len(), &mut condition_spread);
            let a = spread(a, y.len(), &mut a_spread);
            let b = spread(b, y.len(), &mut b_spread);
            dispatch(isas, SelectLoop { condition, a, b, y });
        }
    });
}

struct SelectLoop<'a, T> {
    condition: &'a [u8],
    a: &'a [T],
    b: &'a [T],
    y: &'a mut [T],
}

impl<T: Copy> Loop for SelectLoop<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<const FMA: bool>(self) {
        for (((y, &condition), &a), &b) in self.y.iter_mut().zip(self.condition).zip(self.a).zip(self.b) {
            *y = if condition != 0 { a } else { b };
        }
    }
}
