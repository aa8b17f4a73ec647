//! Convex hulls and smallest rectangles, in the arithmetic and the order of corners of OpenCV.

use std::f64::consts::PI;

use super::contours::Point;

/// A point with fractions: across, down.
pub(crate) type PointF = [f32; 2];

/// A rectangle at an angle.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct TurnedRectangle {
    pub(crate) centre: PointF,
    pub(crate) width: f32,
    pub(crate) height: f32,
    /// In degrees.
    pub(crate) angle: f32,
}

impl TurnedRectangle {
    pub(crate) fn corners(&self) -> [PointF; 4] {
        let angle = f64::from(self.angle) * PI / 180.0;
        let b = angle.cos() as f32 * 0.5;
        let a = angle.sin() as f32 * 0.5;
        let [x, y] = self.centre;
        let (ah, aw, bh, bw) = (a * self.height, a * self.width, b * self.height, b * self.width);
        [
            [x - ah - bw, y + bh - aw],
            [x + ah - bw, y - bh - aw],
            [x + ah + bw, y - bh + aw],
            [x - ah + bw, y + bh + aw],
        ]
    }
}

/// One quarter of the hull of points sorted across: places in `sorted` from `start` to `end` that stay. `turn` is the
/// wanted sign of the turns, `against` the vertical direction to skip.
fn quarter(sorted: &[Point], start: usize, end: usize, against: i32, turn: i64) -> Vec<usize> {
    if start == end || sorted[start] == sorted[end] {
        return vec![start];
    }
    let step: isize = if end > start { 1 } else { -1 };
    let mut previous = start;
    let mut current = start.wrapping_add_signed(step);
    let mut next = current.wrapping_add_signed(step);
    let beyond = end.wrapping_add_signed(step);
    let mut stack = vec![previous, current, next];
    while next != beyond {
        let last = stack.len() - 1;
        let rise = sorted[next][1] - sorted[current][1];
        if rise.signum() == against {
            next = next.wrapping_add_signed(step);
            stack[last] = next;
            continue;
        }
        let a = [sorted[current][0] - sorted[previous][0], sorted[current][1] - sorted[previous][1]]
            .map(i64::from);
        let b = [sorted[next][0] - sorted[current][0], rise].map(i64::from);
        let convexity = a[1] * b[0] - a[0] * b[1];
        if convexity.signum() == turn && a != [0, 0] {
            (previous, current) = (current, next);
            next = next.wrapping_add_signed(step);
            stack.push(next);
        } else if previous == start {
            current = next;
            next = next.wrapping_add_signed(step);
            (stack[1], stack[2]) = (current, next);
        } else {
            stack[last - 1] = next;
            current = previous;
            previous = stack[last - 3];
            stack.pop();
        }
    }
    stack.pop();
    stack
}

/// The convex hull, against the clock as seen with the vertical axis upwards, beginning where OpenCV begins.
pub(crate) fn convex_hull(points: &[Point]) -> Vec<Point> {
    if points.is_empty() {
        return Vec::new();
    }
    let mut order: Vec<usize> = (0..points.len()).collect();
    order.sort_unstable_by_key(|&index| (points[index], index));
    let sorted: Vec<Point> = order.iter().map(|&index| points[index]).collect();
    let last = sorted.len() - 1;
    if sorted[0] == sorted[last] {
        return vec![sorted[0]];
    }
    let (mut lowest, mut highest) = (0, 0);
    for (place, point) in sorted.iter().enumerate() {
        if point[1] < sorted[lowest][1] {
            lowest = place;
        }
        if point[1] > sorted[highest][1] {
            highest = place;
        }
    }

    let left = quarter(&sorted, 0, highest, -1, 1);
    let right = quarter(&sorted, last, highest, -1, -1);
    let mut hull: Vec<usize> = Vec::with_capacity(points.len().min(64));
    hull.extend(&right[..right.len() - 1]);
    hull.extend(left[1..].iter().rev());
    let stop = if left.len() > 2 {
        Some(left[1])
    } else if right.len() > 2 {
        Some(right[right.len() - 2])
    } else {
        None
    };

    let mut left = quarter(&sorted, 0, lowest, 1, -1);
    let mut right = quarter(&sorted, last, lowest, 1, 1);
    if let Some(stop) = stop {
        let check = if left.len() > 2 {
            Some(left[1])
        } else if left.len() + right.len() > 2 {
            Some(right[2 - left.len()])
        } else {
            None
        };
        if check.is_some_and(|check| check == stop || sorted[check] == sorted[stop]) {
            // All on one line: this half would only go back over the other.
            left.truncate(2);
            right.truncate(2);
        }
    }
    hull.extend(&left[..left.len() - 1]);
    hull.extend(right[1..].iter().rev());

    let mut hull: Vec<usize> = hull.into_iter().map(|place| order[place]).collect();
    begin_in_order(&mut hull);
    hull.into_iter().map(|index| points[index]).collect()
}

/// Turns the hull so that the indices of its points rise or fall throughout, where that is possible.
fn begin_in_order(hull: &mut [usize]) {
    let count = hull.len();
    if count < 3 {
        return;
    }
    let (mut least, mut most, mut rises) = (0, 0, 0);
    for place in 1..count {
        rises += usize::from(hull[place - 1] < hull[place]);
        if rises > 1 && rises + 2 <= place {
            break;
        }
        if hull[place] < hull[least] {
            least = place;
        }
        if hull[place] > hull[most] {
            most = place;
        }
    }
    let apart = most.abs_diff(least);
    if !(apart == 1 || apart == count - 1) || !(rises <= 1 || rises + 2 >= count) {
        return;
    }
    let rising = (most + 1) % count == least;
    let first = if rising { least } else { most };
    let in_order = (0..count - 1).all(|place| {
        let (here, there) = (hull[(first + place) % count], hull[(first + place + 1) % count]);
        rising == (here < there)
    });
    if in_order {
        hull.rotate_left(first);
    }
}

