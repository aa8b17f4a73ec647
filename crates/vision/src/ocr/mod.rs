//! Reading text in a picture with three networks: a detector that marks where text is, a classifier that tells lines
//! standing on their head, and a recogniser (PP-OCR).
//!
//! The steps follow the package rapidocr-onnxruntime 1.4.4 with its default settings ([`Settings::default`]):
//!
//! 1. [`Page::new`] brings the picture within bounds; [`Page::detector_input`] goes through the detector,
//! 2. [`Page::boxes`] makes boxes of its output, [`Page::cut`] cuts them out as lines,
//! 3. [`batches`] groups the lines; each batch goes as [`classifier_input`] through the classifier to [`turn`], and
//! 4. (grouped anew) as [`recogniser_input`] through the recogniser to [`Characters::decode`],
//! 5. [`Page::lines`] puts boxes and texts together and leaves out what is not sure enough.
//!
//! [`read`] goes through these steps with a caller's networks.

mod boxes;
mod contours;
mod cut;
mod fill;
mod geometry;
mod offset;
mod page;
mod recognise;
#[cfg(test)]
mod tests;

pub use page::Page;
pub use recognise::{Characters, Text, batches, classifier_input, recogniser_input, turn};

use serde::{Deserialize, Serialize};

use crate::picture::Picture;
use crate::planes::{Output, Planes, Tensor};

/// Four corners from the upper left one, clockwise as seen: across, down.
pub type Quad = [[f32; 2]; 4];

/// Which of the three networks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Network {
    /// `[1, 3, height, width]` to `[1, 1, height, width]`.
    Detector,
    /// `[lines, 3, 48, 192]` to `[lines, 2]`.
    Classifier,
    /// `[lines, 3, 48, width]` to `[lines, steps, characters]`.
    Recogniser,
}

/// One line of text.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Line {
    /// Its corners in the picture's pixels.
    pub corners: Quad,
    /// What it says.
    pub text: String,
    /// How sure the recogniser is, 0 to 1.
    pub confidence: f64,
}

/// Bounds and thresholds of the steps.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub struct Settings {
    /// A picture with a longer side than this is scaled down first.
    pub most_side: usize,
    /// A picture with a shorter side than this is scaled up first.
    pub least_side: usize,
    /// A picture no higher than this gets black above and below.
    pub least_height: usize,
    /// So does one that is wider than this many times its height.
    pub widest: f64,
    /// The detector gets the picture with at least this shorter side.
    pub short_side: usize,
    /// Cells of the detector's map above this are text.
    pub binary: f32,
    /// Whether text is spread by one cell before its borders are followed.
    pub dilate: bool,
    /// Boxes whose mean over the map is below this are left out.
    pub least_score: f64,
    /// Boxes grow by this times their area over the length of their outline.
    pub growth: f64,
    /// At most so many borders are looked at.
    pub most_contours: usize,
    /// At most so many lines go through a network at once.
    pub batch: usize,
    /// A line is turned where the classifier is surer than this.
    pub turn_confidence: f32,
    /// Lines that the recogniser is less sure of are left out.
    pub least_confidence: f64,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            most_side: 2000,
            least_side: 30,
            least_height: 30,
            widest: 8.0,
            short_side: 736,
            binary: 0.3,
            dilate: true,
            least_score: 0.5,
            growth: 1.6,
            most_contours: 1000,
            batch: 6,
            turn_confidence: 0.9,
            least_confidence: 0.5,
        }
    }
}

/// Why text could not be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum OcrError {
    /// A network's output has another form than it should.
    #[error(
        "the {network:?} gave {found} numbers of shape {shape}, not {expected}; is it the PP-OCR network of this kind?"
    )]
    WrongOutput {
        /// Which of the three.
        network: Network,
        /// The shape of its output.
        shape: String,
        /// How many numbers it has.
        found: usize,
        /// What was expected.
        expected: &'static str,
    },
    /// The recogniser carries no characters.
    #[error(
        "the recogniser carries no list of characters (metadata \"character\"); take one of the PP-OCR models that has it"
    )]
    NoCharacters,
    /// The list of characters does not fit the recogniser.
    #[error(
        "the recogniser tells {columns} characters apart, but the list has {characters} with blank and space"
    )]
    CharacterCount {
        /// Columns of its output.
        columns: usize,
        /// Characters in the list, with blank and space.
        characters: usize,
    },
    /// The picture is so elongated that scaling it within bounds leaves nothing.
    #[error("a picture of {width} x {height} pixels is too elongated to be read; cut it into parts")]
    TooElongated {
        /// Width of the picture.
        width: usize,
        /// Height of the picture.
        height: usize,
    },
}

/// Reads the text in a picture, in reading order. `run` puts an input through one of the networks and gives back its
/// first output.
pub fn read<E: From<OcrError>>(
    picture: &Picture,
    characters: &Characters,
    settings: &Settings,
    mut run: impl FnMut(Network, &Planes) -> Result<Tensor, E>,
) -> Result<Vec<Line>, E> {
    let page = Page::new(picture, settings)?;
    let map = run(Network::Detector, &page.detector_input()?)?;
    let boxes = page.boxes(&map.view())?;
    let mut lines: Vec<Picture> = boxes.iter().map(|quad| page.cut(quad)).collect();
    for batch in batches(&lines, settings) {
        let scores = run(Network::Classifier, &classifier_input(&lines, &batch))?;
        turn(&mut lines, &batch, &scores.view(), settings)?;
    }
    let mut texts = vec![Text { text: String::new(), confidence: 0.0 }; lines.len()];
    for batch in batches(&lines, settings) {
        let steps = run(Network::Recogniser, &recogniser_input(&lines, &batch))?;
        let decoded = characters.decode(&steps.view())?;
        if decoded.len() != batch.len() {
            return Err(OcrError::wrong(
                Network::Recogniser,
                &steps.view(),
                "one line for each of the batch",
            )
            .into());
        }
        for (&index, text) in batch.iter().zip(decoded) {
            texts[index] = text;
        }
    }
    Ok(page.lines(&boxes, texts))
}

impl OcrError {
    fn wrong(network: Network, output: &Output<'_>, expected: &'static str) -> Self {
        let shape = format!("{:?}", output.shape);
        Self::WrongOutput { network, shape, found: output.data.len(), expected }
    }
}
