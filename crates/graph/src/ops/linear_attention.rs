//! Attention by a state that is carried from position to position: inputs are queries, keys, values and, each optional,
//! past state, decay and update rate. Results are the answers and the last state.

use armet_tensor::ElementType;

use super::attention::check_groups;
use super::movement::{self, show};
use super::numbers;
use super::support::heads::Heads;
use super::support::typing;
use crate::evaluate::{optional, tensor};
use crate::{
    Attributes, Case, Context, Dim, EvaluateError, InferError, InferInputs, Numbers, Operator, TensorType,
    Value, ValueType,
};

/// Attention by a state that is carried from position to position: inputs are queries, keys, values and, each optional, past state, decay and update rate. Results are the answers and the last state.
#[derive(Debug, Clone, PartialEq)]
pub struct LinearAttention {
    /// Number of heads of the queries.
    pub query_heads: usize,
    /// Number of heads of keys and values.
    pub key_heads: usize,
    /// Factor of the answers; one over the root of the head size when not given.
    pub scale: Option<f32>,
    /// The state fades by the decay before it is written.
    pub gated: bool,
    /// What the state already answers for a key is subtracted from what is written.
    pub delta: bool,
}

impl LinearAttention {
    /// Heads of queries, keys and values.
    fn heads(&self, dims: [&[Dim]; 3]) -> Result<[Heads<Dim>; 3], InferError> {
        if let Some(dims) = dims.iter().find(|dims| dims.len() != 3) {
            return Err(InferError::Mismatch(format!(
                "{} of {}: three axes are needed",
                self.name(),
                show(dims)
            )));
        }
        Ok([
            Heads::of(self.name(), dims[0], Some(self.query_heads))?,
            Heads::of(self.name(), dims[1], Some(self.key_heads))?,
            Heads::of(self.name(), dims[2], Some(self.key_heads))?,
        ])
    }

    fn check(&self, what: &str, dims: &[Dim], wanted: &[&[Dim]]) -> Result<(), InferError> {
        let fits = |wanted: &&[Dim]| {
            wanted.len() == dims.len()
                && wanted.iter().zip(dims).all(|(a, b)| movement::unify(a, b).is_some())
        };
        if wanted.iter().any(fits) {
            return Ok(());
        }
        let wanted: Vec<String> = wanted.iter().map(|dims| show(dims)).collect();
        let (name, wanted) = (self.name(), wanted.join(" or "));
        Err(InferError::Mismatch(format!("{name}: {what} of {} should be of {wanted}", show(dims))))
    }
}

