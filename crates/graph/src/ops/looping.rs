//! A subgraph that runs again and again. Scan is written with it, too.

use armet_tensor::{Bool, ElementType, Shape, Tensor};

use super::conditional::{body_operations, holds};
use super::movement::{self, Elements};
use crate::evaluate::{optional, value};
use crate::{
    Attribute, AttributeValue, Attributes, Case, Context, Dim, EvaluateError, Graph, InferError, InferInputs,
    Op, Operator, TensorType, Tolerance, Value, ValueType,
};

/// Most turns of one loop: what goes on for longer is taken for one that never ends.
pub const MOST_TURNS: u64 = 1 << 24;

/// Rounds in which the types of carried values may settle before nothing is said of their shapes.
const ROUNDS: usize = 6;

/// A subgraph that runs again and again.
///
/// Inputs: the number of turns (optional), the condition (optional), the carried values, and the values that the body uses
/// from outside. Inputs of the body: the number of the turn, the condition (which holds whenever the body runs), the
/// carried values, the outer values. Results of the body: whether to go on, the carried values, and what is stacked.
/// Results: the carried values as the last turn left them, and each stacked result of all turns along a new first axis.
#[derive(Debug, Clone)]
pub struct Loop {
    /// What runs.
    pub body: Box<Graph>,
    /// Number of values that a turn hands to the next.
    pub carried: usize,
}

/// What is known of the number of turns.
enum Turns {
    /// This many, unless the condition ends it.
    Most(Dim),
    /// As many as data says.
    Data,
    /// No end but the condition's.
    Open,
}

impl Loop {
    /// Number of results that are stacked.
    pub fn stacked(&self) -> usize {
        self.body.outputs().len().saturating_sub(1 + self.carried)
    }

    fn turns(&self, inputs: &InferInputs<'_>) -> Result<Turns, InferError> {
        if !inputs.has(0) {
            return Ok(Turns::Open);
        }
        movement::index_element(self.name(), 0, inputs.element(0)?)?;
        match inputs.entries(0) {
            Ok(entries) => match &entries[..] {
                [entry] => Ok(Turns::Most(entry.dim().unwrap_or(Dim::Fixed(0)))),
                _ => Err(InferError::Mismatch("the number of turns must be one integer".into())),
            },
            Err(InferError::NeedsValue(_)) => Ok(Turns::Data),
            Err(error) => Err(error),
        }
    }

    /// The types of the body's results for these carried values, and whether it surely asks to go on.
    fn body_types(
        &self,
        carried: &[ValueType],
        inputs: &InferInputs<'_>,
    ) -> Result<(Vec<ValueType>, bool), InferError> {
        let mut graph = (*self.body).clone();
        let ids = graph.inputs().to_vec();
        let expected = 2 + self.carried;
        if ids.len() < expected || graph.outputs().len() < 1 + self.carried {
            return Err(InferError::Mismatch("the body has too few inputs or results".into()));
        }
        graph.value_mut(ids[0]).ty = TensorType::fixed(ElementType::I64, &[]).into();
        let condition = match inputs.tensor(1).ok().and_then(TensorType::shape) {
            Some(shape) if shape.elements() == 1 => Tensor::new(shape, &[Bool(1)]).ok(),
            _ => None,
        };
        graph.set_constant(ids[1], condition.unwrap_or_else(|| Tensor::scalar(Bool(1))));
        for (&id, ty) in ids[2..].iter().zip(carried) {
            graph.value_mut(id).ty = ty.clone();
        }
        for (index, &id) in ids.iter().enumerate().skip(expected) {
            graph.value_mut(id).ty = inputs.value_type(index)?.clone();
            if let Ok(value) = inputs.value(index) {
                graph.set_constant(id, value.clone());
            }
        }
        let inference = crate::infer::infer(&mut graph)
            .map_err(|error| InferError::Mismatch(format!("in the body: {error}")))?;
        let goes_on = graph.outputs()[0].value;
        let known = inference.known.iter().find(|(id, _)| *id == goes_on).map(|(_, tensor)| tensor);
        let always = graph.constant(goes_on).or(known).and_then(holds) == Some(true);
        Ok((graph.outputs().iter().map(|o| graph.value(o.value).ty.clone()).collect(), always))
    }

