//! 8-bit tile kernels for `sdot`: up to 8 rows by 8 columns.

#![expect(unsafe_code, reason = "instruction set intrinsics on addresses of the caller")]

use std::arch::aarch64::{
    int8x16_t, int32x4_t, vdupq_n_s8, vdupq_n_s32, vld1q_s8, vreinterpretq_s8_s32, vst1q_s32,
};
use std::arch::asm;

use super::table::Entry;
use super::tile::{Tile, TileKernel, for_quads, kernel_table, load_partial_quad, load_quad, unrolled};
use crate::isa::Isa;

#[inline(always)]
fn fetch(_: *const i8) {}

/// Adds to each lane the four products of the bytes in it.
#[inline]
#[target_feature(enable = "neon,dotprod")]
fn sdot(mut sums: int32x4_t, a: int8x16_t, b: int8x16_t) -> int32x4_t {
    // SAFETY: the instruction belongs to the features of this function, and touches nothing but its operands.
    unsafe {
        asm!(
            "sdot {sums:v}.4s, {a:v}.16b, {b:v}.16b",
            sums = inout(vreg) sums,
            a = in(vreg) a,
            b = in(vreg) b,
            options(pure, nomem, nostack, preserves_flags),
        );
    }
    sums
}

#[target_feature(enable = "neon,dotprod")]
unsafe fn gemm_i8i8i32_8x8k4_neon_dotprod<const R: usize, const NV: usize>(tile: &Tile) {
    let mut sums = [[vdupq_n_s32(0); NV]; R];
    // SAFETY: as promised by the caller.
    unsafe {
        for_quads!(tile, b += NV * 16, row => {
            let mut columns = [vdupq_n_s8(0); NV];
            for (vector, columns) in columns.iter_mut().enumerate() {
                *columns = vld1q_s8(b.add(vector * 16));
            }
            unrolled!(R, ROW => {
                let a = vreinterpretq_s8_s32(vdupq_n_s32(row(ROW)));
                for vector in 0..NV {
                    sums[ROW][vector] = sdot(sums[ROW][vector], columns[vector], a);
                }
            });
        });
        unrolled!(R, ROW => {
            for vector in 0..NV {
                vst1q_s32(tile.sums.add((ROW * NV + vector) * 4), sums[ROW][vector]);
            }
        });
    }
}

static KERNELS: [&[TileKernel]; 8] = kernel_table!(gemm_i8i8i32_8x8k4_neon_dotprod; 1 2 3 4 5 6 7 8; (1 2));

pub(super) const ENTRY: Entry = Entry {
    name: "gemm_i8i8i32_8x8k4_neon_dotprod",
    isa: Isa::NeonDotprod,
    is_a_signed: true,
    lanes: 4,
    vectors: 2,
    kernels: &KERNELS,
};
