//! Cutting a quadrilateral out of a picture as a rectangle: OpenCV's `getPerspectiveTransform` and `warpPerspective`
//! with `INTER_CUBIC` and `BORDER_REPLICATE`, as of OpenCV 5 (earlier versions round the positions to 1/32 pixel).

use super::Quad;
use super::boxes::distance;
use crate::picture::Picture;

type Matrix = [[f64; 3]; 3];

/// The text in the quadrilateral, lying; one that is much higher than wide is turned against the clock.
pub(super) fn cut(picture: &Picture, quad: &Quad) -> Picture {
    let longer = |a: (usize, usize), b: (usize, usize)| {
        let length = distance(quad[a.0], quad[a.1]).max(distance(quad[b.0], quad[b.1]));
        (length as usize).max(1)
    };
    let (width, height) = (longer((0, 1), (2, 3)), longer((0, 3), (1, 2)));
    let (right, bottom) = (width as f32, height as f32);
    let target = [[0.0, 0.0], [right, 0.0], [right, bottom], [0.0, bottom]];
    let inverse = perspective(quad, &target).and_then(|matrix| inverted(&matrix));
    // Where three corners lie on a line there is no such transform: the upright rectangle at the first corner serves.
    let shifted = [[1.0, 0.0, f64::from(quad[0][0])], [0.0, 1.0, f64::from(quad[0][1])], [0.0, 0.0, 1.0]];
    let crop = warp(picture, &inverse.unwrap_or(shifted), width, height);
    if height as f64 / width as f64 >= 1.5 { crop.rotated_left() } else { crop }
}

/// The transform that takes the corners of one quadrilateral to those of another.
fn perspective(from: &Quad, to: &Quad) -> Option<Matrix> {
    let mut rows = [[0.0f64; 9]; 8];
    for corner in 0..4 {
        let ([x, y], [u, v]) = (from[corner], to[corner]);
        let [x64, y64] = [x, y].map(f64::from);
        rows[corner] = [x64, y64, 1.0, 0.0, 0.0, 0.0, f64::from(-x * u), f64::from(-y * u), f64::from(u)];
        rows[corner + 4] = [0.0, 0.0, 0.0, x64, y64, 1.0, f64::from(-x * v), f64::from(-y * v), f64::from(v)];
    }
    let off = |c: &[f64; 8]| {
        let miss = |row: &[f64; 9]| row[8] - row[..8].iter().zip(c).map(|(a, c)| a * c).sum::<f64>();
        rows.iter().map(|row| miss(row).powi(2)).sum::<f64>().sqrt()
    };
    let c = match solve(rows).filter(|c| off(c) < 1e-8) {
        Some([a, b, c, d, e, f, g, h]) => [a, b, c, d, e, f, g, h, 1.0],
        // The last coefficient is nought, or nearly: where two sides of the quadrilateral meet in the origin.
        None => direction(rows)?,
    };
    Some([[c[0], c[1], c[2]], [c[3], c[4], c[5]], [c[6], c[7], c[8]]])
}

/// All nine coefficients, of length one together, where the last cannot be one: by elimination with exchange of rows
/// and columns. None where more than one direction serves.
fn direction(mut rows: [[f64; 9]; 8]) -> Option<[f64; 9]> {
    for row in &mut rows {
        row[8] = -row[8];
    }
    let mut order: [usize; 9] = std::array::from_fn(|column| column);
    let mut first_pivot = 0.0;
    for pivot in 0..8 {
        let places = (pivot..8).flat_map(|row| (pivot..9).map(move |column| (row, column)));
        let (row, column) = places.max_by(|a, b| rows[a.0][a.1].abs().total_cmp(&rows[b.0][b.1].abs()))?;
        rows.swap(pivot, row);
        for row in &mut rows {
            row.swap(pivot, column);
        }
        order.swap(pivot, column);
        let largest = rows[pivot][pivot].abs();
        first_pivot = f64::max(first_pivot, largest);
        if largest.is_nan() || largest <= first_pivot * 1e-14 {
            return None;
        }
        for below in pivot + 1..8 {
            let factor = rows[below][pivot] / rows[pivot][pivot];
            let upper = rows[pivot];
            for (value, above) in rows[below].iter_mut().zip(upper).skip(pivot) {
                *value -= factor * above;
            }
        }
    }
    let mut solution = [0.0; 9];
    solution[order[8]] = 1.0;
    for row in (0..8).rev() {
        let sum: f64 = (row + 1..9).map(|column| rows[row][column] * solution[order[column]]).sum();
        solution[order[row]] = -sum / rows[row][row];
    }
    let length = solution.iter().map(|value| value * value).sum::<f64>().sqrt();
    Some(solution.map(|value| value / length))
}