    /// The types of carried values that hold before and behind every turn, and those of one turn's results.
    fn settled(
        &self,
        mut carried: Vec<ValueType>,
        inputs: &InferInputs<'_>,
    ) -> Result<(Vec<ValueType>, Vec<ValueType>, bool), InferError> {
        // The rounds of loops inside each other would multiply: what holds other loops gets one.
        let rounds = if holds_loop(&self.body) { 1 } else { ROUNDS };
        for round in 1..=rounds {
            let (types, always) = self.body_types(&carried, inputs)?;
            let joined: Vec<ValueType> = carried
                .iter()
                .zip(&types[1..])
                // A value that becomes one of another kind is of that kind behind the loop.
                .map(|(before, after)| before.join(after).unwrap_or_else(|| after.without_shapes()))
                .collect();
            if joined == carried {
                return Ok((carried, types, always));
            }
            if round == rounds {
                let shapeless = |types: &[ValueType]| types.iter().map(ValueType::without_shapes).collect();
                return Ok((shapeless(&joined), shapeless(&types), false));
            }
            carried = if round + 1 == rounds {
                joined.iter().map(ValueType::without_shapes).collect()
            } else {
                joined
            };
        }
        Err(InferError::Mismatch("the types of carried values do not settle".into()))
    }
}

/// Whether there is a loop in a graph or in a branch of its conditionals.
fn holds_loop(graph: &Graph) -> bool {
    graph.nodes().any(|(_, node)| match &node.op {
        Op::Loop(_) => true,
        Op::If(op) => holds_loop(&op.then_branch) || holds_loop(&op.else_branch),
        _ => false,
    })
}

