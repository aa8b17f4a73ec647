//! Every case of every operator: it evaluates, and inference foretells the types of the results.

use armet_graph::{Case, Context, InferInput, InferInputs, OpKind, TensorType, Value, ValueType};
use armet_graph::{Dim, InferError};

/// What inference says of a case whose inputs with these indices are known, and whose other dimensions have names.
fn infer(case: &Case, known: &dyn Fn(usize) -> bool, named: bool) -> Result<Vec<ValueType>, InferError> {
    let values = case.values();
    let types: Vec<Option<ValueType>> = values
        .iter()
        .enumerate()
        .map(|(index, value)| {
            let value = value.as_ref()?;
            let Some(tensor) = value.tensor() else { return value.value_type() };
            let dims = tensor.shape().iter().enumerate().map(|(axis, &len)| {
                if named && !known(index) {
                    Dim::symbol(&format!("d{index}_{axis}"))
                } else {
                    Dim::Fixed(len)
                }
            });
            Some(TensorType::new(tensor.element(), dims).into())
        })
        .collect();
    let inputs: Vec<Option<InferInput<'_>>> = values
        .iter()
        .zip(&types)
        .enumerate()
        .map(|(index, (value, ty))| {
            Some(InferInput {
                ty: ty.as_ref()?,
                value: value.as_ref().and_then(Value::tensor).filter(|_| known(index)),
                entries: None,
            })
        })
        .collect();
    case.op.operator().infer(&InferInputs(&inputs))
}

fn evaluate(case: &Case) -> Vec<Value> {
    let values = case.values();
    let inputs: Vec<Option<&Value>> = values.iter().map(Option::as_ref).collect();
    let context = Context { outputs: case.outputs, seed: 1 };
    case.op.operator().evaluate(&inputs, &context).unwrap_or_else(|error| {
        panic!("{} {}: {error}", case.op.name(), case.name);
    })
}

/// Whether the type says nothing of the value that is wrong.
fn allows(ty: &ValueType, value: &Value, bindings: &dyn Fn(&str) -> Option<usize>) -> bool {
    let (ty, tensor) = match (ty, value) {
        (ValueType::Tensor(ty), Value::Tensor(tensor)) => (ty, tensor),
        (ValueType::Sequence(ty), Value::Sequence(items)) => {
            return items.iter().all(|item| allows(ty, item, bindings));
        }
        (ValueType::Optional(ty), Value::Optional(inner)) => {
            return inner.iter().all(|inner| allows(ty, inner, bindings));
        }
        _ => return false,
    };
    let dims = ty.dims.as_ref();
    ty.element == tensor.element()
        && dims.is_none_or(|dims| {
            dims.len() == tensor.shape().len()
                && dims
                    .iter()
                    .zip(tensor.shape().iter())
                    .all(|(dim, &len)| dim.substitute(bindings).fixed().is_none_or(|fixed| fixed == len))
        })
}

fn check(case: &Case) {
    let what = format!("{} {}", case.op.name(), case.name);
    let values = evaluate(case);
    assert!(values.len() >= case.outputs, "{what}: {} results", values.len());
    let bindings = |name: &str| {
        let (index, axis) = name.strip_prefix('d')?.split_once('_')?;
        let tensor = case.inputs.get(index.parse::<usize>().ok()?)?.as_ref()?;
        tensor.shape().get(axis.parse::<usize>().ok()?).copied()
    };
    let everything = infer(case, &|_| true, false).unwrap_or_else(|error| panic!("{what}: {error}"));
    let constants = |index: usize| case.constants.contains(&index);
    for (round, types) in [
        Ok(everything),
        infer(case, &constants, false),
        infer(case, &constants, true),
        infer(case, &|_| false, true),
    ]
    .into_iter()
    .enumerate()
    {
        let types = match types {
            Ok(types) => types,
            Err(InferError::NeedsValue(index)) if !constants(index) || round == 3 => continue,
            Err(InferError::NeedsRank(_)) if round >= 2 => continue,
            Err(error) => panic!("{what}, round {round}: {error}"),
        };
        assert!(types.len() >= case.outputs, "{what}, round {round}: {} types", types.len());
        for (ty, value) in types.iter().zip(&values).take(case.outputs) {
            assert!(allows(ty, value, &bindings), "{what}, round {round}: {ty} is not {value:?}");
        }
    }
}

#[test]
fn inference_foretells_what_evaluation_gives() {
    for &kind in OpKind::ALL {
        for case in kind.cases() {
            check(&case);
        }
    }
}

#[test]
fn case_names_tell_cases_apart() {
    for &kind in OpKind::ALL {
        let mut names: Vec<String> = kind.cases().into_iter().map(|case| case.name).collect();
        let count = names.len();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), count, "{}", kind.name());
    }
}