/// Eight equations, the right side last, by elimination with row exchange.
fn solve(mut rows: [[f64; 9]; 8]) -> Option<[f64; 8]> {
    for pivot in 0..8 {
        let mut largest = pivot;
        for other in pivot + 1..8 {
            if rows[other][pivot].abs() > rows[largest][pivot].abs() {
                largest = other;
            }
        }
        if rows[largest][pivot].abs() < f64::EPSILON * 100.0 {
            return None;
        }
        rows.swap(pivot, largest);
        let scale = -1.0 / rows[pivot][pivot];
        for below in pivot + 1..8 {
            let factor = rows[below][pivot] * scale;
            let upper = rows[pivot];
            for (value, above) in rows[below].iter_mut().zip(upper).skip(pivot + 1) {
                *value += factor * above;
            }
        }
    }
    let mut solution = [0.0; 8];
    for row in (0..8).rev() {
        let mut sum = rows[row][8];
        for column in row + 1..8 {
            sum -= rows[row][column] * solution[column];
        }
        solution[row] = sum / rows[row][row];
    }
    Some(solution)
}

fn inverted(m: &Matrix) -> Option<Matrix> {
    let determinant = m[0][0] * (m[1][1] * m[2][2] - m[1][2] * m[2][1])
        - m[0][1] * (m[1][0] * m[2][2] - m[1][2] * m[2][0])
        + m[0][2] * (m[1][0] * m[2][1] - m[1][1] * m[2][0]);
    if determinant == 0.0 || !determinant.is_finite() {
        return None;
    }
    let scale = 1.0 / determinant;
    let minor = |a: (usize, usize), b: (usize, usize), c: (usize, usize), d: (usize, usize)| {
        (m[a.0][a.1] * m[b.0][b.1] - m[c.0][c.1] * m[d.0][d.1]) * scale
    };
    Some([
        [
            minor((1, 1), (2, 2), (1, 2), (2, 1)),
            minor((0, 2), (2, 1), (0, 1), (2, 2)),
            minor((0, 1), (1, 2), (0, 2), (1, 1)),
        ],
        [
            minor((1, 2), (2, 0), (1, 0), (2, 2)),
            minor((0, 0), (2, 2), (0, 2), (2, 0)),
            minor((0, 2), (1, 0), (0, 0), (1, 2)),
        ],
        [
            minor((1, 0), (2, 1), (1, 1), (2, 0)),
            minor((0, 1), (2, 0), (0, 0), (2, 1)),
            minor((0, 0), (1, 1), (0, 1), (1, 0)),
        ],
    ])
}

/// `a * b + c` rounded once to single precision (but for one case in 2^29), without asking the machine for it.
fn fused(a: f32, b: f32, c: f32) -> f32 {
    (f64::from(a) * f64::from(b) + f64::from(c)) as f32
}

/// Weights of four neighbours for a position between the middle two.
fn cubic_weights(fraction: f32) -> [f32; 4] {
    const A: f32 = -0.75;
    let square = fraction * fraction;
    let rest = 1.0 - fraction;
    let first = A * (fraction * (rest * rest));
    let last = A * (square * rest);
    let second = fused(square, fused(A + 2.0, fraction, -(A + 3.0)), 1.0);
    [first, second, 1.0 - first - second - last, last]
}

/// Each pixel of a new picture taken, by cubic interpolation, from where the matrix says; edges repeat.
fn warp(picture: &Picture, matrix: &Matrix, width: usize, height: usize) -> Picture {
    let m = matrix.map(|row| row.map(|value| value as f32));
    let (columns, rows) = (picture.width(), picture.height());
    let split = |position: f32, side: usize| {
        let side = side.max(16) as f32;
        // In this order so that what is not a number becomes a bound.
        let position = position.max(-side).min(side * 2.0);
        let whole = position.floor();
        (whole as isize - 1, cubic_weights(position - whole))
    };
    let neighbours = |first: isize, side: usize| {
        [0, 1, 2, 3].map(|step| (first + step).clamp(0, side as isize - 1) as usize)
    };
    let mut rgb = Vec::with_capacity(width * height * 3);
    for row in 0..height {
        let start = m.map(|line| row as f32 * line[1] + line[2]).map(f64::from);
        for column in 0..width {
            let [x, y, z] = [0, 1, 2].map(|line| start[line] + f64::from(m[line][0]) * column as f64);
            let inverse = 1.0 / z;
            let (left, across) = split((x * inverse) as f32, columns);
            let (top, down) = split((y * inverse) as f32, rows);
            let (taken_columns, taken_rows) = (neighbours(left, columns), neighbours(top, rows));
            let mut sums = [0.0f32; 3];
            for (&source_row, &weight) in taken_rows.iter().zip(&down) {
                let pixels = taken_columns.map(|source| (source_row * columns + source) * 3);
                for (channel, sum) in sums.iter_mut().enumerate() {
                    let values = pixels.map(|pixel| f32::from(picture.rgb()[pixel + channel]));
                    let mut mixed = values[0] * across[0];
                    for step in 1..4 {
                        mixed = fused(values[step], across[step], mixed);
                    }
                    *sum = fused(mixed, weight, *sum);
                }
            }
            rgb.extend(sums.map(|sum| sum.round_ties_even().clamp(0.0, 255.0) as u8));
        }
    }
    Picture::new(width, height, rgb).expect("one pixel for each position")
}
