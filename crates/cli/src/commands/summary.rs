//! What is worth showing of a tensor: its range, its first numbers, its best scores.

use armet::{ElementType, Tensor};
use serde_json::{Value, json};

use crate::output::clean;

/// What a tensor holds; integers stay exact.
enum Contents {
    Floats(Vec<f64>),
    Integers(Vec<i128>),
    Texts,
    /// Numbers of a type that is not shown.
    Other,
}

impl Contents {
    fn of(tensor: &Tensor) -> Self {
        let floats = match tensor.element() {
            ElementType::F32 => tensor.values::<f32>().map(|v| v.iter().map(|&v| f64::from(v)).collect()),
            ElementType::F64 => tensor.values::<f64>().map(std::borrow::Cow::into_owned),
            ElementType::F16 => tensor.values::<half::f16>().map(|v| v.iter().map(|v| v.to_f64()).collect()),
            ElementType::Bf16 => {
                tensor.values::<half::bf16>().map(|v| v.iter().map(|v| v.to_f64()).collect())
            }
            ElementType::String => return Self::Texts,
            ElementType::U64 => {
                let values = tensor.values::<u64>();
                return values.map_or(Self::Other, |v| Self::Integers(v.iter().map(|&v| v.into()).collect()));
            }
            _ => {
                let values = tensor.to_i64();
                return values
                    .map_or(Self::Other, |v| Self::Integers(v.into_iter().map(i128::from).collect()));
            }
        };
        floats.map_or(Self::Other, Self::Floats)
    }
}

/// Numbers that JSON can hold; others as words.
fn number(value: f64) -> Value {
    if value.is_finite() { json!(value) } else { json!(value.to_string()) }
}

fn integer(value: i128) -> Value {
    i64::try_from(value).map_or_else(|_| json!(value as u64), |value| json!(value))
}

/// What integers are on average: as exact as they, where it is one itself.
enum Mean {
    Integer(i128),
    Float(f64),
}

impl Mean {
    /// Of some; `None` of none.
    fn of(values: &[i128]) -> Option<Self> {
        // 64 bits of each, and fewer than 2 to the power of 63 of them.
        let (sum, count) = (values.iter().sum::<i128>(), values.len() as i128);
        match sum.checked_rem(count)? {
            0 => Some(Self::Integer(sum / count)),
            _ => Some(Self::Float(sum as f64 / count as f64)),
        }
    }

    fn json(self) -> Value {
        match self {
            Self::Integer(value) => integer(value),
            Self::Float(value) => json!(value),
        }
    }
}

impl std::fmt::Display for Mean {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Integer(value) => value.fmt(f),
            Self::Float(value) => write!(f, "{value:.5}"),
        }
    }
}

/// As an object.
pub(crate) fn summary(tensor: &Tensor) -> Value {
    match Contents::of(tensor) {
        Contents::Texts => json!({"first": tensor.strings().iter().take(8).collect::<Vec<_>>()}),
        Contents::Other => json!({}),
        Contents::Integers(values) => json!({
            "min": values.iter().copied().min().map(integer),
            "max": values.iter().copied().max().map(integer),
            "mean": Mean::of(&values).map(Mean::json),
            "not_finite": 0,
            "first": values.iter().take(8).copied().map(integer).collect::<Vec<_>>(),
        }),
        Contents::Floats(values) => {
            let finite = || values.iter().copied().filter(|v| v.is_finite());
            let count = finite().count();
            json!({
                "min": finite().reduce(f64::min),
                "max": finite().reduce(f64::max),
                "mean": (count > 0).then(|| finite().sum::<f64>() / count as f64),
                "not_finite": values.len() - count,
                "first": values.iter().take(8).copied().map(number).collect::<Vec<_>>(),
            })
        }
    }
}

/// The first of many, and that there are more.
fn first<T>(values: &[T], show: impl Fn(&T) -> String) -> String {
    let first: Vec<String> = values.iter().take(6).map(show).collect();
    format!("\n  first  {}{}", first.join("  "), if values.len() > 6 { "  …" } else { "" })
}

/// As lines of text.
pub(crate) fn describe(name: &str, tensor: &Tensor) -> String {
    let mut text = format!("{}: {}{}", clean(name), tensor.element(), tensor.shape());
    if tensor.shape().contains(&0) {
        return format!("{text} (empty)");
    }
    let values = match Contents::of(tensor) {
        Contents::Texts => {
            let shown: Vec<&str> = tensor.strings().iter().take(8).map(String::as_str).collect();
            return format!("{text} {shown:?}");
        }
        Contents::Other => return text,
        Contents::Integers(values) => {
            if let (Some(low), Some(high), Some(mean)) =
                (values.iter().min(), values.iter().max(), Mean::of(&values))
            {
                text.push_str(&format!("  min {low}  max {high}  mean {mean}"));
            }
            return text + &first(&values, ToString::to_string);
        }
        Contents::Floats(values) => values,
    };
    let finite: Vec<f64> = values.iter().copied().filter(|v| v.is_finite()).collect();
    if let (Some(low), Some(high)) =
        (finite.iter().copied().reduce(f64::min), finite.iter().copied().reduce(f64::max))
    {
        let mean = finite.iter().sum::<f64>() / finite.len() as f64;
        text.push_str(&format!("  min {low:.5}  max {high:.5}  mean {mean:.5}"));
    }
    if finite.len() < values.len() {
        text.push_str(&format!("  NOT FINITE: {} of {}", values.len() - finite.len(), values.len()));
    }
    // A row of many scores is most likely one per class: the best are what one wants to see.
    let shape = tensor.shape();
    let is_scores = shape.last().is_some_and(|&n| (10..=100_000).contains(&n))
        && shape.iter().rev().skip(1).all(|&d| d == 1);
    if is_scores {
        let mut order: Vec<usize> = (0..values.len()).collect();
        order.sort_by(|&a, &b| values[b].total_cmp(&values[a]));
        let best: Vec<String> = order.iter().take(5).map(|&i| format!("{i}: {:.4}", values[i])).collect();
        text.push_str(&format!("\n  largest  {}", best.join("  ")));
    } else {
        text.push_str(&first(&values, |v| format!("{v:.5}")));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_are_shown_exactly() {
        let tensor = Tensor::vector(&[9_007_199_254_740_993i64, -3]);
        assert!(describe("y", &tensor).starts_with("y: int64[2]  min -3  max 9007199254740993  mean "));
        assert_eq!(summary(&tensor)["first"], json!([9_007_199_254_740_993i64, -3]));
        let tensor = Tensor::vector(&[1i64, 2]);
        assert!(describe("y", &tensor).contains("  mean 1.50000\n"));
        let tensor = Tensor::vector(&[u64::MAX]);
        assert!(describe("y", &tensor).contains("  mean 18446744073709551615\n"));
        assert!(describe("y", &tensor).contains("max 18446744073709551615"));
        assert_eq!(summary(&tensor)["max"], json!(u64::MAX));
    }
}
