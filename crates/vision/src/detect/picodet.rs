//! PicoDet: per stride, class scores and, for each side of a box, a distribution over distances from the cell's centre.

use super::suppress::{Corners, best_first, suppress};
use super::{DetectError, Detection, Head, Thresholds};
use crate::planes::Output;
use crate::presets::Placement;

/// Cells of each level that are looked at, by their best score.
const MOST_CELLS: usize = 1000;
/// Boxes of each class that enter suppression, and that leave it.
const MOST_CANDIDATES: usize = 200;
const MOST_KEPT: usize = 100;

/// Strides 8 to 1024: no network goes further.
const MOST_LEVELS: usize = 8;

/// Whether outputs of these shapes are pairs of scores and distances.
pub(super) fn fits(shapes: &[&[usize]]) -> bool {
    let (scores, distances) = shapes.split_at(shapes.len() / 2);
    let pair = |(scores, distances): (&&[usize], &&[usize])| {
        scores.len() == 3 && distances.len() == 3 && scores[1] == distances[1] && distances[2] % 4 == 0
    };
    scores.len() == distances.len()
        && (1..=MOST_LEVELS).contains(&scores.len())
        && scores.iter().zip(distances).all(pair)
}

pub(super) fn decode(
    outputs: &[Output<'_>],
    placement: &Placement,
    thresholds: &Thresholds,
) -> Result<Vec<Detection>, DetectError> {
    let levels = (outputs.len() / 2).min(MOST_LEVELS);
    if levels == 0 {
        return Err(Head::Picodet.wrong_shape(outputs, outputs.len(), "scores and distances"));
    }
    let mut boxes: Vec<Corners<f64>> = Vec::new();
    let mut scores: Vec<&[f32]> = Vec::new();
    let mut classes = 0;
    for level in 0..levels {
        let stride = 8usize << level;
        let cells_across = placement.width.div_ceil(stride);
        let cells = cells_across * placement.height.div_ceil(stride);
        let wrong =
            |index: usize| Head::Picodet.wrong_shape(outputs, index, "as many rows as the level has cells");
        let &[_, rows, level_classes] = outputs[level].shape else { return Err(wrong(level)) };
        let &[_, distance_rows, sides] = outputs[level + levels].shape else {
            return Err(wrong(level + levels));
        };
        if rows != cells || level_classes == 0 || (level > 0 && level_classes != classes) {
            return Err(wrong(level));
        }
        if distance_rows != cells || sides == 0 || sides % 4 != 0 {
            return Err(wrong(level + levels));
        }
        classes = level_classes;
        let level_scores: Vec<&[f32]> = outputs[level].data.chunks_exact(classes).take(cells).collect();
        let highest = |scores: &&[f32]| scores.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        let best: Vec<f32> = level_scores.iter().map(highest).collect();
        for cell in best_first(&best).into_iter().take(MOST_CELLS) {
            let distribution = &outputs[level + levels].data[cell * sides..][..sides];
            let mut distances =
                distribution.chunks_exact(sides / 4).map(|bins| mean_bin(bins) * stride as f64);
            let [left, top, right, bottom] = std::array::from_fn(|_| distances.next().unwrap_or(0.0));
            let x = ((cell % cells_across) as f64 + 0.5) * stride as f64;
            let y = ((cell / cells_across) as f64 + 0.5) * stride as f64;
            boxes.push([x - left, y - top, x + right, y + bottom]);
            scores.push(level_scores[cell]);
        }
    }

    let mut detections = Vec::new();
    for class in 0..classes {
        let (candidates, of_class): (Vec<usize>, Vec<f32>) = scores
            .iter()
            .enumerate()
            .map(|(index, scores)| (index, scores[class]))
            .filter(|&(_, score)| score > thresholds.score)
            .unzip();
        let order: Vec<usize> =
            best_first(&of_class).into_iter().take(MOST_CANDIDATES).map(|place| candidates[place]).collect();
        for index in suppress(&boxes, &order, f64::from(thresholds.overlap), 1e-5).into_iter().take(MOST_KEPT)
        {
            let [left, top, right, bottom] = boxes[index];
            let across = |x: f64| (x.clamp(0.0, placement.width as f64) / placement.scale_x) as f32;
            let down = |y: f64| (y.clamp(0.0, placement.height as f64) / placement.scale_y) as f32;
            detections.push(Detection {
                left: across(left),
                top: down(top),
                right: across(right),
                bottom: down(bottom),
                score: scores[index][class],
                class,
            });
        }
    }
    Ok(detections)
}

/// The mean bin of a distribution given as logits.
fn mean_bin(logits: &[f32]) -> f64 {
    let highest = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let total: f32 = logits.iter().map(|logit| (logit - highest).exp()).sum();
    let share = |logit: f32| f64::from((logit - highest).exp() / total);
    logits.iter().enumerate().map(|(bin, &logit)| share(logit) * bin as f64).sum()
}
