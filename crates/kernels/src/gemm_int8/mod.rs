//! Matrix products of 8-bit numbers: C = (A - za) (B - zb), exact in 32-bit integers, finished by an epilogue.
//!
//! A is signed or unsigned with one zero point, given when it runs; B is signed or unsigned with a zero point for all or for
//! each column, packed once ([`PackedInt8`]). The tile kernels take B as signed and A as either signed or unsigned, depending
//! on the instruction set. An A of the other kind is copied with its sign bits flipped, which moves its zero point by 128;
//! sums of B's columns, made when packing, then account for A's zero point. B's zero points, if there are any after its own
//! flip, cost sums of A's rows at run time. All instruction sets give the same integers.
//!
//! Contract: functions panic when slices are shorter than sizes and strides say. The inner dimension is at most 65536, so
//! that sums do not overflow. Nothing is allocated at run time; scratch memory comes from the caller.

#![expect(unsafe_code, reason = "hands checked slices to tile kernels")]

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512vnni;
#[cfg(target_arch = "x86_64")]
mod avxvnni;
pub(crate) mod driver;
pub(crate) mod epilogue;
#[cfg(target_arch = "aarch64")]
mod neon;
#[cfg(target_arch = "aarch64")]
mod neon_dotprod;
pub(crate) mod pack;
mod scalar;
pub(crate) mod table;
#[cfg(test)]
pub(crate) mod tests;
pub(crate) mod tile;

pub use epilogue::{Int8Epilogue, Int8Output, Stage};

use crate::dispatch::{Loop, dispatch};
use crate::isa::Isas;
use crate::threads::{DisjointMut, Team};
use driver::Product;
use epilogue::{Columns, Finisher};
use pack::{PackedPanels, Panels};
use table::Kernel;

/// The largest inner dimension: so many products of bytes fit 32 bits.
pub const MOST_DEPTH: usize = 65536;

/// Bytes, signed or not.
#[derive(Debug, Clone, Copy)]
pub enum Int8Slice<'a> {
    /// Unsigned bytes.
    U8(&'a [u8]),
    /// Signed bytes.
    I8(&'a [i8]),
}

impl<'a> Int8Slice<'a> {
    /// The number of bytes.
    pub fn len(self) -> usize {
        self.bytes().len()
    }

    /// Whether there are none.
    pub fn is_empty(self) -> bool {
        self.len() == 0
    }

    /// Whether they are signed.
    pub fn is_signed(self) -> bool {
        matches!(self, Self::I8(_))
    }

    /// Their bits.
    pub(crate) fn bytes(self) -> &'a [u8] {
        match self {
            Self::U8(bytes) => bytes,
            Self::I8(bytes) => bytemuck::cast_slice(bytes),
        }
    }

    /// The element as a signed byte; unsigned ones less 128.
    pub(crate) fn signed(self, index: usize) -> i8 {
        match self {
            Self::U8(bytes) => (bytes[index] ^ 0x80) as i8,
            Self::I8(bytes) => bytes[index],
        }
    }
}

/// Why a matrix cannot be packed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Int8Error {
    /// There are not as many elements as the sizes ask for.
    #[error("{expected} elements are needed and {found} are given")]
    Length {
        /// What the sizes ask for.
        expected: usize,
        /// What was given.
        found: usize,
    },
    /// The zero points are neither none, one, nor one per column.
    #[error("{found} zero points are given for {columns} columns")]
    ZeroPoints {
        /// The columns.
        columns: usize,
        /// What was given.
        found: usize,
    },
    /// Sums of so many products might not fit 32 bits.
    #[error("sums of {depth} products of bytes might not fit 32 bits, which those of {MOST_DEPTH} do")]
    Depth {
        /// The products of one sum.
        depth: usize,
    },
}

/// A matrix B of 8-bit numbers, packed for the best kernel of some instruction sets.
#[derive(Debug, Clone)]
pub struct PackedInt8 {
    isas: Isas,
    packed: PackedPanels,
}

