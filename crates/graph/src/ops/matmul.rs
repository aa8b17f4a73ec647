//! `alpha * A * B`, batched over leading axes with broadcasting, plus a bias for the last axis (third input, optional) and a tensor of the result's shape added before the activation (fourth, optional).

use std::num::Wrapping;

use armet_tensor::{Shape, Tensor};
use smallvec::SmallVec;

use super::conv::finish;
use super::movement::{self, show};
use super::support::product::{Number, accumulate, transposed};
use super::support::{broadcast, sum_tolerance, typing};
use super::{UnaryKind, numbers, unary};
use crate::evaluate::{optional, tensor};
use crate::{
    Attributes, Case, Context, Dim, EvaluateError, InferError, InferInputs, Numbers, Operator, Tolerance,
    Value, ValueType,
};

/// `alpha * A * B`, batched over leading axes with broadcasting, plus a bias for the last axis (third input, optional) and a tensor of the result's shape added before the activation (fourth, optional).
#[derive(Debug, Clone, PartialEq)]
pub struct MatMul {
    /// The last two axes of A are exchanged (put there by a pass).
    pub transpose_a: bool,
    /// The last two axes of B are exchanged (put there by a pass).
    pub transpose_b: bool,
    /// Factor of the product.
    pub alpha: f32,
    /// Function applied to the result, put there by a pass.
    pub activation: Option<UnaryKind>,
}

/// Rows, common dimension and columns of a product, and the leading axes of its factors.
#[derive(Debug)]
pub(super) struct Factors<'a, D> {
    rows: D,
    common: D,
    columns: D,
    a_batch: &'a [D],
    b_batch: &'a [D],
    /// Whether rows and columns are axes of the result: a vector has none.
    has_rows: bool,
    has_columns: bool,
}

/// NumPy's rule for the operands of a matrix product; `None` when shapes contradict each other.
pub(super) fn factors<'a, D: Clone + From<usize>>(
    a: &'a [D],
    b: &'a [D],
    transpose_a: bool,
    transpose_b: bool,
    agree: impl Fn(&D, &D) -> bool,
) -> Option<Factors<'a, D>> {
    let (has_rows, has_columns) = (a.len() > 1, b.len() > 1);
    let (a_batch, rows, a_common) = match a {
        [] => return None,
        [common] => (&a[..0], D::from(1), common.clone()),
        [batch @ .., common, rows] if transpose_a => (batch, rows.clone(), common.clone()),
        [batch @ .., rows, common] => (batch, rows.clone(), common.clone()),
    };
    let (b_batch, b_common, columns) = match b {
        [] => return None,
        [common] => (&b[..0], common.clone(), D::from(1)),
        [batch @ .., columns, common] if transpose_b => (batch, common.clone(), columns.clone()),
        [batch @ .., common, columns] => (batch, common.clone(), columns.clone()),
    };
    agree(&a_common, &b_common).then_some(Factors {
        rows,
        common: a_common,
        columns,
        a_batch,
        b_batch,
        has_rows,
        has_columns,
    })
}

/// The dimensions of a matrix product by NumPy's rule.
pub(super) fn product_dims(
    operator: &'static str,
    a: &[Dim],
    b: &[Dim],
    transpose_a: bool,
    transpose_b: bool,
) -> Result<SmallVec<[Dim; 6]>, InferError> {
    let agree = |a: &Dim, b: &Dim| a.fixed().zip(b.fixed()).is_none_or(|(a, b)| a == b);
    let fault = || {
        let mark = |transposed: bool| if transposed { " transposed" } else { "" };
        InferError::Mismatch(format!(
            "{operator} cannot multiply {}{} by {}{}",
            show(a),
            mark(transpose_a),
            show(b),
            mark(transpose_b)
        ))
    };
    let f = factors(a, b, transpose_a, transpose_b, agree).ok_or_else(fault)?;
    let mut dims = broadcast::dims(operator, &[f.a_batch, f.b_batch]).map_err(|_| fault())?;
    dims.extend(f.has_rows.then_some(f.rows));
    dims.extend(f.has_columns.then_some(f.columns));
    Ok(dims)
}

