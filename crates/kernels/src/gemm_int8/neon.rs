//! 8-bit tile kernels for Advanced SIMD without dot products: up to 4 rows by 8 columns.
//!
//! Eight products of bytes, two columns of four, are added in pairs to 32-bit sums; each column has two of them until the
//! end.

#![expect(unsafe_code, reason = "instruction set intrinsics on addresses of the caller")]

use std::arch::aarch64::{
    vcombine_s8, vdup_n_s32, vdupq_n_s8, vdupq_n_s32, vget_low_s8, vld1q_s8, vmull_high_s8, vmull_s8,
    vpadalq_s16, vpaddq_s32, vreinterpret_s8_s32, vst1q_s32,
};

use super::table::Entry;
use super::tile::{Tile, TileKernel, for_quads, kernel_table, load_partial_quad, load_quad, unrolled};
use crate::isa::Isa;

#[inline(always)]
fn fetch(_: *const i8) {}

#[target_feature(enable = "neon")]
unsafe fn gemm_i8i8i32_4x8k4_neon<const R: usize, const NV: usize>(tile: &Tile) {
    // Each vector of four columns has two vectors of sums.
    let mut sums = [[[vdupq_n_s32(0); 2]; NV]; R];
    // SAFETY: as promised by the caller.
    unsafe {
        for_quads!(tile, b += NV * 16, row => {
            let mut columns = [vdupq_n_s8(0); NV];
            for (vector, columns) in columns.iter_mut().enumerate() {
                *columns = vld1q_s8(b.add(vector * 16));
            }
            unrolled!(R, ROW => {
                let a = vreinterpret_s8_s32(vdup_n_s32(row(ROW)));
                let a = vcombine_s8(a, a);
                for vector in 0..NV {
                    let low = vmull_s8(vget_low_s8(columns[vector]), vget_low_s8(a));
                    let high = vmull_high_s8(columns[vector], a);
                    sums[ROW][vector][0] = vpadalq_s16(sums[ROW][vector][0], low);
                    sums[ROW][vector][1] = vpadalq_s16(sums[ROW][vector][1], high);
                }
            });
        });
        unrolled!(R, ROW => {
            for vector in 0..NV {
                let [low, high] = sums[ROW][vector];
                vst1q_s32(tile.sums.add((ROW * NV + vector) * 4), vpaddq_s32(low, high));
            }
        });
    }
}

static KERNELS: [&[TileKernel]; 4] = kernel_table!(gemm_i8i8i32_4x8k4_neon; 1 2 3 4; (1 2));

pub(super) const ENTRY: Entry = Entry {
    name: "gemm_i8i8i32_4x8k4_neon",
    isa: Isa::Neon,
    is_a_signed: true,
    lanes: 4,
    vectors: 2,
    kernels: &KERNELS,
};
