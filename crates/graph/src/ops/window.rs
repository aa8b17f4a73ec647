//! Arithmetic of strided ranges and sliding windows, shared by operators, inference and backends.

use crate::{Dim, InferError};

/// How padding is chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum AutoPad {
    /// As the `pads` attribute says.
    #[default]
    NotSet,
    /// Output is input divided by stride; the odd pixel of padding goes to the end.
    SameUpper,
    /// As `SameUpper`, the odd pixel goes to the beginning.
    SameLower,
    /// No padding.
    Valid,
}

impl AutoPad {
    /// ONNX's word.
    pub const fn name(self) -> &'static str {
        match self {
            Self::NotSet => "NOTSET",
            Self::SameUpper => "SAME_UPPER",
            Self::SameLower => "SAME_LOWER",
            Self::Valid => "VALID",
        }
    }
}

/// The indices that ONNX Slice takes of an axis; `None` for a step of zero.
pub fn slice_range(len: usize, start: i64, end: i64, step: i64) -> Option<SliceRange> {
    if step == 0 {
        return None;
    }
    let n = i64::try_from(len).ok()?;
    if n == 0 {
        return Some(SliceRange { next: 0, step, left: 0 });
    }
    let wrap = |v: i64| if v < 0 { v.saturating_add(n) } else { v };
    let (start, end) = if step > 0 {
        (wrap(start).clamp(0, n), wrap(end).clamp(0, n))
    } else {
        // ONNX differs from NumPy here: a start before the first element counts as the first.
        (wrap(start).clamp(0, n - 1), wrap(end).clamp(-1, n - 1))
    };
    // Wide, as steps may be as large as numbers get.
    let (room, stride) = (i128::from(end) - i128::from(start), i128::from(step));
    let count = if step > 0 { (room + stride - 1) / stride } else { (room + stride + 1) / stride };
    Some(SliceRange { next: start, step, left: usize::try_from(count).unwrap_or(0) })
}

/// The indices of a slice, in order.
#[derive(Debug, Clone)]
pub struct SliceRange {
    next: i64,
    step: i64,
    left: usize,
}

impl SliceRange {
    /// First index; meaningless when the range is empty.
    pub fn start(&self) -> usize {
        usize::try_from(self.next).unwrap_or(0)
    }

    /// Distance between indices.
    pub fn step(&self) -> i64 {
        self.step
    }
}

impl Iterator for SliceRange {
    type Item = usize;

    fn next(&mut self) -> Option<usize> {
        self.left = self.left.checked_sub(1)?;
        let at = self.next;
        self.next = self.next.saturating_add(self.step);
        usize::try_from(at).ok()
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl ExactSizeIterator for SliceRange {}

/// One spatial axis of a sliding window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Axis {
    /// Taps of the kernel.
    pub kernel: usize,
    /// Distance between windows.
    pub stride: usize,
    /// Distance between taps.
    pub dilation: usize,
    /// Padding before the first element.
    pub begin: usize,
    /// Padding after the last element.
    pub end: usize,
}

impl Axis {
    /// Elements that a window covers, gaps included.
    pub fn extent(&self) -> usize {
        (self.kernel.max(1) - 1).saturating_mul(self.dilation).saturating_add(1)
    }

