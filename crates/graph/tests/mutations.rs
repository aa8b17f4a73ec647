//! Operators refuse inputs that they have no meaning for with an error, whatever their shapes and types.

use std::panic::{AssertUnwindSafe, catch_unwind};

use armet_graph::ops::numbers;
use armet_graph::{Context, InferInput, InferInputs, Numbers, OpKind, Value, ValueType};
use armet_tensor::{ElementType, Shape, Tensor};

const ELEMENTS: [ElementType; 14] = [
    ElementType::F32,
    ElementType::F32,
    ElementType::F16,
    ElementType::F64,
    ElementType::I64,
    ElementType::I64,
    ElementType::I32,
    ElementType::I8,
    ElementType::U8,
    ElementType::U64,
    ElementType::Bool,
    ElementType::String,
    ElementType::I4,
    ElementType::Complex64,
];

/// Few elements, but dimensions of all kinds: none, one, and so many that products of them overflow.
fn shape(random: &mut Numbers) -> Shape {
    let rank = random.int(0, 5) as usize;
    let mut dims: Vec<usize> = (0..rank).map(|_| random.int(0, 3) as usize).collect();
    if let Some(dim) = dims.first_mut()
        && random.int(0, 3) == 0
    {
        *dim = 0;
        for dim in &mut dims[1..] {
            if random.int(0, 1) == 0 {
                *dim = [usize::MAX, usize::MAX / 2, 1 << 33, 7][random.int(0, 3) as usize];
            }
        }
        let last = dims.len() - 1;
        dims.swap(0, random.int(0, last as i64) as usize);
    }
    dims.into()
}

fn tensor(random: &mut Numbers, element: ElementType, shape: Shape) -> Tensor {
    if !(element.is_integer() || element.is_float() || element == ElementType::Bool) {
        return Tensor::zeros(element, shape).expect("small shapes fit");
    }
    let extremes = [i64::MIN, i64::MAX, -1, 0, 1 << 40];
    let values: Vec<i128> = (0..shape.elements())
        .map(|_| match random.int(0, 7) {
            0 => i128::from(extremes[random.int(0, 4) as usize]),
            _ => i128::from(random.int(-4, 4)),
        })
        .collect();
    numbers::from_i128(element, shape, &values).expect("the count is the product of the shape")
}

/// The inputs of a case with some of them changed.
fn mutate(random: &mut Numbers, inputs: &[Option<Tensor>]) -> Vec<Option<Tensor>> {
    let mut inputs = inputs.to_vec();
    for _ in 0..random.int(1, 2) {
        if inputs.is_empty() {
            return inputs;
        }
        let at = random.int(0, inputs.len() as i64 - 1) as usize;
        let old = inputs[at].clone();
        inputs[at] = match (random.int(0, 6), old) {
            (0, _) => None,
            (6, _) => {
                let other = random.int(0, inputs.len() as i64 - 1) as usize;
                inputs.swap(at, other);
                continue;
            }
            (1, Some(old)) => {
                let element = ELEMENTS[random.int(0, 13) as usize];
                Some(tensor(random, element, old.shape().clone()))
            }
            (2, Some(old)) => Some(tensor(random, old.element(), old.shape().clone())),
            (_, Some(old)) => {
                let shape = shape(random);
                Some(tensor(random, old.element(), shape))
            }
            (_, None) => {
                let (element, shape) = (ELEMENTS[random.int(0, 13) as usize], shape(random));
                Some(tensor(random, element, shape))
            }
        };
    }
    inputs
}

#[test]
fn wrong_inputs_are_errors_and_never_panics() {
    let mut random = Numbers::new(2024);
    let (mut refused, mut panics) = (0, Vec::new());
    for &kind in OpKind::ALL {
        for case in kind.cases() {
            for _ in 0..60 {
                let inputs = mutate(&mut random, &case.inputs);
                let mut values: Vec<Option<Value>> =
                    inputs.iter().map(|t| t.clone().map(Value::from)).collect();
                // Lists stay as they are, unless a tensor took their place.
                for (index, other) in &case.others {
                    if let Some(slot @ None) = values.get_mut(*index) {
                        *slot = Some(other.clone());
                    }
                }
                let given: Vec<Option<&Value>> = values.iter().map(Option::as_ref).collect();
                let types: Vec<Option<ValueType>> =
                    values.iter().map(|v| v.as_ref().and_then(Value::value_type)).collect();
                // Contents known or not by turns: both ways through inference.
                let is_known = random.int(0, 1) == 0;
                let shown: Vec<Option<InferInput<'_>>> = types
                    .iter()
                    .zip(&inputs)
                    .map(|(ty, tensor)| {
                        let value = tensor.as_ref().filter(|_| is_known);
                        Some(InferInput { ty: ty.as_ref()?, value, entries: None })
                    })
                    .collect();
                let op = case.op.operator();
                let context = Context { outputs: case.outputs, seed: 0 };
                let result = catch_unwind(AssertUnwindSafe(|| {
                    let types = op.infer(&InferInputs(&shown));
                    // Whether gigabytes fit is the machine's answer: only what fits nowhere is asked for.
                    if types.iter().flatten().any(is_large) {
                        return (true, false);
                    }
                    let cost = types.as_ref().map(|outputs| {
                        let inputs: Vec<Option<&ValueType>> = self::types(&shown);
                        let outputs: Vec<Option<&ValueType>> = outputs.iter().map(Some).collect();
                        op.operations(&inputs, &outputs)
                    });
                    (cost.is_ok(), op.evaluate(&given, &context).is_err())
                }));
                match result {
                    Ok((_, error)) => refused += usize::from(error),
                    Err(_) => panics.push(format!("{} {}: {inputs:?}", kind.name(), case.name)),
                }
            }
        }
    }
    assert!(panics.is_empty(), "{} panics:\n{}", panics.len(), panics.join("\n"));
    assert!(refused > 1000, "only {refused} changed inputs were refused");
}

fn is_large(ty: &ValueType) -> bool {
    let count = ty.tensor().and_then(armet_graph::TensorType::shape).and_then(|shape| shape.checked_len());
    count.is_some_and(|count| (1 << 20..1 << 33).contains(&count))
}

fn types<'a>(shown: &[Option<InferInput<'a>>]) -> Vec<Option<&'a ValueType>> {
    shown.iter().map(|input| Some(input.as_ref()?.ty)).collect()
}