impl Operator for LinearAttention {
    fn name(&self) -> &'static str {
        "LinearAttention"
    }

    fn attributes(&self) -> Attributes {
        let rule = match (self.gated, self.delta) {
            (false, false) => "linear",
            (true, false) => "gated",
            (false, true) => "delta",
            (true, true) => "gated_delta",
        };
        Attributes::none()
            .with("q_num_heads", self.query_heads)
            .with("kv_num_heads", self.key_heads)
            .with("scale", self.scale.unwrap_or(0.0))
            .with("update_rule", rule)
    }

    fn infer(&self, inputs: &InferInputs<'_>) -> Result<Vec<ValueType>, InferError> {
        let element = typing::element(inputs, 0, self.name(), ElementType::is_float)?;
        typing::same_elements(inputs, self.name(), &[0, 1, 2, 4, 5])?;
        let [q, k, v] = self.heads([inputs.dims(0)?, inputs.dims(1)?, inputs.dims(2)?])?;
        check_groups(self.name(), &q.heads, &k.heads)?;
        let rows = [q.batch.clone(), q.length.clone()];
        let row = |width: Dim| [rows[0].clone(), rows[1].clone(), width];
        self.check("keys", inputs.dims(1)?, &[&row(k.heads.mul(&q.size))])?;
        self.check("values", inputs.dims(2)?, &[&row(Dim::Unknown)])?;
        let state = [q.batch.clone(), k.heads.clone(), k.size.clone(), v.size.clone()];
        let mut kept = element;
        if inputs.has(3) {
            kept = typing::element(inputs, 3, self.name(), ElementType::is_float)?;
            self.check("past state", inputs.dims(3)?, &[&state])?;
        }
        for (needed, input, what) in [(self.gated, 4, "decay"), (self.delta, 5, "update rate")] {
            match (needed, inputs.has(input)) {
                (true, false) => return Err(InferError::MissingInput(input)),
                (false, true) => {
                    let text = format!("{}: this update rule takes no {what}", self.name());
                    return Err(InferError::Mismatch(text));
                }
                _ => {}
            }
        }
        if self.gated {
            let wanted = [row(k.heads.clone()), row(k.heads.mul(&k.size))];
            self.check("decay", inputs.dims(4)?, &[&wanted[0], &wanted[1]])?;
        }
        if self.delta {
            let wanted = [row(k.heads.clone()), row(Dim::Fixed(1))];
            self.check("update rate", inputs.dims(5)?, &[&wanted[0], &wanted[1]])?;
        }
        Ok(vec![
            TensorType::new(element, row(q.heads.mul(&v.size))).into(),
            TensorType::new(kept, state).into(),
        ])
    }

    fn evaluate(&self, inputs: &[Option<&Value>], context: &Context) -> Result<Vec<Value>, EvaluateError> {
        let types = movement::results(self, inputs)?;
        let [(element, shape), (kept, state_shape)] = &types[..] else {
            return Err(EvaluateError::Invalid("linear attention has two results".into()));
        };
        let floats = |index| tensor(inputs, index).and_then(numbers::to_f64);
        let (q, k, v) = (floats(0)?, floats(1)?, floats(2)?);
        let (decay, rate) = (
            optional(inputs, 4).map(numbers::to_f64).transpose()?,
            optional(inputs, 5).map(numbers::to_f64).transpose()?,
        );
        let (batch, length) = (shape[0], shape[1]);
        let (heads, key_size, value_size) = (state_shape[1], state_shape[2], state_shape[3]);
        let group = self.query_heads / heads.max(1);
        let scale = self.scale.map_or_else(|| (key_size as f64).sqrt().recip(), f64::from);
        let mut state = match optional(inputs, 3) {
            Some(past) => numbers::to_f64(past)?,
            None => vec![0.0; state_shape.elements()],
        };
        let mut result = vec![0.0; shape.elements()];
        let mut written = vec![0.0; value_size];
        let size = key_size * value_size;
        for token in 0..if result.is_empty() && state.is_empty() { 0 } else { batch * length } {
            for head in 0..heads {
                let state = &mut state[(token / length * heads + head) * size..][..size];
                let at = token * heads + head;
                let key = &k[at * key_size..][..key_size];
                written.copy_from_slice(&v[at * value_size..][..value_size]);
                if let Some(decay) = &decay {
                    let each = decay.len() / (batch * length * heads).max(1);
                    for d in 0..key_size {
                        let fade = decay[at * each + if each == 1 { 0 } else { d }].exp();
                        state[d * value_size..][..value_size].iter_mut().for_each(|s| *s *= fade);
                    }
                }
                if let Some(rate) = &rate {
                    let rate = rate[if rate.len() == batch * length { token } else { at }];
                    for (m, v) in written.iter_mut().enumerate() {
                        let known: f64 =
                            key.iter().enumerate().map(|(d, k)| state[d * value_size + m] * k).sum();
                        *v = rate * (*v - known);
                    }
                }
                for (d, k) in key.iter().enumerate() {
                    let row = &mut state[d * value_size..][..value_size];
                    row.iter_mut().zip(&written).for_each(|(s, v)| *s += k * v);
                }
                for query_head in head * group..(head + 1) * group {
                    let at = token * self.query_heads + query_head;
                    let query = &q[at * key_size..][..key_size];
                    let answer = &mut result[at * value_size..][..value_size];
                    for (m, answer) in answer.iter_mut().enumerate() {
                        let sum: f64 =
                            query.iter().enumerate().map(|(d, q)| q * state[d * value_size + m]).sum();
                        *answer = scale * sum;
                    }
                }
            }
        }
        let mut results = vec![numbers::from_f64(*element, shape.clone(), &result)?.into()];
        if context.outputs > 1 {
            results.push(numbers::from_f64(*kept, state_shape.clone(), &state)?.into());
        }
        Ok(results)
    }

    fn operations(&self, inputs: &[Option<&ValueType>], outputs: &[Option<&ValueType>]) -> u64 {
        // The state is read and written for each key and value.
        let size = inputs.first().copied().flatten().and_then(ValueType::shape);
        let size = size.and_then(|s| s.last().copied()).unwrap_or(0) / self.query_heads.max(1);
        typing::count(outputs, 0).saturating_mul(size as u64).saturating_mul(6)
    }

    fn cases() -> Vec<Case> {
        let mut numbers = Numbers::new(27);
        let mut case = |name: &str,
                        (query_heads, key_heads): (usize, usize),
                        rule: (bool, bool),
                        width: usize,
                        past: bool| {
            let op = LinearAttention { query_heads, key_heads, scale: None, gated: rule.0, delta: rule.1 };
            let mut floats = |shape: &[usize]| Some(numbers.floats(shape, -0.7, 0.7));
            let (b, t, d, m) = (2, 3, 4, 5);
            let mut inputs = vec![
                floats(&[b, t, query_heads * d]),
                floats(&[b, t, key_heads * d]),
                floats(&[b, t, key_heads * m]),
            ];
            inputs.push(if past { floats(&[b, key_heads, d, m]) } else { None });
            inputs.push(if rule.0 { floats(&[b, t, key_heads * width]) } else { None });
            inputs.push(if rule.1 { floats(&[b, t, key_heads]) } else { None });
            let mut case = Case::new(name, op, []).with_outputs(2);
            case.inputs = inputs;
            case
        };
        vec![
            case("linear", (2, 2), (false, false), 1, false),
            case("groups", (4, 2), (false, false), 1, true),
            case("gated", (2, 2), (true, false), 4, true),
            case("delta", (2, 1), (false, true), 1, false),
            case("gated delta", (2, 2), (true, true), 1, true),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use armet_tensor::Tensor;

    #[test]
    fn the_state_remembers_values_by_their_keys() {
        let op =
            LinearAttention { query_heads: 1, key_heads: 1, scale: Some(1.0), gated: false, delta: false };
        let row = |values: &[f32]| Value::from(Tensor::new([1, values.len(), 1], values).unwrap());
        let (q, k, v) = (row(&[1.0, 2.0]), row(&[1.0, 1.0]), row(&[3.0, 4.0]));
        let y = op.evaluate(&[Some(&q), Some(&k), Some(&v)], &Context { outputs: 2, seed: 0 }).unwrap();
        assert_eq!(y[0].tensor().unwrap().expect::<f32>().to_vec(), [3.0, 14.0]);
        assert_eq!(y[1].tensor().unwrap().expect::<f32>().to_vec(), [7.0]);
    }

    #[test]
    fn a_rule_takes_what_it_needs_and_nothing_else() {
        let op = LinearAttention { query_heads: 1, key_heads: 1, scale: None, gated: true, delta: false };
        let x = Value::from(Tensor::zeros(ElementType::F32, [1, 1, 1]).unwrap());
        let error = op.evaluate(&[Some(&x), Some(&x), Some(&x)], &Context::default()).unwrap_err();
        assert_eq!(error.to_string(), "input 4 is missing");
    }
}
