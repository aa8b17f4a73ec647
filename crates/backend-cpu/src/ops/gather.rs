//! Entries of one axis, by index; and elements or slices by coordinates.

use armet_graph::ops::{Gather, GatherElements, GatherNd};
use armet_kernels::gather::{self as kernel, BlockTuples, ElementPairs, Index, IndexError};
use armet_runtime::{Bindings, Lowered, NodeView, RunError, Unsupported};
use armet_tensor::{Element, ElementType};

use super::support::{axis, element_size, same_storage, shapes};
use crate::fallible;

fn plain(node: NodeView<'_>) -> Result<(), Unsupported> {
    same_storage(node)?;
    super::support::plain(node)
}

fn failed(node: &str, error: IndexError) -> RunError {
    RunError::Kernel { node: node.to_owned(), reason: error.to_string() }
}

/// The kernel for the type of the indices, which are input 1.
fn with_indices(
    node: NodeView<'_>,
    kernel: String,
    wide: impl Fn(&mut Bindings<'_>, &[i64]) -> Result<(), IndexError> + Send + Sync + 'static,
    narrow: impl Fn(&mut Bindings<'_>, &[i32]) -> Result<(), IndexError> + Send + Sync + 'static,
) -> Result<Lowered, Unsupported> {
    let name = node.node().name.clone();
    match node.element(1)? {
        ElementType::I64 => Ok(fallible(kernel, 0, move |b| {
            let indices = b.input(1);
            wide(b, indices).map_err(|e| failed(&name, e))
        })),
        ElementType::I32 => Ok(fallible(kernel, 0, move |b| {
            let indices = b.input(1);
            narrow(b, indices).map_err(|e| failed(&name, e))
        })),
        other => Err(Unsupported::ElementType(other)),
    }
}

pub(crate) fn lower(op: &Gather, node: NodeView<'_>) -> Result<Lowered, Unsupported> {
    plain(node)?;
    let shape = node.shape(0)?;
    let size = element_size(node.element(0)?)?;
    let at = axis(op.axis, shape.len())?;
    let outer: usize = shape[..at].iter().product();
    let inner = shape[at + 1..].iter().product::<usize>() * size;
    let dims = (outer, shape[at], inner);
    fn run<I: Index>(b: &mut Bindings<'_>, dims: (usize, usize, usize), i: &[I]) -> Result<(), IndexError> {
        let y = b.output_bytes(0);
        kernel::gather(b.team(), dims, i, b.bytes(0), y)
    }
    with_indices(node, format!("gather_{size}"), move |b, i| run(b, dims, i), move |b, i| run(b, dims, i))
}

pub(crate) fn lower_elements(op: &GatherElements, node: NodeView<'_>) -> Result<Lowered, Unsupported> {
    plain(node)?;
    let shape = node.shape(0)?;
    let at = axis(op.axis, shape.len())?;
    let pairs = ElementPairs::new(&shape, &node.shape(1)?, at).map_err(shapes)?;
    fn run<T: Element, I: Index>(
        b: &mut Bindings<'_>,
        pairs: &ElementPairs,
        i: &[I],
    ) -> Result<(), IndexError> {
        let y = b.output(0);
        kernel::gather_elements::<T, I>(b.team(), pairs, i, b.input(0), y)
    }
    fn sized<T: Element>(node: NodeView<'_>, pairs: ElementPairs) -> Result<Lowered, Unsupported> {
        let again = pairs.clone();
        let name = format!("gather_elements_{}", size_of::<T>());
        with_indices(node, name, move |b, i| run::<T, _>(b, &pairs, i), move |b, i| run::<T, _>(b, &again, i))
    }
    // Elements are only moved, so their width is all that matters.
    match element_size(node.element(0)?)? {
        1 => sized::<u8>(node, pairs),
        2 => sized::<u16>(node, pairs),
        4 => sized::<u32>(node, pairs),
        8 => sized::<u64>(node, pairs),
        _ => Err(Unsupported::ElementType(node.element(0)?)),
    }
}

pub(crate) fn lower_nd(op: &GatherNd, node: NodeView<'_>) -> Result<Lowered, Unsupported> {
    plain(node)?;
    let tuples = BlockTuples::new(&node.shape(0)?, &node.shape(1)?, op.batch_dims).map_err(shapes)?;
    fn run<I: Index>(
        b: &mut Bindings<'_>,
        tuples: &BlockTuples,
        size: usize,
        i: &[I],
    ) -> Result<(), IndexError> {
        let y = b.output_bytes(0);
        kernel::gather_nd(b.team(), tuples, size, i, b.bytes(0), y)
    }
    let size = element_size(node.element(0)?)?;
    let again = tuples.clone();
    let name = format!("gather_nd_{size}");
    with_indices(node, name, move |b, i| run(b, &tuples, size, i), move |b, i| run(b, &again, size, i))
}
