//! Concrete dimensions.

use smallvec::SmallVec;

/// The dimensions of a tensor, outermost first. A scalar has none.
#[derive(Clone, PartialEq, Eq, Hash, Default)]
pub struct Shape(SmallVec<[usize; 6]>);

impl Shape {
    /// A shape with these dimensions.
    pub fn new(dims: &[usize]) -> Self {
        Self(SmallVec::from_slice(dims))
    }

    /// The shape of a scalar.
    pub fn scalar() -> Self {
        Self::default()
    }

    /// Product of the dimensions; `None` when it overflows.
    pub fn checked_len(&self) -> Option<usize> {
        // A zero anywhere makes the tensor empty however large the rest is.
        if self.0.contains(&0) {
            return Some(0);
        }
        self.0.iter().try_fold(1usize, |product, &dim| product.checked_mul(dim))
    }

    /// Product of the dimensions, saturating.
    pub fn elements(&self) -> usize {
        self.checked_len().unwrap_or(usize::MAX)
    }

    /// The dimensions as a slice.
    pub fn dims(&self) -> &[usize] {
        &self.0
    }

    /// Adds a dimension at the end.
    pub fn push(&mut self, dim: usize) {
        self.0.push(dim);
    }

    /// Inserts a dimension.
    pub fn insert(&mut self, axis: usize, dim: usize) {
        self.0.insert(axis, dim);
    }

    /// Removes a dimension and returns it.
    pub fn remove(&mut self, axis: usize) -> usize {
        self.0.remove(axis)
    }

    /// The shape that two shapes broadcast to by NumPy's rule, or `None`.
    pub fn broadcast(a: &[usize], b: &[usize]) -> Option<Self> {
        let rank = a.len().max(b.len());
        let at = |s: &[usize], i: usize| if i + s.len() < rank { 1 } else { s[i + s.len() - rank] };
        (0..rank)
            .map(|i| match (at(a, i), at(b, i)) {
                (x, y) if x == y => Some(x),
                (1, y) => Some(y),
                (x, 1) => Some(x),
                _ => None,
            })
            .collect()
    }
}

/// Row-major strides, in elements.
pub fn strides(dims: &[usize]) -> SmallVec<[usize; 6]> {
    let mut out: SmallVec<[usize; 6]> = SmallVec::from_elem(1, dims.len());
    for i in (0..dims.len().saturating_sub(1)).rev() {
        // Of an empty tensor single dimensions may be of any size.
        out[i] = out[i + 1].saturating_mul(dims[i + 1]);
    }
    out
}

impl std::ops::Deref for Shape {
    type Target = [usize];
    fn deref(&self) -> &[usize] {
        &self.0
    }
}

impl std::ops::DerefMut for Shape {
    fn deref_mut(&mut self) -> &mut [usize] {
        &mut self.0
    }
}

impl FromIterator<usize> for Shape {
    fn from_iter<I: IntoIterator<Item = usize>>(iter: I) -> Self {
        Self(iter.into_iter().collect())
    }
}

impl From<&[usize]> for Shape {
    fn from(dims: &[usize]) -> Self {
        Self::new(dims)
    }
}

impl From<Vec<usize>> for Shape {
    fn from(dims: Vec<usize>) -> Self {
        Self(SmallVec::from_vec(dims))
    }
}

impl<const N: usize> From<[usize; N]> for Shape {
    fn from(dims: [usize; N]) -> Self {
        Self::new(&dims)
    }
}

impl std::fmt::Display for Shape {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("[")?;
        for (i, dim) in self.0.iter().enumerate() {
            if i > 0 {
                f.write_str(",")?;
            }
            write!(f, "{dim}")?;
        }
        f.write_str("]")
    }
}

impl std::fmt::Debug for Shape {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        std::fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn broadcast_follows_numpy() {
        let b = |a: &[usize], b: &[usize]| Shape::broadcast(a, b).map(|s| s.to_vec());
        assert_eq!(b(&[2, 3], &[3]), Some(vec![2, 3]));
        assert_eq!(b(&[2, 1], &[1, 4]), Some(vec![2, 4]));
        assert_eq!(b(&[], &[5]), Some(vec![5]));
        assert_eq!(b(&[0, 1], &[1, 3]), Some(vec![0, 3]));
        assert_eq!(b(&[2], &[3]), None);
    }

    #[test]
    fn an_empty_axis_makes_the_tensor_empty_however_large_the_rest() {
        assert_eq!(Shape::from([usize::MAX, usize::MAX, 0]).checked_len(), Some(0));
        assert_eq!(Shape::from([usize::MAX, 2]).checked_len(), None);
    }
}
