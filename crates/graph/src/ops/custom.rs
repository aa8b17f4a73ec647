//! Operators that the engine does not know: given by whoever loads the model, found by domain, name and version.

use std::ops::RangeInclusive;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use armet_tensor::{ElementType, Tensor};

use crate::attributes::AttributeValue;
use crate::{
    Attributes, Case, Context, EvaluateError, InferError, InferInputs, Operator, TensorType, Tolerance,
    Value, ValueType,
};

/// One use of a custom operator in a model.
#[derive(Debug, Clone, PartialEq)]
pub struct CustomNode {
    /// The domain of its operator set.
    pub domain: String,
    /// The operator's name.
    pub operator: String,
    /// The version of the operator set that the model names.
    pub opset: i64,
    /// The attributes that the model gives.
    pub attributes: Vec<(String, AttributeValue)>,
    /// How many results the node names, counting unwanted ones before the last wanted one.
    pub outputs: usize,
}

impl CustomNode {
    /// An attribute.
    pub fn attribute(&self, name: &str) -> Option<&AttributeValue> {
        self.attributes.iter().find(|(given, _)| given == name).map(|(_, value)| value)
    }

    /// An attribute that is a whole number.
    pub fn int(&self, name: &str) -> Option<i64> {
        match self.attribute(name)? {
            AttributeValue::Int(value) => Some(*value),
            _ => None,
        }
    }

    /// An attribute that is a real number.
    pub fn float(&self, name: &str) -> Option<f32> {
        match self.attribute(name)? {
            AttributeValue::Float(value) => Some(*value),
            _ => None,
        }
    }

    /// An attribute that is text.
    pub fn text(&self, name: &str) -> Option<&str> {
        match self.attribute(name)? {
            AttributeValue::Text(value) => Some(value),
            _ => None,
        }
    }
}

/// What an operator says when it cannot run.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct CustomFailure(pub String);

impl From<&str> for CustomFailure {
    fn from(text: &str) -> Self {
        Self(text.to_owned())
    }
}

impl From<String> for CustomFailure {
    fn from(text: String) -> Self {
        Self(text)
    }
}

impl From<armet_tensor::TensorError> for CustomFailure {
    fn from(error: armet_tensor::TensorError) -> Self {
        Self(error.to_string())
    }
}

/// An operator of one's own. It sees quantized tensors as the integers they are, in ONNX's layout.
pub trait CustomOperator: std::fmt::Debug + Send + Sync {
    /// The types of all results, unwanted ones included. Dimensions may be names: copy them or compute with
    /// [`Dim`](crate::Dim).
    ///
    /// # Errors
    /// [`InferError::NeedsValue`] or [`InferError::NeedsRank`] when more must be known: it is asked again then. Others say
    /// what is wrong with the node.
    fn infer(&self, node: &CustomNode, inputs: &InferInputs<'_>) -> Result<Vec<ValueType>, InferError>;

    /// The results. They are held to the types that [`CustomOperator::infer`] gives for these very inputs.
    ///
    /// # Errors
    /// When there is no result for these inputs.
    fn run(&self, node: &CustomNode, inputs: &[Option<&Tensor>]) -> Result<Vec<Tensor>, CustomFailure>;

    /// Whether results may hold values that are not a number though no input does. Without it that is an error.
    fn may_give_nan(&self) -> bool {
        false
    }
}

/// What is wrong with a custom operator, and which it was.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("custom operator {operator} of {source_name} {problem}")]
pub struct CustomError {
    /// Domain and name.
    pub operator: String,
    /// The library or the trait's type that gave it.
    pub source_name: String,
    /// What went wrong.
    pub problem: CustomProblem,
}

/// What can be wrong with a custom operator.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CustomProblem {
    /// It said so itself.
    #[error("failed: {0}")]
    Failed(String),
    /// It panicked.
    #[error("panicked: {0}")]
    Panicked(String),
    /// It gave another number of results than it had announced.
    #[error("gave {found} results where it had announced {expected}")]
    Count {
        /// How many it had announced.
        expected: usize,
        /// How many it gave.
        found: usize,
    },
    /// A result is not what it had announced.
    #[error("gave {found} as result {output} where it had announced {expected}")]
    WrongType {
        /// Which result.
        output: usize,
        /// What it had announced.
        expected: String,
        /// What it gave.
        found: String,
    },
    /// A result has an element that is not a number, and no input has.
    #[error("wrote NaN into result {output} at element {index}, and no input holds one")]
    NotANumber {
        /// Which result.
        output: usize,
        /// Which element of it.
        index: usize,
    },
}

/// A custom operator together with where it came from and what it is for.
#[derive(Debug, Clone)]
pub struct CustomRegistration {
    /// The domain of the operator set.
    pub domain: String,
    /// The operator's name.
    pub name: String,
    /// The versions of the operator set that it is right for.
    pub opsets: RangeInclusive<i64>,
    /// Who gave it, as reports name it.
    pub source_name: String,
    /// Whether it is taken although the engine knows an operator of this name.
    pub overrides: bool,
    /// The operator.
    pub operator: Arc<dyn CustomOperator>,
}

