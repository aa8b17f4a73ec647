//! Pillow's bilinear resize: a triangle as wide as the scale, 22-bit weights, one direction after the other, each to
//! 8 bits.

use super::Size;

const PRECISION: u32 = 32 - 8 - 2;

/// For each target position along one axis, the first source position and the fixed-point weights from there on.
fn windows(from: usize, to: usize) -> Vec<(usize, Vec<i32>)> {
    let scale = from as f64 / to as f64;
    let support = scale.max(1.0);
    (0..to)
        .map(|target| {
            let centre = (target as f64 + 0.5) * scale;
            let first = (centre - support + 0.5).max(0.0) as usize;
            let end = ((centre + support + 0.5) as usize).min(from);
            let triangle = |position: usize| {
                let distance = ((position as f64 - centre + 0.5) * (1.0 / support)).abs();
                if distance < 1.0 { 1.0 - distance } else { 0.0 }
            };
            let weights: Vec<f64> = (first..end).map(triangle).collect();
            let total: f64 = weights.iter().sum();
            let fixed = weights.iter().map(|weight| {
                let share = if total == 0.0 { *weight } else { weight * (1.0 / total) };
                (share * f64::from(1 << PRECISION) + 0.5) as i32
            });
            (first, fixed.collect())
        })
        .collect()
}

fn to_byte(sum: i32) -> u8 {
    (sum >> PRECISION).clamp(0, 255) as u8
}

const HALF: i32 = 1 << (PRECISION - 1);

fn across(pixels: &[u8], size: Size, to_width: usize) -> Vec<u8> {
    if to_width == size.width {
        return pixels.to_vec();
    }
    let channels = size.channels;
    let windows = windows(size.width, to_width);
    let mut output = Vec::with_capacity(to_width * size.height * channels);
    for row in pixels.chunks_exact(size.width * channels) {
        for (first, weights) in &windows {
            output.extend((0..channels).map(|channel| {
                let values = row[first * channels + channel..].iter().step_by(channels);
                to_byte(HALF + weights.iter().zip(values).map(|(w, &v)| w * i32::from(v)).sum::<i32>())
            }));
        }
    }
    output
}

fn down(pixels: &[u8], size: Size, to_height: usize) -> Vec<u8> {
    if to_height == size.height {
        return pixels.to_vec();
    }
    let row_length = size.width * size.channels;
    let mut output = Vec::with_capacity(row_length * to_height);
    let mut sums = vec![0i32; row_length];
    for (first, weights) in windows(size.height, to_height) {
        sums.fill(HALF);
        for (weight, row) in weights.iter().zip(pixels[first * row_length..].chunks_exact(row_length)) {
            for (sum, &value) in sums.iter_mut().zip(row) {
                *sum += weight * i32::from(value);
            }
        }
        output.extend(sums.iter().map(|&sum| to_byte(sum)));
    }
    output
}

/// Antialiased bilinear resize of interleaved 8-bit pixels.
pub fn antialiased(pixels: &[u8], size: Size, to_width: usize, to_height: usize) -> Vec<u8> {
    size.check(pixels.len(), to_width, to_height);
    // Pillow 13 goes down first where the height shrinks by more than twice what the width does.
    let lost_rows = size.height as isize - to_height as isize;
    let lost_columns = size.width as isize - to_width as isize;
    if lost_rows > 0 && lost_rows > 2 * lost_columns {
        let shorter = down(pixels, size, to_height);
        across(&shorter, Size { height: to_height, ..size }, to_width)
    } else {
        let narrower = across(pixels, size, to_width);
        down(&narrower, Size { width: to_width, ..size }, to_height)
    }
}
