//! Channels rearranged into blocks of pixels.

use super::movement;
use crate::evaluate::tensor;
use crate::{
    Attributes, Case, Context, Dim, EvaluateError, InferError, InferInputs, Numbers, Operator, TensorType,
    Tolerance, Value, ValueType,
};

/// Channels rearranged into blocks of pixels.
#[derive(Debug, Clone, PartialEq)]
pub struct DepthToSpace {
    /// Side of a block.
    pub block_size: usize,
    /// Channels are outermost in a group (`CRD`), rather than block positions (`DCR`).
    pub column_row_depth: bool,
}

impl Operator for DepthToSpace {
    fn name(&self) -> &'static str {
        "DepthToSpace"
    }

    fn attributes(&self) -> Attributes {
        Attributes::none()
            .with("blocksize", self.block_size)
            .with("mode", if self.column_row_depth { "CRD" } else { "DCR" })
    }

    fn infer(&self, inputs: &InferInputs<'_>) -> Result<Vec<ValueType>, InferError> {
        let dims = inputs.dims(0)?;
        let group = self.block_size.checked_mul(self.block_size).filter(|&group| group > 0);
        let ([n, channels, h, w], Some(group)) = (dims, group) else {
            return Err(InferError::Mismatch(format!(
                "blocks of side {} cannot be made of the channels of {}",
                self.block_size,
                movement::show(dims)
            )));
        };
        if let Some(count) = channels.fixed()
            && count % group != 0
        {
            return Err(InferError::Mismatch(format!(
                "{count} channels do not fill blocks of {group} pixels"
            )));
        }
        let side = Dim::Fixed(self.block_size);
        let dims = [n.clone(), channels.floor_div(&group.into()), h.mul(&side), w.mul(&side)];
        Ok(vec![TensorType::new(inputs.element(0)?, dims).into()])
    }

    fn evaluate(&self, inputs: &[Option<&Value>], _: &Context) -> Result<Vec<Value>, EvaluateError> {
        let (_, shape) = movement::result(self, inputs)?;
        let data = tensor(inputs, 0)?;
        let block = self.block_size;
        let (channels, from) = (shape[1], data.shape());
        let positions = movement::coordinates(&shape).map(|at| {
            let (row, column) = (at[2] % block, at[3] % block);
            let channel = if self.column_row_depth {
                (at[1] * block + row) * block + column
            } else {
                (row * block + column) * channels + at[1]
            };
            ((at[0] * from[1] + channel) * from[2] + at[2] / block) * from[3] + at[3] / block
        });
        Ok(vec![movement::pick(data, shape.clone(), positions)?.into()])
    }

    fn operations(&self, _: &[Option<&ValueType>], _: &[Option<&ValueType>]) -> u64 {
        0
    }

    fn cases() -> Vec<Case> {
        use armet_tensor::ElementType::{F32, I8};
        let mut numbers = Numbers::new(18);
        [
            ("block positions outermost", 2, false, F32, [1, 8, 3, 5]),
            ("channels outermost", 2, true, F32, [2, 12, 2, 3]),
            ("blocks of three", 3, true, I8, [1, 18, 3, 1]),
            ("blocks of one", 1, false, F32, [1, 3, 2, 2]),
            ("an empty batch", 2, false, F32, [0, 4, 2, 2]),
        ]
        .into_iter()
        .map(|(name, block_size, column_row_depth, element, shape)| {
            Case::new(name, Self { block_size, column_row_depth }, [numbers.tensor(element, shape)])
                .with_tolerance(Tolerance::Exact)
        })
        .collect()
    }
}
