//! A product with weights of few bits that are quantized block by block: inputs are data, packed weights, scales and,
//! each optional, zero points and bias.

use armet_tensor::{ElementType, Shape, Tensor};

use super::matmul::product;
use super::movement::{self, show};
use super::numbers;
use super::support::{broadcast, sum_tolerance, typing};
use crate::evaluate::{optional, tensor};
use crate::{
    Attributes, Case, Context, Dim, EvaluateError, InferError, InferInputs, Numbers, Operator, TensorType,
    Value, ValueType,
};

/// A product with weights of few bits that are quantized block by block: inputs are data, packed weights, scales and, each optional, zero points and bias. Weights of a column lie behind each other, the first in the lowest bits of a byte, every block in bytes of its own.
#[derive(Debug, Clone, PartialEq)]
pub struct MatMulNBits {
    /// Rows of the weights.
    pub rows: usize,
    /// Columns of the weights.
    pub columns: usize,
    /// Bits of a weight: 2, 4 or 8.
    pub bits: usize,
    /// Weights of a column that share a scale.
    pub block: usize,
}

impl MatMulNBits {
    /// Blocks of a column.
    pub fn blocks(&self) -> usize {
        self.rows.div_ceil(self.block)
    }

    /// Bytes of a block.
    pub fn block_bytes(&self) -> usize {
        (self.block * self.bits).div_ceil(8)
    }

    /// Bytes of the zero points of a column, when they are packed.
    pub fn zero_bytes(&self) -> usize {
        (self.blocks() * self.bits).div_ceil(8)
    }

    /// The number at an index of packed bytes.
    pub fn unpack(&self, bytes: &[u8], index: usize) -> u8 {
        let per_byte = 8 / self.bits;
        (bytes[index / per_byte] >> (self.bits * (index % per_byte))) & ((1u16 << self.bits) - 1) as u8
    }

    /// The number that stands for zero in each block of each column.
    ///
    /// # Errors
    /// When they have no meaning as numbers.
    pub fn zeros(&self, given: Option<&Tensor>) -> Result<Vec<f64>, EvaluateError> {
        let blocks = self.blocks();
        match given {
            None => Ok(vec![f64::from(1u16 << (self.bits - 1)); self.columns * blocks]),
            Some(zeros) if zeros.element() == ElementType::U8 => {
                let columns = zeros.bytes().chunks_exact(self.zero_bytes());
                Ok(columns.flat_map(|c| (0..blocks).map(|b| f64::from(self.unpack(c, b)))).collect())
            }
            Some(zeros) => numbers::to_f64(zeros),
        }
    }

    /// The weights as real numbers, column by column.
    ///
    /// # Errors
    /// When the inputs have no meaning as numbers.
    pub fn weights(
        &self,
        packed: &Tensor,
        scales: &Tensor,
        zeros: Option<&Tensor>,
    ) -> Result<Vec<f64>, EvaluateError> {
        let (scales, zeros) = (numbers::to_f64(scales)?, self.zeros(zeros)?);
        let blocks = self.blocks();
        let mut weights = movement::reserve(self.rows * self.columns)?;
        for column in 0..self.columns {
            let bytes = &packed.bytes()[column * blocks * self.block_bytes()..];
            for row in 0..self.rows {
                let block = row / self.block;
                let bytes = &bytes[block * self.block_bytes()..];
                let at = column * blocks + block;
                weights.push((f64::from(self.unpack(bytes, row % self.block)) - zeros[at]) * scales[at]);
            }
        }
        Ok(weights)
    }

    fn check(what: &str, dims: &[Dim], wanted: &[usize]) -> Result<(), InferError> {
        let counts: Option<Vec<usize>> = dims.iter().map(Dim::fixed).collect();
        let count = counts.map(|counts| broadcast::product(&counts));
        if count.is_none_or(|count| wanted.contains(&count)) {
            return Ok(());
        }
        Err(InferError::Mismatch(format!(
            "MatMulNBits: {what} of {} should have {wanted:?} elements",
            show(dims)
        )))
    }
}

