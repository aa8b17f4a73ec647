//! Growing a polygon with round joins on the integer grid, as the Clipper library does it.

use std::f64::consts::PI;

use super::contours::Point;

type Vector = [f64; 2];

/// Farthest that an arc may lie from its chords.
const ARC_TOLERANCE: f64 = 0.25;

fn round(value: f64) -> i32 {
    if value < 0.0 { (value - 0.5) as i32 } else { (value + 0.5) as i32 }
}

fn outward(from: Point, to: Point) -> Vector {
    let [across, down] = [0, 1].map(|side| f64::from(to[side]) - f64::from(from[side]));
    let factor = 1.0 / (across * across + down * down).sqrt();
    [down * factor, -(across * factor)]
}

/// The polygon grown by `distance` on every side, beginning where Clipper's union begins. Empty where fewer than three
/// corners differ or the distance is not above nought.
///
/// Meant for convex polygons: then the grown polygon is one ring without crossings, which is all that is handled here.
pub(crate) fn grow(polygon: &[Point], distance: f64) -> Vec<Point> {
    let mut source = polygon.to_vec();
    source.dedup();
    while source.len() > 1 && source.first() == source.last() {
        source.pop();
    }
    // Not above nought includes what is not a number.
    let grows = distance > 0.0 && distance.is_finite();
    if source.len() < 3 || !grows {
        return Vec::new();
    }
    if doubled_area(&source) < 0 {
        source.reverse();
    }
    let mut ring = round_joins(&source, distance);
    straighten(&mut ring);
    // The ring is read from behind the last of its lowest points (those with the least second coordinate).
    let lowest = ring.iter().map(|point| point[1]).min().unwrap_or(0);
    let count = ring.len();
    let start =
        (0..count).find(|&place| ring[place][1] != lowest && ring[(place + count - 1) % count][1] == lowest);
    ring.rotate_left(start.unwrap_or(0));
    ring
}

fn doubled_area(polygon: &[Point]) -> i64 {
    let next = polygon.iter().cycle().skip(1);
    polygon
        .iter()
        .zip(next)
        .map(|(a, b)| i64::from(a[0]) * i64::from(b[1]) - i64::from(b[0]) * i64::from(a[1]))
        .sum()
}

fn round_joins(source: &[Point], distance: f64) -> Vec<Point> {
    let tolerance = ARC_TOLERANCE.min(distance * ARC_TOLERANCE);
    let steps = (PI / (1.0 - tolerance / distance).acos()).min(distance * PI);
    let turn = 2.0 * PI / steps;
    let (sine, cosine) = (turn.sin(), turn.cos());
    let steps_per_radian = steps / (2.0 * PI);

    let count = source.len();
    let normals: Vec<Vector> =
        (0..count).map(|index| outward(source[index], source[(index + 1) % count])).collect();
    let mut ring = Vec::new();
    let mut before = count - 1;
    for (here, &corner) in source.iter().enumerate() {
        let (from, to) = (normals[before], normals[here]);
        let moved = |[x, y]: Vector| {
            [round(f64::from(corner[0]) + x * distance), round(f64::from(corner[1]) + y * distance)]
        };
        let mut bend = from[0] * to[1] - to[0] * from[1];
        let along = from[0] * to[0] + to[1] * from[1];
        if (bend * distance).abs() < 1.0 {
            if along > 0.0 {
                ring.push(moved(from));
                continue;
            }
        } else {
            bend = bend.clamp(-1.0, 1.0);
        }
        if bend < 0.0 {
            ring.extend([moved(from), corner, moved(to)]);
        } else {
            let angle = bend.atan2(along);
            let [mut x, mut y] = from;
            for _ in 0..round(steps_per_radian * angle.abs()).max(1) {
                ring.push(moved([x, y]));
                (x, y) = (x * cosine - sine * y, x * sine + y * cosine);
            }
            ring.push(moved(to));
        }
        before = here;
    }
    ring
}

/// Takes out points that repeat the one before or lie on the line between their neighbours.
fn straighten(ring: &mut Vec<Point>) {
    let mut place = 0;
    let mut unchanged = 0;
    while ring.len() > 2 && unchanged < ring.len() {
        let count = ring.len();
        place %= count;
        let (a, b, c) = (ring[(place + count - 1) % count], ring[place], ring[(place + 1) % count]);
        let [ab, bc] =
            [[a, b], [b, c]].map(|[from, to]| [0, 1].map(|side| i64::from(to[side]) - i64::from(from[side])));
        if ab[1] * bc[0] == ab[0] * bc[1] {
            ring.remove(place);
            // The point before may have become straight.
            place = (place + count - 1) % count;
            unchanged = 0;
        } else {
            place += 1;
            unchanged += 1;
        }
    }
}
