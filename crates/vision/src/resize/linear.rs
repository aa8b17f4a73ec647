//! OpenCV's `INTER_LINEAR` for 8-bit pictures: 11-bit weights, rows mixed first across, then down with two shifts.

use super::Size;
use super::area::halve;

const WEIGHT_ONE: f32 = 2048.0;

/// For each target position along one axis, the first of the two source positions (may be -1) and its two weights.
struct Taps {
    first: Vec<isize>,
    weights: Vec<[i32; 2]>,
}

impl Taps {
    /// `clamped` says whether positions beyond the ends get the weight nought (across), or are repeated (down).
    fn new(from: usize, to: usize, clamped: bool) -> Self {
        // The scale goes through its inverse, as the original takes it, which may differ in the last bit from a division.
        let scale = 1.0 / (to as f64 / from as f64);
        let mut first = Vec::with_capacity(to);
        let mut weights = Vec::with_capacity(to);
        for target in 0..to {
            let position = ((target as f64 + 0.5) * scale - 0.5) as f32;
            let mut start = position.floor() as isize;
            let mut fraction = position - start as f32;
            if clamped && start < 0 {
                (start, fraction) = (0, 0.0);
            }
            if clamped && start >= from as isize - 1 {
                (start, fraction) = (from as isize - 1, 0.0);
            }
            first.push(start);
            weights.push(fixed_weights(fraction));
        }
        Self { first, weights }
    }
}

fn fixed_weights(fraction: f32) -> [i32; 2] {
    [1.0 - fraction, fraction].map(|weight| (weight * WEIGHT_ONE).round_ties_even() as i32)
}

/// Linear interpolation of interleaved 8-bit pixels.
pub fn linear(pixels: &[u8], size: Size, to_width: usize, to_height: usize) -> Vec<u8> {
    size.check(pixels.len(), to_width, to_height);
    if (to_width, to_height) == (size.width, size.height) {
        return pixels.to_vec();
    }
    if 2 * to_width == size.width && 2 * to_height == size.height {
        return halve(pixels, size);
    }
    mixed(
        pixels,
        size,
        to_width,
        &Taps::new(size.width, to_width, true),
        &Taps::new(size.height, to_height, false),
    )
}

fn mixed(pixels: &[u8], size: Size, to_width: usize, across: &Taps, down: &Taps) -> Vec<u8> {
    let channels = size.channels;
    let row_length = to_width * channels;
    let last_column = size.width - 1;
    let mix_row = |row: usize, mixed: &mut [i32]| {
        let source = &pixels[row * size.width * channels..][..size.width * channels];
        for (target, (&start, weights)) in
            mixed.chunks_exact_mut(channels).zip(across.first.iter().zip(&across.weights))
        {
            let left = start as usize;
            let right = (left + 1).min(last_column);
            for (channel, value) in target.iter_mut().enumerate() {
                *value = i32::from(source[left * channels + channel]) * weights[0]
                    + i32::from(source[right * channels + channel]) * weights[1];
            }
        }
    };

    let mut output = vec![0u8; row_length * down.first.len()];
    // The two mixed rows at hand and which source rows they are: consecutive target rows mostly share them.
    let mut held = [(usize::MAX, vec![0i32; row_length]), (usize::MAX, vec![0i32; row_length])];
    for (target, (&start, weights)) in
        output.chunks_exact_mut(row_length).zip(down.first.iter().zip(&down.weights))
    {
        let last_row = size.height as isize - 1;
        let upper = start.clamp(0, last_row) as usize;
        let lower = (start + 1).clamp(0, last_row) as usize;
        if held[0].0 != upper && held[1].0 == upper {
            held.swap(0, 1);
        }
        for (slot, row) in [(0, upper), (1, lower)] {
            if held[slot].0 != row {
                mix_row(row, &mut held[slot].1);
                held[slot].0 = row;
            }
        }
        for ((value, &above), &below) in target.iter_mut().zip(&held[0].1).zip(&held[1].1) {
            let sum = ((weights[0] * (above >> 4)) >> 16) + ((weights[1] * (below >> 4)) >> 16);
            *value = ((sum + 2) >> 2) as u8;
        }
    }
    output
}

/// Linear interpolation with the weights that OpenCV's `INTER_AREA` takes where a side grows.
pub(super) fn linear_with_area_weights(
    pixels: &[u8],
    size: Size,
    to_width: usize,
    to_height: usize,
) -> Vec<u8> {
    let taps = |from: usize, to: usize| {
        let (first, fractions) = area_positions(from, to);
        Taps { first, weights: fractions.into_iter().map(fixed_weights).collect() }
    };
    mixed(pixels, size, to_width, &taps(size.width, to_width), &taps(size.height, to_height))
}

/// The first source position and the fraction towards the next, for each target position, as `INTER_AREA` has them
/// where a side grows.
pub(super) fn area_positions(from: usize, to: usize) -> (Vec<isize>, Vec<f32>) {
    let inverse_scale = to as f64 / from as f64;
    let scale = 1.0 / inverse_scale;
    (0..to)
        .map(|target| {
            let start = (target as f64 * scale).floor() as isize;
            let fraction = ((target + 1) as f64 - (start + 1) as f64 * inverse_scale) as f32;
            let fraction = if fraction <= 0.0 { 0.0 } else { fraction - fraction.floor() };
            if start >= from as isize - 1 { (from as isize - 1, 0.0) } else { (start, fraction) }
        })
        .unzip()
}
