//! Sums of what decision trees say of each row.

use armet_tensor::{ElementType, Tensor};

use super::movement;
use super::numbers;
use super::support::typing;
use crate::evaluate::tensor;
use crate::{
    Attributes, Case, Context, Dim, EvaluateError, InferError, InferInputs, Operator, TensorType, Tolerance,
    Value, ValueType,
};

/// Sums of what decision trees say of each row of the input, one result for each target.
#[derive(Debug, Clone, PartialEq)]
pub struct TreeEnsemble {
    /// Where each tree begins.
    pub roots: Vec<TreeBranch>,
    /// The questions of all trees.
    pub nodes: Vec<TreeNode>,
    /// The ends of all trees: each is what it adds to which targets.
    pub leaves: Vec<Vec<(usize, f64)>>,
    /// What each target begins with; none is 0.
    pub base: Vec<f64>,
    /// Number of targets.
    pub targets: usize,
    /// How the trees' answers for a target become one.
    pub aggregate: TreeAggregate,
    /// Element type of the result.
    pub element: ElementType,
}

/// Where an answer leads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TreeBranch {
    /// To another question.
    Node(usize),
    /// To an end.
    Leaf(usize),
}

/// A question about one column.
#[derive(Debug, Clone, PartialEq)]
pub struct TreeNode {
    /// The column.
    pub feature: usize,
    /// The question.
    pub test: TreeTest,
    /// Whether a value that is no number counts as a yes.
    pub missing_is_yes: bool,
    /// Where yes leads.
    pub yes: TreeBranch,
    /// Where no leads.
    pub no: TreeBranch,
}

/// What is asked of a number.
#[derive(Debug, Clone, PartialEq)]
#[expect(missing_docs, reason = "each is the comparison of its name")]
pub enum TreeTest {
    LessOrEqual(f64),
    Less(f64),
    GreaterOrEqual(f64),
    Greater(f64),
    Equal(f64),
    NotEqual(f64),
    Member(Vec<f64>),
}

impl TreeTest {
    fn holds(&self, x: f64) -> bool {
        match self {
            Self::LessOrEqual(v) => x <= *v,
            Self::Less(v) => x < *v,
            Self::GreaterOrEqual(v) => x >= *v,
            Self::Greater(v) => x > *v,
            Self::Equal(v) => x == *v,
            // What is no number differs from all numbers, but a missing value is no answer.
            Self::NotEqual(v) => x != *v && !x.is_nan(),
            Self::Member(all) => all.contains(&x),
        }
    }
}

/// How answers for a target become one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TreeAggregate {
    /// Their sum divided by the number of trees.
    Average,
    /// Their sum.
    Sum,
    /// The smallest.
    Min,
    /// The largest.
    Max,
}

impl TreeEnsemble {
    /// The leaf that a tree leads a row to.
    fn leaf(&self, root: TreeBranch, row: &[f64]) -> Result<&[(usize, f64)], EvaluateError> {
        let broken = |what: &str| EvaluateError::Invalid(format!("a tree {what}"));
        let mut at = root;
        // A path is no longer than there are nodes, unless it goes in a ring.
        for _ in 0..=self.nodes.len() {
            match at {
                TreeBranch::Leaf(leaf) => {
                    return self.leaves.get(leaf).map(Vec::as_slice).ok_or_else(|| broken("lacks a leaf"));
                }
                TreeBranch::Node(index) => {
                    let node = self.nodes.get(index).ok_or_else(|| broken("lacks a node"))?;
                    let x = row.get(node.feature).copied().ok_or_else(|| {
                        let (column, count) = (node.feature, row.len());
                        broken(&format!("asks for column {column} of rows of {count}"))
                    })?;
                    let yes = node.test.holds(x) || (node.missing_is_yes && x.is_nan());
                    at = if yes { node.yes } else { node.no };
                }
            }
        }
        Err(broken("goes in a ring"))
    }

    fn row(&self, row: &[f64], out: &mut [f64]) -> Result<(), EvaluateError> {
        let mut seen = vec![false; out.len()];
        for &root in &self.roots {
            for &(target, weight) in self.leaf(root, row)? {
                let Some(slot) = out.get_mut(target) else {
                    return Err(EvaluateError::Invalid(format!("a tree has no target {target}")));
                };
                *slot = match self.aggregate {
                    TreeAggregate::Min if seen[target] => slot.min(weight),
                    TreeAggregate::Max if seen[target] => slot.max(weight),
                    TreeAggregate::Min | TreeAggregate::Max => weight,
                    TreeAggregate::Sum | TreeAggregate::Average => *slot + weight,
                };
                seen[target] = true;
            }
        }
        for (target, slot) in out.iter_mut().enumerate() {
            if self.aggregate == TreeAggregate::Average {
                *slot /= self.roots.len() as f64;
            }
            *slot += self.base.get(target).copied().unwrap_or(0.0);
        }
        Ok(())
    }
}

