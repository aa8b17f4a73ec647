//! Filling a polygon on a small mask, with its outline, as OpenCV's `fillPoly` fills it.

use super::contours::Point;

const SHIFT: u32 = 16;
const ONE: i64 = 1 << SHIFT;

/// Which bits of a point's position say that it lies above or below the mask.
const ROWS: i64 = 0b1100;

/// A mask of `width * height` flags.
pub(crate) struct Mask {
    pub(crate) width: i64,
    pub(crate) height: i64,
    pub(crate) inside: Vec<bool>,
}

/// One side of the polygon: rows from `top` to below `bottom`, and where it crosses them.
#[derive(Clone, Copy)]
struct Side {
    top: i64,
    bottom: i64,
    x: i64,
    slope: i64,
}

impl Mask {
    pub(crate) fn new(width: usize, height: usize) -> Self {
        Self { width: width as i64, height: height as i64, inside: vec![false; width * height] }
    }

    fn set_row(&mut self, row: i64, from: i64, to: i64) {
        let (from, to) = (from.max(0), to.min(self.width - 1));
        if (0..self.height).contains(&row) && from <= to {
            let start = row * self.width;
            self.inside[(start + from) as usize..=(start + to) as usize].fill(true);
        }
    }

    fn contains(&self, [x, y]: [i64; 2]) -> bool {
        (0..self.width).contains(&x) && (0..self.height).contains(&y)
    }

    /// Fills the polygon, outline included.
    pub(crate) fn fill(&mut self, polygon: &[Point]) {
        let mut sides = Vec::with_capacity(polygon.len());
        let Some(&last) = polygon.last() else { return };
        let mut before = last.map(i64::from);
        for &corner in polygon {
            let here = corner.map(i64::from);
            self.line(before, here);
            if before[1] != here[1] {
                let (mut from, mut to) = (before, here);
                if !self.contains(from) || !self.contains(to) {
                    let (mut clipped_from, mut clipped_to) = (from, to);
                    self.clip(&mut clipped_from, &mut clipped_to);
                    // From a line clipped to one row, only the columns are taken.
                    (from[0], to[0]) = (clipped_from[0], clipped_to[0]);
                    if clipped_from[1] != clipped_to[1] {
                        (from[1], to[1]) = (clipped_from[1], clipped_to[1]);
                    }
                }
                let (from_x, to_x) = (from[0] << SHIFT, to[0] << SHIFT);
                let slope = (to_x - from_x) / (to[1] - from[1]);
                sides.push(if before[1] < here[1] {
                    Side { top: before[1], bottom: here[1], x: from_x + (before[1] - from[1]) * slope, slope }
                } else {
                    Side { top: here[1], bottom: before[1], x: to_x + (here[1] - to[1]) * slope, slope }
                });
            }
            before = here;
        }
        self.fill_between(sides);
    }

    /// Fills between the first and second, third and fourth, ... crossing of each row.
    fn fill_between(&mut self, mut sides: Vec<Side>) {
        sides.sort_by_key(|side| (side.top, side.x, side.slope));
        let Some(first) = sides.first() else { return };
        let first_row = first.top;
        let end_row = sides.iter().map(|side| side.bottom).max().unwrap_or(0).min(self.height);
        let mut waiting = sides.into_iter().peekable();
        let mut active: Vec<Side> = Vec::new();
        for row in first_row..end_row {
            active.retain(|side| side.bottom != row);
            let mut place = 0;
            while let Some(side) = waiting.next_if(|side| side.top == row) {
                place += active[place..].iter().take_while(|other| other.x < side.x).count();
                active.insert(place, side);
                place += 1;
            }
            for pair in active.as_chunks_mut::<2>().0 {
                let (from, to) = (pair[0].x.min(pair[1].x), pair[0].x.max(pair[1].x));
                self.set_row(row, (from + ONE - 1) >> SHIFT, to >> SHIFT);
                for side in pair {
                    side.x += side.slope;
                }
            }
            active.sort_by_key(|side| side.x);
        }
    }

    /// The part of a line that lies on the mask; whether there is any.
    fn clip(&self, from: &mut [i64; 2], to: &mut [i64; 2]) -> bool {
        let (right, bottom) = (self.width - 1, self.height - 1);
        let columns = |x: i64| i64::from(x < 0) + 2 * i64::from(x > right);
        let outside = |[x, y]: [i64; 2]| columns(x) + 4 * i64::from(y < 0) + 8 * i64::from(y > bottom);
        let (mut a, mut b) = (outside(*from), outside(*to));
        if a & b == 0 && a | b != 0 {
            // Each cut uses the ends as they are by then.
            let part = |target: i64, start: i64, run: i64, rise: i64| {
                ((target - start) as f64 * run as f64 / rise as f64) as i64
            };
            if a & ROWS != 0 {
                let row = if a < 8 { 0 } else { bottom };
                from[0] += part(row, from[1], to[0] - from[0], to[1] - from[1]);
                from[1] = row;
                a = columns(from[0]);
            }
            if b & ROWS != 0 {
                let row = if b < 8 { 0 } else { bottom };
                to[0] += part(row, to[1], to[0] - from[0], to[1] - from[1]);
                to[1] = row;
                b = columns(to[0]);
            }
            if a & b == 0 && a | b != 0 {
                if a != 0 {
                    let column = if a == 1 { 0 } else { right };
                    from[1] += part(column, from[0], to[1] - from[1], to[0] - from[0]);
                    from[0] = column;
                    a = 0;
                }
                if b != 0 {
                    let column = if b == 1 { 0 } else { right };
                    to[1] += part(column, to[0], to[1] - from[1], to[0] - from[0]);
                    to[0] = column;
                    b = 0;
                }
            }
        }
        a | b == 0
    }

    /// A line of single pixels that touch at least by their corners.
    fn line(&mut self, mut from: [i64; 2], mut to: [i64; 2]) {
        if (!self.contains(from) || !self.contains(to)) && !self.clip(&mut from, &mut to) {
            return;
        }
        if to[0] < from[0] {
            std::mem::swap(&mut from, &mut to);
        }
        let across = to[0] - from[0];
        let (down, row_step) = ((to[1] - from[1]).abs(), (to[1] - from[1]).signum());
        let steep = down > across;
        let (long, short) = if steep { (down, across) } else { (across, down) };
        let mut error = long - 2 * short;
        let [mut x, mut y] = from;
        for _ in 0..=long {
            self.set_row(y, x, x);
            let aside = error < 0;
            error += if aside { 2 * long - 2 * short } else { -2 * short };
            if steep {
                y += row_step;
                x += i64::from(aside);
            } else {
                x += 1;
                y += if aside { row_step } else { 0 };
            }
        }
    }
}
