//! Matrix products of 32-bit floats: C = A B, finished by an epilogue.
//!
//! [`gemm`] takes A row by row as it lies in memory and B packed once ([`PackedMatrix`]); [`MatMul`] packs B at run time
//! into scratch memory of the caller. Nothing here allocates when it runs. Sums are in 32-bit floats, over K in order for
//! each element, so results do not depend on the number of threads.
//!
//! Contract: functions panic when slices are shorter than sizes and strides say. Rows of C may be longer than N: the rest
//! is not touched.

#![expect(unsafe_code, reason = "hands checked slices to tile kernels")]

mod alone;
#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
pub(crate) mod driver;
mod matmul;
#[cfg(target_arch = "aarch64")]
mod neon;
pub(crate) mod pack;
#[cfg(test)]
pub(crate) mod reference;
mod scalar;
pub(crate) mod table;
#[cfg(test)]
pub(crate) mod tests;
pub(crate) mod tile;

pub(crate) use alone::Alone;
pub use matmul::{MatMul, MatMulOperand};
pub use pack::PackedMatrix;

use crate::epilogue::{Epilogue, Finisher, check_matrix};
use crate::threads::Team;
use driver::{Product, RowTiles, run_strided};

/// Compute `m` rows of C = A B: row `r` of A begins at `a[r * a_row_stride]`, row `r` of C at `c[r * c_row_stride]`.
///
/// # Panics
/// When a matrix does not lie within its slice, rows of C overlap, or the epilogue does not fit C.
pub fn gemm(
    team: &Team,
    m: usize,
    a: &[f32],
    a_row_stride: usize,
    b: &PackedMatrix,
    c: &mut [f32],
    c_row_stride: usize,
    epilogue: &Epilogue<'_>,
) {
    let (k, n) = (b.k(), b.n());
    if m == 0 || n == 0 {
        return;
    }
    if k > 0 {
        let end = (m - 1).checked_mul(a_row_stride).and_then(|start| start.checked_add(k));
        assert!(end.is_some_and(|end| end <= a.len()), "a matrix must lie within its slice");
    }
    check_matrix(c.len(), m, n, c_row_stride);
    let c = c.as_mut_ptr();
    let finisher = Finisher::new(b.isas, epilogue, m, n, c, c_row_stride);
    let product = Product {
        panels: b.panels,
        weights: b.data.as_slice().as_ptr(),
        tiles: RowTiles::new(m, b.panels.kernel.rows()),
        depth: k,
        c,
        c_stride: c_row_stride,
        first_row: 0,
        row_step: 1,
        first_column: 0,
        finisher: &finisher,
    };
    // SAFETY: A and C were checked above, the epilogue by the finisher, and the panels are those of `b`.
    unsafe { run_strided(team, &product, a.as_ptr(), a_row_stride) };
}
