//! Control flow.

use std::collections::{HashMap, HashSet};

use armet_graph::ops::If;
use armet_graph::{Graph, ValueId};

use super::{Entry, onnx};
use crate::onnx::error::Invalid;
use crate::onnx::importer::Branch;
use crate::onnx::node::{NodeReader, Read};

pub(super) const ENTRIES: &[Entry] = &[onnx("If", 1, conditional)];

/// Both branches get the same inputs: all values that either uses from outside, in the order of first use.
fn conditional(n: &mut NodeReader<'_, '_>) -> Read {
    let condition = n.input(0)?;
    let then_branch = n.branch("then_branch")?;
    let else_branch = n.branch("else_branch")?;
    let wanted = n.output_count();
    for branch in [&then_branch, &else_branch] {
        let given = branch.graph.outputs().len();
        if given != wanted {
            return Err(Invalid::Other(format!("a branch has {given} results, the node has {wanted}")).into());
        }
    }
    let mut seen = HashSet::new();
    let captures = then_branch.captures.iter().chain(&else_branch.captures).map(|(value, _)| *value);
    let outer: Vec<ValueId> = captures.filter(|value| seen.insert(*value)).collect();
    let then_branch = with_inputs(n, then_branch, &outer);
    let else_branch = with_inputs(n, else_branch, &outer);
    let op = If { then_branch: Box::new(then_branch), else_branch: Box::new(else_branch) };
    let inputs = std::iter::once(condition).chain(outer).map(Some).collect();
    n.emit(op, inputs)
}

fn with_inputs(n: &mut NodeReader<'_, '_>, branch: Branch, outer: &[ValueId]) -> Graph {
    let mut graph = branch.graph;
    let inner: HashMap<ValueId, ValueId> = branch.captures.into_iter().collect();
    let mut inputs = Vec::with_capacity(outer.len());
    for &value in outer {
        inputs.push(if let Some(inner) = inner.get(&value) {
            *inner
        } else {
            // The other branch uses it; here it is an input that nothing reads.
            let (name, ty) = n.describe(value);
            graph.add_value(name, ty)
        });
    }
    graph.set_inputs(inputs);
    graph
}