/// The matrix product of checked factors, as elements of the result in order.
pub(super) fn product<T: Number>(
    (a, a_shape): (&[T], &[usize]),
    (b, b_shape): (&[T], &[usize]),
    transpose_a: bool,
    transpose_b: bool,
    shape: &Shape,
) -> Result<Vec<T>, EvaluateError> {
    let mut out = broadcast::filled(shape, T::default())?;
    let shapes = factors(a_shape, b_shape, transpose_a, transpose_b, PartialEq::eq);
    let Some(f) = shapes else {
        return Err(EvaluateError::Invalid(format!("cannot multiply {a_shape:?} by {b_shape:?}")));
    };
    if out.is_empty() || f.common == 0 {
        return Ok(out);
    }
    let a = transposed(a, f.common, f.rows, transpose_a && f.has_rows);
    let b = transposed(b, f.columns, f.common, transpose_b && f.has_columns);
    let batch: Shape = shape[..shape.len() - usize::from(f.has_rows) - usize::from(f.has_columns)].into();
    let (a_size, b_size) = (f.rows * f.common, f.common * f.columns);
    let a_index = broadcast::expand((0..a.len() / a_size).collect(), f.a_batch, &batch)?;
    let b_index = broadcast::expand((0..b.len() / b_size).collect(), f.b_batch, &batch)?;
    for ((out, a_at), b_at) in out.chunks_exact_mut(f.rows * f.columns).zip(a_index).zip(b_index) {
        accumulate(out, &a[a_at * a_size..][..a_size], &b[b_at * b_size..][..b_size], f.common, f.columns);
    }
    Ok(out)
}

/// Integers that wrap as the hardware's do; narrower types wrap when they are stored.
pub(super) fn wrapping(tensor: &Tensor) -> Result<Vec<Wrapping<i64>>, EvaluateError> {
    Ok(numbers::to_i128(tensor)?.into_iter().map(|v| Wrapping(v as i64)).collect())
}

/// Arithmetic of a matrix product, a multiply-add counted as two.
pub(super) fn product_operations(
    inputs: &[Option<&ValueType>],
    outputs: &[Option<&ValueType>],
    transpose_a: bool,
) -> u64 {
    let Some(a) = inputs.first().copied().flatten().and_then(ValueType::shape) else { return 0 };
    let common = match &a[..] {
        [.., common, _] if transpose_a => *common,
        [.., common] => *common,
        [] => 0,
    };
    typing::count(outputs, 0).saturating_mul(common as u64).saturating_mul(2)
}

