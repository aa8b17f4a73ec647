//! Activations that exporters spell out become one node: SiLU, hard-sigmoid, hard-swish, GELU in both forms, Softplus,
//! Mish, and a `PRelu` with one slope.

use super::patterns::{self, near};
use super::{PassContext, facts, rewrite};
use crate::ops::{BinaryKind, Unary, UnaryKind};
use crate::{Graph, GraphError, Node, NodeId, Op, ValueId};

pub(super) fn run(graph: &mut Graph, _: &PassContext<'_>) -> Result<usize, GraphError> {
    let ids = facts::node_ids(graph);
    Ok(ids.into_iter().filter(|id| recognise(graph, *id).is_some()).count())
}

fn recognise(graph: &mut Graph, id: NodeId) -> Option<()> {
    let node = graph.get_node(id)?;
    let output = node.output()?;
    if !facts::element(graph, output)?.is_float() {
        return None;
    }
    let (kind, argument) = match &node.op {
        Op::Binary(op) => match op.kind {
            BinaryKind::Mul | BinaryKind::Div => of_product(graph, node)?,
            BinaryKind::PRelu => one_slope(graph, node)?,
            _ => return None,
        },
        Op::Unary(op) if op.kind == UnaryKind::Log => softplus(graph, node)?,
        _ => return None,
    };
    if !facts::same_type(graph, argument, output) {
        return None;
    }
    rewrite::become_op(graph, id, Unary { kind }, &[Some(argument)]);
    Some(())
}

fn of_product(graph: &Graph, node: &Node) -> Option<(UnaryKind, ValueId)> {
    let product = patterns::product(graph, node)?;
    match product.factors[..] {
        [gate] => hard_sigmoid(graph, product.scalar, gate),
        [a, b] => gated(graph, product.scalar, a, b).or_else(|| gated(graph, product.scalar, b, a)),
        _ => None,
    }
}

/// `min(max(x + offset, 0), top) / top`.
fn hard_sigmoid(graph: &Graph, scale: f64, gate: ValueId) -> Option<(UnaryKind, ValueId)> {
    let (argument, offset, top) = hard_gate(graph, gate)?;
    let (alpha, beta) = ((1.0 / top) as f32, (offset / top) as f32);
    near(scale * top, 1.0).then_some((UnaryKind::HardSigmoid { alpha, beta }, argument))
}

/// `min(max(x + offset, 0), top)`.
fn hard_gate(graph: &Graph, gate: ValueId) -> Option<(ValueId, f64, f64)> {
    let (UnaryKind::Clip { min: 0.0, max }, sum) = patterns::unary(graph, gate)? else { return None };
    let (argument, offset) = patterns::plus_number(graph, sum)?;
    (max > 0.0 && max.is_finite()).then_some((argument, offset, f64::from(max)))
}

/// `scale * x * gate(x)`.
fn gated(graph: &Graph, scale: f64, x: ValueId, gate: ValueId) -> Option<(UnaryKind, ValueId)> {
    let kind = gate_of_unary(graph, scale, x, gate).or_else(|| gelu(graph, scale, x, gate))?;
    Some((kind, x))
}

fn gate_of_unary(graph: &Graph, scale: f64, x: ValueId, gate: ValueId) -> Option<UnaryKind> {
    if let Some((argument, offset, top)) = hard_gate(graph, gate) {
        let standard = near(offset, 3.0) && near(top, 6.0) && near(scale, 1.0 / 6.0);
        return (argument == x && standard).then_some(UnaryKind::HardSwish);
    }
    if !near(scale, 1.0) {
        return None;
    }
    match patterns::unary(graph, gate)? {
        (UnaryKind::Sigmoid, argument) if argument == x => Some(UnaryKind::Silu),
        (UnaryKind::Sigmoid, argument) => {
            let scaled = patterns::product_of(graph, argument);
            (scaled.factors[..] == [x]).then_some(UnaryKind::Swish { alpha: scaled.scalar as f32 })
        }
        (UnaryKind::HardSigmoid { alpha, beta }, argument) if argument == x => {
            (near(f64::from(alpha), 1.0 / 6.0) && near(f64::from(beta), 0.5)).then_some(UnaryKind::HardSwish)
        }
        (UnaryKind::Tanh, argument) => match patterns::unary(graph, argument)? {
            (UnaryKind::Softplus, inner) if inner == x => Some(UnaryKind::Mish),
            _ => None,
        },
        _ => None,
    }
}

/// `x / 2 * (1 + erf(x / sqrt 2))`, or tanh of a polynomial in place of erf.
fn gelu(graph: &Graph, scale: f64, x: ValueId, gate: ValueId) -> Option<UnaryKind> {
    let (function, one) = patterns::plus_number(graph, gate)?;
    if !near(one, 1.0) || !near(scale, 0.5) {
        return None;
    }
    let (kind, argument) = patterns::unary(graph, function)?;
    let inner = patterns::product_of(graph, argument);
    match kind {
        UnaryKind::Erf => (inner.factors[..] == [x] && near(inner.scalar, std::f64::consts::FRAC_1_SQRT_2))
            .then_some(UnaryKind::Gelu { tanh: false }),
        UnaryKind::Tanh if near(inner.scalar, (2.0 / std::f64::consts::PI).sqrt()) => {
            let polynomial = match inner.factors[..] {
                [sum] => cubic(graph, sum, x),
                _ => inner.other_than(x).is_some_and(|sum| quadratic(graph, sum, x)),
            };
            polynomial.then_some(UnaryKind::Gelu { tanh: true })
        }
        _ => None,
    }
}