    /// Number of windows over `len` elements.
    pub fn output(&self, len: usize, ceil: bool) -> usize {
        let padded = len.saturating_add(self.begin).saturating_add(self.end);
        let Some(room) = padded.checked_sub(self.extent()) else {
            // Rounded up, a window that begins within the elements counts although its end does not fit.
            return usize::from(ceil && len > 0 && self.extent() - padded < self.stride);
        };
        if !ceil {
            return (room / self.stride).saturating_add(1);
        }
        let windows = room.div_ceil(self.stride).saturating_add(1);
        // A window may not begin in the padding behind the last element.
        let last = (windows - 1).saturating_mul(self.stride);
        if last >= len.saturating_add(self.begin) { windows - 1 } else { windows }
    }
}

/// Resolves the padding of one axis; `len` is the input's length.
pub fn resolve(auto: AutoPad, mut axis: Axis, len: usize) -> Axis {
    match auto {
        AutoPad::NotSet => {}
        AutoPad::Valid => (axis.begin, axis.end) = (0, 0),
        AutoPad::SameUpper | AutoPad::SameLower => {
            let out = len.div_ceil(axis.stride);
            let last = (out.max(1) - 1).saturating_mul(axis.stride);
            // No elements, no windows: padding alone would make one.
            let total = if len == 0 { 0 } else { last.saturating_add(axis.extent()).saturating_sub(len) };
            let (small, large) = (total / 2, total - total / 2);
            (axis.begin, axis.end) = if auto == AutoPad::SameUpper { (small, large) } else { (large, small) };
        }
    }
    axis
}

/// Number of windows over a dimension that may be symbolic.
///
/// # Errors
/// When a stride is zero.
pub fn output_dim(auto: AutoPad, axis: Axis, dim: &Dim, ceil: bool) -> Result<Dim, InferError> {
    if axis.stride == 0 || axis.dilation == 0 || axis.kernel == 0 {
        return Err(InferError::Mismatch("kernel sizes, strides and dilations must be positive".into()));
    }
    if let Some(len) = dim.fixed() {
        return Ok(Dim::Fixed(resolve(auto, axis, len).output(len, ceil)));
    }
    Ok(match auto {
        AutoPad::SameUpper | AutoPad::SameLower => dim.ceil_div(&axis.stride.into()),
        AutoPad::Valid | AutoPad::NotSet => {
            let (begin, end) = if auto == AutoPad::Valid { (0, 0) } else { (axis.begin, axis.end) };
            let margin = begin.saturating_add(end);
            let extent = axis.extent();
            let room = if margin >= extent {
                dim.add(&(margin - extent).into())
            } else {
                dim.sub(&(extent - margin).into())
            };
            let steps =
                if ceil { room.ceil_div(&axis.stride.into()) } else { room.floor_div(&axis.stride.into()) };
            steps.add(&1.into())
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slices_follow_the_specification() {
        let s = |len, a, b, c| slice_range(len, a, b, c).map(Iterator::collect::<Vec<_>>);
        assert_eq!(s(5, 1, 4, 1), Some(vec![1, 2, 3]));
        assert_eq!(s(5, -1, i64::MIN, -2), Some(vec![4, 2, 0]));
        assert_eq!(s(5, 0, i64::MAX, 2), Some(vec![0, 2, 4]));
        assert_eq!(s(5, 10, 20, 1), Some(vec![]));
        assert_eq!(s(0, 0, 1, 1), Some(vec![]));
        assert_eq!(s(0, -1, i64::MIN, -1), Some(vec![]));
        assert_eq!(s(2, -5, i64::MIN, -3), Some(vec![0]));
        assert_eq!(s(3, 0, i64::MAX, i64::MAX), Some(vec![0]));
        assert_eq!(s(3, i64::MAX, i64::MIN, i64::MIN), Some(vec![2]));
        assert_eq!(s(3, 0, 3, 0), None);
    }

    #[test]
    fn same_padding_halves_a_picture() {
        let axis = Axis { kernel: 3, stride: 2, dilation: 1, begin: 0, end: 0 };
        let axis = resolve(AutoPad::SameUpper, axis, 224);
        assert_eq!((axis.begin, axis.end, axis.output(224, false)), (0, 1, 112));
    }

    #[test]
    fn a_pooling_window_may_not_begin_in_the_padding() {
        let axis = Axis { kernel: 2, stride: 2, dilation: 1, begin: 1, end: 1 };
        assert_eq!(axis.output(3, true), 2);
    }

    #[test]
    fn rounding_up_counts_a_window_that_is_a_little_too_long() {
        let axis = Axis { kernel: 4, stride: 2, dilation: 2, begin: 0, end: 0 };
        assert_eq!((axis.output(6, true), axis.output(6, false), axis.output(5, true)), (1, 0, 0));
    }
}
