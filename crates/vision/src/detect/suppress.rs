//! Non-maximum suppression: of boxes that overlap, the best stays.

/// What the arithmetic is done in: YOLO pipelines use single, PicoDet's uses double precision.
pub(super) trait Number:
    Copy
    + PartialOrd
    + std::ops::Add<Output = Self>
    + std::ops::Sub<Output = Self>
    + std::ops::Mul<Output = Self>
    + std::ops::Div<Output = Self>
{
    const ZERO: Self;
    fn larger(self, other: Self) -> Self;
    fn smaller(self, other: Self) -> Self;
}

macro_rules! number {
    ($type:ty) => {
        impl Number for $type {
            const ZERO: Self = 0.0;
            fn larger(self, other: Self) -> Self {
                self.max(other)
            }
            fn smaller(self, other: Self) -> Self {
                self.min(other)
            }
        }
    };
}
number!(f32);
number!(f64);

/// Left, top, right, bottom.
pub(super) type Corners<T> = [T; 4];

fn area<T: Number>(corners: &Corners<T>) -> T {
    (corners[2] - corners[0]).larger(T::ZERO) * (corners[3] - corners[1]).larger(T::ZERO)
}

/// Indices of the boxes that stay, out of `order` (best first). A box goes where it shares more than `overlap` of the
/// union with one that stays; `epsilon` is added to the union.
pub(super) fn suppress<T: Number>(
    boxes: &[Corners<T>],
    order: &[usize],
    overlap: T,
    epsilon: T,
) -> Vec<usize> {
    let areas: Vec<T> = boxes.iter().map(area).collect();
    let mut left = order.to_vec();
    let mut kept = Vec::new();
    while let Some((&best, rest)) = left.split_first() {
        kept.push(best);
        let chosen = boxes[best];
        let apart = |&other: &usize| {
            let candidate = boxes[other];
            let shared = area(&[
                chosen[0].larger(candidate[0]),
                chosen[1].larger(candidate[1]),
                chosen[2].smaller(candidate[2]),
                chosen[3].smaller(candidate[3]),
            ]);
            shared / (areas[best] + areas[other] - shared + epsilon) <= overlap
        };
        left = rest.iter().copied().filter(apart).collect();
    }
    kept
}

/// Indices of the scores, best first; equal ones in the order they come.
pub(super) fn best_first(scores: &[f32]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..scores.len()).collect();
    order.sort_by(|&a, &b| scores[b].total_cmp(&scores[a]));
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_better_of_two_that_overlap_stays() {
        let boxes = [[0.0f32, 0.0, 10.0, 10.0], [1.0, 1.0, 11.0, 11.0], [20.0, 20.0, 30.0, 30.0]];
        let order = best_first(&[0.5, 0.9, 0.4]);
        assert_eq!(order, [1, 0, 2]);
        assert_eq!(suppress(&boxes, &order, 0.5, 0.0), [1, 2]);
        assert_eq!(suppress(&boxes, &order, 0.7, 0.0), [1, 0, 2]);
    }

    #[test]
    fn boxes_without_area_and_without_numbers_do_no_harm() {
        let boxes = [[3.0f32, 3.0, 3.0, 3.0], [3.0, 3.0, 3.0, 3.0], [f32::NAN; 4], [5.0, 5.0, 4.0, 4.0]];
        let kept = suppress(&boxes, &best_first(&[0.1, 0.2, 0.3, 0.4]), 0.5, 1e-5);
        assert_eq!(kept, [3, 2, 1, 0]);
    }
}
