//! Indicator vectors of indices.

use armet_graph::ops::OneHot;
use armet_kernels::gather::{Index, one_hot};
use armet_runtime::{Bindings, Lowered, NodeView, Unsupported};
use armet_tensor::{Element, ElementType};

use super::support::{around, axis, element_size, plain, unquantized};
use crate::direct;

pub(crate) fn lower(op: &OneHot, node: NodeView<'_>) -> Result<Lowered, Unsupported> {
    fn typed<T: Element, I: Element + Index>(dims: (usize, usize)) -> Lowered {
        direct(format!("one_hot_{}", size_of::<T>()), move |b: &mut Bindings<'_>| {
            let values: &[T] = b.input(2);
            one_hot::<T, I>(b.team(), dims, b.input(0), [values[0], values[1]], b.output(0));
        })
    }
    // Marks are only moved, so their width is all that matters.
    fn sized<I: Element + Index>(size: usize, dims: (usize, usize)) -> Option<Lowered> {
        match size {
            1 => Some(typed::<u8, I>(dims)),
            2 => Some(typed::<u16, I>(dims)),
            4 => Some(typed::<u32, I>(dims)),
            8 => Some(typed::<u64, I>(dims)),
            _ => None,
        }
    }
    unquantized(node)?;
    plain(node)?;
    let output = node.output_shape(0)?;
    let (_, depth, inner) = around(&output, axis(op.axis, output.len())?);
    let element = node.element(2)?;
    let size = element_size(element)?;
    let lowered = match node.element(0)? {
        ElementType::I64 => sized::<i64>(size, (depth, inner)),
        ElementType::I32 => sized::<i32>(size, (depth, inner)),
        other => return Err(Unsupported::ElementType(other)),
    };
    lowered.ok_or(Unsupported::ElementType(element))
}