impl Operator for Loop {
    fn name(&self) -> &'static str {
        "Loop"
    }

    fn attributes(&self) -> Attributes {
        let body = Attribute { name: "body", value: AttributeValue::Graph(self.body.node_count()) };
        Attributes(vec![body]).with("carried", self.carried)
    }

    fn infer(&self, inputs: &InferInputs<'_>) -> Result<Vec<ValueType>, InferError> {
        let turns = self.turns(inputs)?;
        let starts = match inputs.has(1).then(|| inputs.value(1)) {
            None => Some(true),
            Some(Ok(condition)) => Some(holds(condition).ok_or_else(|| {
                InferError::Mismatch("the condition of a loop must be one truth value".into())
            })?),
            Some(Err(InferError::NeedsValue(_))) => None,
            Some(Err(error)) => return Err(error),
        };
        let first: Vec<ValueType> =
            (0..self.carried).map(|i| inputs.value_type(2 + i).cloned()).collect::<Result<_, _>>()?;
        let (carried, types, always) = self.settled(first.clone(), inputs)?;
        let count = match turns {
            _ if starts == Some(false) => Dim::Fixed(0),
            Turns::Most(Dim::Fixed(0)) => Dim::Fixed(0),
            Turns::Most(Dim::Fixed(count)) if always && starts == Some(true) && count as u64 > MOST_TURNS => {
                return Err(InferError::Mismatch(format!("the loop would run for {count} turns")));
            }
            Turns::Most(count) if always && starts == Some(true) => count,
            Turns::Open if always && starts == Some(true) => {
                return Err(InferError::Mismatch(
                    "the loop never ends: it has no number of turns, and its condition always holds".into(),
                ));
            }
            Turns::Most(_) | Turns::Data | Turns::Open => Dim::Unknown,
        };
        let mut results = if count == Dim::Fixed(0) { first } else { carried };
        for ty in &types[1 + self.carried..] {
            let ValueType::Tensor(ty) = ty else {
                return Err(InferError::Mismatch("only tensors can be stacked by a loop".into()));
            };
            let dims = ty.dims.as_ref().map(|dims| {
                // Without a turn nothing tells dimensions that data would decide: they are 0.
                let inner = dims.iter().map(|d| match (&count, d) {
                    (Dim::Fixed(0), Dim::Unknown) => Dim::Fixed(0),
                    _ => d.clone(),
                });
                std::iter::once(count.clone()).chain(inner).collect()
            });
            results.push(TensorType { element: ty.element, dims, quantization: None }.into());
        }
        Ok(results)
    }

    fn evaluate(&self, inputs: &[Option<&Value>], context: &Context) -> Result<Vec<Value>, EvaluateError> {
        let invalid = |text: &str| EvaluateError::Invalid(text.into());
        let most = match optional(inputs, 0).map(Tensor::to_i64) {
            None => u64::MAX,
            Some(count) => match count.as_deref() {
                Some(&[count]) => u64::try_from(count).unwrap_or(0),
                _ => return Err(invalid("the number of turns must be one integer")),
            },
        };
        if most > MOST_TURNS {
            self.infer_from(inputs)?;
        }
        let given = optional(inputs, 1);
        let mut goes_on = match given {
            Some(condition) => {
                holds(condition).ok_or_else(|| invalid("the condition of a loop must be one truth value"))?
            }
            None => true,
        };
        let expected = self.body.inputs().len();
        if expected < 2 + self.carried || self.body.outputs().len() < 1 + self.carried {
            return Err(invalid("the body has too few inputs or results"));
        }
        let mut carried: Vec<Value> =
            (0..self.carried).map(|i| value(inputs, 2 + i).cloned()).collect::<Result<_, _>>()?;
        let outer: Vec<Value> =
            (2 + self.carried..expected).map(|i| value(inputs, i).cloned()).collect::<Result<_, _>>()?;
        let condition: Value = given.cloned().unwrap_or_else(|| Tensor::scalar(Bool(1))).into();
        let mut stacks: Vec<Stack> = (0..self.stacked()).map(|_| Stack::default()).collect();
        let mut turn = 0u64;
        while goes_on && turn < most {
            if turn >= MOST_TURNS {
                return Err(EvaluateError::Invalid(format!("the loop has not ended after {turn} turns")));
            }
            let number = Tensor::scalar(i64::try_from(turn).unwrap_or(i64::MAX));
            let mut values = vec![number.into(), condition.clone()];
            values.append(&mut carried);
            values.extend(outer.iter().cloned());
            let seed = context.seed.wrapping_add(turn.wrapping_mul(0x9E37_79B9));
            let mut results = crate::evaluate_graph(&self.body, &values, seed)
                .map_err(|error| EvaluateError::Invalid(format!("in the body, turn {turn}: {error}")))?
                .into_iter();
            goes_on = results
                .next()
                .and_then(|v| holds(v.tensor()?))
                .ok_or_else(|| invalid("the first result of the body must be one truth value"))?;
            carried.extend(results.by_ref().take(self.carried));
            for (stack, value) in stacks.iter_mut().zip(results) {
                stack.push(value, most)?;
            }
            turn += 1;
        }
        let mut out = carried;
        let empty = if turn == 0 && !stacks.is_empty() { self.nothing_stacked(inputs)? } else { Vec::new() };
        if turn == 0 {
            out.extend(empty);
        } else {
            for stack in stacks {
                out.push(stack.finish()?.into());
            }
        }
        Ok(out)
    }

    fn operations(&self, _: &[Option<&ValueType>], outputs: &[Option<&ValueType>]) -> u64 {
        // The first dimension of a stacked result is the number of turns.
        let turns = outputs.get(self.carried).copied().flatten().and_then(ValueType::shape);
        let turns = turns.and_then(|shape| shape.first().copied()).unwrap_or(1);
        body_operations(&self.body).saturating_mul(turns as u64)
    }

    fn cases() -> Vec<Case> {
        cases()
    }
}

impl Loop {
    /// The stacked results of no turn.
    fn nothing_stacked(&self, inputs: &[Option<&Value>]) -> Result<Vec<Value>, EvaluateError> {
        let types = self.infer_from(inputs)?;
        let stacked = types[self.carried..].iter().map(|ty| {
            let ty = ty.tensor().ok_or(EvaluateError::MissingInput(0))?;
            // Of what has not been seen, nothing: one axis without entries.
            let unseen = || Shape::new(&[0]);
            let shape = ty.dims.as_ref().map(|dims| dims.iter().map(|d| d.fixed().unwrap_or(0)).collect());
            Ok(Elements::zeros(ty.element, shape.unwrap_or_else(unseen))?.finish()?.into())
        });
        stacked.collect()
    }

