//! YOLO heads: version 5 with objectness, version 8 on without, and the end-to-end form that needs no suppression.

use super::suppress::{Corners, best_first, suppress};
use super::{DetectError, Detection, Head, Thresholds};
use crate::planes::Output;
use crate::presets::Placement;

/// More candidates than this are not compared with each other: only the best are.
const MOST_CANDIDATES: usize = 30_000;

pub(super) fn decode(
    head: Head,
    outputs: &[Output<'_>],
    placement: &Placement,
    thresholds: &Thresholds,
) -> Result<Vec<Detection>, DetectError> {
    let expected = match head {
        Head::Yolov8 => "[1, 4 + classes, boxes]",
        Head::EndToEnd => "[1, boxes, 6]",
        Head::Yolov5 | Head::Picodet => "[1, boxes, 5 + classes]",
    };
    let Some(&Output { shape: &[batch, first, last], data }) = outputs.first() else {
        return Err(head.wrong_shape(outputs, 0, expected));
    };
    let fits = match head {
        Head::Yolov8 => first > 4,
        Head::EndToEnd => last == 6,
        Head::Yolov5 | Head::Picodet => last > 5,
    };
    if !fits || batch == 0 {
        return Err(head.wrong_shape(outputs, 0, expected));
    }

    // Where the numbers of one box lie: they are far apart in version 8, which has the boxes last.
    let (rows, columns, row_stride, column_stride) =
        if head == Head::Yolov8 { (last, first, 1, last) } else { (first, last, last, 1) };
    let at = |row: usize, column: usize| data[row * row_stride + column * column_stride];

    let mut boxes: Vec<Corners<f32>> = Vec::new();
    let mut scores = Vec::new();
    let mut classes = Vec::new();
    for row in 0..rows {
        let (score, class) = match head {
            Head::EndToEnd => (at(row, 4), at(row, 5).max(0.0) as usize),
            Head::Yolov8 => best_class((4..columns).map(|column| at(row, column))),
            Head::Yolov5 | Head::Picodet => {
                let objectness = at(row, 4);
                if objectness <= thresholds.score {
                    continue;
                }
                best_class((5..columns).map(|column| at(row, column) * objectness))
            }
        };
        if score > thresholds.score {
            let [a, b, c, d] = [0, 1, 2, 3].map(|column| at(row, column));
            let corners = match head {
                Head::EndToEnd => [a, b, c, d],
                _ => [a - c / 2.0, b - d / 2.0, a + c / 2.0, b + d / 2.0],
            };
            boxes.push(corners);
            scores.push(score);
            classes.push(class);
        }
    }

    let mut order = best_first(&scores);
    order.truncate(MOST_CANDIDATES);
    let kept = if head == Head::EndToEnd {
        order
    } else {
        let mut present = classes.clone();
        present.sort_unstable();
        present.dedup();
        let stay = |class: usize| {
            let of_class: Vec<usize> =
                order.iter().copied().filter(|&index| classes[index] == class).collect();
            suppress(&boxes, &of_class, thresholds.overlap, 0.0)
        };
        present.into_iter().flat_map(stay).collect()
    };
    let onto_picture = |value: f32, offset: isize, scale: f64, side: usize| {
        ((value - offset as f32) / scale as f32).clamp(0.0, side as f32)
    };
    let across = |x: f32| onto_picture(x, placement.left, placement.scale_x, placement.picture_width);
    let down = |y: f32| onto_picture(y, placement.top, placement.scale_y, placement.picture_height);
    Ok(kept
        .into_iter()
        .map(|index| {
            let [left, top, right, bottom] = boxes[index];
            Detection {
                left: across(left),
                top: down(top),
                right: across(right),
                bottom: down(bottom),
                score: scores[index],
                class: classes[index],
            }
        })
        .collect())
}

/// The highest score and its place; the first of equals.
fn best_class(scores: impl Iterator<Item = f32>) -> (f32, usize) {
    scores.enumerate().fold(
        (f32::NEG_INFINITY, 0),
        |best, (class, score)| {
            if score > best.0 { (score, class) } else { best }
        },
    )
}
