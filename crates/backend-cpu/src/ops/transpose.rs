//! Permutes axes.

use armet_graph::ops::Transpose;
use armet_kernels::transpose::Permutation;
use armet_runtime::{Lowered, NodeView, Unsupported};
use armet_tensor::Layout;

use super::support::{element_size, same_storage, shapes};
use crate::direct;

/// A copy between memory orders; an alias when no axis longer than one changes its place.
pub(super) fn permute(shape: &[usize], perm: &[usize], element_size: usize) -> Result<Lowered, Unsupported> {
    let long: Vec<usize> = perm.iter().copied().filter(|&axis| shape[axis] != 1).collect();
    if long.is_sorted() {
        return Ok(Lowered::Alias);
    }
    let copy = Permutation::new(shape, perm, element_size).map_err(shapes)?;
    Ok(direct(format!("transpose_{element_size}"), move |b| {
        copy.run(b.team(), b.bytes(0), b.output_bytes(0));
    }))
}

pub(crate) fn lower(op: &Transpose, node: NodeView<'_>) -> Result<Lowered, Unsupported> {
    same_storage(node)?;
    let shape = node.shape(0)?;
    let rank = shape.len();
    let size = element_size(node.element(0)?)?;
    let perm: Vec<usize> = if op.perm.is_empty() { (0..rank).rev().collect() } else { op.perm.clone() };
    if perm.len() != rank {
        return Err(Unsupported::Rank(rank));
    }
    let (from, to) = (node.layout(0)?, node.output_layout(0)?);
    if from == Layout::Plain && to == Layout::Plain {
        return permute(&shape, &perm, size);
    }
    // In memory, result axis `to[i]` is input axis `perm[to[i]]`, which lies at that axis's place of the input's order.
    let from_order = from.permutation(rank);
    let memory: Vec<usize> = to
        .permutation(rank)
        .iter()
        .map(|&axis| from_order.iter().position(|&a| a == perm[axis]).unwrap_or(0))
        .collect();
    permute(&from.physical(&shape), &memory, size)
}
