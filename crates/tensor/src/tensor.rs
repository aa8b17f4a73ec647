//! Owned tensors and views of borrowed bytes.

use std::borrow::Cow;
use std::sync::Arc;

use bytes::Bytes;

use crate::storage::AlignedBytes;
use crate::{Bool, Element, ElementType, Shape, TensorError};

/// Several tensors: inputs or outputs of a model, an operator's results.
pub type Tensors = Vec<Tensor>;

#[derive(Clone)]
enum Data {
    /// Bytes that Armet made: aligned.
    Aligned(Arc<AlignedBytes>),
    /// Bytes of somebody else, a mapped file for instance: any alignment.
    Shared(Bytes),
    /// Text.
    Text(Arc<[String]>),
}

/// A dense, immutable, row-major tensor. Cloning shares the bytes.
#[derive(Clone)]
pub struct Tensor {
    element: ElementType,
    shape: Shape,
    data: Data,
}

fn byte_len(element: ElementType, shape: &Shape) -> Result<usize, TensorError> {
    shape.checked_len().and_then(|n| element.bytes_for(n)).ok_or_else(|| TensorError::TooLarge(shape.clone()))
}

impl Tensor {
    /// A tensor with a copy of `values`.
    ///
    /// # Errors
    /// When the number of values is not the product of the dimensions.
    pub fn new<T: Element>(shape: impl Into<Shape>, values: &[T]) -> Result<Self, TensorError> {
        Self::from_bytes(T::TYPE, shape, bytemuck::cast_slice(values))
    }

    /// A tensor with a copy of `bytes` (little-endian elements).
    ///
    /// # Errors
    /// When the number of bytes does not fit the shape.
    pub fn from_bytes(
        element: ElementType,
        shape: impl Into<Shape>,
        bytes: &[u8],
    ) -> Result<Self, TensorError> {
        let shape = shape.into();
        Self::check(element, &shape, bytes.len())?;
        match AlignedBytes::try_copy_from(bytes) {
            Some(bytes) => Ok(Self { element, shape, data: Data::Aligned(Arc::new(bytes)) }),
            None => Err(TensorError::TooLarge(shape)),
        }
    }

    /// A tensor over shared bytes, nothing copied.
    ///
    /// # Errors
    /// When the number of bytes does not fit the shape.
    pub fn from_shared(
        element: ElementType,
        shape: impl Into<Shape>,
        bytes: Bytes,
    ) -> Result<Self, TensorError> {
        let shape = shape.into();
        Self::check(element, &shape, bytes.len())?;
        Ok(Self { element, shape, data: Data::Shared(bytes) })
    }

    /// A tensor that takes over aligned bytes.
    ///
    /// # Errors
    /// When the number of bytes does not fit the shape.
    pub fn from_aligned(
        element: ElementType,
        shape: impl Into<Shape>,
        bytes: AlignedBytes,
    ) -> Result<Self, TensorError> {
        let shape = shape.into();
        Self::check(element, &shape, bytes.len())?;
        Ok(Self { element, shape, data: Data::Aligned(Arc::new(bytes)) })
    }

    /// A tensor of text.
    ///
    /// # Errors
    /// When the number of texts is not the product of the dimensions.
    pub fn from_strings(shape: impl Into<Shape>, values: Vec<String>) -> Result<Self, TensorError> {
        let shape = shape.into();
        if shape.checked_len() != Some(values.len()) {
            return Err(TensorError::ByteCount {
                element: ElementType::String,
                expected: shape.elements(),
                actual: values.len(),
                shape,
            });
        }
        Ok(Self { element: ElementType::String, shape, data: Data::Text(values.into()) })
    }

    /// A tensor without dimensions.
    pub fn scalar<T: Element>(value: T) -> Self {
        Self {
            element: T::TYPE,
            shape: Shape::scalar(),
            data: Data::Aligned(Arc::new(AlignedBytes::copy_from(bytemuck::bytes_of(&value)))),
        }
    }

    /// A one-dimensional tensor.
    pub fn vector<T: Element>(values: &[T]) -> Self {
        Self {
            element: T::TYPE,
            shape: Shape::from([values.len()]),
            data: Data::Aligned(Arc::new(AlignedBytes::copy_from(bytemuck::cast_slice(values)))),
        }
    }

    /// A tensor of zeros (empty text).
    ///
    /// # Errors
    /// When the shape does not fit in memory.
    pub fn zeros(element: ElementType, shape: impl Into<Shape>) -> Result<Self, TensorError> {
        let shape = shape.into();
        let len = byte_len(element, &shape)?;
        if element == ElementType::String {
            let texts = vec![String::new(); shape.elements()];
            return Self::from_strings(shape, texts);
        }
        match AlignedBytes::try_zeroed(len) {
            Some(bytes) => Ok(Self { element, shape, data: Data::Aligned(Arc::new(bytes)) }),
            None => Err(TensorError::TooLarge(shape)),
        }
    }

