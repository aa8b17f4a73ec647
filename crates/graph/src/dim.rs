//! Symbolic dimensions: a number, a name, an expression over names, or not known yet.

use std::sync::Arc;

/// One dimension of a shape.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Dim {
    /// A number.
    Fixed(usize),
    /// A named free dimension (`batch`).
    Symbol(Arc<str>),
    /// Arithmetic over dimensions.
    Expression(Arc<Expression>),
    /// Decided by data at run time.
    Unknown,
}

/// Arithmetic over two dimensions.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Expression {
    /// What is done.
    pub operation: Operation,
    /// Left operand.
    pub left: Dim,
    /// Right operand.
    pub right: Dim,
    /// Operations in it, shared parts counted each time.
    size: usize,
}

/// Longer expressions than any model's shape arithmetic are given up: a hostile model could double them node by node, and
/// whoever compares, prints or drops one walks over all of it.
const LONGEST: usize = 4096;

/// The operations of dimension arithmetic. Subtraction saturates at zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Operation {
    /// Sum.
    Add,
    /// Difference.
    Sub,
    /// Product.
    Mul,
    /// Quotient, rounded down.
    FloorDiv,
    /// Quotient, rounded up.
    CeilDiv,
    /// Larger.
    Max,
    /// Smaller.
    Min,
}

impl Operation {
    fn apply(self, a: usize, b: usize) -> Option<usize> {
        match self {
            Self::Add => a.checked_add(b),
            Self::Sub => Some(a.saturating_sub(b)),
            Self::Mul => a.checked_mul(b),
            Self::FloorDiv => a.checked_div(b),
            Self::CeilDiv => (b != 0).then(|| a.div_ceil(b)),
            Self::Max => Some(a.max(b)),
            Self::Min => Some(a.min(b)),
        }
    }
}

impl Dim {
    /// A named dimension.
    pub fn symbol(name: &str) -> Self {
        Self::Symbol(name.into())
    }

    /// The number, when it is one.
    pub fn fixed(&self) -> Option<usize> {
        match self {
            Self::Fixed(n) => Some(*n),
            _ => None,
        }
    }

    /// Whether it is this number.
    pub fn is(&self, n: usize) -> bool {
        self.fixed() == Some(n)
    }

    fn combine(operation: Operation, left: &Self, right: &Self) -> Self {
        use Operation::{Add, CeilDiv, FloorDiv, Max, Min, Mul, Sub};
        if let (Self::Fixed(a), Self::Fixed(b)) = (left, right) {
            return operation.apply(*a, *b).map_or(Self::Unknown, Self::Fixed);
        }
        if matches!(left, Self::Unknown) || matches!(right, Self::Unknown) {
            return Self::Unknown;
        }
        match (operation, left, right) {
            (Add | Sub, x, Self::Fixed(0)) | (Add, Self::Fixed(0), x) => return x.clone(),
            (Mul | FloorDiv | CeilDiv, x, Self::Fixed(1)) | (Mul, Self::Fixed(1), x) => return x.clone(),
            (Mul, _, Self::Fixed(0)) | (Mul, Self::Fixed(0), _) => return Self::Fixed(0),
            (Sub, a, b) if a == b => return Self::Fixed(0),
            (FloorDiv | CeilDiv, a, b) if a == b => return Self::Fixed(1),
            (Max | Min, a, b) if a == b => return a.clone(),
            _ => {}
        }
        // (x * a) / a, (x + a) + b: the forms that exporters' shape arithmetic leaves behind.
        if let (Self::Expression(inner), Self::Fixed(b)) = (left, right)
            && let Self::Fixed(a) = inner.right
        {
            match (operation, inner.operation) {
                (FloorDiv | CeilDiv, Mul) if a == *b => return inner.left.clone(),
                (FloorDiv | CeilDiv, Mul) if *b != 0 && a % b == 0 => {
                    return inner.left.mul(&Self::Fixed(a / b));
                }
                (Mul, Mul) => return inner.left.mul(&Self::Fixed(a.saturating_mul(*b))),
                (FloorDiv, FloorDiv) => return inner.left.floor_div(&Self::Fixed(a.saturating_mul(*b))),
                (Add, Add) => return inner.left.add(&Self::Fixed(a.saturating_add(*b))),
                (Sub, Add) if a >= *b => return inner.left.add(&Self::Fixed(a - b)),
                _ => {}
            }
        }
        if matches!(operation, Add | Mul) && matches!(left, Self::Fixed(_)) {
            return Self::combine(operation, right, left);
        }
        let size = left.size() + right.size() + 1;
        if size > LONGEST {
            return Self::Unknown;
        }
        Self::Expression(Arc::new(Expression { operation, left: left.clone(), right: right.clone(), size }))
    }

