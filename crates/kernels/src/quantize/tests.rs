use super::{
    GlobalAverage, Quantization, Quantized, QuantizedBinary, QuantizedOperand, dequantize_linear,
    dynamic_quantize_linear, lookup, quantize_linear, quantized_binary, requantize_table, table_of,
};
use crate::dispatch::variants;
use crate::elementwise::Broadcast;
use crate::layout::ChannelOrder;
use crate::threads::Team;

fn numbers(count: usize, seed: usize) -> Vec<f32> {
    (0..count).map(|index| ((index * 7919 + seed) % 4001) as f32 / 100.0 - 20.0).collect()
}

fn quantized<T: Quantized>(value: f32, scale: f32, zero: T) -> T {
    let rounded = f64::from(value / scale).round_ties_even() + f64::from(zero.wide());
    T::narrow(rounded.clamp(f64::from(T::MIN), f64::from(T::MAX)) as i32)
}

fn check_linear<T: Quantized>(zeros: &[T]) {
    let channels = zeros.len();
    let scales: Vec<f32> = (0..channels).map(|channel| 0.125 + channel as f32 * 0.03).collect();
    for (outer, inner) in [(1, 1), (3, 70), (70, 1), (2, 40_000), (0, 5)] {
        let x = numbers(outer * channels * inner, 3);
        for isas in variants() {
            for zero_point in [zeros, &[]] {
                let quantization = Quantization { scale: &scales, zero_point };
                let mut y = vec![T::default(); x.len()];
                quantize_linear(isas, &Team::new(2), (outer, inner), quantization, &x, &mut y);
                let mut back = vec![0.0; x.len()];
                dequantize_linear(isas, &Team::new(2), (outer, inner), quantization, &y, &mut back);
                for index in 0..x.len() {
                    let channel = index / inner % channels;
                    let zero = zero_point.get(channel).copied().unwrap_or_default();
                    assert_eq!(
                        y[index],
                        quantized(x[index], scales[channel], zero),
                        "{isas} {outer} {inner} {index}"
                    );
                    assert_eq!(back[index], (y[index].wide() - zero.wide()) as f32 * scales[channel]);
                }
            }
        }
    }
}

#[test]
fn linear_quantization_rounds_halves_to_even_and_saturates() {
    check_linear(&[128_u8]);
    check_linear(&[3_i8, -5, 0]);
    check_linear(&[0_i8; 33]);
    check_linear(&[32_768_u16, 1]);
    check_linear(&[-7_i16]);
    let mut y = [0_i8; 6];
    let quantization = Quantization { scale: &[2.0], zero_point: &[1] };
    quantize_linear(
        variants()[0],
        &Team::single(),
        (1, 6),
        quantization,
        &[1.0, 3.0, -1.0, 1e9, -1e9, f32::INFINITY],
        &mut y,
    );
    assert_eq!(y, [1, 3, 1, 127, -128, 127]);
    let mut y = [0.0; 2];
    let wide = Quantization { scale: &[0.5_f32], zero_point: &[0_i32] };
    dequantize_linear(variants()[0], &Team::single(), (1, 2), wide, &[1_000_000, -3], &mut y);
    assert_eq!(y, [500_000.0, -1.5]);
}

#[test]
fn dynamic_quantization_covers_the_range_and_zero() {
    for isas in variants() {
        for (x, scale, zero) in [
            (vec![0.0, 2.0, -3.0, -2.5, 1.34, 0.5], 5.0 / 255.0, 153),
            (vec![-1.0, -2.1, -1.3, -2.5, -3.34, -4.0], 4.0 / 255.0, 255),
            (vec![1.0, 2.1, 1.3, 2.5, 3.34, 4.0], 4.0 / 255.0, 0),
            (vec![0.0; 40], 1.0, 0),
        ] {
            let mut y = vec![0; x.len()];
            let found = dynamic_quantize_linear(isas, &Team::single(), &x, &mut y);
            assert_eq!(found, (scale, zero));
            for (&x, &y) in x.iter().zip(&y) {
                assert_eq!(y, quantized(x, scale, zero));
            }
        }
    }
}

