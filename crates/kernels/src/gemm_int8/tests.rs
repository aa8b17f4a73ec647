use proptest::prelude::proptest;

use super::{Int8Epilogue, Int8Error, Int8Output, Int8Slice, PackedInt8, Stage, gemm_int8};
use crate::dispatch::variants;
use crate::isa::Isas;
use crate::threads::Team;

pub(crate) fn bytes(count: usize, seed: usize) -> Vec<u8> {
    (0..count).map(|index| ((index * 7919 + seed * 131) % 257) as u8).collect()
}

pub(crate) fn signed(bytes: &[u8]) -> Vec<i8> {
    bytes.iter().map(|&byte| byte as i8).collect()
}

/// What a sum becomes, by the definition.
pub(crate) fn quantized(sum: i32, multiplier: f32, zero_point: i32, min: i32, max: i32) -> i32 {
    let value = f64::from(sum as f32 * multiplier).round_ties_even() as i64 + i64::from(zero_point);
    value.clamp(i64::from(min), i64::from(max)) as i32
}

struct Case {
    m: usize,
    k: usize,
    n: usize,
    a_signed: bool,
    b_signed: bool,
    a_zero: i32,
    b_zeros: Vec<i32>,
}

fn check(case: &Case, isas: Isas, team: &Team) {
    let &Case { m, k, n, a_signed, b_signed, a_zero, ref b_zeros } = case;
    let (a_stride, c_stride) = (k + 3, n + 5);
    let (a, b) = (bytes(m * a_stride, 1), bytes(k * n, 2));
    let (a_i8, b_i8) = (signed(&a), signed(&b));
    let a_slice = if a_signed { Int8Slice::I8(&a_i8) } else { Int8Slice::U8(&a) };
    let b_slice = if b_signed { Int8Slice::I8(&b_i8) } else { Int8Slice::U8(&b) };
    let value = |bytes: &[u8], index: usize, is_signed: bool| {
        if is_signed { i32::from(bytes[index] as i8) } else { i32::from(bytes[index]) }
    };
    let bias: Vec<i32> = (0..n as i32).map(|column| column * 37 - 100).collect();
    let mut sums = vec![0; m * n];
    for row in 0..m {
        for column in 0..n {
            let zero = match b_zeros.as_slice() {
                [] => 0,
                [one] => *one,
                all => all[column],
            };
            sums[row * n + column] = (0..k)
                .map(|depth| {
                    (value(&a, row * a_stride + depth, a_signed) - a_zero)
                        * (value(&b, depth * n + column, b_signed) - zero)
                })
                .sum::<i32>();
        }
    }
    let packed = PackedInt8::pack(isas, (k, n), b_slice, (n, 1), b_zeros).unwrap();
    let mut scratch = vec![0; packed.scratch_length(m, a_signed)];
    let a = (a_slice, a_stride, a_zero);
    let what =
        format!("{m}x{k}x{n} {a_signed} {b_signed} {a_zero} {b_zeros:?} on {isas} ({})", packed.kernel());

    let mut c = vec![77; m * c_stride];
    let raw = Int8Epilogue { bias: &[], stage: Stage::Raw };
    gemm_int8(team, m, a, &packed, &raw, (Int8Output::I32(&mut c), c_stride), &mut scratch);
    for (row, c) in c.chunks(c_stride).enumerate() {
        assert_eq!(&c[..n], &sums[row * n..(row + 1) * n], "{what}, row {row}");
        assert!(c[n..].iter().all(|&c| c == 77), "{what} wrote beyond its columns");
    }

    let scale: Vec<f32> = (0..n).map(|column| 0.001 + column as f32 * 0.0001).collect();
    let float_bias: Vec<f32> = (0..n).map(|column| column as f32 - 3.0).collect();
    let float = Stage::Float { factor: 0.5, scale: &scale, bias: &float_bias, min: -50.0, max: 60.0 };
    let mut c = vec![0.0; m * c_stride];
    let epilogue = Int8Epilogue { bias: &bias, stage: float };
    gemm_int8(team, m, a, &packed, &epilogue, (Int8Output::F32(&mut c), c_stride), &mut scratch);
    for row in 0..m {
        for column in 0..n {
            let sum = (sums[row * n + column] + bias[column]) as f32;
            let expected = (sum * (0.5 * scale[column]) + float_bias[column]).clamp(-50.0, 60.0);
            assert!((c[row * c_stride + column] - expected).abs() < 1e-3, "{what} as float");
        }
    }

    let range = f64::from(sums.iter().map(|sum| sum.abs()).max().unwrap_or(1).max(1));
    let multiplier: Vec<f32> =
        (0..n).map(|column| (100.0 / range) as f32 * (1.0 + column as f32 / 50.0)).collect();
    let mut c = vec![0_u8; m * c_stride];
    let stage = Stage::Quantized { multiplier: &multiplier, zero_point: 120, min: 3, max: 250 };
    let epilogue = Int8Epilogue { bias: &bias, stage };
    gemm_int8(team, m, a, &packed, &epilogue, (Int8Output::U8(&mut c), c_stride), &mut scratch);
    let mut c_i8 = vec![0_i8; m * c_stride];
    let stage = Stage::Quantized { multiplier: &multiplier[..1], zero_point: -3, min: -128, max: 127 };
    let epilogue = Int8Epilogue { bias: &[], stage };
    gemm_int8(team, m, a, &packed, &epilogue, (Int8Output::I8(&mut c_i8), c_stride), &mut scratch);
    for row in 0..m {
        for column in 0..n {
            let (sum, place) = (sums[row * n + column], row * c_stride + column);
            let expected = quantized(sum + bias[column], multiplier[column], 120, 3, 250);
            assert_eq!(i32::from(c[place]), expected, "{what} as unsigned byte");
            let expected = quantized(sum, multiplier[0], -3, -128, 127);
            assert_eq!(i32::from(c_i8[place]), expected, "{what} as signed byte");
        }
    }
}