impl PackedInt8 {
    /// Packs `k` rows of `n` columns: element (row, column) is at `row * strides.0 + column * strides.1`. There are no zero
    /// points, one, or one per column.
    pub fn pack(
        isas: Isas,
        (k, n): (usize, usize),
        b: Int8Slice<'_>,
        strides: (usize, usize),
        zero_points: &[i32],
    ) -> Result<Self, Int8Error> {
        if k > MOST_DEPTH {
            return Err(Int8Error::Depth { depth: k });
        }
        if k > 0 && n > 0 {
            let last = (k - 1).checked_mul(strides.0).zip((n - 1).checked_mul(strides.1));
            let expected = last
                .and_then(|(row, column)| row.checked_add(column))
                .unwrap_or(usize::MAX)
                .saturating_add(1);
            if b.len() < expected {
                return Err(Int8Error::Length { expected, found: b.len() });
            }
        }
        let kernel = Kernel::choose(isas);
        let zero_points = signed_zero_points(zero_points, n, b.is_signed())?;
        let panels = Panels { kernel, taps: 1, depth: k, columns: n };
        let read = |_, row, column| b.signed(row * strides.0 + column * strides.1);
        Ok(Self { isas, packed: PackedPanels::pack(panels, 1, read, &zero_points) })
    }

    /// The inner dimension.
    pub fn k(&self) -> usize {
        self.packed.panels.depth
    }

    /// The number of columns.
    pub fn n(&self) -> usize {
        self.packed.panels.columns
    }

    /// The memory that it takes.
    pub fn bytes(&self) -> usize {
        self.packed.bytes()
    }

    /// The name of the kernel.
    pub fn kernel(&self) -> &'static str {
        self.packed.panels.kernel.entry().name
    }

    /// Bytes of scratch memory that a product with `m` rows of A needs.
    pub fn scratch_length(&self, m: usize, is_a_signed: bool) -> usize {
        let copy =
            if is_a_signed == self.packed.panels.kernel.entry().is_a_signed { 0 } else { m * self.k() };
        copy + if self.packed.zero_points.is_empty() { 0 } else { m * 4 }
    }
}

/// Zero points of signed columns, from those that are given.
pub(crate) fn signed_zero_points(
    zero_points: &[i32],
    columns: usize,
    is_signed: bool,
) -> Result<Vec<i32>, Int8Error> {
    if zero_points.len() > 1 && zero_points.len() != columns {
        return Err(Int8Error::ZeroPoints { columns, found: zero_points.len() });
    }
    let flip = if is_signed { 0 } else { 128 };
    let given = if zero_points.is_empty() { &[0] } else { zero_points };
    Ok(given.iter().map(|zero| zero - flip).collect())
}

