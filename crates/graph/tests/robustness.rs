//! Broken inputs: operators answer with an error or a result, whatever they are given, and never panic. What is
//! evaluated has the types that inference promised.

use std::panic::{AssertUnwindSafe, catch_unwind};

use armet_graph::{Case, Context, InferInput, InferInputs, Numbers, OpKind, TensorType, Value, ValueType};
use armet_tensor::{ElementType, Tensor};

const ELEMENTS: [ElementType; 12] = [
    ElementType::F32,
    ElementType::I64,
    ElementType::I32,
    ElementType::Bool,
    ElementType::String,
    ElementType::F16,
    ElementType::U8,
    ElementType::I8,
    ElementType::U64,
    ElementType::I4,
    ElementType::Complex64,
    ElementType::F8E4M3Fn,
];

/// Numbers at which index and size arithmetic goes wrong. None is a size that could just be held.
const EXTREMES: [i64; 11] =
    [0, 1, 2, 3, -1, -2, i64::MAX, i64::MIN, i64::MAX - 1, i32::MAX as i64 + 1, 1 << 61];

fn one_of<T: Copy>(numbers: &mut Numbers, list: &[T]) -> T {
    list[numbers.int(0, list.len() as i64 - 1) as usize]
}

fn dims(numbers: &mut Numbers) -> Vec<usize> {
    let rank = numbers.int(0, 4);
    (0..rank).map(|_| one_of(numbers, &[0, 1, 1, 2, 3, 4])).collect()
}

fn random_tensor(numbers: &mut Numbers) -> Tensor {
    let shape = dims(numbers);
    match one_of(numbers, &ELEMENTS) {
        element @ (ElementType::String | ElementType::Complex64 | ElementType::F8E4M3Fn) => {
            Tensor::zeros(element, shape).unwrap()
        }
        element => numbers.tensor(element, shape),
    }
}

fn extremes(numbers: &mut Numbers) -> Tensor {
    let count = numbers.int(0, 4);
    let values: Vec<i64> = (0..count).map(|_| one_of(numbers, &EXTREMES)).collect();
    match numbers.int(0, 2) {
        0 => Tensor::vector(&values),
        1 => Tensor::vector(&values.iter().map(|&v| v as i32).collect::<Vec<_>>()),
        _ => Tensor::scalar(one_of(numbers, &EXTREMES)),
    }
}

/// The same contents with one number in the place of another.
fn disturbed(tensor: &Tensor, numbers: &mut Numbers) -> Option<Tensor> {
    let mut values = tensor.to_i64().filter(|values| !values.is_empty())?;
    let at = numbers.int(0, values.len() as i64 - 1) as usize;
    values[at] = one_of(numbers, &EXTREMES);
    match tensor.element() {
        ElementType::I64 => Tensor::new(tensor.shape().clone(), &values).ok(),
        ElementType::I32 => {
            let values: Vec<i32> = values.iter().map(|&v| v as i32).collect();
            Tensor::new(tensor.shape().clone(), &values).ok()
        }
        _ => None,
    }
}

fn break_one(case: &mut Case, numbers: &mut Numbers) {
    let count = case.inputs.len() as i64;
    if count == 0 {
        return;
    }
    let at = numbers.int(0, count - 1) as usize;
    match numbers.int(0, 9) {
        0 => case.inputs[at] = None,
        1 => {
            let other = numbers.int(0, count - 1) as usize;
            case.inputs.swap(at, other);
        }
        2 | 3 => case.inputs[at] = Some(extremes(numbers)),
        4..=6 => {
            let changed = case.inputs[at].as_ref().and_then(|tensor| disturbed(tensor, numbers));
            case.inputs[at] = changed.or_else(|| case.inputs[at].take());
        }
        7 => {
            let extra = random_tensor(numbers);
            case.inputs.push(Some(extra));
        }
        _ => case.inputs[at] = Some(random_tensor(numbers)),
    }
}

fn infer(case: &Case, known: bool) -> Option<Vec<ValueType>> {
    let types: Vec<Option<ValueType>> = case
        .inputs
        .iter()
        .map(|t| t.as_ref().map(|t| TensorType::fixed(t.element(), t.shape()).into()))
        .collect();
    let inputs: Vec<Option<InferInput<'_>>> = case
        .inputs
        .iter()
        .zip(&types)
        .map(|(tensor, ty)| {
            Some(InferInput { ty: ty.as_ref()?, value: tensor.as_ref().filter(|_| known), entries: None })
        })
        .collect();
    case.op.operator().infer(&InferInputs(&inputs)).ok()
}

fn attempt(case: &Case) {
    let values: Vec<Option<Value>> = case.inputs.iter().map(|t| t.clone().map(Value::from)).collect();
    let inputs: Vec<Option<&Value>> = values.iter().map(Option::as_ref).collect();
    infer(case, false);
    let types = infer(case, true);
    let context = Context { outputs: case.outputs, seed: 1 };
    let Ok(results) = case.op.operator().evaluate(&inputs, &context) else { return };
    let types = types.expect("what evaluates has types");
    for (ty, result) in types.iter().zip(&results) {
        let (Some(ty), Some(result)) = (ty.tensor(), result.tensor()) else { continue };
        assert_eq!(ty.element, result.element());
        assert_eq!(ty.shape().as_ref(), Some(result.shape()));
    }
}

#[test]
fn broken_inputs_are_refused_without_panic() {
    let mut failures = Vec::new();
    for &kind in OpKind::ALL {
        let mut numbers = Numbers::new(kind as u64);
        let mut failed = false;
        for original in kind.cases() {
            for _ in 0..60 {
                let mut case = original.clone();
                for _ in 0..=numbers.int(0, 1) {
                    break_one(&mut case, &mut numbers);
                }
                if catch_unwind(AssertUnwindSafe(|| attempt(&case))).is_err() && !failed {
                    failed = true;
                    let inputs: Vec<String> = case
                        .inputs
                        .iter()
                        .map(|t| t.as_ref().map_or("-".into(), |t| format!("{t:?}{:?}", t.to_i64())))
                        .collect();
                    failures.push(format!("{} ({}): {}", original.name, case.op.name(), inputs.join(" ")));
                }
            }
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}