#[test]
fn tables_are_functions() {
    let x = QuantizedOperand { scale: 0.05, zero_point: -10_i8 };
    let y = QuantizedOperand { scale: 1.0 / 256.0, zero_point: 0_u8 };
    let sigmoid = |x: f32| 1.0 / (1.0 + (-x).exp());
    let table = table_of(x, y, sigmoid);
    let bytes: Vec<u8> = (0..=255).cycle().take(70_000).collect();
    let mut result = vec![0; bytes.len()];
    lookup(&Team::new(2), &table, &bytes, &mut result);
    for (&byte, &result) in bytes.iter().zip(&result) {
        let value = (i32::from(byte as i8) + 10) as f32 * 0.05;
        assert_eq!(result, quantized(sigmoid(value), 1.0 / 256.0, 0));
    }
    let same = requantize_table(x, x);
    assert!((0..=255).all(|byte: u8| same[usize::from(byte)] == byte as i8));
}

fn check_binary<T: Quantized>(a_zero: T, b_zero: T, y_zero: T) {
    let team = Team::new(2);
    let kind = |scale, zero_point| QuantizedOperand { scale, zero_point };
    let (a_kind, b_kind, y_kind) = (kind(0.05, a_zero), kind(0.031, b_zero), kind(0.07, y_zero));
    let (min, max) = (T::narrow(T::MIN + 3), T::narrow(T::MAX));
    for (a_shape, b_shape) in
        [(&[30_usize, 70][..], &[30_usize, 70][..]), (&[30, 70], &[70]), (&[5], &[1]), (&[1], &[9])]
    {
        let plan = Broadcast::new(&[a_shape, b_shape]).unwrap();
        let some = |count: usize, factor: usize| {
            (0..count).map(|i| T::narrow((i * factor) as i32)).collect::<Vec<T>>()
        };
        let (a, b) = (some(a_shape.iter().product(), 31), some(b_shape.iter().product(), 77));
        for isas in variants() {
            for function in [QuantizedBinary::Add, QuantizedBinary::Mul] {
                let mut y = vec![T::default(); plan.length()];
                let operands = [(a.as_slice(), a_kind), (b.as_slice(), b_kind)];
                quantized_binary(isas, &team, function, &plan, operands, (&mut y, y_kind), (min, max));
                for (index, &y) in y.iter().enumerate() {
                    let left = f64::from(a[index % a.len()].wide() - a_zero.wide()) * 0.05;
                    let right = f64::from(b[index % b.len()].wide() - b_zero.wide()) * 0.031;
                    let value = if function == QuantizedBinary::Add { left + right } else { left * right };
                    let exact = (value / 0.07 + f64::from(y_zero.wide()))
                        .clamp(f64::from(T::MIN + 3), f64::from(T::MAX));
                    assert!(
                        (f64::from(y.wide()) - exact).abs() <= 0.5 + 1e-4,
                        "{function:?} on {isas}: {y:?} {exact}"
                    );
                }
            }
        }
    }
}

#[test]
fn quantized_arithmetic_is_rounded_arithmetic() {
    check_binary(128_u8, 3, 120);
    check_binary(-3_i8, 0, 7);
}

#[test]
fn global_averages() {
    let x_kind = QuantizedOperand { scale: 0.05, zero_point: 7_u8 };
    let y_kind = QuantizedOperand { scale: 0.04, zero_point: 100_u8 };
    for (batch, channels, spatial) in [(1, 1, 1), (2, 70, 49), (1, 1280, 49), (3, 5, 3000)] {
        for order in [ChannelOrder::First, ChannelOrder::Last] {
            let x: Vec<u8> =
                (0..batch * channels * spatial).map(|index| (index * 7919 % 256) as u8).collect();
            let average = GlobalAverage { batch, channels, spatial, order };
            for isas in variants() {
                let mut y = vec![0; batch * channels];
                average.run(isas, &Team::new(2), (&x, x_kind), (&mut y, y_kind));
                for (index, &y) in y.iter().enumerate() {
                    let (picture, channel) = (index / channels, index % channels);
                    let at = |place: usize| match order {
                        ChannelOrder::First => x[index * spatial + place],
                        ChannelOrder::Last => x[(picture * spatial + place) * channels + channel],
                    };
                    let mean = (0..spatial).map(|place| f64::from(at(place)) - 7.0).sum::<f64>() * 0.05
                        / spatial as f64;
                    let exact = (mean / 0.04 + 100.0).clamp(0.0, 255.0);
                    assert!((f64::from(y) - exact).abs() <= 0.5 + 1e-4, "{isas} {order:?}: {y} and {exact}");
                }
            }
        }
    }
}
