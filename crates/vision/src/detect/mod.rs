//! From the outputs of a detection network to boxes on the picture.
//!
//! [`Head::guess`] tells from the outputs' shapes which family a network belongs to; [`Head::decode`] turns its numbers
//! into [`Detection`]s in the picture's own pixels, best first. Thresholds, box arithmetic and suppression are those of
//! the Python pipelines that the families were published with.

mod labels;
mod picodet;
mod suppress;
mod yolo;

pub use labels::Labels;

use serde::{Deserialize, Serialize};

use crate::planes::Output;
use crate::presets::Placement;

/// One thing found: a box in the picture's pixels, how sure the network is, and of what.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Detection {
    /// Left edge.
    pub left: f32,
    /// Upper edge.
    pub top: f32,
    /// Right edge.
    pub right: f32,
    /// Lower edge.
    pub bottom: f32,
    /// How sure, 0 to 1.
    pub score: f32,
    /// Index of the class; [`Labels::name`] has its name.
    pub class: usize,
}

/// A family of detection networks, by the form of its outputs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Head {
    /// `[1, N, 5 + C]`: centre, size, objectness, class scores.
    Yolov5,
    /// `[1, 4 + C, N]`: centre, size, class scores (YOLOv8, v9, v11).
    Yolov8,
    /// `[1, N, 6]`: corners, score, class, already free of doubles (`YOLOv10`, DocLayout-YOLO).
    EndToEnd,
    /// Per stride 8, 16, 32, ...: `[1, N, C]` scores, then as many `[1, N, 4 * bins]` distance distributions (PicoDet).
    Picodet,
}

/// Which detections to keep.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Thresholds {
    /// Only those above this score.
    pub score: f32,
    /// A box goes where it overlaps a better one of its class by more than this share of their union.
    pub overlap: f32,
    /// At most so many, the best.
    pub most: usize,
}

/// Why outputs could not be decoded.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DetectError {
    /// The shapes fit no known head.
    #[error(
        "outputs of shapes {shapes} belong to no detection head known here (YOLOv5 [1, N, 5 + C], YOLOv8 \
         [1, 4 + C, N], end-to-end [1, N, 6], PicoDet pairs); `run` shows the raw outputs"
    )]
    UnknownHead {
        /// The shapes.
        shapes: String,
    },
    /// An output has a shape that the chosen head does not have.
    #[error("output {index} has shape {shape}, but a {head:?} head has {expected} there")]
    WrongShape {
        /// Which output.
        index: usize,
        /// Its shape.
        shape: String,
        /// The chosen head.
        head: Head,
        /// What was expected.
        expected: &'static str,
    },
    /// The numbers do not fill the stated shape.
    #[error("output {index} of shape {shape} has {found} numbers")]
    WrongLength {
        /// Which output.
        index: usize,
        /// Its shape.
        shape: String,
        /// How many numbers were given.
        found: usize,
    },
}

impl Head {
    /// The head that outputs of these shapes come from.
    ///
    /// `[1, N, 6]` is taken as end-to-end up to 1000 rows, and as a one-class version 5 above.
    pub fn guess(shapes: &[&[usize]]) -> Result<Self, DetectError> {
        match *shapes {
            [&[_, rows, 6]] if rows <= 1000 => Ok(Self::EndToEnd),
            [&[_, first, last]] if first < last && first > 4 => Ok(Self::Yolov8),
            [&[_, first, last]] if first >= last && last > 5 => Ok(Self::Yolov5),
            [_, _, ..] if picodet::fits(shapes) => Ok(Self::Picodet),
            _ => {
                // What a network leaves open arrives as 0.
                let size = |&size: &usize| if size == 0 { "?".to_owned() } else { size.to_string() };
                let shape =
                    |shape: &&[usize]| format!("[{}]", shape.iter().map(size).collect::<Vec<_>>().join(", "));
                let shapes = shapes.iter().map(shape).collect::<Vec<_>>().join(", ");
                Err(DetectError::UnknownHead { shapes })
            }
        }
    }

    /// Name of the preset that pictures for this head are usually prepared by.
    pub fn preset(self) -> &'static str {
        match self {
            Self::Yolov5 | Self::Yolov8 | Self::EndToEnd => "yolo",
            Self::Picodet => "picodet",
        }
    }

    /// The thresholds that the family's own pipeline uses.
    pub fn thresholds(self) -> Thresholds {
        let (score, overlap) = match self {
            Self::Yolov5 => (0.25, 0.45),
            Self::Yolov8 => (0.25, 0.7),
            Self::EndToEnd => (0.2, 1.0),
            Self::Picodet => (0.5, 0.5),
        };
        Thresholds { score, overlap, most: 300 }
    }

    /// The detections in outputs of this head, in the picture's pixels, best first.
    pub fn decode(
        self,
        outputs: &[Output<'_>],
        placement: &Placement,
        thresholds: &Thresholds,
    ) -> Result<Vec<Detection>, DetectError> {
        for (index, output) in outputs.iter().enumerate() {
            if !output.is_filled() {
                let shape = format!("{:?}", output.shape);
                return Err(DetectError::WrongLength { index, shape, found: output.data.len() });
            }
        }
        let mut detections = match self {
            Self::Picodet => picodet::decode(outputs, placement, thresholds)?,
            Self::Yolov5 | Self::Yolov8 | Self::EndToEnd => {
                yolo::decode(self, outputs, placement, thresholds)?
            }
        };
        detections.sort_by(|a, b| b.score.total_cmp(&a.score));
        detections.truncate(thresholds.most);
        Ok(detections)
    }

    fn wrong_shape(self, outputs: &[Output<'_>], index: usize, expected: &'static str) -> DetectError {
        let shape =
            outputs.get(index).map_or_else(|| "none".to_owned(), |output| format!("{:?}", output.shape));
        DetectError::WrongShape { index, shape, head: self, expected }
    }
}
