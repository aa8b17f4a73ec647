//! Blocks of pixels rearranged into channels.

use super::movement;

use crate::evaluate::tensor;
use crate::{
    Attributes, Case, Context, Dim, EvaluateError, InferError, InferInputs, Numbers, Operator, TensorType,
    Tolerance, Value, ValueType,
};

/// Blocks of pixels rearranged into channels.
#[derive(Debug, Clone, PartialEq)]
pub struct SpaceToDepth {
    /// Side of a block.
    pub block_size: usize,
    /// Channels become outermost in a group (`CRD`), rather than block positions (`DCR`).
    pub column_row_depth: bool,
}

impl Operator for SpaceToDepth {
    fn name(&self) -> &'static str {
        "SpaceToDepth"
    }

    fn attributes(&self) -> Attributes {
        Attributes::none()
            .with("blocksize", self.block_size)
            .with("mode", if self.column_row_depth { "CRD" } else { "DCR" })
    }

    fn infer(&self, inputs: &InferInputs<'_>) -> Result<Vec<ValueType>, InferError> {
        let dims = inputs.dims(0)?;
        let group = self.block_size.checked_mul(self.block_size).filter(|&group| group > 0);
        let fits = |dim: &Dim| dim.fixed().is_none_or(|len| len % self.block_size == 0);
        match (dims, group) {
            ([n, channels, h, w], Some(group)) if fits(h) && fits(w) => {
                let side = Dim::Fixed(self.block_size);
                let dims = [n.clone(), channels.mul(&group.into()), h.floor_div(&side), w.floor_div(&side)];
                Ok(vec![TensorType::new(inputs.element(0)?, dims).into()])
            }
            _ => Err(InferError::Mismatch(format!(
                "a picture of shape {} is not made of blocks of side {}",
                movement::show(dims),
                self.block_size
            ))),
        }
    }

    fn evaluate(&self, inputs: &[Option<&Value>], _: &Context) -> Result<Vec<Value>, EvaluateError> {
        let (_, shape) = movement::result(self, inputs)?;
        let data = tensor(inputs, 0)?;
        let (block, from) = (self.block_size, data.shape());
        let positions = movement::coordinates(&shape).map(|at| {
            let (place, channel) = if self.column_row_depth {
                (at[1] % (block * block), at[1] / (block * block))
            } else {
                (at[1] / from[1], at[1] % from[1])
            };
            let (row, column) = (at[2] * block + place / block, at[3] * block + place % block);
            ((at[0] * from[1] + channel) * from[2] + row) * from[3] + column
        });
        Ok(vec![movement::pick(data, shape.clone(), positions)?.into()])
    }

    fn operations(&self, _: &[Option<&ValueType>], _: &[Option<&ValueType>]) -> u64 {
        0
    }

    fn cases() -> Vec<Case> {
        use armet_tensor::ElementType::{F32, U8};
        let mut numbers = Numbers::new(19);
        [
            ("block positions outermost", 2, false, F32, [1, 3, 4, 6]),
            ("channels outermost", 2, true, F32, [2, 3, 2, 4]),
            ("blocks of three", 3, false, U8, [2, 1, 3, 9]),
            ("blocks of one", 1, false, F32, [1, 3, 2, 5]),
            ("an empty batch", 2, true, F32, [0, 3, 4, 2]),
        ]
        .into_iter()
        .map(|(name, block_size, column_row_depth, element, shape)| {
            Case::new(name, Self { block_size, column_row_depth }, [numbers.tensor(element, shape)])
                .with_tolerance(Tolerance::Exact)
        })
        .collect()
    }
}