/// The coefficient of GELU's approximation by tanh.
const CUBIC: f64 = 0.044715;

/// Whether a value is `x + 0.044715 * x^3`.
fn cubic(graph: &Graph, sum: ValueId, x: ValueId) -> bool {
    let Some((BinaryKind::Add, a, b)) = patterns::binary(graph, sum) else { return false };
    let term = if a == x { b } else { a };
    (a == x || b == x) && is_power(graph, term, x, 3)
}

/// Whether a value is `1 + 0.044715 * x^2`.
fn quadratic(graph: &Graph, sum: ValueId, x: ValueId) -> bool {
    patterns::plus_number(graph, sum).is_some_and(|(term, one)| near(one, 1.0) && is_power(graph, term, x, 2))
}

/// Whether a value is `0.044715 * x^exponent`.
fn is_power(graph: &Graph, term: ValueId, x: ValueId, exponent: usize) -> bool {
    let product = patterns::product_of(graph, term);
    if !near(product.scalar, CUBIC) {
        return false;
    }
    let total: Option<usize> = product
        .factors
        .iter()
        .map(|factor| match patterns::binary(graph, *factor) {
            _ if *factor == x => Some(1),
            Some((BinaryKind::Pow, base, power)) if base == x => {
                facts::scalar(graph, power).filter(|p| *p == 2.0 || *p == 3.0).map(|p| p as usize)
            }
            Some((BinaryKind::Mul, a, b)) if a == x && b == x => Some(2),
            _ => None,
        })
        .sum();
    total == Some(exponent)
}

/// `log(1 + exp(x))`.
fn softplus(graph: &Graph, node: &Node) -> Option<(UnaryKind, ValueId)> {
    let (power, one) = patterns::plus_number(graph, node.input(0)?)?;
    match patterns::unary(graph, power)? {
        (UnaryKind::Exp, argument) if one == 1.0 => Some((UnaryKind::Softplus, argument)),
        _ => None,
    }
}