    /// The types of the results for these very inputs.
    fn infer_from(&self, inputs: &[Option<&Value>]) -> Result<Vec<ValueType>, EvaluateError> {
        let nothing = || ValueType::Sequence(Box::new(TensorType::unranked(ElementType::F32).into()));
        let types: Vec<Option<ValueType>> =
            inputs.iter().map(|input| Some((*input)?.value_type().unwrap_or_else(nothing))).collect();
        let shown: Vec<_> = types
            .iter()
            .zip(inputs)
            .map(|(ty, input)| {
                let value = (*input)?.tensor();
                Some(crate::InferInput { ty: ty.as_ref()?, value, entries: None })
            })
            .collect();
        Ok(self.infer(&InferInputs(&shown))?)
    }
}

/// The tensors of several turns, to be stacked along a new first axis.
#[derive(Default)]
struct Stack(Vec<Tensor>);

impl Stack {
    fn push(&mut self, value: Value, most: u64) -> Result<(), EvaluateError> {
        let Value::Tensor(tensor) = value else {
            return Err(EvaluateError::Invalid("only tensors can be stacked by a loop".into()));
        };
        match self.0.first() {
            Some(first) => same_type(first, &tensor)?,
            // What could not be held in the end is refused at once.
            None if most <= MOST_TURNS => {
                stacked_shape(&tensor, usize::try_from(most).unwrap_or(usize::MAX))?;
            }
            None => {}
        }
        self.0.push(tensor);
        Ok(())
    }

    fn finish(self) -> Result<Tensor, EvaluateError> {
        stack(&self.0)
    }
}

fn stacked_shape(first: &Tensor, count: usize) -> Result<Shape, EvaluateError> {
    let shape: Shape = std::iter::once(count).chain(first.shape().iter().copied()).collect();
    movement::check_size(first.element(), &shape)?;
    Ok(shape)
}

/// Tensors of one type along a new first axis.
///
/// # Errors
/// When there are none, they differ in type, or the result cannot be held.
pub fn stack(parts: &[Tensor]) -> Result<Tensor, EvaluateError> {
    let Some(first) = parts.first() else {
        return Err(EvaluateError::Invalid("there is nothing to stack".into()));
    };
    let count = first.len();
    let mut out = Elements::zeros(first.element(), stacked_shape(first, parts.len())?)?;
    for (turn, tensor) in parts.iter().enumerate() {
        same_type(first, tensor)?;
        out.copy(turn * count, tensor, 0, count);
    }
    out.finish()
}

fn same_type(first: &Tensor, tensor: &Tensor) -> Result<(), EvaluateError> {
    if (first.element(), first.shape()) == (tensor.element(), tensor.shape()) {
        return Ok(());
    }
    Err(EvaluateError::Invalid(format!(
        "a turn gave {}{} to be stacked, the first one {}{}",
        tensor.element(),
        tensor.shape(),
        first.element(),
        first.shape()
    )))
}

