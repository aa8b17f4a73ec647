//! Pieces of expressions that exporters spell out, as passes look for them. Factors and terms may stand in any order.

use smallvec::SmallVec;

use super::facts;
use crate::ops::{BinaryKind, UnaryKind};
use crate::{Graph, Node, Op, ValueId};

/// Factors of a product that are looked at.
const MOST_FACTORS: usize = 4;

/// `scalar * factor * factor ...`.
pub(super) struct Product {
    pub(super) scalar: f64,
    pub(super) factors: SmallVec<[ValueId; 4]>,
}

impl Product {
    /// The other factor of two, when one is `value`.
    pub(super) fn other_than(&self, value: ValueId) -> Option<ValueId> {
        match self.factors[..] {
            [a, b] if a == value => Some(b),
            [a, b] if b == value => Some(a),
            _ => None,
        }
    }
}

/// The product that a Mul or a Div by a number is, through further ones that nothing else reads.
pub(super) fn product(graph: &Graph, node: &Node) -> Option<Product> {
    let mut product = Product { scalar: 1.0, factors: SmallVec::new() };
    multiply_in(graph, node, &mut product).then_some(product)
}

/// The product that a value is; a value that is none is its own only factor.
pub(super) fn product_of(graph: &Graph, value: ValueId) -> Product {
    facts::producer(graph, value)
        .and_then(|(_, node)| product(graph, node))
        .unwrap_or_else(|| Product { scalar: 1.0, factors: SmallVec::from_slice(&[value]) })
}

fn multiply_in(graph: &Graph, node: &Node, product: &mut Product) -> bool {
    let Op::Binary(op) = &node.op else { return false };
    let (Some(a), Some(b)) = (node.input(0), node.input(1)) else { return false };
    match op.kind {
        BinaryKind::Mul => {
            factor(graph, a, product);
            factor(graph, b, product);
        }
        BinaryKind::Div => {
            let Some(divisor) = facts::scalar(graph, b).filter(|d| *d != 0.0) else { return false };
            product.scalar /= divisor;
            factor(graph, a, product);
        }
        _ => return false,
    }
    product.factors.len() <= MOST_FACTORS
}

fn factor(graph: &Graph, value: ValueId, product: &mut Product) {
    if let Some(number) = facts::scalar(graph, value) {
        product.scalar *= number;
        return;
    }
    if let Some((_, node)) = facts::sole_producer(graph, value) {
        let mut inner = Product { scalar: 1.0, factors: SmallVec::new() };
        if product.factors.len() < MOST_FACTORS && multiply_in(graph, node, &mut inner) {
            product.scalar *= inner.scalar;
            product.factors.extend(inner.factors);
            return;
        }
    }
    product.factors.push(value);
}

/// The function of one number that gives a value, and its argument.
pub(super) fn unary(graph: &Graph, value: ValueId) -> Option<(UnaryKind, ValueId)> {
    let (_, node) = facts::producer(graph, value)?;
    let Op::Unary(op) = &node.op else { return None };
    Some((op.kind, node.input(0)?))
}

/// The function of two numbers that gives a value, and its arguments.
pub(super) fn binary(graph: &Graph, value: ValueId) -> Option<(BinaryKind, ValueId, ValueId)> {
    let (_, node) = facts::producer(graph, value)?;
    let Op::Binary(op) = &node.op else { return None };
    Some((op.kind, node.input(0)?, node.input(1)?))
}

/// `term + number`: the term and the number.
pub(super) fn plus_number(graph: &Graph, value: ValueId) -> Option<(ValueId, f64)> {
    match binary(graph, value)? {
        (BinaryKind::Add, a, b) => match (facts::scalar(graph, a), facts::scalar(graph, b)) {
            (None, Some(number)) => Some((a, number)),
            (Some(number), None) => Some((b, number)),
            _ => None,
        },
        (BinaryKind::Sub, a, b) => Some((a, -facts::scalar(graph, b)?)),
        _ => None,
    }
}

/// Whether a number is another, as near as single precision and exporters' rounding have it.
pub(super) fn near(a: f64, b: f64) -> bool {
    (a - b).abs() <= 2e-4 * b.abs().max(1e-6)
}
