//! Drawing results onto a picture: boxes, polygons, points, and labels in an 8 x 8 pixel font.
//!
//! Everything is clipped to the picture, whatever the coordinates; nothing here fails.

use font8x8::UnicodeFonts;

use crate::picture::Picture;

/// A colour: red, green, blue.
pub type Colour = [u8; 3];

/// Ten colours that differ well, for the classes of a detector.
const PALETTE: [Colour; 10] = [
    [230, 57, 70],
    [29, 120, 186],
    [42, 157, 60],
    [244, 140, 6],
    [131, 56, 200],
    [0, 150, 160],
    [214, 40, 150],
    [120, 110, 20],
    [90, 90, 100],
    [150, 80, 40],
];

/// Side of a character of the font, in its own pixels.
const CELL: i64 = 8;

/// Coordinates farther out than this are taken as this: far outside any picture, and safe to calculate with.
const FAR: f32 = 1e6;

/// Draws onto a picture.
#[derive(Debug)]
pub struct Canvas<'a> {
    picture: &'a mut Picture,
    /// Width of lines, and size of the font's pixels.
    scale: i64,
}

/// The colour for a class.
pub fn colour(class: usize) -> Colour {
    PALETTE[class % PALETTE.len()]
}

fn near(value: f32) -> i64 {
    // What is not a number is drawn nowhere.
    if value.is_nan() { -(FAR as i64) } else { value.clamp(-FAR, FAR).round() as i64 }
}

impl<'a> Canvas<'a> {
    /// Draws onto this picture, with lines and letters sized to it.
    pub fn new(picture: &'a mut Picture) -> Self {
        let scale = (picture.width().min(picture.height()) as i64 / 250).clamp(1, 16);
        Self { picture, scale }
    }

    /// Width of lines and of the font's pixels instead of what suits the picture; at least 1.
    #[must_use]
    pub fn with_scale(self, scale: usize) -> Self {
        Self { scale: scale.clamp(1, 256) as i64, ..self }
    }

    fn fill(&mut self, left: i64, top: i64, right: i64, bottom: i64, colour: Colour) {
        let (width, height) = (self.picture.width() as i64, self.picture.height() as i64);
        let (left, right) = (left.clamp(0, width) as usize, right.clamp(0, width) as usize);
        let (top, bottom) = (top.clamp(0, height) as usize, bottom.clamp(0, height) as usize);
        if left >= right {
            return;
        }
        let stride = 3 * self.picture.width();
        let rows = self.picture.rgb_mut().chunks_exact_mut(stride).take(bottom).skip(top);
        for row in rows {
            row[3 * left..3 * right].as_chunks_mut::<3>().0.fill(colour);
        }
    }

    /// A dot as wide as a line, around a pixel.
    fn dot(&mut self, x: i64, y: i64, colour: Colour) {
        let (before, after) = ((self.scale - 1) / 2, self.scale / 2 + 1);
        self.fill(x - before, y - before, x + after, y + after, colour);
    }

    /// A line between two points, ends included.
    pub fn line(&mut self, from: [f32; 2], to: [f32; 2], colour: Colour) {
        let Some((from, to)) = self.visible(from.map(near), to.map(near)) else { return };
        let (across, down) = (to[0] - from[0], to[1] - from[1]);
        let steps = across.abs().max(down.abs()).max(1);
        let part = |way: i64, step: i64| (way as f64 * step as f64 / steps as f64).round() as i64;
        for step in 0..=steps {
            self.dot(from[0] + part(across, step), from[1] + part(down, step), colour);
        }
    }

    /// The part of a line that can be seen, a line's width around the picture included.
    fn visible(&self, from: [i64; 2], to: [i64; 2]) -> Option<([i64; 2], [i64; 2])> {
        let (mut begin, mut end) = (0.0f64, 1.0f64);
        for (side, length) in [self.picture.width(), self.picture.height()].into_iter().enumerate() {
            let (least, most) = ((-self.scale) as f64, (length as i64 + self.scale) as f64);
            let (start, way) = (from[side] as f64, (to[side] - from[side]) as f64);
            if way == 0.0 {
                if start < least || start > most {
                    return None;
                }
                continue;
            }
            let (a, b) = ((least - start) / way, (most - start) / way);
            begin = begin.max(a.min(b));
            end = end.min(a.max(b));
        }
        let at = |part: f64| {
            [0, 1].map(|side| (from[side] as f64 + part * (to[side] - from[side]) as f64).round() as i64)
        };
        (begin <= end).then(|| (at(begin), at(end)))
    }

    /// The outline of a polygon.
    pub fn polygon(&mut self, corners: &[[f32; 2]], colour: Colour) {
        for (&from, &to) in corners.iter().zip(corners.iter().cycle().skip(1)) {
            self.line(from, to, colour);
        }
    }

    /// The outline of an upright box.
    pub fn rectangle(&mut self, left: f32, top: f32, right: f32, bottom: f32, colour: Colour) {
        self.polygon(&[[left, top], [right, top], [right, bottom], [left, bottom]], colour);
    }

    /// A filled disc around a point, a few lines wide.
    pub fn point(&mut self, [x, y]: [f32; 2], colour: Colour) {
        let (x, y, radius) = (near(x), near(y), 2 * self.scale);
        for down in -radius..=radius {
            let across = ((radius * radius - down * down) as f64).sqrt() as i64;
            self.fill(x - across, y + down, x + across + 1, y + down + 1, colour);
        }
    }