fn cases() -> Vec<Case> {
    use crate::ops::{Binary, BinaryKind, Cast, Concat, Identity};
    let float = |graph: &mut Graph, name: &str| graph.add_input(name, TensorType::unranked(ElementType::F32));
    let binary = |kind| Op::from(Binary { kind });
    let body = |fill: &dyn Fn(&mut Graph, [crate::ValueId; 3]) -> Vec<crate::ValueId>| {
        let mut graph = Graph::new("body");
        let turn = graph.add_input("turn", TensorType::fixed(ElementType::I64, &[]));
        let condition = graph.add_input("condition", TensorType::fixed(ElementType::Bool, &[]));
        let carried = float(&mut graph, "carried");
        for value in fill(&mut graph, [turn, condition, carried]) {
            let name = graph.value(value).name.clone();
            graph.add_output(name, value);
        }
        Box::new(graph)
    };
    // carried = carried * outer + turn, stacked as well.
    let recurrence = || {
        body(&|graph, [turn, condition, carried]| {
            let outer = float(graph, "outer");
            let go_on = graph.add("go_on", Identity, [Some(condition)]);
            let turn = graph.add("turn_f", Cast { to: ElementType::F32, saturate: true }, [Some(turn)]);
            let scaled = graph.add("scaled", binary(BinaryKind::Mul), [Some(carried), Some(outer)]);
            let next = graph.add("next", binary(BinaryKind::Add), [Some(scaled), Some(turn)]);
            vec![go_on, next, scaled]
        })
    };
    // carried grows until it has several elements.
    let growth = || {
        body(&|graph, [_, _, carried]| {
            let limit = graph.add_constant("limit", Tensor::scalar(8i64));
            let one = graph.add_constant("one", Tensor::vector(&[1f32]));
            let parts = [Some(carried), Some(carried), Some(one)];
            let next = graph.add("next", Concat { axis: 0 }, parts);
            let size = graph.add("size", crate::ops::Size, [Some(next)]);
            let go_on = graph.add("go_on", binary(BinaryKind::Less), [Some(size), Some(limit)]);
            vec![go_on, next]
        })
    };
    let mut numbers = crate::Numbers::new(60);
    let mut state = |shape: &[usize]| Value::from(numbers.floats(shape, 0.5, 1.5));
    let case = |name: &str, body: Box<Graph>, outputs: usize, inputs: Vec<Value>| {
        Case::of_values(name, Loop { body, carried: 1 }, inputs).with_outputs(outputs)
    };
    let turns = |n: i64| Value::from(Tensor::scalar(n));
    let yes = || Value::from(Tensor::scalar(Bool(1)));
    let no = || Value::from(Tensor::scalar(Bool(0)));
    vec![
        case("known turns", recurrence(), 2, vec![turns(4), yes(), state(&[2, 3]), state(&[3])])
            .with_constants(&[0, 1]),
        case("turns of the run", recurrence(), 2, vec![turns(3), yes(), state(&[2]), state(&[2])]),
        case("one turn", recurrence(), 1, vec![turns(1), yes(), state(&[5]), state(&[1])])
            .with_constants(&[0]),
        case("no turn", recurrence(), 2, vec![turns(0), yes(), state(&[3]), state(&[3])]),
        case("stopped at once", recurrence(), 2, vec![turns(4), no(), state(&[3]), state(&[3])]),
        case("until it is long", growth(), 1, vec![turns(9), yes(), state(&[3])]),
        case("without a number of turns", growth(), 1, vec![turns(0), yes(), state(&[2])])
            .without_input(0)
            .with_tolerance(Tolerance::Exact),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loops_that_cannot_end_are_refused() {
        let mut body = Graph::new("body");
        body.add_input("turn", TensorType::fixed(ElementType::I64, &[]));
        let condition = body.add_input("condition", TensorType::fixed(ElementType::Bool, &[]));
        body.add_output("condition", condition);
        let mut graph = Graph::new("graph");
        let outputs: [Option<crate::ValueId>; 0] = [];
        graph.add_node("forever", Loop { body: Box::new(body), carried: 0 }, [None, None], outputs);
        let error = crate::infer::infer(&mut graph).unwrap_err().to_string();
        assert!(error.contains("never ends"), "{error}");
    }

    #[test]
    fn faults_of_the_body_name_its_node_and_the_turn() {
        let case = cases().remove(0);
        let wrong: Value = Tensor::vector(&[1f32, 2.0]).into();
        let values = case.values();
        let mut inputs: Vec<Option<&Value>> = values.iter().map(Option::as_ref).collect();
        inputs[3] = Some(&wrong);
        let error = case.op.operator().evaluate(&inputs, &Context::default()).unwrap_err().to_string();
        assert!(error.contains("turn 0") && error.contains("node scaled (Mul)"), "{error}");
    }

    #[test]
    fn a_growing_value_has_no_known_length_but_a_rank() {
        let growth = cases().into_iter().find(|c| c.name == "until it is long").unwrap();
        let types: Vec<ValueType> = growth.values().iter().flatten().filter_map(Value::value_type).collect();
        let shown: Vec<_> =
            types.iter().map(|ty| Some(crate::InferInput { ty, value: None, entries: None })).collect();
        let results = growth.op.operator().infer(&InferInputs(&shown)).unwrap();
        assert_eq!(results, [TensorType::new(ElementType::F32, [Dim::Unknown]).into()]);
    }
}
