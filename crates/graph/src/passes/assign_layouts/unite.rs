//! A conversion to plain, a Reshape that divides the channels, and a Transpose, as detection heads have them: the
//! channels already lie at the end, so one transposition behind the division does it all.
//!
//! `[N,C,spatial]` becomes `[N,spatial,C]`, which only renames axes, then `[N,spatial,parts of C]`, then what was asked
//! for. Only for transpositions that the backend does in any layout: the renaming is one.

use armet_tensor::Layout;

use super::super::{facts, merge_transposes, rewrite};
use super::roles::{Role, Roles};
use crate::ops::{Reshape, Transpose};
use crate::{Graph, NodeId, Op, TensorType};

/// Gives the number of conversions that are not needed any more.
pub(super) fn unite(graph: &mut Graph, roles: &Roles) -> usize {
    roles
        .order
        .iter()
        .filter(|id| roles.of(**id) == Role::Permutes && unite_at(graph, **id).is_some())
        .count()
}

fn unite_at(graph: &mut Graph, id: NodeId) -> Option<()> {
    let perm = merge_transposes::permutation(graph, id)?;
    let divided = graph.node(id).input(0)?;
    let (reshape, node) = facts::sole_producer(graph, divided)?;
    if !matches!(node.op, Op::Reshape(_)) {
        return None;
    }
    let plain = node.input(0)?;
    let (_, convert) = facts::producer(graph, plain)?;
    let source = convert.input(0)?;
    let from_last = matches!(convert.op, Op::ConvertLayout(_))
        && graph.value(source).layout == Layout::ChannelsLast
        && graph.value(plain).layout == Layout::Plain;
    let (shape, target) = (facts::shape(graph, source)?, facts::shape(graph, divided)?);
    let ty = graph.value(source).ty.tensor()?;
    let movable = ty.quantization.as_ref().is_none_or(|q| q.is_per_tensor());
    let stored_alike = facts::same_storage(graph, source, divided) && ty.element.byte_size().is_some();
    if !from_last || !movable || !stored_alike || shape.elements() == 0 || target.first() != shape.first() {
        return None;
    }
    // How many axes of the target the channels were divided into; the rest is what became of the spatial axes.
    let parts = (1..target.len()).find(|n| target[1..=*n].iter().product::<usize>() == shape[1])?;
    let spatial = target.len() - 1 - parts;
    let (element, quantization) = (ty.element, ty.quantization.clone());
    let typed = |dims: &[usize]| TensorType {
        quantization: quantization.clone(),
        ..TensorType::fixed(element, dims)
    };
    let to_last = Layout::ChannelsLast.permutation(shape.len()).to_vec();
    let renamed: Vec<usize> = to_last.iter().map(|axis| shape[*axis]).collect();
    let moved = std::iter::once(0).chain(parts + 1..target.len()).chain(1..=parts);
    let divided_shape: Vec<usize> = moved.map(|axis| target[axis]).collect();
    let ints: Vec<i64> = divided_shape.iter().map(|n| i64::try_from(*n)).collect::<Result<_, _>>().ok()?;
    let place = |axis: usize| match axis {
        0 => 0,
        part if part <= parts => spatial + part,
        other => other - parts,
    };
    let perm: Vec<usize> = perm.iter().map(|axis| place(*axis)).collect();
    let name = graph.node(reshape).name.clone();
    let absorbed = graph.node(reshape).absorbed.clone();
    let (rename, ty) = (Transpose { perm: to_last }, typed(&renamed));
    let (_, renamed) = rewrite::insert(graph, format!("{name}_renamed"), rename, &[Some(source)], ty);
    let target = rewrite::int_vector(graph, format!("{name}_parts_shape"), &ints);
    let (divide, ty) = (Reshape { allow_zero: false }, typed(&divided_shape));
    let (divide, parts) =
        rewrite::insert(graph, format!("{name}_parts"), divide, &[Some(renamed), Some(target)], ty);
    *graph.node_mut(divide).name = name;
    *graph.node_mut(divide).absorbed = absorbed;
    let output = graph.node(id).output()?;
    let nothing_left = merge_transposes::is_identity(&perm) && graph.value(output).layout == Layout::Plain;
    *graph.node_mut(id).op = Transpose { perm }.into();
    graph.set_input(id, 0, Some(parts));
    graph.remove_node(reshape);
    if nothing_left && facts::same_storage(graph, parts, output) {
        rewrite::bypass(graph, id, parts);
    }
    // The conversion stays while others read it.
    (!rewrite::release(graph, [plain]).is_empty()).then_some(())
}