impl Operator for MatMul {
    fn name(&self) -> &'static str {
        "MatMul"
    }

    fn attributes(&self) -> Attributes {
        let attributes = Attributes::none()
            .with("transpose_a", self.transpose_a)
            .with("transpose_b", self.transpose_b)
            .with("alpha", self.alpha);
        unary::with_activation(attributes, self.activation)
    }

    fn infer(&self, inputs: &InferInputs<'_>) -> Result<Vec<ValueType>, InferError> {
        let element = typing::element(inputs, 0, "MatMul", typing::is_number)?;
        typing::same_elements(inputs, "MatMul", &[0, 1, 2, 3])?;
        let (a, b) = (inputs.dims(0)?, inputs.dims(1)?);
        Ok(typing::one(element, product_dims("MatMul", a, b, self.transpose_a, self.transpose_b)?))
    }

    fn evaluate(&self, inputs: &[Option<&Value>], _: &Context) -> Result<Vec<Value>, EvaluateError> {
        let (a, b) = (tensor(inputs, 0)?, tensor(inputs, 1)?);
        let (element, shape) = movement::result(self, inputs)?;
        let (bias, added) = (optional(inputs, 2), optional(inputs, 3));
        let (ta, tb) = (self.transpose_a, self.transpose_b);
        if element.is_integer() {
            if self.alpha != 1.0 || bias.is_some() || added.is_some() || self.activation.is_some() {
                return Err(EvaluateError::ElementType { operator: "MatMul with fused operators", element });
            }
            let values = product((&wrapping(a)?, a.shape()), (&wrapping(b)?, b.shape()), ta, tb, &shape)?;
            let values: Vec<i128> = values.into_iter().map(|v| i128::from(v.0)).collect();
            return Ok(vec![numbers::from_i128(element, shape, &values)?.into()]);
        }
        let (a_values, b_values) = (numbers::to_f64(a)?, numbers::to_f64(b)?);
        let mut values = product((&a_values, a.shape()), (&b_values, b.shape()), ta, tb, &shape)?;
        let alpha = f64::from(self.alpha);
        if self.alpha != 1.0 {
            values.iter_mut().for_each(|v| *v *= alpha);
        }
        if let Some(bias) = bias {
            let bias = broadcast::expand(numbers::to_f64(bias)?, bias.shape(), &shape)?;
            values.iter_mut().zip(bias).for_each(|(v, bias)| *v += bias);
        }
        finish(element, shape, values, added, self.activation)
    }

    fn operations(&self, inputs: &[Option<&ValueType>], outputs: &[Option<&ValueType>]) -> u64 {
        product_operations(inputs, outputs, self.transpose_a)
    }

    fn cases() -> Vec<Case> {
        let mut numbers = Numbers::new(5);
        let plain = MatMul { transpose_a: false, transpose_b: false, alpha: 1.0, activation: None };
        let mut case = |name: &str, op: &MatMul, shapes: &[&[usize]]| {
            let terms = shapes[0].iter().product();
            let inputs: Vec<Tensor> = shapes.iter().map(|s| numbers.floats(*s, -1.0, 1.0)).collect();
            Case::new(name, op.clone(), inputs).with_tolerance(sum_tolerance(terms))
        };
        let transposed = MatMul { transpose_a: true, transpose_b: true, alpha: 0.125, ..plain.clone() };
        let fused = MatMul { activation: Some(UnaryKind::Gelu { tanh: false }), ..plain.clone() };
        let mut cases = vec![
            case("matrices", &plain, &[&[5, 7], &[7, 9]]),
            case("weights", &plain, &[&[2, 5, 16], &[16, 33]]).with_constants(&[1]),
            case("batch", &plain, &[&[2, 3, 4, 5], &[2, 3, 5, 6]]),
            case("batch broadcast", &plain, &[&[2, 1, 4, 5], &[3, 5, 6]]),
            case("vector by matrix", &plain, &[&[5], &[2, 5, 3]]),
            case("matrix by vector", &plain, &[&[2, 3, 5], &[5]]),
            case("vector by vector", &plain, &[&[17], &[17]]),
            case("transposed, scaled", &transposed, &[&[2, 7, 3], &[2, 5, 7]]),
            case("bias, sum and Gelu fused", &fused, &[&[3, 8], &[8, 10], &[10], &[3, 10]])
                .with_constants(&[1, 2]),
            case("no common elements", &plain, &[&[2, 0], &[0, 3]]),
        ];
        let integers = [numbers.ints::<i32>([3, 4], -99, 99), numbers.ints::<i32>([4, 5], -99, 99)];
        cases.push(Case::new("int32", plain, integers).with_tolerance(Tolerance::Exact));
        cases
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use armet_tensor::ElementType;

    const PLAIN: MatMul = MatMul { transpose_a: false, transpose_b: false, alpha: 1.0, activation: None };

    fn shape(op: &MatMul, a: &[usize], b: &[usize]) -> Result<Vec<usize>, String> {
        let zeros = |shape: &[usize]| Value::from(Tensor::zeros(ElementType::F32, shape).unwrap());
        let (a, b) = (zeros(a), zeros(b));
        let results = op.evaluate(&[Some(&a), Some(&b)], &Context::default());
        results.map(|r| r[0].tensor().unwrap().shape().to_vec()).map_err(|e| e.to_string())
    }

    #[test]
    fn shapes_follow_numpy() {
        assert_eq!(shape(&PLAIN, &[3], &[3]), Ok(vec![]));
        assert_eq!(shape(&PLAIN, &[3], &[4, 3, 5]), Ok(vec![4, 5]));
        assert_eq!(shape(&PLAIN, &[2, 1, 4, 3], &[6, 3, 5]), Ok(vec![2, 6, 4, 5]));
        assert_eq!(shape(&PLAIN, &[0, 3], &[3, 5]), Ok(vec![0, 5]));
        let message = "MatMul cannot multiply [2,3] by [4,5]";
        assert_eq!(shape(&PLAIN, &[2, 3], &[4, 5]), Err(message.to_owned()));
        assert!(shape(&PLAIN, &[], &[4, 5]).is_err());
        assert!(shape(&PLAIN, &[2, 3, 4], &[3, 4, 5]).is_err());
    }

    #[test]
    fn integer_products_wrap() {
        let a = Value::from(Tensor::new([1, 1], &[i64::MAX]).unwrap());
        let b = Value::from(Tensor::new([1, 1], &[3i64]).unwrap());
        let y = PLAIN.evaluate(&[Some(&a), Some(&b)], &Context::default()).unwrap();
        assert_eq!(y[0].tensor().unwrap().expect::<i64>()[0], i64::MAX.wrapping_mul(3));
    }
}