/// The custom operators that a model may use. Of two that fit, the last one added is taken.
#[derive(Debug, Clone, Default)]
pub struct CustomOperators(Vec<CustomRegistration>);

impl CustomOperators {
    /// None.
    pub fn new() -> Self {
        Self::default()
    }

    /// One more, written in Rust, for all versions of its operator set.
    #[must_use]
    pub fn with<T: CustomOperator + 'static>(self, domain: &str, name: &str, operator: T) -> Self {
        self.with_opsets(domain, name, 1..=i64::MAX, operator)
    }

    /// One more, written in Rust, for some versions of its operator set.
    #[must_use]
    pub fn with_opsets<T: CustomOperator + 'static>(
        mut self,
        domain: &str,
        name: &str,
        opsets: RangeInclusive<i64>,
        operator: T,
    ) -> Self {
        self.add(CustomRegistration {
            domain: domain.to_owned(),
            name: name.to_owned(),
            opsets,
            source_name: std::any::type_name::<T>().to_owned(),
            overrides: false,
            operator: Arc::new(operator),
        });
        self
    }

    /// The same, the last one taken also where the engine knows an operator of its name.
    #[must_use]
    pub fn overriding(mut self) -> Self {
        if let Some(last) = self.0.last_mut() {
            last.overrides = true;
        }
        self
    }

    /// Adds one.
    pub fn add(&mut self, registration: CustomRegistration) {
        self.0.push(registration);
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = &CustomRegistration> {
        self.0.iter()
    }

    /// The one for a node of a model. ONNX's own domain has the empty name, and `ai.onnx` is the same.
    pub fn find(&self, domain: &str, name: &str, version: i64) -> Option<&CustomRegistration> {
        let own = |domain: &str| domain.is_empty() || domain == "ai.onnx";
        let fits = |r: &&CustomRegistration| {
            let here = r.domain == domain || (own(&r.domain) && own(domain));
            here && r.name == name && r.opsets.contains(&version)
        };
        self.0.iter().rev().find(fits)
    }
}

/// A use of a custom operator. No pass looks into it, and it takes and gives plain layouts.
#[derive(Debug, Clone)]
pub struct Custom {
    /// The node.
    pub node: Arc<CustomNode>,
    /// Who gave the operator.
    pub source_name: Arc<str>,
    operator: Arc<dyn CustomOperator>,
}

impl Custom {
    /// A use of this operator.
    pub fn new(registration: &CustomRegistration, node: CustomNode) -> Self {
        Self {
            node: Arc::new(node),
            source_name: registration.source_name.as_str().into(),
            operator: Arc::clone(&registration.operator),
        }
    }

    /// Domain and name.
    pub fn full_name(&self) -> String {
        match self.node.domain.as_str() {
            "" => self.node.operator.clone(),
            domain => format!("{domain}.{}", self.node.operator),
        }
    }

    fn error(&self, problem: CustomProblem) -> CustomError {
        CustomError { operator: self.full_name(), source_name: self.source_name.to_string(), problem }
    }

    /// What a call gives; a panic in it is a typed error.
    fn call<T>(&self, call: impl FnOnce() -> T) -> Result<T, CustomError> {
        // The operator is shared between threads anyhow, and answers for its own state.
        catch_unwind(AssertUnwindSafe(call)).map_err(|payload| {
            let text = payload.downcast_ref::<&str>().map(|text| (*text).to_owned());
            let text = text.or_else(|| payload.downcast_ref::<String>().cloned());
            self.error(CustomProblem::Panicked(text.unwrap_or_else(|| "no message".into())))
        })
    }

    /// Holds results to what was announced for them.
    fn check(&self, types: &[ValueType], results: &[Tensor], nan: bool) -> Result<(), CustomError> {
        if types.len() != results.len() {
            let (expected, found) = (types.len(), results.len());
            return Err(self.error(CustomProblem::Count { expected, found }));
        }
        for (output, (expected, result)) in types.iter().zip(results).enumerate() {
            let fits = expected.tensor().is_some_and(|ty| {
                let dims = ty.dims.as_deref();
                let fits =
                    |(dim, &length): (&crate::Dim, &usize)| dim.fixed().is_none_or(|dim| dim == length);
                ty.element == result.element()
                    && dims.is_none_or(|dims| {
                        dims.len() == result.shape().len() && dims.iter().zip(result.shape().iter()).all(fits)
                    })
            });
            if !fits {
                let (expected, found) =
                    (expected.to_string(), TensorType::fixed(result.element(), result.shape()));
                let found = found.to_string();
                return Err(self.error(CustomProblem::WrongType { output, expected, found }));
            }
            if let Some(index) = first_nan(result).filter(|_| !nan) {
                return Err(self.error(CustomProblem::NotANumber { output, index }));
            }
        }
        Ok(())
    }
}