impl Operator for TreeEnsemble {
    fn name(&self) -> &'static str {
        "TreeEnsemble"
    }

    fn attributes(&self) -> Attributes {
        let aggregate = match self.aggregate {
            TreeAggregate::Average => "AVERAGE",
            TreeAggregate::Sum => "SUM",
            TreeAggregate::Min => "MIN",
            TreeAggregate::Max => "MAX",
        };
        // Two ensembles are the same only where all of this is; it is told by its extent, and compared by its contents.
        let contents = format!("{:?}{:?}{:?}{:?}", self.roots, self.nodes, self.leaves, self.base);
        let digest = contents.bytes().fold(0xcbf2_9ce4_8422_2325u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3)
        });
        Attributes::none()
            .with("trees", self.roots.len())
            .with("nodes", self.nodes.len())
            .with("leaves", self.leaves.len())
            .with("n_targets", self.targets)
            .with("aggregate_function", aggregate)
            .with("element", self.element.name())
            .with("digest", format!("{digest:016x}"))
    }

    fn infer(&self, inputs: &InferInputs<'_>) -> Result<Vec<ValueType>, InferError> {
        typing::element(inputs, 0, self.name(), typing::is_number)?;
        let dims = inputs.dims(0)?;
        let rows = match dims {
            [_] => Dim::Fixed(1),
            [rows, _] => rows.clone(),
            _ => {
                let shape = movement::show(dims);
                return Err(InferError::Mismatch(format!("{} takes rows, not {shape}", self.name())));
            }
        };
        Ok(vec![TensorType::new(self.element, [rows, Dim::Fixed(self.targets)]).into()])
    }

    fn evaluate(&self, inputs: &[Option<&Value>], _: &Context) -> Result<Vec<Value>, EvaluateError> {
        let (element, shape) = movement::result(self, inputs)?;
        let data = tensor(inputs, 0)?;
        let values = numbers::to_f64(data)?;
        let columns = data.shape().last().copied().unwrap_or(0);
        let mut out = vec![0.0; movement::check_size(element, &shape)?];
        if self.targets > 0 {
            for (index, out) in out.chunks_exact_mut(self.targets).enumerate() {
                self.row(&values[index * columns..(index + 1) * columns], out)?;
            }
        }
        Ok(vec![numbers::from_f64(element, shape, &out)?.into()])
    }

    fn operations(&self, _: &[Option<&ValueType>], outputs: &[Option<&ValueType>]) -> u64 {
        let rows = movement::element_count(outputs) / (self.targets.max(1) as u64);
        // Of a tree one path is gone; its length is about the logarithm of the number of its nodes.
        let path = (self.nodes.len() / self.roots.len().max(1)).max(1).ilog2() + 1;
        rows.saturating_mul(self.roots.len() as u64).saturating_mul(u64::from(path))
    }

    fn cases() -> Vec<Case> {
        let node =
            |feature, test, missing_is_yes, yes, no| TreeNode { feature, test, missing_is_yes, yes, no };
        let nodes = vec![
            node(0, TreeTest::LessOrEqual(0.5), true, TreeBranch::Node(1), TreeBranch::Leaf(2)),
            node(1, TreeTest::Greater(-1.0), false, TreeBranch::Leaf(0), TreeBranch::Leaf(1)),
            node(1, TreeTest::Member(vec![2.0, 3.0]), false, TreeBranch::Leaf(3), TreeBranch::Leaf(0)),
        ];
        let op = |aggregate, base: &[f64]| Self {
            roots: vec![TreeBranch::Node(0), TreeBranch::Node(2), TreeBranch::Leaf(1)],
            nodes: nodes.clone(),
            leaves: vec![vec![(0, 1.5)], vec![(1, -2.0)], vec![(0, 0.25), (1, 0.5)], vec![(1, 4.0)]],
            base: base.to_vec(),
            targets: 2,
            aggregate,
            element: ElementType::F32,
        };
        let rows = || {
            let values = [0.5f32, 2.0, 0.6, 3.0, f32::NAN, -1.5, -3.0, f32::NAN];
            Tensor::new([4, 2], &values).into_iter()
        };
        vec![
            Case::new("sum", op(TreeAggregate::Sum, &[0.5, -0.5]), rows()),
            Case::new("average", op(TreeAggregate::Average, &[]), rows()),
            Case::new("smallest", op(TreeAggregate::Min, &[]), rows()),
            Case::new("largest", op(TreeAggregate::Max, &[1.0]), rows()),
            Case::new("one row", op(TreeAggregate::Sum, &[]), [Tensor::vector(&[1f32, 2.0])]),
        ]
        .into_iter()
        .map(|case| case.with_tolerance(Tolerance::Exact))
        .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rings_and_missing_columns_are_errors() {
        let node = |feature| TreeNode {
            feature,
            test: TreeTest::Less(0.0),
            missing_is_yes: false,
            yes: TreeBranch::Node(0),
            no: TreeBranch::Node(0),
        };
        let mut op = TreeEnsemble {
            roots: vec![TreeBranch::Node(0)],
            nodes: vec![node(0)],
            leaves: Vec::new(),
            base: Vec::new(),
            targets: 1,
            aggregate: TreeAggregate::Sum,
            element: ElementType::F32,
        };
        let row: Value = Tensor::vector(&[1f32]).into();
        let run =
            |op: &TreeEnsemble| op.evaluate(&[Some(&row)], &Context::default()).unwrap_err().to_string();
        assert_eq!(run(&op), "a tree goes in a ring");
        op.nodes = vec![node(1)];
        assert_eq!(run(&op), "a tree asks for column 1 of rows of 1");
    }
}