    fn size(&self) -> usize {
        if let Self::Expression(e) = self { e.size } else { 0 }
    }

    /// Sum.
    #[must_use]
    pub fn add(&self, other: &Self) -> Self {
        Self::combine(Operation::Add, self, other)
    }

    /// Difference, not below zero.
    #[must_use]
    pub fn sub(&self, other: &Self) -> Self {
        Self::combine(Operation::Sub, self, other)
    }

    /// Product.
    #[must_use]
    pub fn mul(&self, other: &Self) -> Self {
        Self::combine(Operation::Mul, self, other)
    }

    /// Quotient rounded down.
    #[must_use]
    pub fn floor_div(&self, other: &Self) -> Self {
        Self::combine(Operation::FloorDiv, self, other)
    }

    /// Quotient rounded up.
    #[must_use]
    pub fn ceil_div(&self, other: &Self) -> Self {
        Self::combine(Operation::CeilDiv, self, other)
    }

    /// The larger.
    #[must_use]
    pub fn max(&self, other: &Self) -> Self {
        Self::combine(Operation::Max, self, other)
    }

    /// The smaller.
    #[must_use]
    pub fn min(&self, other: &Self) -> Self {
        Self::combine(Operation::Min, self, other)
    }

    /// Product of all.
    #[must_use]
    pub fn product(dims: &[Self]) -> Self {
        dims.iter().fold(Self::Fixed(1), |product, dim| product.mul(dim))
    }

    /// The number by which the product of `parts` must be multiplied to give the product of `whole`: what -1 stands
    /// for in a reshape. Names that are in both cancel. `None` when there is no such whole number, or not just one.
    #[must_use]
    pub fn quotient(whole: &[Self], parts: &[Self]) -> Option<Self> {
        let (mut number, mut names) = factors(whole);
        let (mut divisor, divisor_names) = factors(parts);
        if number == Some(0) && divisor_names.is_empty() && divisor.is_some_and(|d| d != 0) {
            return Some(Self::Fixed(0));
        }
        let mut left = Vec::new();
        for name in divisor_names {
            match names.iter().position(|other| *other == name && name != Self::Unknown) {
                Some(at) => {
                    names.remove(at);
                }
                None => left.push(name),
            }
        }
        if divisor == Some(0) {
            return None;
        }
        if let (Some(a), Some(b)) = (number, divisor) {
            let common = greatest_common_divisor(a, b);
            (number, divisor) = (Some(a / common), Some(b / common));
            // Names in the product may bring the factor that is missing; without any, it is missing.
            if names.is_empty() && left.is_empty() && b != common {
                return None;
            }
        }
        let join = |number: Option<usize>, names: &[Self]| {
            names.iter().fold(number.map_or(Self::Unknown, Self::Fixed), |product, name| product.mul(name))
        };
        Some(join(number, &names).floor_div(&join(divisor, &left)))
    }

    /// The dimension two broadcast dimensions give; `None` when they cannot be equal and neither is 1.
    pub fn broadcast(&self, other: &Self) -> Option<Self> {
        match (self, other) {
            (a, b) if a == b => Some(a.clone()),
            (Self::Fixed(1), b) => Some(b.clone()),
            (a, Self::Fixed(1)) => Some(a.clone()),
            (Self::Fixed(_), Self::Fixed(_)) => None,
            // Not 1, so it wins over whatever the other turns out to be.
            (Self::Fixed(n), _) | (_, Self::Fixed(n)) => Some(Self::Fixed(*n)),
            _ => Some(Self::Unknown),
        }
    }

    /// The number this is when names stand for numbers; names that are not bound stay.
    #[must_use]
    pub fn substitute(&self, bindings: &dyn Fn(&str) -> Option<usize>) -> Self {
        match self {
            Self::Symbol(name) => bindings(name).map_or_else(|| self.clone(), Self::Fixed),
            Self::Expression(e) => {
                Self::combine(e.operation, &e.left.substitute(bindings), &e.right.substitute(bindings))
            }
            _ => self.clone(),
        }
    }
}

