//! Whether outputs are those that a case asks for, as the package's own runner compares them: types and shapes equal, floats
//! within the case's tolerances, all else exactly.
//!
//! Expected values were rounded themselves, at every step of how they were computed: one that cancels to nearly nothing
//! keeps the rounding of the large numbers it came from. So a number outside of the case's tolerances but within one unit in
//! the last place of the output's largest number is told apart ([`Match::Rounding`]).

use armet_graph::Value;
use armet_graph::ops::numbers;
use armet_tensor::{ElementType, Tensor};

use super::Case;

/// Two steps of bfloat16, which the package's runner grants that type.
const BFLOAT16_RTOL: f64 = 1.0 / 64.0;
/// Operators whose outputs are drawn.
const RANDOM: [&str; 7] = [
    "Bernoulli",
    "Multinomial",
    "RandomNormal",
    "RandomNormalLike",
    "RandomUniform",
    "RandomUniformLike",
    "Dropout",
];

/// How near an output is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Match {
    /// Within the case's tolerances.
    Tolerances,
    /// Only within one unit in the last place of the output's largest number.
    Rounding,
}

/// Holds an output to the case.
///
/// # Errors
/// What differs.
pub fn compare(case: &Case, wanted: &Value, found: &Value) -> Result<Match, String> {
    let told = match (wanted, found) {
        (Value::Tensor(wanted), Value::Tensor(found)) => return tensors(case, wanted, found),
        (Value::Sequence(wanted), Value::Sequence(found)) if wanted.len() == found.len() => {
            let pairs = wanted.iter().zip(found).enumerate();
            let mut worst = Match::Tolerances;
            for (at, (wanted, found)) in pairs {
                worst = worst.max(compare(case, wanted, found).map_err(|e| format!("entry {at}: {e}"))?);
            }
            return Ok(worst);
        }
        (Value::Sequence(wanted), Value::Sequence(found)) => {
            format!("{} entries, not {}", found.len(), wanted.len())
        }
        (Value::Optional(Some(wanted)), Value::Optional(Some(found))) => {
            return compare(case, wanted, found);
        }
        (Value::Optional(None), Value::Optional(None)) => return Ok(Match::Tolerances),
        _ => format!("{found:?}, not {wanted:?}"),
    };
    Err(told)
}

fn tensors(case: &Case, wanted: &Tensor, found: &Tensor) -> Result<Match, String> {
    if (wanted.element(), wanted.shape()) != (found.element(), found.shape()) {
        let ty = |tensor: &Tensor| format!("{}{}", tensor.element(), tensor.shape());
        return Err(format!("{}, not {}", ty(found), ty(wanted)));
    }
    match difference(case, wanted, found, 0.0)? {
        None => Ok(Match::Tolerances),
        Some(_) if case.operators.iter().any(|name| RANDOM.contains(&name.as_str())) => drawn(wanted, found),
        Some(told) => match difference(case, wanted, found, last_place(wanted.element()))? {
            None => Ok(Match::Rounding),
            Some(_) => Err(told),
        },
    }
}

/// One unit in the last place of numbers about 1.
fn last_place(element: ElementType) -> f64 {
    match element {
        ElementType::F32 | ElementType::Complex64 => f64::from(f32::EPSILON),
        ElementType::F64 | ElementType::Complex128 => f64::EPSILON,
        ElementType::F16 => 2f64.powi(-10),
        ElementType::Bf16 => 2f64.powi(-7),
        _ => 0.0,
    }
}

/// What differs; `share` of the largest number is granted besides the case's tolerances.
fn difference(case: &Case, wanted: &Tensor, found: &Tensor, share: f64) -> Result<Option<String>, String> {
    if wanted.element() == ElementType::String {
        let at = wanted.strings().iter().zip(found.strings()).position(|(a, b)| a != b);
        return Ok(
            at.map(|at| format!("element {at} is {:?}, not {:?}", found.strings()[at], wanted.strings()[at]))
        );
    }
    if !wanted.element().is_float() && !is_complex(wanted.element()) {
        let differs = wanted.bytes() != found.bytes();
        let (Ok(wanted), Ok(found)) = (numbers::to_i128(wanted), numbers::to_i128(found)) else {
            return Ok(differs.then(|| "the bytes differ".to_owned()));
        };
        let steps = i128::from(case.steps);
        let at = wanted.iter().zip(&found).position(|(a, b)| (a - b).abs() > steps);
        return Ok(at.map(|at| format!("element {at} is {}, not {}", found[at], wanted[at])));
    }
    let rtol = if wanted.element() == ElementType::Bf16 { case.rtol.max(BFLOAT16_RTOL) } else { case.rtol };
    let (wanted, found) = (floats(wanted)?, floats(found)?);
    let largest = wanted.iter().filter(|v| v.is_finite()).fold(0.0f64, |most, v| most.max(v.abs()));
    let atol = case.atol.max(share * largest);
    let near = |(wanted, found): (&f64, &f64)| {
        wanted == found
            || (wanted.is_nan() && found.is_nan())
            || (wanted.is_finite() && (wanted - found).abs() <= atol + rtol * wanted.abs())
    };
    let at = wanted.iter().zip(&found).position(|pair| !near(pair));
    Ok(at.map(|at| format!("element {at} is {}, not {}", found[at], wanted[at])))
}

fn is_complex(element: ElementType) -> bool {
    matches!(element, ElementType::Complex64 | ElementType::Complex128)
}

