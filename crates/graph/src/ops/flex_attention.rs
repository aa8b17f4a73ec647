//! Attention whose scores and whose probabilities each go through a subgraph: inputs are queries, keys and values, and
//! the values that the subgraphs use from outside, those of the first before those of the second.

use armet_tensor::{ElementType, Tensor};

use super::attention::{Attention, ScoreStage, by_head, check_groups, core};
use super::movement;
use super::numbers;
use super::support::heads::Heads;
use super::support::typing;
use crate::evaluate::{evaluate_graph, tensor};
use crate::{
    Attribute, AttributeValue, Attributes, Case, Context, EvaluateError, Graph, InferError, InferInputs,
    Operator, TensorType, Value, ValueType,
};

/// Attention whose scores and whose probabilities each go through a subgraph: inputs are queries, keys and values, and the values that the subgraphs use from outside, those of the first before those of the second.
#[derive(Debug, Clone)]
pub struct FlexAttention {
    /// Factor of the scores; one over the root of the head size when not given.
    pub scale: Option<f32>,
    /// Element type of scores and probabilities.
    pub precision: ElementType,
    /// From scores to scores.
    pub score_mod: Option<Box<Graph>>,
    /// From probabilities to probabilities.
    pub prob_mod: Option<Box<Graph>>,
}

/// How many values of outside a subgraph uses.
fn outer(graph: Option<&Graph>) -> usize {
    graph.map_or(0, |graph| graph.inputs().len().saturating_sub(1))
}

impl FlexAttention {
    fn modified(
        &self,
        graph: Option<&Graph>,
        scores: Tensor,
        outside: &[Option<&Value>],
        seed: u64,
    ) -> Result<Tensor, EvaluateError> {
        let Some(graph) = graph else { return Ok(scores) };
        let shape = scores.shape().clone();
        let mut values = vec![Value::from(scores)];
        for (index, value) in outside.iter().enumerate() {
            values.push((*value).ok_or(EvaluateError::MissingInput(3 + index))?.clone());
        }
        let results = evaluate_graph(graph, &values, seed)
            .map_err(|error| EvaluateError::Invalid(format!("in the subgraph: {error}")))?;
        match results.first().and_then(Value::tensor) {
            Some(result) if result.shape() == &shape && result.element() == self.precision => {
                Ok(result.clone())
            }
            _ => {
                let text =
                    format!("the subgraph must make one tensor of {}{shape} of another", self.precision);
                Err(EvaluateError::Invalid(text))
            }
        }
    }
}