/// Computes `m` rows of C: row `r` of A begins at `a[r * a_row_stride]`, row `r` of C at its place times `c_row_stride`.
///
/// # Panics
/// When a matrix does not lie within its slice, rows of C overlap, the scratch memory is too short, or the epilogue does not
/// fit C.
pub fn gemm_int8(
    team: &Team,
    m: usize,
    (a, a_row_stride, a_zero_point): (Int8Slice<'_>, usize, i32),
    b: &PackedInt8,
    epilogue: &Int8Epilogue<'_>,
    (c, c_row_stride): (Int8Output<'_>, usize),
    scratch: &mut [u8],
) {
    let (k, n) = (b.k(), b.n());
    let packed = &b.packed;
    if m > 0 {
        let end = (m - 1).checked_mul(a_row_stride).and_then(|start| start.checked_add(k));
        assert!(end.is_some_and(|end| end <= a.len()), "a matrix must lie within its slice");
    }
    assert!(scratch.len() >= b.scratch_length(m, a.is_signed()), "the scratch memory is too short");
    let is_kernel_signed = packed.panels.kernel.entry().is_a_signed;
    let columns = Columns {
        a_zero_point: zero_point_for(is_kernel_signed, a.is_signed(), a_zero_point),
        column_sums: &packed.column_sums,
        zero_points: &packed.zero_points,
    };
    let finisher = Finisher::new(b.isas, columns, epilogue, c, (m, n), c_row_stride);
    if m == 0 || n == 0 {
        return;
    }
    let (copy, sums) = scratch.split_at_mut(if a.is_signed() == is_kernel_signed { 0 } else { m * k });
    let (a, a_row_stride) = if a.is_signed() == is_kernel_signed {
        (a.bytes(), a_row_stride)
    } else {
        flip_rows(b.isas, team, a.bytes(), a_row_stride, k, copy);
        (&*copy, k)
    };
    if !packed.zero_points.is_empty() {
        let sums = &mut sums[..m * 4];
        sum_rows(b.isas, team, (a, a_row_stride, k), is_kernel_signed, sums);
    }
    let row_sums = sums.as_chunks::<4>().0;
    /// A pointer that tasks may share.
    struct Shared(*const u8);
    // SAFETY: what it points to is only read.
    unsafe impl Sync for Shared {}
    let shared = Shared(a.as_ptr());
    let shared = &shared;
    let product = Product {
        packed,
        group: 0,
        offsets: &[0],
        m,
        first_row: 0,
        rows: &|first, pointers| {
            for (index, pointer) in pointers.iter_mut().enumerate() {
                *pointer = shared.0.wrapping_add((first + index) * a_row_stride);
            }
        },
        end: a.as_ptr_range().end,
        row_sums: &|row| i32::from_ne_bytes(row_sums[row]),
        finisher: &finisher,
    };
    // SAFETY: A was checked above, C by the finisher, which borrows it.
    unsafe { product.run(team) };
}

/// A's zero point after its sign bits were flipped if need be.
pub(crate) fn zero_point_for(is_kernel_signed: bool, is_signed: bool, zero_point: i32) -> i32 {
    match (is_signed, is_kernel_signed) {
        (true, false) => zero_point + 128,
        (false, true) => zero_point - 128,
        _ => zero_point,
    }
}

/// Copies rows of `length` bytes with their sign bits flipped.
pub(crate) fn flip_rows(isas: Isas, team: &Team, x: &[u8], stride: usize, length: usize, y: &mut [u8]) {
    if length == 0 {
        return;
    }
    let rows = y.len() / length;
    let output = DisjointMut::new(y);
    team.parallel_ranges(rows, (32 * 1024_usize).div_ceil(length), 1, &|start, end| {
        for row in start..end {
            // SAFETY: every row is written by the one task that has its index.
            let y = unsafe { output.slice_mut(row * length, length) };
            dispatch(isas, Flip { x: &x[row * stride..row * stride + length], y });
        }
    });
}

/// Copies bytes with their sign bits flipped.
pub(crate) struct Flip<'a> {
    pub(crate) x: &'a [u8],
    pub(crate) y: &'a mut [u8],
}

impl Loop for Flip<'_> {
    type Output = ();

    #[inline(always)]
    fn run<const FMA: bool>(self) {
        for (y, x) in self.y.iter_mut().zip(self.x) {
            *y = x ^ 0x80;
        }
    }
}

/// Writes the sum of each row of `length` bytes, as 32-bit integers.
fn sum_rows(
    isas: Isas,
    team: &Team,
    (x, stride, length): (&[u8], usize, usize),
    is_signed: bool,
    sums: &mut [u8],
) {
    let rows = sums.len() / 4;
    let output = DisjointMut::new(sums);
    team.parallel_ranges(rows, (32 * 1024_usize).div_ceil(length.max(1)), 1, &|start, end| {
        for row in start..end {
            let sum = dispatch(isas, SumBytes { x: &x[row * stride..row * stride + length], is_signed });
            // SAFETY: every sum is written by the one task that has its row.
            unsafe { output.slice_mut(row * 4, 4) }.copy_from_slice(&sum.to_ne_bytes());
        }
    });
}

/// The sum of bytes.
pub(crate) struct SumBytes<'a> {
    pub(crate) x: &'a [u8],
    pub(crate) is_signed: bool,
}

impl Loop for SumBytes<'_> {
    type Output = i32;

    #[inline(always)]
    fn run<const FMA: bool>(self) -> i32 {
        if self.is_signed {
            self.x.iter().fold(0_i32, |sum, &x| sum.wrapping_add(i32::from(x as i8)))
        } else {
            self.x.iter().fold(0_i32, |sum, &x| sum.wrapping_add(i32::from(x)))
        }
    }
}
