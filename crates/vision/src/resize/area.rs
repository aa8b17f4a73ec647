//! OpenCV's `INTER_AREA`: each target pixel is the mean of the source area it covers.

use super::Size;
use super::linear::{area_positions, linear_with_area_weights};

/// One contribution: source position, target position, weight.
struct Share {
    source: usize,
    target: usize,
    weight: f32,
}

/// The contributions along one axis, in order of their targets. Weights below a thousandth of a pixel are dropped.
fn shares(from: usize, to: usize) -> Vec<Share> {
    let scale = 1.0 / (to as f64 / from as f64);
    let mut shares = Vec::with_capacity(2 * from);
    for target in 0..to {
        let begin = target as f64 * scale;
        let end = begin + scale;
        let cell = scale.min(from as f64 - begin);
        let last = (end.floor() as usize).min(from - 1);
        let first = (begin.ceil() as usize).min(last);
        if first as f64 - begin > 1e-3 {
            shares.push(Share { source: first - 1, target, weight: ((first as f64 - begin) / cell) as f32 });
        }
        shares.extend((first..last).map(|source| Share { source, target, weight: (1.0 / cell) as f32 }));
        if end - last as f64 > 1e-3 {
            let weight = ((end - last as f64).min(1.0).min(cell) / cell) as f32;
            shares.push(Share { source: last, target, weight });
        }
    }
    shares
}

/// Whole factors by which both sides shrink, if they do.
fn whole_factors(size: Size, to_width: usize, to_height: usize) -> Option<(usize, usize)> {
    let whole = |from: usize, to: usize| {
        let scale = 1.0 / (to as f64 / from as f64);
        let rounded = scale.round_ties_even();
        ((scale - rounded).abs() < f64::EPSILON).then_some(rounded as usize)
    };
    Some((whole(size.width, to_width)?, whole(size.height, to_height)?))
}

fn shrinks(size: Size, to_width: usize, to_height: usize) -> bool {
    let scale = |from: usize, to: usize| 1.0 / (to as f64 / from as f64);
    scale(size.width, to_width) >= 1.0 && scale(size.height, to_height) >= 1.0
}

/// Half the size, each pixel the rounded mean of four.
pub(super) fn halve(pixels: &[u8], size: Size) -> Vec<u8> {
    let stride = size.width * size.channels;
    let mut output = Vec::with_capacity(size.values() / 4);
    for rows in pixels.chunks_exact(2 * stride) {
        let (above, below) = rows.split_at(stride);
        for (above, below) in above.chunks_exact(2 * size.channels).zip(below.chunks_exact(2 * size.channels))
        {
            output.extend((0..size.channels).map(|channel| {
                let sum = [
                    above[channel],
                    above[size.channels + channel],
                    below[channel],
                    below[size.channels + channel],
                ]
                .map(u32::from)
                .iter()
                .sum::<u32>();
                ((sum + 2) >> 2) as u8
            }));
        }
    }
    output
}

/// Area resize of interleaved 8-bit pixels.
pub fn area(pixels: &[u8], size: Size, to_width: usize, to_height: usize) -> Vec<u8> {
    size.check(pixels.len(), to_width, to_height);
    if (to_width, to_height) == (size.width, size.height) {
        return pixels.to_vec();
    }
    if !shrinks(size, to_width, to_height) {
        return linear_with_area_weights(pixels, size, to_width, to_height);
    }
    if let Some((across, down)) = whole_factors(size, to_width, to_height) {
        if (across, down) == (2, 2) && matches!(size.channels, 1 | 3 | 4) {
            return halve(pixels, size);
        }
        let scale = 1.0 / (across * down) as f32;
        let mut output = Vec::with_capacity(to_width * to_height * size.channels);
        for row in 0..to_height {
            for column in 0..to_width {
                for channel in 0..size.channels {
                    let sum: u32 =
                        block(pixels, size, row, column, channel, across, down).map(u32::from).sum();
                    output.push((sum as f32 * scale).round_ties_even() as u8);
                }
            }
        }
        return output;
    }

    let channels = size.channels;
    let columns = shares(size.width, to_width);
    let mut sum = vec![0f32; to_width * channels];
    let mut row = vec![0f32; to_width * channels];
    let mut output = vec![0u8; to_width * to_height * channels];
    let mut store = |target: usize, sum: &[f32]| {
        let target = &mut output[target * sum.len()..][..sum.len()];
        for (value, &sum) in target.iter_mut().zip(sum) {
            *value = sum.round_ties_even().clamp(0.0, 255.0) as u8;
        }
    };
    let mut current = 0;
    for share in shares(size.height, to_height) {
        row.fill(0.0);
        let source = &pixels[share.source * size.width * channels..][..size.width * channels];
        for column in &columns {
            let from = &source[column.source * channels..][..channels];
            let to = &mut row[column.target * channels..][..channels];
            for (value, &pixel) in to.iter_mut().zip(from) {
                *value += f32::from(pixel) * column.weight;
            }
        }
        if share.target == current {
            for (sum, &value) in sum.iter_mut().zip(&row) {
                *sum += value * share.weight;
            }
        } else {
            store(current, &sum);
            current = share.target;
            for (sum, &value) in sum.iter_mut().zip(&row) {
                *sum = value * share.weight;
            }
        }
    }
    store(current, &sum);
    output
}

