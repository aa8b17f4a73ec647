//! 8-bit tile kernels in portable Rust: up to 4 rows by 8 columns.

#![expect(unsafe_code, reason = "reads and writes at addresses of the caller")]

use super::table::Entry;
use super::tile::{Tile, TileKernel, for_quads, kernel_table, load_partial_quad, load_quad, unrolled};
use crate::isa::Isa;

const LANES: usize = 8;

#[inline(always)]
fn fetch(_: *const i8) {}

unsafe fn gemm_u8i8i32_4x8k4_scalar<const R: usize, const NV: usize>(tile: &Tile) {
    let mut sums = [[[0; LANES]; NV]; R];
    // SAFETY: as promised by the caller; groups of the panel are `NV` times `LANES` columns of four bytes.
    unsafe {
        for_quads!(tile, b += NV * LANES * 4, row => {
            let columns = &*b.cast::<[[[i8; 4]; LANES]; NV]>();
            unrolled!(R, ROW => {
                let a = row(ROW).to_le_bytes().map(i32::from);
                for vector in 0..NV {
                    for lane in 0..LANES {
                        let b = columns[vector][lane].map(i32::from);
                        let products = a[0] * b[0] + a[1] * b[1] + a[2] * b[2] + a[3] * b[3];
                        sums[ROW][vector][lane] += products;
                    }
                }
            });
        });
        for row in 0..R {
            tile.sums.add(row * NV * LANES).cast::<[[i32; LANES]; NV]>().write_unaligned(sums[row]);
        }
    }
}

static KERNELS: [&[TileKernel]; 4] = kernel_table!(gemm_u8i8i32_4x8k4_scalar; 1 2 3 4; (1));

pub(super) const ENTRY: Entry = Entry {
    name: "gemm_u8i8i32_4x8k4_scalar",
    isa: Isa::Scalar,
    is_a_signed: false,
    lanes: LANES,
    vectors: 1,
    kernels: &KERNELS,
};