/// Numbers; of complex ones both parts.
fn floats(tensor: &Tensor) -> Result<Vec<f64>, String> {
    let parts = |size: usize, read: fn(&[u8]) -> f64| tensor.bytes().chunks_exact(size).map(read).collect();
    match tensor.element() {
        ElementType::Complex64 => Ok(parts(4, |b| f64::from(f32::from_ne_bytes([b[0], b[1], b[2], b[3]])))),
        ElementType::Complex128 => {
            Ok(parts(8, |b| f64::from_ne_bytes([b[0], b[1], b[2], b[3], b[4], b[5], b[6], b[7]])))
        }
        _ => numbers::to_f64(tensor).map_err(|e| e.to_string()),
    }
}

/// Drawn numbers are judged by their range: that of the case's own, widened by its width; truth values stay such.
fn drawn(wanted: &Tensor, found: &Tensor) -> Result<Match, String> {
    let (wanted, found) = (floats_or_integers(wanted)?, floats_or_integers(found)?);
    let (low, high) = wanted.iter().fold((f64::MAX, f64::MIN), |(l, h), &v| (l.min(v), h.max(v)));
    let binary = wanted.iter().all(|&v| v == 0.0 || v == 1.0);
    let width = high - low;
    let fits = |&v: &f64| {
        if binary { v == 0.0 || v == 1.0 } else { (low - width..=high + width).contains(&v) }
    };
    match found.iter().find(|v| !fits(v)) {
        Some(v) => Err(format!("the drawn number {v} is out of range")),
        None => Ok(Match::Tolerances),
    }
}

fn floats_or_integers(tensor: &Tensor) -> Result<Vec<f64>, String> {
    numbers::to_f64(tensor).map_err(|e| e.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn case(operator: &str) -> Case {
        Case { rtol: 1e-3, atol: 1e-7, operators: vec![operator.to_owned()], ..Case::default() }
    }

    fn judge(operator: &str, wanted: Tensor, found: Tensor) -> Result<Match, String> {
        compare(&case(operator), &wanted.into(), &found.into())
    }

    #[test]
    fn floats_have_the_tolerance_of_the_case_and_integers_none() {
        let v = |x: f32| Tensor::vector(&[1.0, x]);
        assert_eq!(judge("Add", v(1000.0), v(1000.9)), Ok(Match::Tolerances));
        assert_eq!(
            judge("Add", v(1000.0), v(1001.1)).unwrap_err(),
            "element 1 is 1001.0999755859375, not 1000"
        );
        assert_eq!(judge("Add", v(f32::NAN), v(f32::NAN)), Ok(Match::Tolerances));
        assert!(judge("Add", v(f32::INFINITY), v(f32::MAX)).is_err());
        assert!(judge("Add", v(0.0), v(f32::NAN)).is_err());
        assert!(judge("Add", Tensor::vector(&[100_000i32]), Tensor::vector(&[100_001i32])).is_err());
        assert!(judge("Add", Tensor::vector(&[1i32]), Tensor::vector(&[1i64])).is_err());
        assert!(judge("Add", Tensor::vector(&[1i32]), Tensor::scalar(1i32)).is_err());
    }

    #[test]
    fn quantized_results_may_lie_a_step_apart_where_the_case_says_so() {
        let one = Case { steps: 1, ..case("QLinearAdd") };
        let judge =
            |found: u8| compare(&one, &Tensor::vector(&[7u8]).into(), &Tensor::vector(&[found]).into());
        assert_eq!(judge(8), Ok(Match::Tolerances));
        assert_eq!(judge(5).unwrap_err(), "element 0 is 5, not 7");
    }

    #[test]
    fn what_cancels_keeps_the_rounding_of_what_it_came_from() {
        let v = |x: f32| Tensor::vector(&[8.0, x]);
        assert_eq!(judge("DFT", v(2e-7), v(0.0)), Ok(Match::Rounding));
        assert_eq!(judge("DFT", v(5e-8), v(0.0)), Ok(Match::Tolerances));
        assert!(judge("DFT", v(2e-6), v(0.0)).is_err());
    }

    #[test]
    fn drawn_numbers_are_judged_by_their_range() {
        let v = |x: &[f32]| Tensor::vector(x);
        assert_eq!(judge("RandomUniform", v(&[0.1, 0.9]), v(&[0.5, 0.2])), Ok(Match::Tolerances));
        assert!(judge("RandomUniform", v(&[0.1, 0.9]), v(&[0.5, 9.0])).is_err());
        assert!(judge("RandomUniform", v(&[0.1, 0.9]), v(&[0.5, f32::NAN])).is_err());
        assert!(judge("Bernoulli", v(&[0.0, 1.0]), v(&[0.5, 0.0])).is_err());
        assert_eq!(judge("Bernoulli", v(&[0.0, 1.0]), v(&[1.0, 0.0])), Ok(Match::Tolerances));
        assert!(judge("Add", v(&[0.0, 1.0]), v(&[1.0, 0.0])).is_err());
    }

    #[test]
    fn lists_are_compared_entry_by_entry() {
        let list = |n: usize| Value::Sequence(vec![Tensor::scalar(n as f32).into(); n]);
        assert!(compare(&case("Add"), &list(2), &list(3)).is_err());
        assert!(compare(&case("Add"), &list(2), &list(2)).is_ok());
        let nothing = Value::Optional(None);
        assert!(compare(&case("Add"), &nothing, &nothing).is_ok());
        assert!(compare(&case("Add"), &nothing, &list(1)).is_err());
    }
}