/// Area resize of interleaved doubles.
pub fn area_f64(pixels: &[f64], size: Size, to_width: usize, to_height: usize) -> Vec<f64> {
    size.check(pixels.len(), to_width, to_height);
    if (to_width, to_height) == (size.width, size.height) {
        return pixels.to_vec();
    }
    let channels = size.channels;
    let mut output = vec![0f64; to_width * to_height * channels];
    if !shrinks(size, to_width, to_height) {
        let (columns, column_fractions) = area_positions(size.width, to_width);
        let (rows, row_fractions) = area_positions(size.height, to_height);
        let at = |row: usize, column: usize, channel: usize| {
            pixels[(row.min(size.height - 1) * size.width + column.min(size.width - 1)) * channels + channel]
        };
        for row in 0..to_height {
            let (above, down) = (rows[row] as usize, row_fractions[row]);
            for column in 0..to_width {
                let (left, across) = (columns[column] as usize, column_fractions[column]);
                for channel in 0..channels {
                    let mix = |row: usize| {
                        at(row, left, channel) * f64::from(1.0 - across)
                            + at(row, left + 1, channel) * f64::from(across)
                    };
                    output[(row * to_width + column) * channels + channel] =
                        mix(above) * f64::from(1.0 - down) + mix(above + 1) * f64::from(down);
                }
            }
        }
        return output;
    }
    if let Some((across, down)) = whole_factors(size, to_width, to_height) {
        let scale = f64::from(1.0 / (across * down) as f32);
        for row in 0..to_height {
            for column in 0..to_width {
                for channel in 0..channels {
                    // Four at a time, as the original adds them.
                    let values: Vec<f64> = block(pixels, size, row, column, channel, across, down).collect();
                    let (fours, rest) = values.as_chunks::<4>();
                    let mut sum = 0.0;
                    for four in fours {
                        sum += four[0] + four[1] + four[2] + four[3];
                    }
                    for value in rest {
                        sum += value;
                    }
                    output[(row * to_width + column) * channels + channel] = sum * scale;
                }
            }
        }
        return output;
    }
    let columns = shares(size.width, to_width);
    let mut row = vec![0f64; to_width * channels];
    for share in shares(size.height, to_height) {
        row.fill(0.0);
        let source = &pixels[share.source * size.width * channels..][..size.width * channels];
        for column in &columns {
            let from = &source[column.source * channels..][..channels];
            let to = &mut row[column.target * channels..][..channels];
            for (value, &pixel) in to.iter_mut().zip(from) {
                *value += pixel * f64::from(column.weight);
            }
        }
        let target = &mut output[share.target * row.len()..][..row.len()];
        for (sum, &value) in target.iter_mut().zip(&row) {
            *sum += value * f64::from(share.weight);
        }
    }
    output
}

fn block<T: Copy>(
    pixels: &[T],
    size: Size,
    row: usize,
    column: usize,
    channel: usize,
    across: usize,
    down: usize,
) -> impl Iterator<Item = T> {
    (0..down).flat_map(move |y| {
        (0..across).map(move |x| {
            pixels[((row * down + y) * size.width + column * across + x) * size.channels + channel]
        })
    })
}
