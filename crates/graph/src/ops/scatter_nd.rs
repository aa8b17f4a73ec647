//! A copy of the data with elements or slices written by coordinates.

use armet_tensor::{ElementType, Tensor, strides};

use super::movement::{self, Scatter};
use super::support::broadcast::product;
use crate::evaluate::tensor;
use crate::{
    Attributes, Case, Context, Dim, EvaluateError, InferError, InferInputs, Numbers, Operator, TensorType,
    Tolerance, Value, ValueType,
};

/// A copy of the data with elements or slices written by coordinates: inputs are data, indices, updates.
#[derive(Debug, Clone, PartialEq)]
pub struct ScatterNd {
    /// How an update joins what is there.
    pub reduction: ScatterReduction,
}

/// How a scattered update joins the element that is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum ScatterReduction {
    /// It replaces it.
    #[default]
    None,
    /// Sum.
    Add,
    /// Product.
    Mul,
    /// Larger.
    Max,
    /// Smaller.
    Min,
}

impl ScatterReduction {
    /// ONNX's word.
    pub const fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Add => "add",
            Self::Mul => "mul",
            Self::Max => "max",
            Self::Min => "min",
        }
    }

    /// Refuses to compute with elements that are no numbers.
    pub(super) fn check(self, element: ElementType) -> Result<(), InferError> {
        if self == Self::None || element.is_float() || element.is_integer() || element == ElementType::Bool {
            return Ok(());
        }
        Err(InferError::ElementType { input: 0, element, operator: "Scatter with a reduction" })
    }
}

impl Operator for ScatterNd {
    fn name(&self) -> &'static str {
        "ScatterND"
    }

    fn attributes(&self) -> Attributes {
        Attributes::none().with("reduction", self.reduction.name())
    }

    fn infer(&self, inputs: &InferInputs<'_>) -> Result<Vec<ValueType>, InferError> {
        movement::index_element(self.name(), 1, inputs.element(1)?)?;
        let element = inputs.element(0)?;
        movement::same_element(self.name(), element, 2, inputs.element(2)?)?;
        self.reduction.check(element)?;
        let (data, indices) = (inputs.dims(0)?, inputs.dims(1)?);
        let misfit = || {
            InferError::Mismatch(format!(
                "indices of shape {} do not address data of shape {}",
                movement::show(indices),
                movement::show(data)
            ))
        };
        let (depth, leading) = indices.split_last().ok_or_else(misfit)?;
        // Updates can be compared once the length of a coordinate is known.
        if let Some(depth) = depth.fixed() {
            let rest = data.get(depth..).ok_or_else(misfit)?;
            let wanted: Vec<Dim> = leading.iter().chain(rest).cloned().collect();
            movement::same_dims(&wanted, inputs.dims(2)?)?;
        }
        Ok(vec![TensorType::new(element, data.iter().cloned()).into()])
    }

    fn evaluate(&self, inputs: &[Option<&Value>], _: &Context) -> Result<Vec<Value>, EvaluateError> {
        movement::result(self, inputs)?;
        let (data, updates) = (tensor(inputs, 0)?, tensor(inputs, 2)?);
        let coordinates = movement::indices(inputs, 1)?;
        let shape = tensor(inputs, 1)?.shape();
        let depth = shape.last().copied().unwrap_or(0);
        let count = product(&shape[..shape.len() - 1]);
        let steps = strides(data.shape());
        let run = product(&data.shape()[depth..]);
        let mut scatter = Scatter::new(data, updates, self.reduction)?;
        for write in 0..count {
            let mut to = 0;
            for (i, &len) in data.shape()[..depth].iter().enumerate() {
                to += movement::resolve_index(coordinates[write * depth + i], len)? * steps[i];
            }
            scatter.write(to, write * run, run);
        }
        Ok(vec![scatter.finish()?.into()])
    }

    fn operations(&self, _: &[Option<&ValueType>], _: &[Option<&ValueType>]) -> u64 {
        0
    }

    fn cases() -> Vec<Case> {
        use ElementType::{F32, I64};
        let mut numbers = Numbers::new(25);
        let mut case = |name: &str,
                        reduction,
                        element,
                        data: &[usize],
                        shape: &[usize],
                        indices: &[i64],
                        updates: &[usize]| {
            let indices = Tensor::new(shape, indices).expect("as many indices as the shape has");
            let inputs = [numbers.tensor(element, data), indices, numbers.tensor(element, updates)];
            let rounds = matches!(reduction, ScatterReduction::Add | ScatterReduction::Mul);
            Case::new(name, Self { reduction }, inputs).with_tolerance(if rounds {
                Tolerance::Relative(1e-6)
            } else {
                Tolerance::Exact
            })
        };
        vec![
            case("elements", ScatterReduction::None, F32, &[8], &[4, 1], &[4, 3, 1, -1], &[4]),
            case("rows", ScatterReduction::None, F32, &[4, 3, 2], &[2, 1], &[0, 2], &[2, 3, 2]),
            case("points", ScatterReduction::None, I64, &[3, 4], &[2, 2], &[0, 1, -1, 3], &[2]),
            case("sum of repeated", ScatterReduction::Add, F32, &[3, 2], &[3, 1], &[1, 1, 1], &[3, 2]),
            case("product", ScatterReduction::Mul, F32, &[3], &[2, 1], &[0, 0], &[2]),
            case("larger", ScatterReduction::Max, I64, &[4], &[2, 1], &[3, 2], &[2]),
            case("smaller", ScatterReduction::Min, F32, &[4], &[2, 1], &[3, 2], &[2]),
            case("no updates", ScatterReduction::None, F32, &[4], &[0, 1], &[], &[0]),
        ]
    }
}