    /// A text on a ground of this colour, above a point if there is room, else below, and moved so that its beginning
    /// can be read. Characters without a picture in the font become boxes.
    pub fn label(&mut self, [x, y]: [f32; 2], text: &str, ground: Colour) {
        let (x, y, scale) = (near(x), near(y), self.scale);
        let (cell, margin) = (CELL * scale, scale);
        let width = text.chars().count() as i64 * cell + 2 * margin;
        let height = cell + 2 * margin;
        let left = x.min(self.picture.width() as i64 - width).max(0);
        let top = if y >= height { y - height } else { y };
        self.fill(left, top, left + width, top + height, ground);
        let bright =
            ground.iter().zip([299, 587, 114]).map(|(&value, share)| i64::from(value) * share).sum::<i64>();
        let ink = if bright > 140_000 { [0; 3] } else { [255; 3] };
        for (place, character) in (0..).zip(text.chars()) {
            let start = left + margin + place * cell;
            if start >= self.picture.width() as i64 {
                break;
            }
            for (row, bits) in (0..).zip(glyph(character)) {
                for column in (0..CELL).filter(|column| bits >> column & 1 == 1) {
                    let (dot_left, dot_top) = (start + column * scale, top + margin + row * scale);
                    self.fill(dot_left, dot_top, dot_left + scale, dot_top + scale, ink);
                }
            }
        }
    }
}

/// Whether the font has every character of a text. Where it has not, a number beside the box says more.
pub fn has_letters_for(text: &str) -> bool {
    text.chars().all(|character| known(character).is_some())
}

/// Eight rows of a character, the least bit on the left; a box for one that the font has not.
fn glyph(character: char) -> [u8; 8] {
    known(character).unwrap_or([0x00, 0x7e, 0x42, 0x42, 0x42, 0x42, 0x7e, 0x00])
}

fn known(character: char) -> Option<[u8; 8]> {
    font8x8::BASIC_FONTS
        .get(character)
        .or_else(|| font8x8::LATIN_FONTS.get(character))
        .or_else(|| font8x8::GREEK_FONTS.get(character))
        .or_else(|| font8x8::HIRAGANA_FONTS.get(character))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(picture: &Picture, colour: Colour) -> Vec<(usize, usize)> {
        let pixels = picture.rgb().as_chunks::<3>().0.iter().enumerate();
        let places = pixels.filter(|(_, pixel)| **pixel == colour).map(|(place, _)| place);
        places.map(|place| (place % picture.width(), place / picture.width())).collect()
    }

    #[test]
    fn a_box_is_its_outline() {
        let mut picture = Picture::filled(8, 8, [0; 3]).unwrap();
        Canvas::new(&mut picture).rectangle(1.0, 2.0, 4.0, 5.0, [9; 3]);
        let outline: Vec<(usize, usize)> = (0..8)
            .flat_map(|y| (0..8).map(move |x| (x, y)))
            .filter(|(x, y)| (1..=4).contains(x) && (2..=5).contains(y))
            .filter(|(x, y)| [1, 4].contains(x) || [2, 5].contains(y))
            .collect();
        assert_eq!(drawn(&picture, [9; 3]), outline);
    }

    #[test]
    fn lines_that_leave_the_picture_keep_their_direction() {
        let mut picture = Picture::filled(10, 10, [0; 3]).unwrap();
        Canvas::new(&mut picture).line([-100.0, -100.0], [1e9, 1e9], [1; 3]);
        assert_eq!(drawn(&picture, [1; 3]), (0..10).map(|place| (place, place)).collect::<Vec<_>>());
        let mut picture = Picture::filled(10, 10, [0; 3]).unwrap();
        Canvas::new(&mut picture).line([-5.0, 20.0], [20.0, 45.0], [1; 3]);
        assert!(drawn(&picture, [1; 3]).is_empty());
    }

    #[test]
    fn a_label_shows_its_letters_where_there_is_room() {
        let mut picture = Picture::filled(40, 30, [0; 3]).unwrap();
        Canvas::new(&mut picture).label([5.0, 20.0], "T", [200, 0, 0]);
        let ink = drawn(&picture, [255; 3]);
        let rows: Vec<usize> = ink.iter().map(|(_, y)| *y).collect();
        assert!(ink.len() > 10 && rows.iter().all(|row| (11..20).contains(row)), "{ink:?}");
        let bar = ink.iter().filter(|(_, y)| *y == rows[0]).count();
        assert!(bar >= 5, "the bar of the T is its first row");
        // At the upper edge it goes below, at the right edge to the left.
        Canvas::new(&mut picture).label([39.0, 0.0], "ab", [0, 0, 200]);
        let ground = drawn(&picture, [0, 0, 200]);
        assert!(ground.contains(&(22, 0)) && ground.iter().all(|(x, _)| *x >= 22));
    }

    #[test]
    fn no_coordinate_or_text_does_harm() {
        let mut picture = Picture::filled(5, 3, [0; 3]).unwrap();
        let mut canvas = Canvas::new(&mut picture).with_scale(7);
        for value in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, f32::MAX, -1e20, 0.0] {
            canvas.line([value, 1.0], [2.0, value], [1; 3]);
            canvas.polygon(&[[value; 2]; 3], [1; 3]);
            canvas.point([value, 2.0], [1; 3]);
            canvas.label([value; 2], "\u{0}ß文\u{1f600}", [1; 3]);
        }
        canvas.polygon(&[], [1; 3]);
        canvas.label([0.0; 2], "", [1; 3]);
        assert_eq!(colour(0), colour(10));
        assert!(has_letters_for("Grüße, 0.97") && !has_letters_for("文"));
    }
}
