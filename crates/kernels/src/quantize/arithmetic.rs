//! Functions of quantised bytes: of one by tables, of two by their formula.

#![expect(unsafe_code, reason = "blocks of the output are handed to tasks")]

use super::{Quantized, ROUNDING, round_to};
use crate::dispatch::{Loop, dispatch};
use crate::elementwise::{Broadcast, Buffer, Operand};
use crate::isa::Isas;
use crate::threads::{DisjointMut, Team};

/// Scale and zero point of one tensor.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct QuantizedOperand<T> {
    /// The scale.
    pub scale: f32,
    /// The zero point.
    pub zero_point: T,
}

/// The table of a function of one quantised byte: entry `b` is the result for the byte of bits `b`.
pub fn table_of<A: Quantized, B: Quantized>(
    x: QuantizedOperand<A>,
    y: QuantizedOperand<B>,
    function: impl Fn(f32) -> f32,
) -> [B; 256] {
    const { assert!(size_of::<A>() == 1 && size_of::<B>() == 1, "tables are of bytes") };
    std::array::from_fn(|bits| {
        let byte = A::narrow(bits as i32).wide();
        let value = function((byte - x.zero_point.wide()) as f32 * x.scale);
        round_to(value / y.scale, y.zero_point.wide())
    })
}

/// The table that expresses a number in another scale and zero point.
pub fn requantize_table<A: Quantized, B: Quantized>(
    x: QuantizedOperand<A>,
    y: QuantizedOperand<B>,
) -> [B; 256] {
    table_of(x, y, |value| value)
}

/// `y[i] = table[x[i]]`, where signed bytes stand for the unsigned ones of equal bits.
///
/// # Panics
/// When `x` and `y` differ in length.
pub fn lookup<T: Copy + Sync + Send>(team: &Team, table: &[T; 256], x: &[u8], y: &mut [T]) {
    assert_eq!(x.len(), y.len(), "input and output differ in length");
    let output = DisjointMut::new(y);
    team.parallel_ranges(x.len(), 16 * 1024, 64, &|start, end| {
        // SAFETY: tasks have ranges that do not meet.
        let y = unsafe { output.slice_mut(start, end - start) };
        y.iter_mut().zip(&x[start..end]).for_each(|(y, &x)| *y = table[usize::from(x)]);
    });
}

/// Arithmetic of two quantised tensors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QuantizedBinary {
    /// Their sum.
    Add,
    /// Their product.
    Mul,
}

/// `y = function(a, b)` of quantised bytes with operands broadcast by `plan`: onnxruntime's `QLinearAdd` and `QLinearMul`.
/// Results are limited to `bounds`.
///
/// # Panics
/// When a slice does not have the plan's number of elements.
pub fn quantized_binary<T: Quantized>(
    isas: Isas,
    team: &Team,
    function: QuantizedBinary,
    plan: &Broadcast,
    [(a, a_kind), (b, b_kind)]: [(&[T], QuantizedOperand<T>); 2],
    (y, y_kind): (&mut [T], QuantizedOperand<T>),
    (min, max): (T, T),
) {
    const { assert!(size_of::<T>() == 1, "rounding in single precision is exact for bytes") };
    assert_eq!(plan.operands(), 2, "the broadcast is not of two operands");
    plan.check_operand(0, a.len());
    plan.check_operand(1, b.len());
    assert_eq!(y.len(), plan.length(), "the output's length differs from the broadcast's");
    let output = DisjointMut::new(y);
    plan.for_blocks(team, &|blocks| {
        let (mut a_buffer, mut b_buffer) = (Buffer::new(), Buffer::new());
        let (mut a_room, mut b_room) = (Buffer::new(), Buffer::new());
        for range in blocks {
            // SAFETY: blocks do not meet.
            let y = unsafe { output.slice_mut(range.start, range.len()) };
            let spread = |operand, room| match operand {
                Operand::Slice(slice) => slice,
                Operand::Scalar(value) => &*Buffer::repeat(room, value, range.len()),
            };
            let a = spread(plan.operand(0, a, range.clone(), &mut a_buffer), &mut a_room);
            let b = spread(plan.operand(1, b, range.clone(), &mut b_buffer), &mut b_room);
            dispatch(isas, Formula { function, a, a_kind, b, b_kind, y, y_kind, min, max });
        }
    });
}

struct Formula<'a, T> {
    function: QuantizedBinary,
    a: &'a [T],
    a_kind: QuantizedOperand<T>,
    b: &'a [T],
    b_kind: QuantizedOperand<T>,
    y: &'a mut [T],
    y_kind: QuantizedOperand<T>,
    min: T,
    max: T,
}

impl<T: Quantized> Loop for Formula<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<const FMA: bool>(self) {
        let (a_zero, b_zero) = (self.a_kind.zero_point.wide(), self.b_kind.zero_point.wide());
        let zero_point = self.y_kind.zero_point.wide();
        let (low, high) = ((self.min.wide() - zero_point) as f32, (self.max.wide() - zero_point) as f32);
        let shift = zero_point.wrapping_sub(ROUNDING.to_bits() as i32);
        let round = |value: f32| {
            let value = if value > low { value } else { low };
            let value = if value < high { value } else { high };
            T::narrow(((value + ROUNDING).to_bits() as i32).wrapping_add(shift))
        };
        let places = self.y.iter_mut().zip(self.a).zip(self.b);
        match self.function {
            QuantizedBinary::Add => {
                // As onnxruntime does it, to the bit: both as real numbers, added, divided by the result's scale.
                for ((y, a), b) in places {
                    let a = (a.wide() - a_zero) as f32 * self.a_kind.scale;
                    let b = (b.wide() - b_zero) as f32 * self.b_kind.scale;
                    *y = round((a + b) / self.y_kind.scale);
                }
            }
            QuantizedBinary::Mul => {
                let ratio = self.a_kind.scale * self.b_kind.scale / self.y_kind.scale;
                for ((y, a), b) in places {
                    *y = round(((a.wide() - a_zero) * (b.wide() - b_zero)) as f32 * ratio);
                }
            }
        }
    }
}
