use super::{Prepared, Sizes, Weights};
use crate::dispatch::variants;
use crate::threads::Team;

#[test]
fn products_equal_those_of_real_weights() {
    for (bits, [rows, columns, block]) in [
        (4, [64, 17, 32]),
        (4, [40, 70, 16]),
        (8, [33, 5, 32]),
        (2, [50, 33, 16]),
        (4, [128, 32, 128]),
        (4, [1, 1, 16]),
    ] {
        let sizes = Sizes { rows, columns, bits, block };
        let (blocks, bytes) = (rows.div_ceil(block), block * bits / 8);
        let packed: Vec<u8> = (0..columns * blocks * bytes).map(|i| (i * 97 % 251) as u8).collect();
        let scales: Vec<f32> = (0..columns * blocks).map(|i| 0.01 + (i % 7) as f32 * 0.01).collect();
        let zeros: Vec<f32> = (0..columns * blocks).map(|i| (i % 5) as f32 + 0.5).collect();
        let bias: Vec<f32> = (0..columns).map(|i| i as f32 * 0.1).collect();
        let real = |row: usize, column: usize| {
            let at = column * blocks + row / block;
            let bit = row % block * bits;
            let number = packed[at * bytes + bit / 8] >> (bit % 8) & ((1u16 << bits) - 1) as u8;
            f64::from(f32::from(number) - zeros[at]) * f64::from(scales[at])
        };
        for m in [0, 1, 3, 8, 70] {
            let x: Vec<f32> = (0..m * rows).map(|i| ((i * 7919) % 4001) as f32 / 2000.0 - 1.0).collect();
            for isas in variants() {
                for threads in [1, 3] {
                    let prepared = Prepared::new(isas, sizes);
                    let mut scratch = vec![f32::NAN; prepared.scratch_len(m, threads)];
                    let mut y = vec![f32::NAN; m * columns];
                    let weights = Weights { packed: &packed, scales: &scales, zeros: &zeros };
                    let team = Team::new(threads);
                    prepared.run(&team, m, &x, weights, Some(&bias), &mut y, &mut scratch);
                    for (index, found) in y.iter().enumerate() {
                        let (row, column) = (index / columns, index % columns);
                        let sum: f64 =
                            (0..rows).map(|k| f64::from(x[row * rows + k]) * real(k, column)).sum();
                        let wanted = sum + f64::from(bias[column]);
                        assert!(
                            (f64::from(*found) - wanted).abs() < 1e-3 * wanted.abs().max(1.0),
                            "{sizes:?} {m} rows {isas}: {index} is {found}, not {wanted}"
                        );
                    }
                }
            }
        }
    }
}
