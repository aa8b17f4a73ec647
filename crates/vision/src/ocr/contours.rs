//! Borders of the white areas of a mask, by Suzuki and Abe's border following: the points and the order that OpenCV's
//! `findContours(RETR_LIST, CHAIN_APPROX_SIMPLE)` gives.

/// A pixel position: column, row.
pub(crate) type Point = [i32; 2];

/// Steps to the eight neighbours, against the clock from the right.
const STEPS: [Point; 8] = [[1, 0], [1, -1], [0, -1], [-1, -1], [-1, 0], [-1, 1], [0, 1], [1, 1]];

/// Marks on white pixels: not met yet, on a border, on a border with black to the right.
const WHITE: i8 = 1;
const BORDER: i8 = 2;
const RIGHT_BORDER: i8 = -126;

/// The mask with a black rim one pixel wide, on which borders are marked.
struct Canvas {
    marks: Vec<i8>,
    stride: usize,
    neighbours: [isize; 8],
}

impl Canvas {
    fn neighbour(&self, place: usize, direction: usize) -> usize {
        place.wrapping_add_signed(self.neighbours[direction & 7])
    }

    /// Follows the border that begins at `start`, marking it; the points where it changes direction.
    fn follow(&mut self, start: usize, hole: bool) -> Vec<Point> {
        let stride = self.stride;
        let mut point = [(start % stride) as i32 - 1, (start / stride) as i32 - 1];
        let begin = if hole { 0 } else { 4 };
        let mut direction = begin;
        let last = loop {
            direction = (direction + 7) & 7;
            let place = self.neighbour(start, direction);
            if self.marks[place] != 0 {
                break place;
            }
            if direction == begin {
                self.marks[start] = RIGHT_BORDER;
                return vec![point];
            }
        };

        let mut points = Vec::new();
        let mut place = start;
        let mut previous = direction ^ 4;
        loop {
            let from = direction;
            let mut next = place;
            while direction < 15 {
                direction += 1;
                next = self.neighbour(place, direction);
                if self.marks[next] != 0 {
                    break;
                }
            }
            direction &= 7;
            if direction.wrapping_sub(1) < from {
                self.marks[place] = RIGHT_BORDER;
            } else if self.marks[place] == WHITE {
                self.marks[place] = BORDER;
            }
            if direction != previous {
                points.push(point);
            }
            previous = direction;
            let step = STEPS[direction];
            point = [point[0] + step[0], point[1] + step[1]];
            if next == start && place == last {
                return points;
            }
            place = next;
            direction = (direction + 4) & 7;
        }
    }
}

/// The borders, outer ones and those of holes, of the pixels of `mask` that are not nought; the last found first.
/// `mask` holds `width * height` values.
pub(crate) fn contours(mask: &[u8], width: usize, height: usize) -> Vec<Vec<Point>> {
    let stride = width + 2;
    let mut marks = vec![0; stride * (height + 2)];
    for (row, values) in mask.chunks_exact(width).enumerate() {
        for (mark, &value) in marks[(row + 1) * stride + 1..].iter_mut().zip(values) {
            *mark = i8::from(value != 0);
        }
    }
    let neighbours = STEPS.map(|[across, down]| across as isize + down as isize * stride as isize);
    let mut canvas = Canvas { marks, stride, neighbours };
    let mut found = Vec::new();
    for row in 1..=height {
        let mut before = 0;
        for place in row * stride + 1..(row + 1) * stride - 1 {
            let mark = canvas.marks[place];
            if mark == before {
                continue;
            }
            if before == 0 && mark == WHITE {
                found.push(canvas.follow(place, false));
            } else if mark == 0 && before > 0 {
                found.push(canvas.follow(place - 1, true));
            }
            before = canvas.marks[place];
        }
    }
    found.reverse();
    found
}

/// White spread by one pixel to the right and down, as OpenCV's `dilate` with a 2 x 2 kernel spreads it.
pub(crate) fn dilate(mask: &[u8], width: usize, height: usize) -> Vec<u8> {
    let mut output = mask.to_vec();
    for row in 0..height {
        for column in 0..width {
            let above = row > 0
                && (mask[(row - 1) * width + column] != 0
                    || column > 0 && mask[(row - 1) * width + column - 1] != 0);
            let beside = column > 0 && mask[row * width + column - 1] != 0;
            if above || beside {
                output[row * width + column] = 1;
            }
        }
    }
    output
}
