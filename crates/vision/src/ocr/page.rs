//! A picture brought within the bounds that text is read in, and the way back to its own pixels.

use super::boxes::{boxes, reading_order};
use super::cut::cut;
use super::recognise::Text;
use super::{Line, Network, OcrError, Quad, Settings};
use crate::picture::Picture;
use crate::planes::{Output, Planes};
use crate::presets::{Fit, Preparation};
use crate::resize::Filter;

/// Sides are scaled to multiples of this.
const MULTIPLE: usize = 32;

/// The detector is not given more: a strip thirty times as high as wide would come to this, scaled to the least width.
const MOST_DETECTOR_PIXELS: f64 = (1 << 24) as f64;

/// A picture within bounds.
#[derive(Debug, Clone)]
pub struct Page {
    picture: Picture,
    settings: Settings,
    /// Size of the picture as it was.
    width: usize,
    height: usize,
    /// By what coordinates are multiplied to be those of the picture as it was, once the padding is taken off.
    ratio: [f32; 2],
    /// Black rows added above (and below).
    padding: usize,
}

impl Page {
    /// Scales and pads a picture as the settings say.
    pub fn new(picture: &Picture, settings: &Settings) -> Result<Self, OcrError> {
        let (width, height) = (picture.width(), picture.height());
        let mut page = Self {
            picture: picture.clone(),
            settings: settings.clone(),
            width,
            height,
            ratio: [1.0; 2],
            padding: 0,
        };
        let longer = width.max(height);
        if longer > settings.most_side {
            page.scale(settings.most_side as f64 / longer as f64)?;
        }
        let shorter = page.picture.width().min(page.picture.height());
        if shorter < settings.least_side {
            page.scale(settings.least_side as f64 / shorter as f64)?;
        }
        page.pad();
        Ok(page)
    }

    fn scale(&mut self, ratio: f64) -> Result<(), OcrError> {
        let (width, height) = (self.picture.width(), self.picture.height());
        let scaled = |side: usize| {
            let side = (side as f64 * ratio) as usize;
            (side as f64 / MULTIPLE as f64).round_ties_even() as usize * MULTIPLE
        };
        let (to_width, to_height) = (scaled(width), scaled(height));
        // A line one pixel high grows to a very long one; nothing that size can be text.
        let most = self.settings.most_side.saturating_mul(16).max(1 << 16);
        if to_width == 0 || to_height == 0 || to_width > most || to_height > most {
            return Err(OcrError::TooElongated { width: self.width, height: self.height });
        }
        self.picture = self.picture.resized(to_width, to_height, Filter::Linear);
        self.ratio = [(width as f64 / to_width as f64) as f32, (height as f64 / to_height as f64) as f32];
        Ok(())
    }

    /// Adds black above and below a low or very wide picture: the detector misses text that fills the height.
    fn pad(&mut self) {
        let (width, height) = (self.picture.width(), self.picture.height());
        if height > self.settings.least_height && width as f64 / height as f64 <= self.settings.widest {
            return;
        }
        let wanted = ((width as f64 / self.settings.widest) as usize).max(self.settings.least_height) * 2;
        self.padding = wanted.abs_diff(height) / 2;
        let rows = |count: usize| vec![0; 3 * width * count];
        let rgb = [rows(self.padding), self.picture.rgb().to_vec(), rows(self.padding)].concat();
        self.picture = Picture::new(width, height + 2 * self.padding, rgb).expect("whole rows were added");
    }

    /// The picture within bounds, which boxes refer to.
    pub fn picture(&self) -> &Picture {
        &self.picture
    }

    /// What the detector is to be given.
    pub fn detector_input(&self) -> Result<Planes, OcrError> {
        let fit = Fit::ShortSideAtLeast { side: self.settings.short_side, multiple: MULTIPLE };
        let preparation =
            Preparation { fit, ..Preparation::named("ppocr-det").expect("a preset of this crate") };
        let (width, height) = (self.picture.width(), self.picture.height());
        let growth = (self.settings.short_side as f64 / width.min(height) as f64).max(1.0);
        let elongated = OcrError::TooElongated { width: self.width, height: self.height };
        if width as f64 * height as f64 * growth * growth > MOST_DETECTOR_PIXELS {
            return Err(elongated);
        }
        preparation.apply(&self.picture, None, None).map(|prepared| prepared.planes).map_err(|_| elongated)
    }

    /// Boxes of text in this page's pixels, in reading order, out of the detector's `[1, 1, height, width]` map.
    pub fn boxes(&self, output: &Output<'_>) -> Result<Vec<Quad>, OcrError> {
        let wrong = || OcrError::wrong(Network::Detector, output, "a map [1, 1, height, width]");
        let &[1, 1, rows, columns] = output.shape else { return Err(wrong()) };
        if rows.checked_mul(columns) != Some(output.data.len()) || output.data.is_empty() {
            return Err(wrong());
        }
        let (width, height) = (self.picture.width(), self.picture.height());
        let mut found = boxes(output.data, columns, rows, width, height, &self.settings);
        reading_order(&mut found);
        Ok(found)
    }

    /// The text in a box, as a line that lies.
    pub fn cut(&self, quad: &Quad) -> Picture {
        cut(&self.picture, quad)
    }

    /// A box in the pixels of the picture as it was.
    pub fn to_picture(&self, quad: &Quad) -> Quad {
        quad.map(|[x, y]| {
            [
                (x * self.ratio[0]).clamp(0.0, self.width as f32),
                ((y - self.padding as f32) * self.ratio[1]).clamp(0.0, self.height as f32),
            ]
        })
    }

    /// The lines that the recogniser is sure enough of, with corners in the pixels of the picture as it was.
    pub fn lines(&self, boxes: &[Quad], texts: Vec<Text>) -> Vec<Line> {
        boxes
            .iter()
            .zip(texts)
            .filter(|(_, text)| text.confidence >= self.settings.least_confidence)
            .map(|(quad, Text { text, confidence })| Line {
                corners: self.to_picture(quad),
                text,
                confidence,
            })
            .collect()
    }
}
