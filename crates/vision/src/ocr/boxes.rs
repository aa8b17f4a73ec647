//! From a text detector's map of probabilities to boxes: threshold, borders, smallest rectangles, mean probability,
//! growing (the post-processing of "differentiable binarization" detectors).

use super::contours::{Point, contours, dilate};
use super::fill::Mask;
use super::geometry::{PointF, TurnedRectangle, smallest_rectangle};
use super::offset::grow;
use super::{Quad, Settings};

/// Rectangles with a shorter side below this many cells of the map are left out.
const SHORTEST_SIDE: f32 = 3.0;

/// The boxes in a map of `columns * rows` probabilities, for a picture of this size, in the order their borders are
/// found.
pub(super) fn boxes(
    map: &[f32],
    columns: usize,
    rows: usize,
    width: usize,
    height: usize,
    settings: &Settings,
) -> Vec<Quad> {
    let mut mask: Vec<u8> = map.iter().map(|&value| u8::from(value > settings.binary)).collect();
    if settings.dilate {
        mask = dilate(&mask, columns, rows);
    }
    let found = contours(&mask, columns, rows);
    found
        .iter()
        .take(settings.most_contours)
        .filter_map(|contour| {
            let (corners, side) = ordered_rectangle(contour);
            if side < SHORTEST_SIDE || mean_inside(map, columns, rows, &corners) < settings.least_score {
                return None;
            }
            let polygon = corners.map(|corner| corner.map(|side| side as i32));
            let (area, length) = area_and_length(&corners);
            let grown = grow(&polygon, area * settings.growth / length);
            let (corners, side) = ordered_rectangle(&grown);
            if side < SHORTEST_SIDE + 2.0 {
                return None;
            }
            let scaled = corners.map(|[x, y]| {
                let scale = |side: f32, cells: usize, pixels: usize| {
                    (side / cells as f32 * pixels as f32).round_ties_even().clamp(0.0, pixels as f32) as i32
                };
                [scale(x, columns, width), scale(y, rows, height)]
            });
            let quad = clockwise(scaled).map(|[x, y]| {
                let inside = |side: i32, pixels: usize| side.clamp(0, pixels as i32 - 1) as f32;
                [inside(x, width), inside(y, height)]
            });
            let long_enough = |a: usize, b: usize| distance(quad[a], quad[b]) as i32 > 3;
            (long_enough(0, 1) && long_enough(0, 3)).then_some(quad)
        })
        .collect()
}

pub(super) fn distance(a: PointF, b: PointF) -> f32 {
    let (across, down) = (a[0] - b[0], a[1] - b[1]);
    (across * across + down * down).sqrt()
}

/// Corners of the smallest rectangle: the upper left one, the upper right one, the lower ones; and its shorter side.
fn ordered_rectangle(points: &[Point]) -> ([PointF; 4], f32) {
    let rectangle: TurnedRectangle = smallest_rectangle(points);
    let mut corners = rectangle.corners();
    corners.sort_by(|a, b| a[0].total_cmp(&b[0]));
    let [a, b, c, d] = corners;
    let (upper_left, lower_left) = if b[1] > a[1] { (a, b) } else { (b, a) };
    let (upper_right, lower_right) = if d[1] > c[1] { (c, d) } else { (d, c) };
    ([upper_left, upper_right, lower_right, lower_left], rectangle.width.min(rectangle.height))
}

/// The mean probability inside a quadrilateral.
fn mean_inside(map: &[f32], columns: usize, rows: usize, corners: &[PointF; 4]) -> f64 {
    let bounds = |side: usize, cells: usize| {
        let least = corners.iter().map(|corner| corner[side]).fold(f32::INFINITY, f32::min);
        let most = corners.iter().map(|corner| corner[side]).fold(f32::NEG_INFINITY, f32::max);
        let inside = |value: f32| (value as i64).clamp(0, cells as i64 - 1) as usize;
        (inside(least.floor()), inside(most.ceil()))
    };
    let ((left, right), (top, bottom)) = (bounds(0, columns), bounds(1, rows));
    let mut mask = Mask::new(right - left + 1, bottom - top + 1);
    mask.fill(&corners.map(|[x, y]| [(x - left as f32) as i32, (y - top as f32) as i32]));
    let (mut sum, mut count) = (0.0, 0usize);
    for (row, inside) in mask.inside.chunks_exact(right - left + 1).enumerate() {
        let values = &map[(top + row) * columns + left..];
        for (&value, _) in values.iter().zip(inside).filter(|(_, inside)| **inside) {
            sum += f64::from(value);
            count += 1;
        }
    }
    if count == 0 { 0.0 } else { sum / count as f64 }
}

/// Area and length of the outline of a quadrilateral.
fn area_and_length(corners: &[PointF; 4]) -> (f64, f64) {
    let points = corners.map(|corner| corner.map(f64::from));
    let origin = points[0][0];
    let mut doubled = 0.0;
    for here in 1..=3 {
        let across = points[here][0] - origin;
        doubled += across * (points[here - 1][1] - points[(here + 1) % 4][1]);
    }
    let side = |a: usize, b: usize| {
        let (across, down) = (points[a][0] - points[b][0], points[a][1] - points[b][1]);
        (across * across + down * down).sqrt()
    };
    ((doubled / 2.0).abs(), side(0, 1) + side(1, 2) + side(2, 3) + side(3, 0))
}

/// The corners from the upper left one on, clockwise as seen.
fn clockwise(mut corners: [Point; 4]) -> [Point; 4] {
    corners.sort_by_key(|corner| corner[0]);
    let [mut a, mut b, mut c, mut d] = corners;
    if b[1] < a[1] {
        (a, b) = (b, a);
    }
    if d[1] < c[1] {
        (c, d) = (d, c);
    }
    [a, c, d, b]
}

/// Sorts boxes as one reads: down the page, and from the left among those that begin within ten pixels of height.
pub(super) fn reading_order(boxes: &mut [Quad]) {
    boxes.sort_by(|a, b| a[0][1].total_cmp(&b[0][1]).then(a[0][0].total_cmp(&b[0][0])));
    for end in 1..boxes.len() {
        for place in (1..=end).rev() {
            let (before, after) = (boxes[place - 1][0], boxes[place][0]);
            if (after[1] - before[1]).abs() >= 10.0 || after[0] >= before[0] {
                break;
            }
            boxes.swap(place - 1, place);
        }
    }
}
