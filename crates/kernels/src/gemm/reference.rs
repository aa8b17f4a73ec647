//! Matrix products and epilogues in obvious loops, in `f64`.

use crate::epilogue::{Activation, Epilogue, ResidualSource};

/// The activation of `x` in column `column`.
pub(crate) fn activation(activation: Activation<'_>, x: f64, column: usize) -> f64 {
    let sigmoid = |x: f64| 1.0 / (1.0 + (-x).exp());
    let softplus = |x: f64| x.max(0.0) + (-x.abs()).exp().ln_1p();
    let below = |x: f64, value: f64| if x > 0.0 { x } else { value };
    match activation {
        Activation::None => x,
        Activation::Relu => x.max(0.0),
        Activation::Clip { min, max } => x.max(f64::from(min)).min(f64::from(max)),
        Activation::LeakyRelu { slope } => below(x, x * f64::from(slope)),
        Activation::PRelu { slopes } => below(x, x * f64::from(slopes[column])),
        Activation::Sigmoid => sigmoid(x),
        Activation::Silu => x * sigmoid(x),
        Activation::HardSigmoid { alpha, beta } => (f64::from(alpha) * x + f64::from(beta)).clamp(0.0, 1.0),
        Activation::HardSwish => x * (x / 6.0 + 0.5).clamp(0.0, 1.0),
        Activation::Tanh => x.tanh(),
        Activation::Gelu => {
            // Accurate enough here: the error function by its series.
            let z = x / 2.0_f64.sqrt();
            let mut term = z;
            let mut sum = z;
            for n in 1..200 {
                term *= -z * z / f64::from(n);
                sum += term / f64::from(2 * n + 1);
            }
            let erf = if z.abs() > 5.0 { z.signum() } else { sum * std::f64::consts::FRAC_2_SQRT_PI };
            0.5 * x * (1.0 + erf)
        }
        Activation::GeluTanh => {
            let inner = (2.0 / std::f64::consts::PI).sqrt() * (x + 0.044_715 * x.powi(3));
            0.5 * x * (1.0 + inner.tanh())
        }
        Activation::Mish => x * softplus(x).tanh(),
        Activation::Elu { alpha } => below(x, f64::from(alpha) * x.exp_m1()),
        Activation::Softplus => softplus(x),
    }
}

/// What the epilogue makes of a sum; `old` is what the output held.
pub(crate) fn finish(epilogue: &Epilogue<'_>, sum: f64, row: usize, column: usize, old: f32) -> f64 {
    let bias = epilogue.bias.map_or(0.0, |bias| f64::from(bias[column]));
    let (addend, after) = match epilogue.residual {
        None => (0.0, false),
        Some(residual) => {
            let addend = match residual.source {
                ResidualSource::Matrix { data, row_stride } => data[row * row_stride + column],
                ResidualSource::Output => old,
            };
            (f64::from(addend), residual.after_activation)
        }
    };
    let before = sum + bias + if after { 0.0 } else { addend };
    activation(epilogue.activation, before, column) + if after { addend } else { 0.0 }
}

/// C = A B with any strides, finished.
pub(crate) fn gemm(
    (m, k, n): (usize, usize, usize),
    a: impl Fn(usize, usize) -> f32,
    b: impl Fn(usize, usize) -> f32,
    c: &mut [f32],
    c_row_stride: usize,
    epilogue: &Epilogue<'_>,
) {
    for row in 0..m {
        for column in 0..n {
            let sum = (0..k).map(|k| f64::from(a(row, k)) * f64::from(b(k, column))).sum();
            let to = &mut c[row * c_row_stride + column];
            *to = finish(epilogue, sum, row, column, *to) as f32;
        }
    }
}
