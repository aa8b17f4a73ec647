//! Questions that several operators ask of a node.

use armet_runtime::{NodeView, Unsupported};
use armet_tensor::{ElementType, Layout, Shape};

/// Refuses quantized values: most kernels work on real numbers.
pub(super) fn unquantized(node: NodeView<'_>) -> Result<(), Unsupported> {
    let values = node.node().inputs.iter().chain(&node.node().outputs).flatten();
    for &value in values {
        if node.graph.value(value).ty.tensor().is_some_and(|t| t.quantization.is_some()) {
            return Err(Unsupported::Quantization("no kernel for quantized values".into()));
        }
    }
    Ok(())
}

/// Accepts quantized values only when input 0 and every output store equal numbers equally, so that moving the stored
/// integers moves the real numbers.
pub(super) fn same_storage(node: NodeView<'_>) -> Result<(), Unsupported> {
    let first = node.input(0)?;
    let mismatch = |ty: &armet_graph::TensorType| {
        ty.element != first.element || ty.quantization.as_deref() != first.quantization.as_deref()
    };
    for &value in node.node().outputs.iter().flatten() {
        let ty = node.graph.value(value).ty.tensor().ok_or(Unsupported::RunTimeShape)?;
        if mismatch(ty) {
            return Err(Unsupported::Quantization("input and output are quantized differently".into()));
        }
    }
    if first.quantization.as_ref().is_some_and(|q| !q.is_per_tensor()) {
        return Err(Unsupported::Quantization("no kernel for per-axis quantization".into()));
    }
    Ok(())
}

/// Bytes of one element that kernels can move.
pub(super) fn element_size(element: ElementType) -> Result<usize, Unsupported> {
    element.byte_size().ok_or(Unsupported::ElementType(element))
}

/// The memory dimensions of an input beside an output of `rank` dimensions in `layout`.
///
/// An operand of another layout is taken when its axes longer than one lie in the same order, as a vector of channels
/// does.
pub(super) fn operand_shape(
    node: NodeView<'_>,
    index: usize,
    rank: usize,
    layout: Layout,
) -> Result<Shape, Unsupported> {
    let mut shape = node.shape(index)?;
    let own = node.layout(index)?;
    if shape.len() > rank {
        return Err(Unsupported::Rank(shape.len()));
    }
    if own == layout && shape.len() == rank {
        return Ok(layout.physical(&shape));
    }
    if own != Layout::Plain {
        return Err(Unsupported::Layout(own));
    }
    while shape.len() < rank {
        shape.insert(0, 1);
    }
    let order = layout.permutation(rank);
    let long: Vec<usize> = order.iter().copied().filter(|&axis| shape[axis] != 1).collect();
    if long.is_sorted() { Ok(layout.physical(&shape)) } else { Err(Unsupported::Layout(own)) }
}

/// Refuses unless input 0 and output 0 lie alike.
pub(super) fn same_layout(node: NodeView<'_>) -> Result<Layout, Unsupported> {
    let layout = node.output_layout(0)?;
    if node.layout(0)? == layout { Ok(layout) } else { Err(Unsupported::Layout(node.layout(0)?)) }
}

/// Where a logical axis lies in memory.
pub(super) fn memory_axis(axis: usize, rank: usize, layout: Layout) -> usize {
    layout.permutation(rank).iter().position(|&a| a == axis).unwrap_or(axis)
}

/// Resolves an axis that may count from the end.
pub(super) fn axis(axis: i64, rank: usize) -> Result<usize, Unsupported> {
    let at = if axis < 0 { axis + rank as i64 } else { axis };
    usize::try_from(at).ok().filter(|&a| a < rank).ok_or(Unsupported::Rank(rank))
}

/// A kernel's own complaint about shapes.
pub(super) fn shapes(error: impl std::fmt::Display) -> Unsupported {
    Unsupported::Shapes(error.to_string())
}

/// Refuses unless all inputs and outputs lie in ONNX's order.
pub(super) fn plain(node: NodeView<'_>) -> Result<(), Unsupported> {
    let values = node.node().inputs.iter().chain(&node.node().outputs).flatten();
    match values.map(|v| node.graph.value(*v).layout).find(|l| *l != Layout::Plain) {
        Some(layout) => Err(Unsupported::Layout(layout)),
        None => Ok(()),
    }
}

/// How many slices lie before an axis, how long it is, and how many elements lie in one of its entries.
pub(super) fn around(shape: &[usize], axis: usize) -> (usize, usize, usize) {
    (shape[..axis].iter().product(), shape[axis], shape[axis + 1..].iter().product())
}

/// Whether parts along an axis lie one behind the other in memory: nothing longer than one comes before the axis.
pub(super) fn lie_in_a_row(memory: &[usize], axis: usize) -> bool {
    memory[..axis].iter().all(|&length| length == 1)
}