/// The first element that is not a number.
fn first_nan(tensor: &Tensor) -> Option<usize> {
    match tensor.element() {
        ElementType::F32 => tensor.view().values::<f32>().ok()?.iter().position(|v| v.is_nan()),
        ElementType::F64 => tensor.view().values::<f64>().ok()?.iter().position(|v| v.is_nan()),
        _ => None,
    }
}

impl Operator for Custom {
    fn name(&self) -> &'static str {
        "Custom"
    }

    fn attributes(&self) -> Attributes {
        let all: Vec<String> =
            self.node.attributes.iter().map(|(name, value)| format!("{name}={value}")).collect();
        Attributes::none()
            .with("operator", self.full_name())
            .with("opset", self.node.opset)
            .with("from", &*self.source_name)
            .with("attributes", all.join(", "))
    }

    fn infer(&self, inputs: &InferInputs<'_>) -> Result<Vec<ValueType>, InferError> {
        let types = self.call(|| self.operator.infer(&self.node, inputs))?.map_err(|error| match error {
            // Whose words these are has to be said; the others are questions.
            InferError::Mismatch(what) => self.error(CustomProblem::Failed(what)).into(),
            other => other,
        })?;
        if types.len() < self.node.outputs {
            let (expected, found) = (self.node.outputs, types.len());
            return Err(self.error(CustomProblem::Count { expected, found }).into());
        }
        Ok(types)
    }

    fn evaluate(&self, inputs: &[Option<&Value>], _: &Context) -> Result<Vec<Value>, EvaluateError> {
        let mut tensors: Vec<Option<&Tensor>> = Vec::with_capacity(inputs.len());
        for (index, input) in inputs.iter().enumerate() {
            tensors.push(match input {
                Some(value) => Some(value.tensor().ok_or(EvaluateError::MissingInput(index))?),
                None => None,
            });
        }
        let of_types: Vec<Option<ValueType>> = tensors
            .iter()
            .map(|tensor| tensor.map(|t| TensorType::fixed(t.element(), t.shape()).into()))
            .collect();
        let known: Vec<Option<crate::InferInput<'_>>> = of_types
            .iter()
            .zip(&tensors)
            .map(|(ty, tensor)| Some(crate::InferInput { ty: ty.as_ref()?, value: *tensor, entries: None }))
            .collect();
        let types = self.infer(&InferInputs(&known))?;
        let results = self
            .call(|| self.operator.run(&self.node, &tensors))?
            .map_err(|failure| self.error(CustomProblem::Failed(failure.0)))?;
        let nan = self.operator.may_give_nan() || tensors.iter().flatten().any(|t| first_nan(t).is_some());
        self.check(&types, &results, nan)?;
        Ok(results.into_iter().map(Value::from).collect())
    }

    fn operations(&self, _: &[Option<&ValueType>], _: &[Option<&ValueType>]) -> u64 {
        0
    }

    fn cases() -> Vec<Case> {
        /// `factor` times the input.
        #[derive(Debug)]
        struct Scaled;

        impl CustomOperator for Scaled {
            fn infer(&self, _: &CustomNode, inputs: &InferInputs<'_>) -> Result<Vec<ValueType>, InferError> {
                if inputs.element(0)? != ElementType::F32 {
                    return Err(InferError::Mismatch("the input must be of float32".into()));
                }
                Ok(vec![inputs.tensor(0)?.clone().into()])
            }

            fn run(
                &self,
                node: &CustomNode,
                inputs: &[Option<&Tensor>],
            ) -> Result<Vec<Tensor>, CustomFailure> {
                let input = inputs.first().copied().flatten().ok_or("the input is missing")?;
                let factor = node.float("factor").unwrap_or(1.0);
                let values = input.view().values::<f32>()?;
                let scaled: Vec<f32> = values.iter().map(|value| value * factor).collect();
                Ok(vec![Tensor::new(input.shape().clone(), &scaled)?])
            }

            fn may_give_nan(&self) -> bool {
                true
            }
        }

        let all = CustomOperators::new().with("test", "Scaled", Scaled);
        let case = |name: &str, shape: &[usize], data: &[f32]| {
            let node = CustomNode {
                domain: "test".into(),
                operator: "Scaled".into(),
                opset: 1,
                attributes: vec![("factor".into(), AttributeValue::Float(2.0))],
                outputs: 1,
            };
            let op = all.iter().map(|registration| Self::new(registration, node.clone())).next();
            let input = Tensor::new(shape, data);
            op.zip(input.ok())
                .map(|(op, input)| Case::new(name, op, [input]).with_tolerance(Tolerance::Exact))
        };
        [
            case("matrix", &[2, 3], &[1.0, -2.0, 0.5, 0.0, 3.0, 4.0]),
            case("empty", &[0, 3], &[]),
            case("scalar", &[], &[1.5]),
        ]
        .into_iter()
        .flatten()
        .collect()
    }
}
