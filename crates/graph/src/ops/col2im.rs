//! Columns of blocks added up to a picture.

use armet_tensor::Tensor;

use super::support::{broadcast::filled, sliding, typing};
use super::window::{AutoPad, output_dim};
use super::{movement, numbers};
use crate::evaluate::tensor;
use crate::infer::Entry;
use crate::{
    Attributes, Case, Context, Dim, EvaluateError, InferError, InferInputs, Numbers, Operator, Value,
    ValueType,
};

/// Columns of blocks added up to a picture: inputs are columns `[N, C*block, blocks]`, the lengths of the picture, and
/// those of a block.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Col2Im {
    /// Distance between blocks, per spatial axis; empty means 1.
    pub strides: Vec<usize>,
    /// Distance between the elements of a block, per spatial axis; empty means 1.
    pub dilations: Vec<usize>,
    /// Padding: all begins, then all ends; empty means 0.
    pub pads: Vec<usize>,
}

impl Col2Im {
    fn windows(&self) -> sliding::Attributes<'_> {
        sliding::Attributes {
            operator: "Col2Im",
            strides: &self.strides,
            dilations: &self.dilations,
            pads: &self.pads,
        }
    }
}

/// Lengths that an input holds.
fn lengths(given: &[i64]) -> Result<Vec<usize>, InferError> {
    given
        .iter()
        .map(|&n| usize::try_from(n))
        .collect::<Result<_, _>>()
        .map_err(|_| InferError::Mismatch(format!("lengths {given:?} must not be negative")))
}

impl Operator for Col2Im {
    fn name(&self) -> &'static str {
        "Col2Im"
    }

    fn attributes(&self) -> Attributes {
        Attributes::none()
            .with("strides", &self.strides[..])
            .with("dilations", &self.dilations[..])
            .with("pads", &self.pads[..])
    }

    fn infer(&self, inputs: &InferInputs<'_>) -> Result<Vec<ValueType>, InferError> {
        let element = typing::element(inputs, 0, self.name(), typing::is_number)?;
        let columns = inputs.dims(0)?;
        let block = lengths(&inputs.ints(2)?)?;
        let image: Option<Vec<Dim>> = inputs.entries(1)?.iter().map(Entry::dim).collect();
        let fault = || {
            let columns = movement::show(columns);
            InferError::Mismatch(format!("columns of {columns} are not those of blocks of {block:?}"))
        };
        let image = image.filter(|image| image.len() == block.len()).ok_or_else(fault)?;
        if columns.len() != 3 || block.is_empty() {
            return Err(fault());
        }
        let axes = self.windows().axes(&block)?;
        let mut blocks = Dim::Fixed(1);
        for (axis, dim) in axes.into_iter().zip(&image) {
            blocks = blocks.mul(&output_dim(AutoPad::NotSet, axis, dim, false)?);
        }
        let of_block =
            block.iter().try_fold(1usize, |product, &n| product.checked_mul(n)).ok_or_else(fault)?;
        let whole = columns[1].fixed().is_none_or(|n| n % of_block == 0);
        if !whole || movement::unify(&blocks, &columns[2]).is_none() {
            return Err(fault());
        }
        let channels = columns[1].floor_div(&of_block.into());
        Ok(typing::one(element, [columns[0].clone(), channels].into_iter().chain(image)))
    }

    fn evaluate(&self, inputs: &[Option<&Value>], _: &Context) -> Result<Vec<Value>, EvaluateError> {
        let (element, shape) = movement::result(self, inputs)?;
        let columns = tensor(inputs, 0)?;
        let block = lengths(&movement::indices(inputs, 2)?)?;
        let mut out = filled(&shape, 0.0)?;
        let blocks = columns.shape()[2];
        if !out.is_empty() && blocks > 0 {
            let axes = self.windows().axes(&block)?;
            let image = &shape[2..];
            let counts: Vec<usize> =
                axes.iter().zip(image).map(|(axis, &len)| axis.output(len, false)).collect();
            let taps = sliding::taps(&axes, image, &counts);
            let values = numbers::to_f64(columns)?;
            let plane: usize = image.iter().product();
            let of_channel = taps.runs.len() * blocks;
            for (out, columns) in out.chunks_exact_mut(plane).zip(values.chunks_exact(of_channel)) {
                for (columns, runs) in columns.chunks_exact(blocks).zip(&taps.runs) {
                    sliding::scatter(out, columns, 1.0, runs, taps.step);
                }
            }
        }
        Ok(vec![numbers::from_f64(element, shape, &out)?.into()])
    }

    fn operations(&self, inputs: &[Option<&ValueType>], _: &[Option<&ValueType>]) -> u64 {
        movement::element_count(inputs)
    }

    fn cases() -> Vec<Case> {
        use armet_tensor::ElementType::{F32, I32};
        let mut numbers = Numbers::new(77);
        let mut case = |name: &str, op: Self, element, columns: [usize; 3], image: &[i64], block: &[i64]| {
            let inputs = [numbers.tensor(element, columns), Tensor::vector(image), Tensor::vector(block)];
            Case::new(name, op, inputs).with_constants(&[1, 2])
        };
        let padded = Self { strides: vec![2, 1], dilations: vec![1, 2], pads: vec![1, 0, 1, 2] };
        vec![
            case(
                "blocks side by side",
                Self { strides: vec![2, 3], ..Self::default() },
                F32,
                [2, 18, 4],
                &[4, 6],
                &[2, 3],
            ),
            case("blocks that overlap", Self::default(), F32, [1, 8, 6], &[3, 4], &[2, 2]),
            case("padded and dilated", padded, F32, [1, 8, 15], &[5, 5], &[2, 2]),
            case("volume", Self::default(), I32, [1, 8, 4], &[2, 3, 3], &[2, 2, 2]),
            case("no batch", Self::default(), F32, [0, 4, 4], &[3, 3], &[2, 2]),
        ]
    }
}
