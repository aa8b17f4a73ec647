//! The cases of every operator with other inputs on the CPU backend: of other types and shapes, or left out. What has a meaning
//! agrees with it, what has none is an error, and nothing panics.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use armet_backend_cpu::Cpu;
use armet_conformance::{Outcome, check_case, panic_words};
use armet_graph::ops::numbers;
use armet_graph::{Case, Numbers, OpKind, Tolerance};
use armet_kernels::isa::Isas;
use armet_runtime::Backend;
use armet_tensor::{ElementType, Shape, Tensor};

/// Changes of each case.
const CHANGES: usize = 100;

const ELEMENTS: [ElementType; 10] = [
    ElementType::F32,
    ElementType::F16,
    ElementType::F64,
    ElementType::I64,
    ElementType::I32,
    ElementType::I8,
    ElementType::U8,
    ElementType::Bool,
    ElementType::U64,
    ElementType::Bf16,
];

fn tensor(random: &mut Numbers, element: ElementType, shape: Shape) -> Option<Tensor> {
    let values: Vec<i128> = (0..shape.elements()).map(|_| i128::from(random.int(0, 3))).collect();
    numbers::from_i128(element, shape, &values).ok()
}

fn change(random: &mut Numbers, case: &Case) -> Option<Case> {
    let mut case = case.clone();
    let at = random.int(0, case.inputs.len() as i64 - 1) as usize;
    let old = case.inputs.get(at)?.clone();
    case.inputs[at] = match (random.int(0, 5), old) {
        (0, _) => None,
        (1 | 2, Some(old)) => {
            let element = ELEMENTS[random.int(0, ELEMENTS.len() as i64 - 1) as usize];
            Some(tensor(random, element, old.shape().clone())?)
        }
        (3, Some(old)) => {
            // One axis is of another length, or there is one more or less.
            let mut dims = old.shape().to_vec();
            match (random.int(0, 3), dims.len()) {
                (0, _) => dims.insert(0, random.int(0, 2) as usize),
                (1, 1..) => drop(dims.pop()),
                (_, 1..) => {
                    let axis = random.int(0, dims.len() as i64 - 1) as usize;
                    dims[axis] = random.int(0, 4) as usize;
                }
                _ => {}
            }
            Some(tensor(random, old.element(), dims.into())?)
        }
        (_, old) => {
            // Contents that arrive at run time, or are known beforehand.
            match case.constants.iter().position(|&known| known == at) {
                Some(found) => drop(case.constants.remove(found)),
                None => case.constants.push(at),
            }
            old
        }
    };
    // Results of short floats are rounded to them.
    let short = |tensor: &Tensor| matches!(tensor.element(), ElementType::F16 | ElementType::Bf16);
    if let Tolerance::Relative(_) = case.tolerance
        && case.inputs.iter().flatten().any(short)
    {
        case.tolerance = Tolerance::Relative(2e-2);
    }
    Some(case)
}

#[test]
fn wrong_inputs_are_errors_and_others_have_their_meaning() {
    let backend: Arc<dyn Backend> = Arc::new(Cpu::new(Isas::detect()));
    let mut random = Numbers::new(77);
    let (mut agreed, mut refused, mut faults) = (0usize, 0usize, Vec::new());
    std::panic::set_hook(Box::new(|_| {}));
    for &kind in OpKind::ALL {
        for case in kind.cases().iter().filter(|case| !case.inputs.is_empty()) {
            for _ in 0..CHANGES {
                let Some(changed) = change(&mut random, case) else { continue };
                let result = catch_unwind(AssertUnwindSafe(|| check_case(&changed, &backend, 1)));
                let inputs = || {
                    let shown = changed.inputs.iter().map(|input| match input {
                        Some(tensor) => format!("{}{}", tensor.element(), tensor.shape()),
                        None => "none".to_owned(),
                    });
                    shown.collect::<Vec<_>>().join(", ")
                };
                match result {
                    Ok(Ok(Outcome::Agreed { .. })) => agreed += 1,
                    Ok(Ok(Outcome::Refused(_))) => refused += 1,
                    Ok(Err(why)) if why.starts_with("output") => {
                        faults.push(format!("{} {} ({}): {why}", kind.name(), case.name, inputs()));
                    }
                    Ok(Err(_)) => refused += 1,
                    Err(panic) => {
                        let words = panic_words(panic.as_ref());
                        faults.push(format!("{} {} ({}): panic: {words}", kind.name(), case.name, inputs()));
                    }
                }
            }
        }
    }
    drop(std::panic::take_hook());
    assert!(faults.is_empty(), "{} faults:\n{}", faults.len(), faults.join("\n"));
    assert!(agreed > 2000 && refused > 1000, "{agreed} agreed, {refused} were refused");
}
