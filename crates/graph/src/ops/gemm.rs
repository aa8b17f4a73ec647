//! `alpha * A' * B' + beta * C` of matrices; C (optional) broadcasts to the result.

use armet_tensor::Tensor;

use super::matmul::{product, product_dims, product_operations, wrapping};
use super::movement::{self, show};
use super::numbers;
use super::support::{broadcast, sum_tolerance, typing};
use crate::evaluate::{optional, tensor};
use crate::{
    Attributes, Case, Context, EvaluateError, InferError, InferInputs, Numbers, Operator, Tolerance, Value,
    ValueType,
};

/// `alpha * A' * B' + beta * C` of matrices; C (optional) broadcasts to the result.
#[derive(Debug, Clone, PartialEq)]
pub struct Gemm {
    /// Factor of the product.
    pub alpha: f32,
    /// Factor of C.
    pub beta: f32,
    /// A is transposed.
    pub transpose_a: bool,
    /// B is transposed.
    pub transpose_b: bool,
}

impl Operator for Gemm {
    fn name(&self) -> &'static str {
        "Gemm"
    }

    fn attributes(&self) -> Attributes {
        Attributes::none()
            .with("alpha", self.alpha)
            .with("beta", self.beta)
            .with("transA", self.transpose_a)
            .with("transB", self.transpose_b)
    }

    fn infer(&self, inputs: &InferInputs<'_>) -> Result<Vec<ValueType>, InferError> {
        let element = typing::element(inputs, 0, "Gemm", typing::is_number)?;
        typing::same_elements(inputs, "Gemm", &[0, 1, 2])?;
        let (a, b) = (inputs.dims(0)?, inputs.dims(1)?);
        let dims = product_dims("Gemm", a, b, self.transpose_a, self.transpose_b)?;
        if a.len() != 2 || b.len() != 2 {
            return Err(InferError::Mismatch(format!(
                "Gemm multiplies matrices, not {} by {}",
                show(a),
                show(b)
            )));
        }
        if inputs.has(2) && inputs.tensor(2)?.dims.is_some() {
            let c = inputs.dims(2)?;
            let all = broadcast::dims("Gemm", &[&dims, c])?;
            let larger = |(all, own): (&crate::Dim, &crate::Dim)| {
                all.fixed().zip(own.fixed()).is_some_and(|(all, own)| all != own)
            };
            if all.len() > 2 || all.iter().zip(&dims).any(larger) {
                return Err(InferError::Mismatch(format!(
                    "Gemm cannot add {} to a product of {}",
                    show(c),
                    show(&dims)
                )));
            }
        }
        Ok(typing::one(element, dims))
    }

    fn evaluate(&self, inputs: &[Option<&Value>], _: &Context) -> Result<Vec<Value>, EvaluateError> {
        let (a, b, c) = (tensor(inputs, 0)?, tensor(inputs, 1)?, optional(inputs, 2));
        let (element, shape) = movement::result(self, inputs)?;
        let (ta, tb) = (self.transpose_a, self.transpose_b);
        if element.is_integer() && self.alpha == 1.0 && self.beta == 1.0 {
            let mut values = product((&wrapping(a)?, a.shape()), (&wrapping(b)?, b.shape()), ta, tb, &shape)?;
            if let Some(c) = c {
                let c = broadcast::expand(wrapping(c)?, c.shape(), &shape)?;
                values.iter_mut().zip(c).for_each(|(v, c)| *v += c);
            }
            let values: Vec<i128> = values.into_iter().map(|v| i128::from(v.0)).collect();
            return Ok(vec![numbers::from_i128(element, shape, &values)?.into()]);
        }
        let (a_values, b_values) = (numbers::to_f64(a)?, numbers::to_f64(b)?);
        let mut values = product((&a_values, a.shape()), (&b_values, b.shape()), ta, tb, &shape)?;
        let (alpha, beta) = (f64::from(self.alpha), f64::from(self.beta));
        values.iter_mut().for_each(|v| *v *= alpha);
        // A factor of zero leaves C out, whatever it holds.
        if let Some(c) = c.filter(|_| self.beta != 0.0) {
            let c = broadcast::expand(numbers::to_f64(c)?, c.shape(), &shape)?;
            values.iter_mut().zip(c).for_each(|(v, c)| *v += beta * c);
        }
        Ok(vec![numbers::from_f64(element, shape, &values)?.into()])
    }

    fn operations(&self, inputs: &[Option<&ValueType>], outputs: &[Option<&ValueType>]) -> u64 {
        product_operations(inputs, outputs, self.transpose_a)
    }

    fn cases() -> Vec<Case> {
        let mut numbers = Numbers::new(6);
        let plain = Gemm { alpha: 1.0, beta: 1.0, transpose_a: false, transpose_b: false };
        let mut case = |name: &str, op: Gemm, shapes: &[&[usize]]| {
            let terms = shapes[0].iter().product();
            let inputs: Vec<Tensor> = shapes.iter().map(|s| numbers.floats(*s, -1.0, 1.0)).collect();
            let constants: Vec<usize> = (1..inputs.len()).collect();
            Case::new(name, op, inputs).with_constants(&constants).with_tolerance(sum_tolerance(terms))
        };
        let scaled = Gemm { alpha: 0.5, beta: -2.0, transpose_a: true, transpose_b: true };
        let mut cases = vec![
            case(
                "fully connected",
                Gemm { transpose_b: true, ..plain.clone() },
                &[&[1, 33], &[10, 33], &[10]],
            ),
            case("no C", plain.clone(), &[&[5, 7], &[7, 9]]),
            case("column C", plain.clone(), &[&[5, 7], &[7, 9], &[5, 1]]),
            case("scalar C", plain.clone(), &[&[3, 4], &[4, 8], &[]]),
            case("transposed, scaled", scaled, &[&[7, 5], &[6, 7], &[5, 6]]),
            case("no rows", plain.clone(), &[&[0, 4], &[4, 3], &[3]]),
        ];
        let integers = [numbers.ints::<i32>([2, 3], -9, 9), numbers.ints::<i32>([3, 4], -9, 9)];
        cases.push(Case::new("int32", plain, integers).with_tolerance(Tolerance::Exact));
        cases
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use armet_tensor::ElementType;

    #[test]
    fn c_may_not_be_larger_than_the_product() {
        let op = Gemm { alpha: 1.0, beta: 1.0, transpose_a: false, transpose_b: false };
        let zeros = |shape: &[usize]| Value::from(Tensor::zeros(ElementType::F32, shape).unwrap());
        let (a, b, c) = (zeros(&[1, 2]), zeros(&[2, 3]), zeros(&[4, 3]));
        let error = op.evaluate(&[Some(&a), Some(&b), Some(&c)], &Context::default()).unwrap_err();
        assert_eq!(error.to_string(), "Gemm cannot add [4,3] to a product of [1,3]");
    }
}