/// Factors of a product: the numeric ones multiplied (`None` on overflow), and the others.
fn factors(dims: &[Dim]) -> (Option<usize>, Vec<Dim>) {
    let (mut number, mut names) = (Some(1usize), Vec::new());
    let mut open: Vec<&Dim> = dims.iter().collect();
    while let Some(dim) = open.pop() {
        match dim {
            Dim::Fixed(0) => return (Some(0), Vec::new()),
            Dim::Fixed(n) => number = number.and_then(|number| number.checked_mul(*n)),
            Dim::Expression(e) if e.operation == Operation::Mul => open.extend([&e.left, &e.right]),
            other => names.push(other.clone()),
        }
    }
    (number, names)
}

fn greatest_common_divisor(mut a: usize, mut b: usize) -> usize {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a.max(1)
}

impl From<usize> for Dim {
    fn from(n: usize) -> Self {
        Self::Fixed(n)
    }
}

impl std::fmt::Display for Dim {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Fixed(n) => write!(f, "{n}"),
            Self::Symbol(name) => f.write_str(name),
            Self::Unknown => f.write_str("?"),
            Self::Expression(e) => {
                let (l, r) = (&e.left, &e.right);
                match e.operation {
                    Operation::Add => write!(f, "({l}+{r})"),
                    Operation::Sub => write!(f, "({l}-{r})"),
                    Operation::Mul => write!(f, "{l}*{r}"),
                    Operation::FloorDiv => write!(f, "floor({l}/{r})"),
                    Operation::CeilDiv => write!(f, "ceil({l}/{r})"),
                    Operation::Max => write!(f, "max({l},{r})"),
                    Operation::Min => write!(f, "min({l},{r})"),
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exporter_arithmetic_simplifies() {
        let n = Dim::symbol("n");
        assert_eq!(n.mul(&4.into()).floor_div(&4.into()), n);
        assert_eq!(n.mul(&4.into()).floor_div(&2.into()), n.mul(&2.into()));
        assert_eq!(n.add(&3.into()).sub(&3.into()), n);
        assert_eq!(n.sub(&n), Dim::Fixed(0));
        assert_eq!(n.floor_div(&2.into()).floor_div(&4.into()).to_string(), "floor(n/8)");
        assert_eq!(n.mul(&4.into()).substitute(&|_| Some(3)), Dim::Fixed(12));
    }

    #[test]
    fn broadcast_keeps_what_is_known() {
        let n = Dim::symbol("n");
        assert_eq!(n.broadcast(&Dim::Fixed(1)), Some(n.clone()));
        assert_eq!(n.broadcast(&Dim::Fixed(5)), Some(Dim::Fixed(5)));
        assert_eq!(Dim::Fixed(3).broadcast(&Dim::Fixed(5)), None);
    }

    #[test]
    fn quotients_cancel_names() {
        let (n, m) = (Dim::symbol("n"), Dim::symbol("m"));
        let quotient = |whole: &[Dim], parts: &[Dim]| Dim::quotient(whole, parts).map(|d| d.to_string());
        let text = |text: &str| Some(text.to_owned());
        assert_eq!(
            quotient(&[n.clone(), 8.into(), m.clone(), 64.into()], &[m.clone(), n.clone()]),
            text("512")
        );
        assert_eq!(quotient(&[n.clone(), 8.into(), m.clone()], &[n.clone(), 4.into()]), text("m*2"));
        assert_eq!(quotient(&[n.mul(&8.into())], &[4.into(), n.clone()]), text("2"));
        assert_eq!(quotient(&[n.clone()], &[4.into()]), text("floor(n/4)"));
        assert_eq!(quotient(&[n.clone(), 4.into()], &[m.clone(), 8.into()]), text("floor(n/m*2)"));
        assert_eq!(quotient(&[6.into()], &[4.into()]), None);
        assert_eq!(quotient(&[0.into(), 3.into()], &[3.into()]), text("0"));
        assert_eq!(quotient(&[0.into()], &[0.into()]), None);
        assert_eq!(quotient(&[Dim::Unknown, 2.into()], &[Dim::Unknown, 2.into()]), text("?"));
    }

    #[test]
    fn an_expression_that_doubles_is_given_up() {
        let (mut a, mut b) = (Dim::symbol("n"), Dim::symbol("n"));
        for _ in 0..64 {
            (a, b) = (a.add(&a), b.add(&b));
            assert_eq!(a, b);
        }
        assert_eq!(a, Dim::Unknown);
    }

    #[test]
    fn overflow_and_division_by_zero_are_unknown() {
        assert_eq!(Dim::Fixed(usize::MAX).mul(&2.into()), Dim::Unknown);
        assert_eq!(Dim::Fixed(1).floor_div(&0.into()), Dim::Unknown);
    }
}