    fn check(element: ElementType, shape: &Shape, actual: usize) -> Result<(), TensorError> {
        let expected = byte_len(element, shape)?;
        if element == ElementType::String || expected != actual {
            return Err(TensorError::ByteCount { element, shape: shape.clone(), expected, actual });
        }
        Ok(())
    }

    /// Its element type.
    pub fn element(&self) -> ElementType {
        self.element
    }

    /// Its dimensions.
    pub fn shape(&self) -> &Shape {
        &self.shape
    }

    /// Number of elements.
    pub fn len(&self) -> usize {
        self.shape.elements()
    }

    /// Whether it has no elements.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Its bytes, little-endian; none for text.
    pub fn bytes(&self) -> &[u8] {
        match &self.data {
            Data::Aligned(bytes) => bytes,
            Data::Shared(bytes) => bytes,
            Data::Text(_) => &[],
        }
    }

    /// Its texts; none for numbers.
    pub fn strings(&self) -> &[String] {
        match &self.data {
            Data::Text(texts) => texts,
            _ => &[],
        }
    }

    /// The elements; copied when the bytes are not aligned for `T`.
    ///
    /// # Errors
    /// When the tensor holds another type.
    pub fn values<T: Element>(&self) -> Result<Cow<'_, [T]>, TensorError> {
        self.view().values()
    }

    /// The elements of a tensor whose type the caller has already established.
    ///
    /// # Panics
    /// When it holds another type.
    pub fn expect<T: Element>(&self) -> Cow<'_, [T]> {
        self.values().expect("the caller has checked the element type")
    }

    /// A borrowed view.
    pub fn view(&self) -> TensorView<'_> {
        TensorView { element: self.element, shape: &self.shape, bytes: self.bytes(), strings: self.strings() }
    }

    /// The same elements under another shape; shares the bytes.
    ///
    /// # Errors
    /// When the element counts differ.
    pub fn reshape(&self, shape: impl Into<Shape>) -> Result<Self, TensorError> {
        let shape = shape.into();
        if shape.checked_len() != Some(self.len()) {
            return Err(TensorError::Reshape { from: self.shape.clone(), to: shape });
        }
        Ok(Self { element: self.element, shape, data: self.data.clone() })
    }

    /// A copy with the axes in another order; `None` for text, for elements that share a byte, and for a wrong order.
    pub fn permuted(&self, perm: &[usize]) -> Option<Self> {
        let size = self.element.byte_size()?;
        let from = crate::strides(&self.shape);
        let shape: Shape = perm.iter().map(|&axis| self.shape.get(axis).copied()).collect::<Option<_>>()?;
        if perm.len() != self.shape.len() || shape.elements() != self.len() {
            return None;
        }
        let steps: Vec<usize> = perm.iter().map(|&axis| from[axis] * size).collect();
        let mut bytes = Vec::with_capacity(self.bytes().len());
        let mut index = vec![0; perm.len()];
        for _ in 0..self.len() {
            let at: usize = index.iter().zip(&steps).map(|(i, s)| i * s).sum();
            bytes.extend_from_slice(self.bytes().get(at..at + size)?);
            for axis in (0..index.len()).rev() {
                index[axis] += 1;
                if index[axis] < shape[axis] {
                    break;
                }
                index[axis] = 0;
            }
        }
        Self::from_bytes(self.element, shape, &bytes).ok()
    }

    /// The same bytes read as another element type of equal width.
    ///
    /// # Errors
    /// When the widths differ.
    pub fn reinterpret(&self, element: ElementType) -> Result<Self, TensorError> {
        if element.bits() != self.element.bits() || matches!(self.data, Data::Text(_)) {
            return Err(TensorError::Type { asked: element, actual: self.element });
        }
        Ok(Self { element, shape: self.shape.clone(), data: self.data.clone() })
    }

    /// Integer elements of any width as `i64` (bool counts as 0 or 1); `None` for other types.
    pub fn to_i64(&self) -> Option<Vec<i64>> {
        fn widen<T: Element + Into<i64>>(tensor: &Tensor) -> Vec<i64> {
            tensor.expect::<T>().iter().map(|&v| v.into()).collect()
        }
        Some(match self.element {
            ElementType::I64 => self.expect::<i64>().into_owned(),
            ElementType::I32 => widen::<i32>(self),
            ElementType::I16 => widen::<i16>(self),
            ElementType::I8 => widen::<i8>(self),
            ElementType::U8 => widen::<u8>(self),
            ElementType::U16 => widen::<u16>(self),
            ElementType::U32 => widen::<u32>(self),
            ElementType::U64 => {
                self.expect::<u64>().iter().map(|&v| i64::try_from(v).unwrap_or(i64::MAX)).collect()
            }
            ElementType::Bool => self.expect::<Bool>().iter().map(|v| i64::from(v.get())).collect(),
            _ => return None,
        })
    }

    /// Whether something else holds its bytes too: a clone, or for bytes of somebody else any other part of them.
    pub fn is_shared(&self) -> bool {
        match &self.data {
            Data::Aligned(bytes) => Arc::strong_count(bytes) > 1,
            Data::Shared(bytes) => !bytes.is_unique(),
            Data::Text(text) => Arc::strong_count(text) > 1,
        }
    }

    /// An address that is equal for tensors that share their bytes, and the byte count: a key for caches of packed
    /// weights. Valid while a clone of the tensor is kept alive.
    pub fn identity(&self) -> (usize, usize) {
        (self.bytes().as_ptr().addr(), self.bytes().len())
    }
}

