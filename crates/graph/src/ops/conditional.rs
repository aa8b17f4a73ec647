//! One of two subgraphs. The first input is the condition; the others are the values that the subgraphs use from
//! outside, which are the inputs of both graphs in this order.

use armet_tensor::Tensor;

use crate::evaluate::{evaluate_graph, tensor};
use crate::{
    Attribute, AttributeValue, Attributes, Case, Context, EvaluateError, Graph, InferError, InferInputs,
    Operator, Tolerance, Value, ValueType,
};

/// One of two subgraphs. The first input is the condition; the others are the values that the subgraphs use from outside, which are the inputs of both graphs in this order.
#[derive(Debug, Clone)]
pub struct If {
    /// Run when the condition holds.
    pub then_branch: Box<Graph>,
    /// Run when it does not.
    pub else_branch: Box<Graph>,
}

/// The one truth value of a condition.
pub(super) fn holds(condition: &Tensor) -> Option<bool> {
    match condition.to_i64()?[..] {
        [flag] => Some(flag != 0),
        _ => None,
    }
}

fn no_condition(condition: &Tensor) -> String {
    format!("the condition must be one truth value, not {} {}", condition.element(), condition.shape())
}

/// The arithmetic of one run of a subgraph, as far as its types are known.
pub(super) fn body_operations(graph: &Graph) -> u64 {
    let types = |values: &[Option<crate::ValueId>]| -> Vec<Option<ValueType>> {
        values.iter().map(|v| v.map(|v| graph.value(v).ty.clone())).collect()
    };
    let operations = graph.nodes().map(|(_, node)| {
        let (inputs, outputs) = (types(&node.inputs), types(&node.outputs));
        let inputs: Vec<Option<&ValueType>> = inputs.iter().map(Option::as_ref).collect();
        let outputs: Vec<Option<&ValueType>> = outputs.iter().map(Option::as_ref).collect();
        node.op.operator().operations(&inputs, &outputs)
    });
    operations.fold(0, u64::saturating_add)
}

impl If {
    fn branch(&self, condition: bool) -> &Graph {
        if condition { &self.then_branch } else { &self.else_branch }
    }

    /// Types of a branch's results for these outer values.
    fn branch_types(&self, condition: bool, inputs: &InferInputs<'_>) -> Result<Vec<ValueType>, InferError> {
        let mut graph = self.branch(condition).clone();
        for (i, id) in graph.inputs().to_vec().into_iter().enumerate() {
            graph.value_mut(id).ty = inputs.value_type(i + 1)?.clone();
            if let Ok(value) = inputs.value(i + 1) {
                graph.set_constant(id, value.clone());
            }
        }
        crate::infer::infer(&mut graph)
            .map_err(|error| InferError::Mismatch(format!("in the {condition} branch: {error}")))?;
        Ok(graph.outputs().iter().map(|output| graph.value(output.value).ty.clone()).collect())
    }
}

impl Operator for If {
    fn name(&self) -> &'static str {
        "If"
    }

    fn attributes(&self) -> Attributes {
        let graph =
            |name, graph: &Graph| Attribute { name, value: AttributeValue::Graph(graph.node_count()) };
        Attributes(vec![graph("then_branch", &self.then_branch), graph("else_branch", &self.else_branch)])
    }

    fn infer(&self, inputs: &InferInputs<'_>) -> Result<Vec<ValueType>, InferError> {
        match inputs.value(0) {
            Ok(condition) => {
                let condition =
                    holds(condition).ok_or_else(|| InferError::Mismatch(no_condition(condition)))?;
                self.branch_types(condition, inputs)
            }
            Err(InferError::NeedsValue(_)) => {
                // A branch that is not taken need not fit the inputs, so its faults are none yet.
                match (self.branch_types(true, inputs), self.branch_types(false, inputs)) {
                    (Ok(yes), Ok(no)) if yes == no => Ok(yes),
                    _ => Err(InferError::NeedsValue(0)),
                }
            }
            Err(error) => Err(error),
        }
    }

    fn evaluate(&self, inputs: &[Option<&Value>], context: &Context) -> Result<Vec<Value>, EvaluateError> {
        let condition = tensor(inputs, 0)?;
        let condition = holds(condition).ok_or_else(|| EvaluateError::Invalid(no_condition(condition)))?;
        let graph = self.branch(condition);
        let values: Vec<Value> = (1..=graph.inputs().len())
            .map(|i| inputs.get(i).copied().flatten().cloned().ok_or(EvaluateError::MissingInput(i)))
            .collect::<Result<_, _>>()?;
        evaluate_graph(graph, &values, context.seed)
            .map_err(|error| EvaluateError::Invalid(format!("in the {condition} branch: {error}")))
    }

    fn operations(&self, _: &[Option<&ValueType>], _: &[Option<&ValueType>]) -> u64 {
        // The dearer branch: which one runs is not known beforehand.
        body_operations(&self.then_branch).max(body_operations(&self.else_branch))
    }

    fn cases() -> Vec<Case> {
        use crate::TensorType;
        use crate::ops::{Concat, Transpose};
        use armet_tensor::{Bool, ElementType};
        let branch = |name: &str, transposed: bool| {
            let mut graph = Graph::new(name);
            let data = graph.add_input("data", TensorType::unranked(ElementType::F32));
            let other = graph.add_input("other", TensorType::unranked(ElementType::F32));
            let result = if transposed {
                graph.add("result", Transpose { perm: vec![1, 0] }, [Some(data)])
            } else {
                graph.add("result", Concat { axis: 1 }, [Some(data), Some(other)])
            };
            graph.add_output("result", result);
            Box::new(graph)
        };
        let case = |name: &str, condition: Tensor, other_columns: usize| {
            let op = Self { then_branch: branch("then", true), else_branch: branch("else", false) };
            let mut numbers = crate::Numbers::new(28);
            let data = numbers.tensor(ElementType::F32, [3, 4]);
            let other = numbers.tensor(ElementType::F32, [3, other_columns]);
            Case::new(name, op, [condition, data, other]).with_tolerance(Tolerance::Exact)
        };
        vec![
            case("holds", Tensor::scalar(Bool(1)), 2),
            case("does not hold", Tensor::scalar(Bool(0)), 2),
            case("known beforehand", Tensor::vector(&[Bool(0)]), 1).with_constants(&[0]),
        ]
    }
}