impl Operator for MatMulNBits {
    fn name(&self) -> &'static str {
        "MatMulNBits"
    }

    fn attributes(&self) -> Attributes {
        Attributes::none()
            .with("K", self.rows)
            .with("N", self.columns)
            .with("bits", self.bits)
            .with("block_size", self.block)
    }

    fn infer(&self, inputs: &InferInputs<'_>) -> Result<Vec<ValueType>, InferError> {
        let element = typing::element(inputs, 0, "MatMulNBits", ElementType::is_float)?;
        typing::element(inputs, 1, "MatMulNBits", |e| e == ElementType::U8)?;
        typing::element(inputs, 2, "MatMulNBits", ElementType::is_float)?;
        let sizes = [self.rows, self.columns, self.block];
        if !matches!(self.bits, 2 | 4 | 8) || sizes.iter().any(|size| *size == 0 || *size > 1 << 31) {
            return Err(InferError::Mismatch(format!(
                "MatMulNBits has no meaning for {} bits, {} by {} in blocks of {}",
                self.bits, self.rows, self.columns, self.block
            )));
        }
        let blocks = self.columns.saturating_mul(self.blocks());
        // No weights at all stand for a product that is left out.
        let packed = inputs.dims(1)?;
        Self::check("weights", packed, &[blocks.saturating_mul(self.block_bytes()), 0])?;
        if !packed.iter().any(|dim| dim.is(0)) {
            Self::check("scales", inputs.dims(2)?, &[blocks])?;
            if inputs.has(3) {
                let packed =
                    typing::element(inputs, 3, "MatMulNBits", |e| e.is_float() || e == ElementType::U8)?;
                let count = if packed == ElementType::U8 { self.columns * self.zero_bytes() } else { blocks };
                Self::check("zero points", inputs.dims(3)?, &[count])?;
            }
        }
        if inputs.has(4) {
            typing::element(inputs, 4, "MatMulNBits", ElementType::is_float)?;
            Self::check("bias", inputs.dims(4)?, &[self.columns])?;
        }
        let x = inputs.dims(0)?;
        let Some((common, lead)) = x.split_last() else {
            return Err(InferError::Mismatch("MatMulNBits needs data with an axis".into()));
        };
        if common.fixed().is_some_and(|common| common != self.rows) {
            return Err(InferError::Mismatch(format!(
                "MatMulNBits of {} by weights of {} rows",
                show(x),
                self.rows
            )));
        }
        Ok(vec![TensorType::new(element, lead.iter().cloned().chain([Dim::Fixed(self.columns)])).into()])
    }

    fn evaluate(&self, inputs: &[Option<&Value>], _: &Context) -> Result<Vec<Value>, EvaluateError> {
        let (element, shape) = movement::result(self, inputs)?;
        let (x, packed) = (tensor(inputs, 0)?, tensor(inputs, 1)?);
        let mut values = if packed.is_empty() {
            broadcast::filled(&shape, 0.0)?
        } else {
            let weights = self.weights(packed, tensor(inputs, 2)?, optional(inputs, 3))?;
            let rows = x.shape()[..x.shape().len() - 1].iter().product();
            let a = (&numbers::to_f64(x)?[..], &[rows, self.rows][..]);
            let b = (&weights[..], &[self.columns, self.rows][..]);
            product(a, b, false, true, &Shape::from([rows, self.columns]))?
        };
        if let Some(bias) = optional(inputs, 4) {
            let bias = numbers::to_f64(bias)?;
            for row in values.chunks_exact_mut(self.columns) {
                row.iter_mut().zip(&bias).for_each(|(v, bias)| *v += bias);
            }
        }
        Ok(vec![numbers::from_f64(element, shape, &values)?.into()])
    }

    fn operations(&self, _: &[Option<&ValueType>], outputs: &[Option<&ValueType>]) -> u64 {
        typing::count(outputs, 0).saturating_mul(self.rows as u64).saturating_mul(2)
    }

    fn cases() -> Vec<Case> {
        let mut numbers = Numbers::new(31);
        let mut case = |name: &str,
                        bits: usize,
                        [rows, columns, block]: [usize; 3],
                        lead: &[usize],
                        zeros: u8,
                        bias: bool| {
            let op = MatMulNBits { rows, columns, bits, block };
            let blocks = op.blocks();
            let mut bytes = |count: usize| numbers.ints::<u8>([columns, count], 0, 255);
            let weights = bytes(blocks * op.block_bytes());
            let packed = bytes(op.zero_bytes());
            let shape: Shape = lead.iter().copied().chain([rows]).collect();
            let mut inputs = vec![
                Some(numbers.floats(shape, -1.0, 1.0)),
                Some(weights),
                Some(numbers.floats([columns, blocks], 0.01, 0.1)),
            ];
            inputs.push(match zeros {
                0 => None,
                1 => Some(packed),
                _ => Some(numbers.floats([columns, blocks], 6.0, 9.0)),
            });
            inputs.push(bias.then(|| numbers.floats([columns], -1.0, 1.0)));
            let mut case =
                Case::new(name, op, []).with_constants(&[1, 2, 3, 4]).with_tolerance(sum_tolerance(rows));
            case.inputs = inputs;
            case
        };
        vec![
            case("four bits", 4, [64, 17, 32], &[2, 3], 0, false),
            case("one row", 4, [128, 40, 32], &[1], 0, false),
            case("zero points and bias", 4, [96, 9, 32], &[5], 1, true),
            case("an unfinished block", 4, [40, 5, 16], &[3], 1, false),
            case("real zero points", 4, [32, 8, 16], &[1, 4], 2, false),
            case("eight bits", 8, [64, 33, 32], &[7], 1, true),
            case("two bits", 2, [32, 6, 16], &[2], 0, false),
            case("no rows", 4, [32, 6, 16], &[0], 0, false),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_weight_stands_in_the_low_bits() {
        let op = MatMulNBits { rows: 2, columns: 1, bits: 4, block: 2 };
        let weights = Tensor::new([1, 1, 1], &[0x3Au8]).unwrap();
        let scales = Tensor::vector(&[2.0f32]);
        assert_eq!(op.weights(&weights, &scales, None).unwrap(), [4.0, -10.0]);
    }

    #[test]
    fn sizes_must_fit() {
        let op = MatMulNBits { rows: 32, columns: 2, bits: 4, block: 16 };
        let of = |e, shape: &[usize]| Value::from(Tensor::zeros(e, shape).unwrap());
        let (x, w, s) =
            (of(ElementType::F32, &[1, 32]), of(ElementType::U8, &[2, 2, 7]), of(ElementType::F32, &[4]));
        let error = op.evaluate(&[Some(&x), Some(&w), Some(&s)], &Context::default()).unwrap_err();
        assert_eq!(error.to_string(), "MatMulNBits: weights of [2,2,7] should have [32, 0] elements");
    }
}