impl PartialEq for Tensor {
    fn eq(&self, other: &Self) -> bool {
        self.element == other.element
            && self.shape == other.shape
            && self.bytes() == other.bytes()
            && self.strings() == other.strings()
    }
}

impl std::fmt::Debug for Tensor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Tensor({}{})", self.element, self.shape)
    }
}

/// A borrowed tensor: numbers only, any alignment.
#[derive(Debug, Clone, Copy)]
pub struct TensorView<'a> {
    element: ElementType,
    shape: &'a [usize],
    bytes: &'a [u8],
    strings: &'a [String],
}

impl<'a> TensorView<'a> {
    /// A view of bytes.
    ///
    /// # Errors
    /// When the number of bytes does not fit the shape.
    pub fn new(element: ElementType, shape: &'a [usize], bytes: &'a [u8]) -> Result<Self, TensorError> {
        Tensor::check(element, &Shape::new(shape), bytes.len())?;
        Ok(Self { element, shape, bytes, strings: &[] })
    }

    /// The same elements under another shape.
    ///
    /// # Errors
    /// When the element counts differ.
    pub fn with_shape<'b>(&self, shape: &'b [usize]) -> Result<TensorView<'b>, TensorError>
    where
        'a: 'b,
    {
        let to = Shape::new(shape);
        if to.checked_len() != Shape::new(self.shape).checked_len() {
            return Err(TensorError::Reshape { from: Shape::new(self.shape), to });
        }
        Ok(TensorView { element: self.element, shape, bytes: self.bytes, strings: self.strings })
    }

    /// Its element type.
    pub fn element(&self) -> ElementType {
        self.element
    }

    /// Its dimensions.
    pub fn shape(&self) -> &'a [usize] {
        self.shape
    }

    /// Its bytes; none for text.
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// Its texts; none for numbers.
    pub fn strings(&self) -> &'a [String] {
        self.strings
    }

    /// The elements; copied when the bytes are not aligned for `T`.
    ///
    /// # Errors
    /// When the view holds another type.
    pub fn values<T: Element>(&self) -> Result<Cow<'a, [T]>, TensorError> {
        if T::TYPE != self.element {
            return Err(TensorError::Type { asked: T::TYPE, actual: self.element });
        }
        Ok(match bytemuck::try_cast_slice(self.bytes) {
            Ok(values) => Cow::Borrowed(values),
            Err(_) => Cow::Owned(bytemuck::pod_collect_to_vec(self.bytes)),
        })
    }

    /// An owned copy.
    pub fn to_tensor(&self) -> Tensor {
        let data = match self.element {
            ElementType::String => Data::Text(self.strings.into()),
            _ => Data::Aligned(Arc::new(AlignedBytes::copy_from(self.bytes))),
        };
        Tensor { element: self.element, shape: Shape::new(self.shape), data }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn misaligned_bytes_are_copied_not_refused() {
        let mut raw = vec![0u8];
        raw.extend_from_slice(bytemuck::cast_slice(&[1.5f32, -2.0]));
        let tensor = Tensor::from_shared(ElementType::F32, [2], Bytes::from(raw).slice(1..)).unwrap();
        assert_eq!(tensor.values::<f32>().unwrap().as_ref(), [1.5, -2.0]);
    }

    #[test]
    fn axes_change_places() {
        let tensor = Tensor::new([2, 3], &[1u16, 2, 3, 4, 5, 6]).unwrap();
        assert_eq!(tensor.permuted(&[1, 0]), Tensor::new([3, 2], &[1u16, 4, 2, 5, 3, 6]).ok());
        assert_eq!(tensor.permuted(&[1, 1]), None);
        assert_eq!(tensor.permuted(&[0]), None);
    }

    #[test]
    fn a_bool_tensor_is_not_a_u8_tensor() {
        let tensor = Tensor::vector(&[Bool(1)]);
        assert!(matches!(tensor.values::<u8>(), Err(TensorError::Type { .. })));
        assert_eq!(tensor.to_i64(), Some(vec![1]));
    }

    #[test]
    fn sizes_that_overflow_are_refused() {
        let huge = Tensor::zeros(ElementType::F32, [usize::MAX, 4]);
        assert!(matches!(huge, Err(TensorError::TooLarge(_))));
        let no_such_block = Tensor::zeros(ElementType::U8, [1 << 60]);
        assert!(matches!(no_such_block, Err(TensorError::TooLarge(_))));
        assert!(Tensor::from_bytes(ElementType::F32, [3], &[0; 8]).is_err());
    }

    #[test]
    fn four_bit_elements_share_bytes() {
        assert_eq!(Tensor::zeros(ElementType::U4, [3]).unwrap().bytes().len(), 2);
    }
}
