//! The upper or lower triangle of matrices.

use armet_graph::ops::Trilu;
use armet_kernels::transpose::Triangle;
use armet_runtime::{Lowered, NodeView, Unsupported};
use armet_tensor::ElementType;

use super::support::{element_size, plain, unquantized};
use crate::direct;

pub(crate) fn lower(op: &Trilu, node: NodeView<'_>) -> Result<Lowered, Unsupported> {
    unquantized(node)?;
    plain(node)?;
    let shape = node.shape(0)?;
    let [.., rows, columns] = *shape.dims() else { return Err(Unsupported::Rank(shape.len())) };
    let element_size = element_size(node.element(0)?)?;
    let triangle = Triangle { rows, columns, element_size, upper: op.upper };
    if node.has_input(1) && (node.element(1)? != ElementType::I64 || node.shape(1)?.elements() != 1) {
        return Err(Unsupported::ElementType(node.element(1)?));
    }
    Ok(direct(format!("triangle_{element_size}"), move |b| {
        let diagonal = b.optional_input::<i64>(1).and_then(|given| given.first().copied()).unwrap_or(0);
        triangle.run(b.team(), diagonal, b.bytes(0), b.output_bytes(0));
    }))
}
