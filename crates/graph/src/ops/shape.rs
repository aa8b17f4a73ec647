//! The dimensions of a tensor, as an int64 vector (ONNX Shape).

/// The dimensions of a tensor, as an int64 vector (ONNX Shape).
#[derive(Debug, Clone, PartialEq)]
pub struct ShapeOf {
    /// First dimension; negative counts from the end.
    pub start: i64,
    /// Dimension to stop before; `None` for all.
    pub end: Option<i64>,
}

impl ShapeOf {
    /// The axes that are given for a tensor of this rank.
    pub fn range(&self, rank: usize) -> std::ops::Range<usize> {
        let n = i64::try_from(rank).unwrap_or(i64::MAX);
        let clamp = |v: i64| usize::try_from((if v < 0 { v.saturating_add(n) } else { v }).clamp(0, n)).unwrap_or(0);
        let (start, end) = (clamp(self.start), self.end.map_or(rank, clamp));
        start..end.max(start)
    }
}

super::support::pending!(ShapeOf);
