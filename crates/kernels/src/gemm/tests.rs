//! Every kernel of the table, over many sizes, strides and epilogues, against the reference.

use super::table::GEMM_F32;
use super::{MatMul, MatMulOperand, PackedMatrix, gemm, reference};
use crate::epilogue::{Activation, Epilogue, Residual, ResidualSource};
use crate::isa::{Isa, Isas};
use crate::threads::Team;

/// Floats in [-1, 1) from a fixed seed.
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Random {
        Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x1234_5678_9abc_def1)
    }

    fn bits(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    pub(crate) fn float(&mut self) -> f32 {
        (self.bits() >> 40) as f32 / (1 << 23) as f32 - 1.0
    }

    pub(crate) fn floats(&mut self, count: usize) -> Vec<f32> {
        (0..count).map(|_| self.float()).collect()
    }
}

/// The instruction sets of the table's entries that this machine has, each as what may be chosen from.
pub(crate) fn each_isas() -> Vec<Isas> {
    GEMM_F32
        .iter()
        .filter(|entry| entry.isa.is_available())
        .map(|entry| {
            let isas = Isas::only(&[entry.isa]);
            assert_eq!(PackedMatrix::pack(isas, 1, 1, &[0.0], 1, 1).kernel_name(), entry.name);
            isas
        })
        .collect()
}

/// Every activation, with these slopes.
pub(crate) fn activations(slopes: &[f32]) -> Vec<Activation<'_>> {
    vec![
        Activation::None,
        Activation::Relu,
        Activation::Clip { min: -0.5, max: 0.75 },
        Activation::LeakyRelu { slope: 0.1 },
        Activation::PRelu { slopes },
        Activation::Sigmoid,
        Activation::Silu,
        Activation::HardSigmoid { alpha: 0.2, beta: 0.5 },
        Activation::HardSwish,
        Activation::Tanh,
        Activation::Gelu,
        Activation::GeluTanh,
        Activation::Mish,
        Activation::Elu { alpha: 0.8 },
        Activation::Softplus,
    ]
}

/// Check `found` against `expected` to a small part of the largest size that sums of `terms` products can have.
#[track_caller]
pub(crate) fn close(found: &[f32], expected: &[f32], terms: usize, what: &dyn Fn() -> String) {
    let tolerance = 4e-7 * (terms as f32 + 4.0);
    for (index, (&found, &expected)) in found.iter().zip(expected).enumerate() {
        let error = (found - expected).abs();
        assert!(
            error <= tolerance,
            "{}: element {index} is {found}, not {expected} (error {error:e}, allowed {tolerance:e})",
            what()
        );
    }
}

fn check(
    isas: Isas,
    team: &Team,
    seed: u64,
    (m, k, n): (usize, usize, usize),
    extra: usize,
    epilogue: usize,
) {
    let mut random = Random::new(seed);
    let a_stride = k + extra;
    let c_stride = n + 3 * extra;
    let a = random.floats((m * a_stride).saturating_sub(extra));
    let b = random.floats(k * n);
    let bias = random.floats(n);
    let slopes = random.floats(n);
    let residual = random.floats(m * n);
    let before = random.floats((m * c_stride).saturating_sub(3 * extra));
    let all = activations(&slopes);
    let activation = all[epilogue % all.len()];
    let matrix = ResidualSource::Matrix { data: &residual, row_stride: n };
    let epilogue = Epilogue {
        bias: epilogue.is_multiple_of(2).then_some(&bias),
        activation,
        residual: match epilogue % 4 {
            0 => Some(Residual { source: matrix, after_activation: false }),
            1 => Some(Residual { source: matrix, after_activation: true }),
            2 => Some(Residual { source: ResidualSource::Output, after_activation: false }),
            _ => None,
        },
    };
    let mut expected = before.clone();
    let transposed = seed % 2 == 1;
    let (row_stride, column_stride) = if transposed { (1, k) } else { (n, 1) };
    let element = |row, column| b[row * row_stride + column * column_stride];
    reference::gemm((m, k, n), |r, k| a[r * a_stride + k], element, &mut expected, c_stride, &epilogue);

    let packed = PackedMatrix::pack(isas, k, n, &b, row_stride, column_stride);
    assert_eq!((packed.k(), packed.n()), (k, n));
    assert!(packed.bytes() >= k * n * 4);
    let mut found = before.clone();
    gemm(team, m, &a, a_stride, &packed, &mut found, c_stride, &epilogue);
    let what = || format!("{isas}, {} threads, {m}x{k}x{n}, seed {seed}, {epilogue:?}", team.threads());
    close(&found, &expected, k, &what);

    let product = MatMul::new(isas, m, k, n, false);
    let mut scratch = vec![f32::NAN; product.scratch_len(team.threads())];
    let mut found = before;
    let a = MatMulOperand { data: &a, row_stride: a_stride, column_stride: 1 };
    let b = MatMulOperand { data: &b, row_stride, column_stride };
    product.run(team, 1.0, a, b, &mut found, c_stride, &[[0, 0, 0]], &epilogue, &mut scratch);
    close(&found, &expected, k, &what);
}

#[test]
fn all_tile_heights_and_widths_are_right() {
    let team = Team::single();
    for isas in each_isas() {
        let mut seed = 0;
        for m in 1..=17 {
            for n in [1, 2, 3, 4, 5, 7, 8, 9, 12, 15, 16, 17, 24, 31, 32, 33, 40, 48, 63] {
                for k in [0, 1, 2, 3, 4, 5, 8, 11, 19] {
                    seed += 1;
                    check(isas, &team, seed, (m, k, n), seed as usize % 3, seed as usize);
                }
            }
        }
    }
}

