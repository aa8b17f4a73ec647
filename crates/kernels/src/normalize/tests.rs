use super::{GroupNorm, layer_norm, rms_norm, scale_shift};
use crate::dispatch::variants;
use crate::layout::ChannelOrder;
use crate::threads::Team;

fn numbers(count: usize, seed: usize, center: f32) -> Vec<f32> {
    (0..count).map(|index| ((index * 7919 + seed) % 4001) as f32 / 1000.0 - 2.0 + center).collect()
}

fn statistics(x: impl Iterator<Item = f32> + Clone) -> (f64, f64) {
    let count = x.clone().count() as f64;
    let mean = x.clone().map(f64::from).sum::<f64>() / count;
    (mean, x.map(|x| (f64::from(x) - mean).powi(2)).sum::<f64>() / count)
}

#[track_caller]
fn assert_close(found: &[f32], expected: &[f64], bound: f64, what: &str) {
    assert_eq!(found.len(), expected.len());
    for (index, (&found, &expected)) in found.iter().zip(expected).enumerate() {
        let error = (f64::from(found) - expected).abs();
        assert!(error <= bound * (1.0 + expected.abs()), "{what}, element {index}: {found} and {expected}");
    }
}

#[test]
fn rows_equal_reference() {
    for (rows, row, center) in [(1, 1, 0.0), (7, 384, 0.0), (3, 5, 1.0), (2, 1000, 300.0), (40, 33, 0.0)] {
        let (x, scale, bias) = (numbers(rows * row, 1, center), numbers(row, 2, 0.0), numbers(row, 3, 0.0));
        let centred: Vec<f64> = x
            .chunks(row)
            .flat_map(|x| {
                let (mean, variance) = statistics(x.iter().copied());
                x.iter().map(move |&x| (f64::from(x) - mean) / (variance + 1e-5).sqrt())
            })
            .collect();
        let with = |normalised: &[f64], has_bias: bool| -> Vec<f64> {
            let at = |index: usize| f64::from(scale[index % row]);
            let shift = |index: usize| if has_bias { f64::from(bias[index % row]) } else { 0.0 };
            normalised.iter().enumerate().map(|(index, x)| x * at(index) + shift(index)).collect()
        };
        let plain: Vec<f64> = x
            .chunks(row)
            .flat_map(|x| {
                let mean = x.iter().map(|&x| f64::from(x).powi(2)).sum::<f64>() / row as f64;
                x.iter().map(move |&x| f64::from(x) / (mean + 1e-5).sqrt())
            })
            .collect();
        // A few units of the mean's last place against the deviation.
        let bound = 2e-6 + f64::from(center) * 2e-7;
        for isas in variants() {
            let team = Team::new(2);
            let mut y = vec![0.0; x.len()];
            layer_norm(isas, &team, &x, &scale, Some(&bias), 1e-5, &mut y);
            assert_close(&y, &with(&centred, true), bound, "with bias");
            layer_norm(isas, &team, &x, &scale, None, 1e-5, &mut y);
            assert_close(&y, &with(&centred, false), bound, "without bias");
            rms_norm(isas, &team, &x, &scale, 1e-5, &mut y);
            assert_close(&y, &with(&plain, false), 2e-6, "root mean square");
        }
    }
}

#[test]
fn groups_equal_reference() {
    for (batch, channels, spatial, groups) in [
        (1, 4, 9, 2),
        (2, 70, 49, 70),
        (2, 70, 300, 1),
        (1, 1, 5, 1),
        (3, 130, 7, 130),
        (1, 32, 1, 8),
        (0, 4, 4, 2),
    ] {
        let count = batch * channels * spatial;
        let (x, scale, bias) = (numbers(count, 1, 0.5), numbers(channels, 2, 0.0), numbers(channels, 3, 0.0));
        for order in [ChannelOrder::First, ChannelOrder::Last] {
            let at = |n: usize, c: usize, s: usize| match order {
                ChannelOrder::First => (n * channels + c) * spatial + s,
                ChannelOrder::Last => (n * spatial + s) * channels + c,
            };
            let width = channels / groups;
            let mut expected = vec![0.0; count];
            for n in 0..batch {
                for group in 0..groups {
                    let own =
                        (group * width..(group + 1) * width).flat_map(|c| (0..spatial).map(move |s| (c, s)));
                    let (mean, variance) = statistics(own.clone().map(|(c, s)| x[at(n, c, s)]));
                    for (c, s) in own {
                        let normalised = (f64::from(x[at(n, c, s)]) - mean) / (variance + 1e-3).sqrt();
                        expected[at(n, c, s)] = normalised * f64::from(scale[c]) + f64::from(bias[c]);
                    }
                }
            }
            let norm = GroupNorm { batch, channels, spatial, groups, epsilon: 1e-3, order };
            for isas in variants() {
                let mut y = vec![0.0; count];
                norm.run(isas, &Team::new(2), &x, &scale, &bias, &mut y);
                assert_close(&y, &expected, 2e-6, "group");
            }
        }
    }
}

#[test]
fn channels_are_scaled_and_shifted() {
    for (outer, channels, inner) in [(3, 5, 1), (2, 3, 100), (1, 1, 1), (20_000, 2, 1), (2, 70, 1), (0, 2, 2)]
    {
        let x = numbers(outer * channels * inner, 1, 0.0);
        let (scale, shift) = (numbers(channels, 2, 0.0), numbers(channels, 3, 0.0));
        let expected: Vec<f64> = x
            .iter()
            .enumerate()
            .map(|(index, &x)| {
                let channel = index / inner % channels;
                f64::from(x) * f64::from(scale[channel]) + f64::from(shift[channel])
            })
            .collect();
        for isas in variants() {
            let mut y = vec![0.0; x.len()];
            scale_shift(isas, &Team::new(2), (outer, inner), &x, &scale, &shift, &mut y);
            assert_close(&y, &expected, 3e-7, "scale and shift");
        }
    }
}
