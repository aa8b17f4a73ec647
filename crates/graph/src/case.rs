//! Test cases that belong to an operator: every backend must agree with `evaluate` on them.

use armet_tensor::{Element, ElementType, Shape, Tensor};

use crate::{Op, Value};

/// How far a backend's result may be from the operator's meaning.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Tolerance {
    /// Bit for bit.
    Exact,
    /// Largest difference, as a share of the largest magnitude of the expected values.
    Relative(f32),
    /// Largest difference in stored integer steps.
    Steps(u32),
}

/// One use of an operator with its inputs.
#[derive(Debug, Clone)]
pub struct Case {
    /// Short name, unique within the operator.
    pub name: String,
    /// The operator.
    pub op: Op,
    /// Its inputs.
    pub inputs: Vec<Option<Tensor>>,
    /// Inputs that are no tensors, with their places; `inputs` has nothing there.
    pub others: Vec<(usize, Value)>,
    /// Which inputs are constants when a backend compiles the case.
    pub constants: Vec<usize>,
    /// Number of outputs asked for.
    pub outputs: usize,
    /// How near a result must be.
    pub tolerance: Tolerance,
}

impl Case {
    /// A case with one output and a tolerance of 1e-5, no constants.
    pub fn new(name: impl Into<String>, op: impl Into<Op>, inputs: impl IntoIterator<Item = Tensor>) -> Self {
        Self {
            name: name.into(),
            op: op.into(),
            inputs: inputs.into_iter().map(Some).collect(),
            others: Vec::new(),
            constants: Vec::new(),
            outputs: 1,
            tolerance: Tolerance::Relative(1e-5),
        }
    }

    /// As [`Case::new`], with inputs of any kind.
    pub fn of_values(name: impl Into<String>, op: impl Into<Op>, inputs: Vec<Value>) -> Self {
        let mut case = Self::new(name, op, []);
        for (index, value) in inputs.into_iter().enumerate() {
            case.inputs.push(value.tensor().cloned());
            if value.tensor().is_none() {
                case.others.push((index, value));
            }
        }
        case
    }

    /// All inputs, whatever their kind.
    pub fn values(&self) -> Vec<Option<Value>> {
        let other = |index| self.others.iter().find(|(at, _)| *at == index).map(|(_, value)| value.clone());
        let inputs = self.inputs.iter().enumerate();
        inputs.map(|(index, tensor)| tensor.clone().map(Value::from).or_else(|| other(index))).collect()
    }

    /// With these inputs known at compile time (weights, axes, shapes).
    #[must_use]
    pub fn with_constants(mut self, constants: &[usize]) -> Self {
        self.constants = constants.to_vec();
        self
    }

    /// With another tolerance.
    #[must_use]
    pub fn with_tolerance(mut self, tolerance: Tolerance) -> Self {
        self.tolerance = tolerance;
        self
    }

    /// With this many outputs.
    #[must_use]
    pub fn with_outputs(mut self, outputs: usize) -> Self {
        self.outputs = outputs;
        self
    }

    /// Leaves one input out.
    #[must_use]
    pub fn without_input(mut self, index: usize) -> Self {
        while self.inputs.len() <= index {
            self.inputs.push(None);
        }
        self.inputs[index] = None;
        self
    }
}

/// Reproducible numbers for cases: splitmix64, so that they are the same on every machine.
#[derive(Debug, Clone)]
pub struct Numbers(u64);

impl Numbers {
    /// A stream that depends on the seed alone.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next 64 bits.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// A number in `low..high`.
    pub fn float(&mut self, low: f32, high: f32) -> f32 {
        let unit = (self.bits() >> 40) as f32 / (1u64 << 24) as f32;
        low + (high - low) * unit
    }

    /// A whole number in `low..=high`.
    pub fn int(&mut self, low: i64, high: i64) -> i64 {
        low + (self.bits() % (high - low + 1) as u64) as i64
    }

    /// A tensor of numbers in -2..2 (whole numbers for integer types), made by conversion from `f64`.
    pub fn tensor(&mut self, element: ElementType, shape: impl Into<Shape>) -> Tensor {
        let shape = shape.into();
        let values: Vec<f64> = (0..shape.elements())
            .map(|_| {
                if element.is_float() {
                    f64::from(self.float(-2.0, 2.0))
                } else if element == ElementType::Bool {
                    self.int(0, 1) as f64
                } else {
                    self.int(-5, 5).unsigned_abs() as f64
                }
            })
            .collect();
        crate::ops::numbers::from_f64(element, shape, &values).expect("the count is the product of the shape")
    }

    /// A tensor with elements in `low..high`.
    pub fn floats(&mut self, shape: impl Into<Shape>, low: f32, high: f32) -> Tensor {
        let shape = shape.into();
        let values: Vec<f32> = (0..shape.elements()).map(|_| self.float(low, high)).collect();
        Tensor::new(shape, &values).expect("the count is the product of the shape")
    }

    /// A tensor of whole numbers in `low..=high`.
    pub fn ints<T: Element + TryFrom<i64>>(
        &mut self,
        shape: impl Into<Shape>,
        low: i64,
        high: i64,
    ) -> Tensor {
        let shape = shape.into();
        let values: Vec<T> =
            (0..shape.elements()).filter_map(|_| T::try_from(self.int(low, high)).ok()).collect();
        Tensor::new(shape, &values).expect("the range fits the type")
    }
}