#[test]
fn large_and_odd_sizes_are_right_on_any_team() {
    for threads in [1, 2, 3] {
        let team = Team::new(threads);
        for isas in each_isas() {
            for (seed, size) in [
                (49, 130, 200),
                (196, 64, 33),
                (57, 300, 96),
                (1, 700, 300),
                (3, 257, 1000),
                (140, 9, 1),
                (31, 600, 512),
            ]
            .into_iter()
            .enumerate()
            {
                check(isas, &team, seed as u64 + 77, size, seed % 2, seed + threads);
            }
        }
    }
}

#[test]
fn every_activation_and_residual_is_right() {
    let team = Team::single();
    for isas in each_isas() {
        for epilogue in 0..60 {
            check(isas, &team, epilogue as u64 + 500, (23, 5, 37), 1, epilogue);
        }
    }
}

#[test]
fn sums_do_not_depend_on_the_team() {
    let mut random = Random::new(3);
    let (m, k, n) = (83, 129, 211);
    let (a, b) = (random.floats(m * k), random.floats(k * n));
    for isas in each_isas() {
        let packed = PackedMatrix::pack(isas, k, n, &b, n, 1);
        let run = |threads| {
            let mut c = vec![0.0; m * n];
            gemm(&Team::new(threads), m, &a, k, &packed, &mut c, n, &Epilogue::default());
            c
        };
        assert_eq!(run(1), run(3));
    }
}

#[test]
fn batches_have_their_own_matrices() {
    let mut random = Random::new(9);
    let (m, k, n, batch) = (19, 24, 37, 6);
    // A as (batch, k, m), transposed; B as (k, batch, n), broadcast over pairs.
    let a = random.floats(batch * k * m);
    let b = random.floats(k * batch * n);
    let residual = random.floats(batch * m * n);
    let bias = random.floats(n);
    let offsets: Vec<_> = (0..batch).map(|i| [i * k * m, i / 2 * n, i * m * n]).collect();
    let epilogue = Epilogue {
        bias: Some(&bias),
        residual: Some(Residual {
            source: ResidualSource::Matrix { data: &residual, row_stride: n },
            after_activation: false,
        }),
        activation: Activation::Tanh,
    };
    let alpha = 0.3;
    let mut expected = vec![0.0; batch * m * n];
    for &[a_start, b_start, c_start] in &offsets {
        let epilogue = Epilogue {
            residual: Some(Residual {
                source: ResidualSource::Matrix { data: &residual[c_start..], row_stride: n },
                after_activation: false,
            }),
            ..epilogue
        };
        reference::gemm(
            (m, k, n),
            |row, k| a[a_start + k * m + row],
            |k, column| alpha * b[b_start + k * batch * n + column],
            &mut expected[c_start..],
            n,
            &epilogue,
        );
    }
    let a = MatMulOperand { data: &a, row_stride: 1, column_stride: m };
    let b = MatMulOperand { data: &b, row_stride: batch * n, column_stride: 1 };
    for isas in each_isas() {
        for threads in [1, 2, 8] {
            let product = MatMul::new(isas, m, k, n, true);
            let mut scratch = vec![f32::NAN; product.scratch_len(threads)];
            let mut found = vec![f32::NAN; batch * m * n];
            let team = Team::new(threads);
            product.run(&team, alpha, a, b, &mut found, n, &offsets, &epilogue, &mut scratch);
            close(&found, &expected, k, &|| format!("{isas}, {threads} threads"));
        }
    }
}

#[test]
fn the_best_available_kernel_is_chosen() {
    let best = PackedMatrix::pack(Isas::detect(), 1, 1, &[0.0], 1, 1);
    let expected = GEMM_F32.iter().find(|entry| entry.isa.is_available()).expect("scalar is always there");
    assert_eq!(best.kernel_name(), expected.name);
    assert_eq!(PackedMatrix::pack(Isas::scalar(), 1, 1, &[0.0], 1, 1).kernel_name(), "gemm_f32_4x4_scalar");
    assert_eq!(GEMM_F32.last().map(|entry| entry.isa), Some(Isa::Scalar));
}

#[test]
fn slices_that_are_too_short_are_refused() {
    let packed = PackedMatrix::pack(Isas::detect(), 3, 5, &[1.0; 15], 5, 1);
    let team = Team::single();
    let refused = |m: usize, a: usize, a_stride: usize, c: usize, c_stride: usize, bias: usize| {
        let (a, bias) = (vec![0.0; a], vec![0.0; bias]);
        let mut c = vec![0.0; c];
        let epilogue = Epilogue { bias: Some(&bias), ..Epilogue::default() };
        let call = std::panic::AssertUnwindSafe(|| {
            gemm(&team, m, &a, a_stride, &packed, &mut c, c_stride, &epilogue);
        });
        std::panic::catch_unwind(call).is_err()
    };
    assert!(!refused(2, 6, 3, 10, 5, 5));
    assert!(refused(2, 5, 3, 10, 5, 5), "A");
    assert!(refused(2, 6, 4, 10, 5, 5), "A with a longer stride");
    assert!(refused(2, 6, 3, 9, 5, 5), "C");
    assert!(refused(2, 6, 3, 10, 4, 5), "rows of C overlap");
    assert!(refused(2, 6, 3, 10, 5, 4), "bias");
    assert!(refused(usize::MAX, 6, 3, 10, 5, 5), "sizes that overflow");
    let pack = |length, row, column| {
        std::panic::catch_unwind(|| PackedMatrix::pack(Isas::detect(), 3, 5, &vec![0.0; length], row, column))
            .is_err()
    };
    assert!(pack(14, 5, 1) && pack(15, usize::MAX, 1) && !pack(15, 1, 3));
}