/// The rectangle of the smallest area around points, at any angle. No points give a rectangle of no size.
pub(crate) fn smallest_rectangle(points: &[Point]) -> TurnedRectangle {
    let hull: Vec<PointF> = convex_hull(points).iter().map(|point| point.map(|side| side as f32)).collect();
    let mut angle = -PI / 2.0;
    let (centre, width, height) = match hull[..] {
        [] => ([0.0; 2], 0.0, 0.0),
        [point] => (point, 0.0, 0.0),
        [a, b] => {
            let (across, down) = (f64::from(a[0] - b[0]), f64::from(a[1] - b[1]));
            let length = (across * across + down * down).sqrt() as f32;
            let (mut width, mut height) = (0.0, length);
            if across == 0.0 {
                (width, height) = (height, width);
            } else if down < 0.0 {
                angle = down.atan2(across);
                (width, height) = (height, width);
            } else if down > 0.0 {
                angle = -across.atan2(down);
            }
            ([(a[0] + b[0]) * 0.5, (a[1] + b[1]) * 0.5], width, height)
        }
        _ => {
            let (corner, along, up) = calipers(&hull);
            let length =
                |[x, y]: PointF| (f64::from(x) * f64::from(x) + f64::from(y) * f64::from(y)).sqrt() as f32;
            let centre = [corner[0] + (along[0] + up[0]) * 0.5, corner[1] + (along[1] + up[1]) * 0.5];
            let (mut width, mut height) = (length(up), length(along));
            if along[0] == 0.0 && along[1] > 0.0 {
                (width, height) = (height, width);
            } else {
                angle = -f64::from(along[0]).atan2(f64::from(along[1]));
            }
            (centre, width, height)
        }
    };
    TurnedRectangle { centre, width, height, angle: (angle * 180.0 / PI) as f32 }
}

fn turned_right([x, y]: PointF) -> PointF {
    [y, -x]
}

/// Rotating calipers around a convex polygon of at least three corners, against the clock: a corner of the rectangle
/// of the smallest area, and its two sides from there.
fn calipers(points: &[PointF]) -> (PointF, PointF, PointF) {
    let count = points.len();
    let mut sides = Vec::with_capacity(count);
    let mut inverse_lengths = Vec::with_capacity(count);
    let (mut left, mut bottom, mut right, mut top) = (0, 0, 0, 0);
    for (index, point) in points.iter().enumerate() {
        if point[0] < points[left][0] {
            left = index;
        }
        if point[0] > points[right][0] {
            right = index;
        }
        if point[1] > points[top][1] {
            top = index;
        }
        if point[1] < points[bottom][1] {
            bottom = index;
        }
        let next = points[(index + 1) % count];
        let side = [next[0] - point[0], next[1] - point[1]];
        let [across, down] = side.map(f64::from);
        sides.push(side);
        inverse_lengths.push((1.0 / (across * across + down * down).sqrt()) as f32);
    }

    // The corners that the four jaws touch, and the direction of the first jaw.
    let mut touched = [bottom, right, top, left];
    let mut smallest = f32::MAX;
    let mut best = (left, [1.0, 0.0], 0.0, bottom, 0.0);
    for _ in 0..count {
        let turned = [
            sides[touched[0]],
            turned_right(sides[touched[1]]),
            sides[touched[2]].map(|side| -side),
            turned_right(sides[touched[3]]).map(|side| -side),
        ];
        let mut jaw = 0;
        for other in 1..4 {
            let right = turned_right(turned[other]);
            if right[0] * turned[jaw][0] + right[1] * turned[jaw][1] < 0.0 {
                jaw = other;
            }
        }
        let corner = touched[jaw];
        let lead = sides[corner].map(|side| side * inverse_lengths[corner]);
        let base = match jaw {
            0 => lead,
            1 => [lead[1], -lead[0]],
            2 => [-lead[0], -lead[1]],
            _ => [-lead[1], lead[0]],
        };
        touched[jaw] = (corner + 1) % count;

        let between = |a: usize, b: usize| [points[a][0] - points[b][0], points[a][1] - points[b][1]];
        let across = between(touched[1], touched[3]);
        let width = across[0] * base[0] + across[1] * base[1];
        let up = between(touched[2], touched[0]);
        let height = -up[0] * base[1] + up[1] * base[0];
        let area = width * height;
        if area <= smallest {
            smallest = area;
            best = (touched[3], base, width, touched[0], height);
        }
    }

    let (left, [a1, b1], width, bottom, height) = best;
    let (a2, b2) = (-b1, a1);
    let c1 = a1 * points[left][0] + points[left][1] * b1;
    let c2 = a2 * points[bottom][0] + points[bottom][1] * b2;
    let inverse = 1.0 / (a1 * b2 - a2 * b1);
    let corner = [(c1 * b2 - c2 * b1) * inverse, (a1 * c2 - a2 * c1) * inverse];
    (corner, [a1 * width, b1 * width], [a2 * height, b2 * height])
}
