//! Writing elements or slices by coordinates, or elements by index along one axis.

use armet_graph::ops::{ScatterElements, ScatterNd, ScatterReduction};
use armet_kernels::elementwise::Number;
use armet_kernels::gather::{self as kernel, BlockTuples, ElementPairs, Index};
use armet_runtime::{Lowered, NodeView, RunError, Unsupported};
use armet_tensor::{Element, ElementType};

use super::support::{axis, element_size, plain, shapes, unquantized};
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

/// Where updates go.
#[derive(Clone)]
enum Places {
    Elements(ElementPairs),
    Blocks(BlockTuples),
}

/// The kernel for one type of elements and of indices.
fn typed<T: Element + Number, I: Element + Index>(
    node: NodeView<'_>,
    places: &Places,
    how: kernel::ScatterReduction,
) -> Lowered {
    let (name, places) = (node.node().name.clone(), places.clone());
    let kind = if matches!(places, Places::Elements(_)) { "elements" } else { "nd" };
    fallible(format!("scatter_{kind}_{}", T::TYPE), 0, move |b| {
        let y: &mut [T] = b.output(0);
        y.copy_from_slice(b.input(0));
        match &places {
            Places::Elements(pairs) => {
                kernel::scatter_elements::<T, I>(pairs, how, b.input(1), b.input(2), y)
            }
            Places::Blocks(tuples) => kernel::scatter_nd::<T, I>(tuples, how, b.input(1), b.input(2), y),
        }
        .map_err(|e| RunError::Kernel { node: name.clone(), reason: e.to_string() })
    })
}

/// The kernel for the type of the elements. Where they are only moved, their width is all that matters.
fn of_elements<I: Element + Index>(
    node: NodeView<'_>,
    places: &Places,
    kind: ScatterReduction,
) -> Result<Lowered, Unsupported> {
    let (element, how) = (node.element(0)?, reduction(kind));
    match element {
        ElementType::F32 => Ok(typed::<f32, I>(node, places, how)),
        ElementType::I64 => Ok(typed::<i64, I>(node, places, how)),
        ElementType::I32 => Ok(typed::<i32, I>(node, places, how)),
        _ if kind == ScatterReduction::None => match element_size(element)? {
            1 => Ok(typed::<u8, I>(node, places, how)),
            2 => Ok(typed::<u16, I>(node, places, how)),
            4 => Ok(typed::<u32, I>(node, places, how)),
            8 => Ok(typed::<u64, I>(node, places, how)),
            _ => Err(Unsupported::ElementType(element)),
        },
        other => Err(Unsupported::ElementType(other)),
    }
}

fn lowered(node: NodeView<'_>, places: &Places, kind: ScatterReduction) -> Result<Lowered, Unsupported> {
    match node.element(1)? {
        ElementType::I64 => of_elements::<i64>(node, places, kind),
        ElementType::I32 => of_elements::<i32>(node, places, kind),
        other => Err(Unsupported::ElementType(other)),
    }
}

pub(crate) fn lower_nd(op: &ScatterNd, node: NodeView<'_>) -> Result<Lowered, Unsupported> {
    unquantized(node)?;
    plain(node)?;
    let tuples = BlockTuples::new(&node.shape(0)?, &node.shape(1)?, 0).map_err(shapes)?;
    lowered(node, &Places::Blocks(tuples), op.reduction)
}

pub(crate) fn lower_elements(op: &ScatterElements, node: NodeView<'_>) -> Result<Lowered, Unsupported> {
    unquantized(node)?;
    plain(node)?;
    let shape = node.shape(0)?;
    let pairs = ElementPairs::new(&shape, &node.shape(1)?, axis(op.axis, shape.len())?).map_err(shapes)?;
    lowered(node, &Places::Elements(pairs), op.reduction)
}