impl Operator for FlexAttention {
    fn name(&self) -> &'static str {
        "FlexAttention"
    }

    fn attributes(&self) -> Attributes {
        let mut attributes = vec![];
        for (name, graph) in [("score_mod", &self.score_mod), ("prob_mod", &self.prob_mod)] {
            let count = graph.as_ref().map(|graph| AttributeValue::Graph(graph.node_count()));
            attributes.extend(count.map(|value| Attribute { name, value }));
        }
        let attributes = Attributes(attributes).with("softmax_precision", self.precision.to_string());
        match self.scale {
            Some(scale) => attributes.with("scale", scale),
            None => attributes,
        }
    }

    fn infer(&self, inputs: &InferInputs<'_>) -> Result<Vec<ValueType>, InferError> {
        let element = typing::element(inputs, 0, self.name(), ElementType::is_float)?;
        typing::same_elements(inputs, self.name(), &[0, 1, 2])?;
        let all = [inputs.dims(0)?, inputs.dims(1)?, inputs.dims(2)?];
        let [q, k, v] = all.map(|dims| Heads::of(self.name(), dims, None));
        let (q, k, v) = (q?, k?, v?);
        let pairs = [
            (&q.batch, &k.batch),
            (&k.batch, &v.batch),
            (&k.heads, &v.heads),
            (&k.length, &v.length),
            (&q.size, &k.size),
        ];
        if let Some((a, b)) = pairs.into_iter().find(|(a, b)| movement::unify(a, b).is_none()) {
            return Err(InferError::Mismatch(format!(
                "{}: axes of {a} and {b} should be equal",
                self.name()
            )));
        }
        check_groups(self.name(), &q.heads, &k.heads)?;
        Ok(vec![TensorType::new(element, [q.batch, q.heads, q.length, v.size]).into()])
    }

    fn evaluate(&self, inputs: &[Option<&Value>], context: &Context) -> Result<Vec<Value>, EvaluateError> {
        let (element, shape) = movement::result(self, inputs)?;
        let (q, k, v) = (tensor(inputs, 0)?, tensor(inputs, 1)?, tensor(inputs, 2)?);
        let scores_shape = [q.shape()[0], q.shape()[1], q.shape()[2], k.shape()[2]];
        movement::check_size(self.precision, &scores_shape.into())?;
        let (queries, keys, values) = (by_head(q, None)?, by_head(k, None)?, by_head(v, None)?);
        let zeros = |_, _, _, _| 0.0;
        let head_size = q.shape()[3];
        let scale = Attention { scale: self.scale, ..Attention::PLAIN }.factor(head_size);
        let problem = core::Problem {
            batch: q.shape()[0],
            query_heads: q.shape()[1],
            key_heads: k.shape()[1],
            queries: q.shape()[2],
            keys: k.shape()[2],
            head_size,
            value_size: v.shape()[3],
            q: &queries,
            k: &keys,
            v: &values,
            scale,
            softcap: 0.0,
            element: self.precision,
            precision: self.precision,
            bias: &zeros,
            sink: None,
        };
        let (_, scores) = problem.solve(Some(ScoreStage::Raw))?;
        let scores = numbers::from_f64(self.precision, scores_shape, &scores)?;
        let (score_mod, prob_mod) = (self.score_mod.as_deref(), self.prob_mod.as_deref());
        let outside = inputs.get(3..).unwrap_or_default();
        let split = outer(score_mod).min(outside.len());
        let scores = self.modified(score_mod, scores, &outside[..split], context.seed)?;
        let softmax = super::Softmax { axis: -1, log: false, flatten: false };
        let probabilities = softmax.evaluate(&[Some(&scores.into())], &Context::default())?;
        let probabilities =
            probabilities.first().and_then(Value::tensor).cloned().ok_or(EvaluateError::MissingInput(0))?;
        let probabilities = self.modified(prob_mod, probabilities, &outside[split..], context.seed)?;
        let result = problem.weighted(&numbers::to_f64(&probabilities)?)?;
        Ok(vec![numbers::from_f64(element, shape, &result)?.into()])
    }

    fn operations(&self, inputs: &[Option<&ValueType>], outputs: &[Option<&ValueType>]) -> u64 {
        let body =
            |graph: &Option<Box<Graph>>| graph.as_deref().map_or(0, super::conditional::body_operations);
        let bodies = body(&self.score_mod).saturating_add(body(&self.prob_mod));
        Attention::PLAIN.operations(inputs, outputs).saturating_add(bodies)
    }

    fn cases() -> Vec<Case> {
        use super::{Binary, BinaryKind};
        let scores = || TensorType::unranked(ElementType::F32);
        let mut halved = Graph::new("halved");
        let x = halved.add_input("x", scores());
        let half = halved.add_constant("half", Tensor::scalar(0.5f32));
        let y = halved.add("y", Binary { kind: BinaryKind::Mul }, [Some(x), Some(half)]);
        halved.add_output("y", y);
        let mut shifted = Graph::new("shifted");
        let x = shifted.add_input("x", scores());
        let shift = shifted.add_input("shift", scores());
        let y = shifted.add("y", Binary { kind: BinaryKind::Add }, [Some(x), Some(shift)]);
        shifted.add_output("y", y);
        let mut numbers = crate::Numbers::new(26);
        let mut case = |name: &str, mods: [Option<&Graph>; 2], shapes: &[&[usize]]| {
            let [score_mod, prob_mod] = mods.map(|graph| graph.cloned().map(Box::new));
            let op = FlexAttention { scale: None, precision: ElementType::F32, score_mod, prob_mod };
            let inputs: Vec<Tensor> = shapes.iter().map(|shape| numbers.floats(*shape, -1.0, 1.0)).collect();
            Case::new(name, op, inputs)
        };
        let square: &[usize] = &[1, 2, 3, 4];
        vec![
            case("plain", [None, None], &[square, square, square]),
            case("probabilities halved", [None, Some(&halved)], &[square, square, square]),
            case("both", [Some(&shifted), Some(&halved)], &[&[1, 4, 3, 4], square, square, &[3, 3]]),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_subgraph_must_keep_the_shape() {
        let case = FlexAttention::cases().pop().unwrap();
        let wide = Tensor::zeros(ElementType::F32, [2, 1, 1, 1, 1]).unwrap();
        let mut inputs = case.values();
        inputs[3] = Some(wide.into());
        let inputs: Vec<Option<&Value>> = inputs.iter().map(Option::as_ref).collect();
        let error = case.op.operator().evaluate(&inputs, &Context::default()).unwrap_err();
        assert_eq!(error.to_string(), "the subgraph must make one tensor of float32[1,4,3,3] of another");
    }
}
