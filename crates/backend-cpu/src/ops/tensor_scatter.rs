//! Writing new entries into a cache.

use armet_graph::ops::TensorScatter;
use armet_kernels::gather::CacheWrite;
use armet_runtime::{Bindings, Lowered, NodeView, RunError, Unsupported};
use armet_tensor::ElementType;

use super::support::{around, axis, element_size, plain, unquantized};
use crate::fallible;

pub(crate) fn lower(op: &TensorScatter, node: NodeView<'_>) -> Result<Lowered, Unsupported> {
    unquantized(node)?;
    plain(node)?;
    let (shape, update) = (node.shape(0)?, node.shape(1)?);
    let at = axis(op.axis, shape.len())?;
    let size = element_size(node.element(0)?)?;
    if node.has_input(2) && node.element(2)? != ElementType::I64 {
        return Err(Unsupported::ElementType(node.element(2)?));
    }
    let (outer, len, inner) = around(&shape, at);
    let write = CacheWrite {
        cache: (outer, shape[1..at].iter().product(), len),
        entries: update[at],
        entry: inner * size,
        circular: op.circular,
    };
    let name = node.node().name.clone();
    Ok(fallible(format!("cache_write_{size}"), 0, move |b: &mut Bindings<'_>| {
        let y = b.output_bytes(0);
        y.copy_from_slice(b.bytes(0));
        write
            .run::<i64>(b.optional_input(2), b.bytes(1), y)
            .map_err(|e| RunError::Kernel { node: name.clone(), reason: e.to_string() })
    }))
}