#[test]
fn products_equal_their_definition_on_all_instruction_sets() {
    let team = Team::new(2);
    for isas in variants() {
        for (m, k, n) in [
            (1, 1, 1),
            (14, 64, 32),
            (15, 3, 33),
            (49, 130, 70),
            (28, 8, 16),
            (5, 0, 9),
            (3, 17, 200),
            (100, 36, 5),
        ] {
            for a_signed in [false, true] {
                for b_signed in [false, true] {
                    let per_column: Vec<i32> = (0..n as i32).map(|column| column % 7).collect();
                    for b_zeros in [vec![], vec![if b_signed { 5 } else { 128 }], per_column] {
                        let a_zero = if a_signed { -7 } else { 130 };
                        check(&Case { m, k, n, a_signed, b_signed, a_zero, b_zeros }, isas, &team);
                    }
                }
            }
        }
    }
}

proptest! {
    #[test]
    fn any_sizes(m in 1_usize..60, k in 0_usize..90, n in 1_usize..90, a_signed: bool, b_signed: bool, a_zero in 0_i32..100) {
        for isas in variants() {
            check(&Case { m, k, n, a_signed, b_signed, a_zero, b_zeros: vec![] }, isas, &Team::single());
        }
    }
}

#[test]
fn extreme_bytes_do_not_saturate() {
    for isas in variants() {
        for (a, b, expected) in [(255_u8, -128_i8, -32640_i32), (255, 127, 32385)] {
            let (a, b) = (vec![a; 2 * 1000], vec![b; 1000 * 40]);
            let packed = PackedInt8::pack(isas, (1000, 40), Int8Slice::I8(&b), (40, 1), &[]).unwrap();
            let mut c = vec![0; 80];
            let mut scratch = vec![0; packed.scratch_length(2, false)];
            let raw = Int8Epilogue { bias: &[], stage: Stage::Raw };
            gemm_int8(
                &Team::single(),
                2,
                (Int8Slice::U8(&a), 1000, 0),
                &packed,
                &raw,
                (Int8Output::I32(&mut c), 40),
                &mut scratch,
            );
            assert!(c.iter().all(|&c| c == expected * 1000), "{isas}: {}", c[0]);
        }
    }
}

#[test]
fn what_cannot_be_packed_is_refused() {
    let isas = Isas::detect();
    let b = [0_u8; 6];
    let short = PackedInt8::pack(isas, (3, 3), Int8Slice::U8(&b), (3, 1), &[]);
    assert_eq!(short.unwrap_err(), Int8Error::Length { expected: 9, found: 6 });
    let zeros = PackedInt8::pack(isas, (2, 3), Int8Slice::U8(&b), (3, 1), &[1, 2]);
    assert_eq!(zeros.unwrap_err(), Int8Error::ZeroPoints { columns: 3, found: 2 });
    let deep = PackedInt8::pack(isas, (70_000, 0), Int8Slice::U8(&b), (3, 1), &[]);
    assert_eq!(deep.unwrap_err(), Int8Error::Depth { depth: 70_000 });
}
