//! A strided part of a tensor.

use armet_graph::ops::window::slice_range;
use armet_kernels::transpose::Slice;
use armet_runtime::{Lowered, NodeView, Unsupported};
use smallvec::SmallVec;

use super::support::{axis, element_size, memory_axis, same_layout, same_storage, shapes};
use crate::direct;

fn ints(node: NodeView<'_>, index: usize, what: &'static str) -> Result<Vec<i64>, Unsupported> {
    let tensor = node.constant(index).ok_or(Unsupported::NotConstant(what))?;
    tensor.to_i64().ok_or(Unsupported::ElementType(tensor.element()))
}

pub(crate) fn lower(node: NodeView<'_>) -> Result<Lowered, Unsupported> {
    same_storage(node)?;
    let layout = same_layout(node)?;
    let shape = node.shape(0)?;
    let (rank, size) = (shape.len(), element_size(node.element(0)?)?);
    let (begins, ends) = (ints(node, 1, "starts")?, ints(node, 2, "ends")?);
    let axes: Vec<i64> =
        if node.has_input(3) { ints(node, 3, "axes")? } else { (0..begins.len() as i64).collect() };
    let steps = if node.has_input(4) { ints(node, 4, "steps")? } else { vec![1; begins.len()] };
    if ends.len() != begins.len() || axes.len() != begins.len() || steps.len() != begins.len() {
        return Err(Unsupported::Shapes("starts, ends, axes and steps differ in length".into()));
    }
    let memory = layout.physical(&shape);
    let (mut starts, mut strides, mut extents) = (vec![0usize; rank], vec![1isize; rank], memory.to_vec());
    for (index, &given) in axes.iter().enumerate() {
        let at = memory_axis(axis(given, rank)?, rank, layout);
        let range = slice_range(memory[at], begins[index], ends[index], steps[index])
            .ok_or_else(|| Unsupported::Shapes("a step of zero".into()))?;
        extents[at] = range.len();
        starts[at] = range.start();
        strides[at] = isize::try_from(range.step()).unwrap_or(isize::MAX);
    }
    let copy = Slice::new(&memory, &starts, &strides, &extents, size).map_err(shapes)?;
    let kernel = direct(format!("slice_{size}"), move |b| copy.run(b.team(), b.bytes(0), b.output_bytes(0)));
    // One part in a row: only the first axis that is longer than one is cut, and without gaps.
    let cut = (0..rank).find(|&i| memory[i] != 1).unwrap_or(0);
    let whole = |i: usize| extents[i] == memory[i] && (strides[i] == 1 || memory[i] == 1);
    let in_a_row = rank > 0 && strides[cut] == 1 && (0..rank).all(|i| i == cut || whole(i));
    if !in_a_row {
        return Ok(kernel);
    }
    let row: usize = memory[cut + 1..].iter().product::<usize>() * size;
    Ok(kernel.or_parts(SmallVec::from_slice(&[starts[cut] * row])))
}
