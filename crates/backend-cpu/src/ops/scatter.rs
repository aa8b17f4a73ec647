//! Writing elements or slices by coordinates, or elements by index along one axis.

use armet_graph::ops::{ScatterElements, ScatterNd, ScatterReduction};
use armet_kernels::elementwise::Number;
use armet_kernels::gather::{self as kernel, BlockTuples, ElementPairs};
use armet_runtime::{Lowered, NodeView, RunError, Unsupported};
use armet_tensor::{Element, ElementType, Layout};

use super::support::{axis, shapes, unquantized};
use crate::fallible;

fn reduction(kind: ScatterReduction) -> kernel::ScatterReduction {
    match kind {
        ScatterReduction::None => kernel::ScatterReduction::None,
        ScatterReduction::Add => kernel::ScatterReduction::Add,
        ScatterReduction::Mul => kernel::ScatterReduction::Mul,
        ScatterReduction::Max => kernel::ScatterReduction::Max,
        ScatterReduction::Min => kernel::ScatterReduction::Min,
    }
}

fn check(node: NodeView<'_>) -> Result<(), Unsupported> {
    unquantized(node)?;
    for index in 0..3 {
        if node.layout(index)? != Layout::Plain {
            return Err(Unsupported::Layout(node.layout(index)?));
        }
    }
    match node.element(1)? {
        ElementType::I64 => Ok(()),
        other => Err(Unsupported::ElementType(other)),
    }
}

pub(crate) fn lower_nd(op: &ScatterNd, node: NodeView<'_>) -> Result<Lowered, Unsupported> {
    fn typed<T: Element + Number>(
        node: NodeView<'_>,
        tuples: BlockTuples,
        how: kernel::ScatterReduction,
    ) -> Lowered {
        let name = node.node().name.clone();
        fallible(format!("scatter_nd_{}", T::TYPE), 0, move |b| {
            let y: &mut [T] = b.output(0);
            y.copy_from_slice(b.input(0));
            kernel::scatter_nd::<T, i64>(&tuples, how, b.input(1), b.input(2), y)
                .map_err(|e| RunError::Kernel { node: name.clone(), reason: e.to_string() })
        })
    }
    check(node)?;
    let tuples = BlockTuples::new(&node.shape(0)?, &node.shape(1)?, 0).map_err(shapes)?;
    let how = reduction(op.reduction);
    match node.element(0)? {
        ElementType::F32 => Ok(typed::<f32>(node, tuples, how)),
        ElementType::I64 => Ok(typed::<i64>(node, tuples, how)),
        other => Err(Unsupported::ElementType(other)),
    }
}

pub(crate) fn lower_elements(op: &ScatterElements, node: NodeView<'_>) -> Result<Lowered, Unsupported> {
    fn typed<T: Element + Number>(
        node: NodeView<'_>,
        pairs: ElementPairs,
        how: kernel::ScatterReduction,
    ) -> Lowered {
        let name = node.node().name.clone();
        fallible(format!("scatter_elements_{}", T::TYPE), 0, move |b| {
            let y: &mut [T] = b.output(0);
            y.copy_from_slice(b.input(0));
            kernel::scatter_elements::<T, i64>(&pairs, how, b.input(1), b.input(2), y)
                .map_err(|e| RunError::Kernel { node: name.clone(), reason: e.to_string() })
        })
    }
    check(node)?;
    let shape = node.shape(0)?;
    let pairs = ElementPairs::new(&shape, &node.shape(1)?, axis(op.axis, shape.len())?).map_err(shapes)?;
    let how = reduction(op.reduction);
    match node.element(0)? {
        ElementType::F32 => Ok(typed::<f32>(node, pairs, how)),
        ElementType::I64 => Ok(typed::<i64>(node, pairs, how)),
        other => Err(Unsupported::ElementType(other)),
    }
}