fn one_slope(graph: &Graph, node: &Node) -> Option<(UnaryKind, ValueId)> {
    let alpha = facts::uniform(graph, node.input(1)?)? as f32;
    Some((UnaryKind::LeakyRelu { alpha }, node.input(0)?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::passes::testing::{Build, becomes, binary, stays, unary};

    const PASS: &[&str] = &["recognise_activations"];
    const SIX: UnaryKind = UnaryKind::Clip { min: 0.0, max: 6.0 };

    /// Nodes with names that number themselves.
    struct Chain(Build, usize);

    impl Chain {
        fn new() -> (Self, ValueId) {
            let mut b = Build::new();
            let x = b.input("x", &[8]);
            (Self(b, 0), x)
        }

        fn two(&mut self, kind: BinaryKind, a: ValueId, b: ValueId) -> ValueId {
            self.1 += 1;
            self.0.node(&format!("n{}", self.1), binary(kind), &[a, b])
        }

        fn with(&mut self, kind: BinaryKind, a: ValueId, number: f32) -> ValueId {
            let number = self.0.number(number);
            self.two(kind, a, number)
        }

        fn one(&mut self, kind: UnaryKind, a: ValueId) -> ValueId {
            self.1 += 1;
            self.0.node(&format!("n{}", self.1), unary(kind), &[a])
        }
    }

    #[test]
    fn gates_of_sigmoids() {
        let (mut c, x) = Chain::new();
        let sigmoid = c.one(UnaryKind::Sigmoid, x);
        let silu = c.two(BinaryKind::Mul, sigmoid, x);
        let scaled = c.with(BinaryKind::Mul, x, 1.5);
        let sigmoid = c.one(UnaryKind::Sigmoid, scaled);
        let swish = c.two(BinaryKind::Mul, x, sigmoid);
        let hard = c.one(UnaryKind::HardSigmoid { alpha: 1.0 / 6.0, beta: 0.5 }, x);
        let hard_swish = c.two(BinaryKind::Mul, x, hard);
        let exp = c.one(UnaryKind::Exp, x);
        let sum = c.with(BinaryKind::Add, exp, 1.0);
        let softplus = c.one(UnaryKind::Log, sum);
        let graph = c.0.finish(&[silu, swish, hard_swish, softplus]);
        becomes!(graph, PASS, @r"
        graph test
          input x: float32[8]
          n2: float32[8] = Silu(x) // n2 + n1
          n5: float32[8] = Swish(x) alpha=1.5 // n5 + n3 + n4
          n7: float32[8] = HardSwish(x) // n7 + n6
          n10: float32[8] = Softplus(x) // n10 + n8 + n9
          output n2
          output n5
          output n7
          output n10
        ");
    }

    #[test]
    fn hard_swish_as_exporters_spell_it() {
        let (mut c, x) = Chain::new();
        let sum = c.with(BinaryKind::Add, x, 3.0);
        let gate = c.one(SIX, sum);
        let product = c.two(BinaryKind::Mul, x, gate);
        let a = c.with(BinaryKind::Div, product, 6.0);
        let sum = c.with(BinaryKind::Add, x, 3.0);
        let gate = c.one(SIX, sum);
        let sixth = c.with(BinaryKind::Mul, gate, 1.0 / 6.0);
        let b = c.two(BinaryKind::Mul, x, sixth);
        let sum = c.with(BinaryKind::Add, x, 3.0);
        let gate = c.one(SIX, sum);
        let gate = c.with(BinaryKind::Div, gate, 6.0);
        let graph = c.0.finish(&[a, b, gate]);
        becomes!(graph, PASS, @r"
        graph test
          input x: float32[8]
          n4: float32[8] = HardSwish(x) // n4 + n1 + n2 + n3
          n8: float32[8] = HardSwish(x) // n8 + n7 + n5 + n6
          n11: float32[8] = HardSigmoid(x) alpha=0.16666667, beta=0.5 // n11 + n9 + n10
          output n4
          output n8
          output n11
        ");
    }

    #[test]
    fn gelu_in_its_orders() {
        let (mut c, x) = Chain::new();
        let gate = |c: &mut Chain| {
            let argument = c.with(BinaryKind::Div, x, std::f32::consts::SQRT_2);
            let erf = c.one(UnaryKind::Erf, argument);
            c.with(BinaryKind::Add, erf, 1.0)
        };
        let g = gate(&mut c);
        let product = c.two(BinaryKind::Mul, x, g);
        let first = c.with(BinaryKind::Mul, product, 0.5);
        let g = gate(&mut c);
        let half = c.with(BinaryKind::Mul, x, 0.5);
        let second = c.two(BinaryKind::Mul, half, g);
        let g = gate(&mut c);
        let half = c.with(BinaryKind::Mul, g, 0.5);
        let third = c.two(BinaryKind::Mul, x, half);
        let graph = c.0.finish(&[first, second, third]);
        becomes!(graph, PASS, @r"
        graph test
          input x: float32[8]
          n5: float32[8] = Gelu(x) approximate=none // n5 + n1 + n2 + n3 + n4
          n10: float32[8] = Gelu(x) approximate=none // n10 + n6 + n7 + n8 + n9
          n15: float32[8] = Gelu(x) approximate=none // n15 + n11 + n12 + n13 + n14
          output n5
          output n10
          output n15
        ");
    }

    #[test]
    fn gelu_by_tanh() {
        let (mut c, x) = Chain::new();
        let cube = c.with(BinaryKind::Pow, x, 3.0);
        let term = c.with(BinaryKind::Mul, cube, 0.044715);
        let sum = c.two(BinaryKind::Add, x, term);
        let argument = c.with(BinaryKind::Mul, sum, 0.797_884_6);
        let tanh = c.one(UnaryKind::Tanh, argument);
        let gate = c.with(BinaryKind::Add, tanh, 1.0);
        let half = c.with(BinaryKind::Mul, x, 0.5);
        let first = c.two(BinaryKind::Mul, half, gate);

        let square = c.two(BinaryKind::Mul, x, x);
        let term = c.with(BinaryKind::Mul, square, 0.044715);
        let sum = c.with(BinaryKind::Add, term, 1.0);
        let product = c.two(BinaryKind::Mul, x, sum);
        let argument = c.with(BinaryKind::Mul, product, 0.797_884_6);
        let tanh = c.one(UnaryKind::Tanh, argument);
        let gate = c.with(BinaryKind::Add, tanh, 1.0);
        let product = c.two(BinaryKind::Mul, x, gate);
        let second = c.with(BinaryKind::Mul, product, 0.5);
        let graph = c.0.finish(&[first, second]);
        becomes!(graph, PASS, @r"
        graph test
          input x: float32[8]
          n8: float32[8] = Gelu(x) approximate=tanh // n8 + n1 + n2 + n3 + n4 + n5 + n6 + n7
          n17: float32[8] = Gelu(x) approximate=tanh // n17 + n9 + n10 + n11 + n12 + n13 + n14 + n15 + n16
          output n8
          output n17
        ");
    }

    #[test]
    fn not_gates_of_something_else() {
        let (mut c, x) = Chain::new();
        let y = c.0.input("y", &[8]);
        let sigmoid = c.one(UnaryKind::Sigmoid, x);
        let gated = c.two(BinaryKind::Mul, sigmoid, y);
        let sum = c.with(BinaryKind::Add, x, 2.0);
        let gate = c.one(SIX, sum);
        let product = c.two(BinaryKind::Mul, x, gate);
        let not_hard = c.with(BinaryKind::Div, product, 6.0);
        stays(&c.0.finish(&[gated, not_hard]), PASS);
    }
}
