//! Running sums and products along an axis.

use armet_graph::ops::{Cumulate, CumulateKind};
use armet_kernels::elementwise::Number;
use armet_kernels::gather::{self as kernel, cumulate};
use armet_runtime::{Lowered, NodeView, Unsupported};
use armet_tensor::{Element, ElementType, Layout};

use super::support::{axis, unquantized};
use crate::direct;

pub(crate) fn lower(op: &Cumulate, node: NodeView<'_>) -> Result<Lowered, Unsupported> {
    fn typed<T: Element + Number>(dims: (usize, usize, usize), op: &Cumulate) -> Lowered {
        let product = op.kind == CumulateKind::Product;
        let wanted = kernel::Cumulate { product, exclusive: op.exclusive, reverse: op.reverse };
        let name = if product { "cumulative_product" } else { "cumulative_sum" };
        direct(format!("{name}_{}", T::TYPE), move |b| {
            let y = b.output(0);
            cumulate::<T>(b.team(), wanted, dims, b.input(0), y);
        })
    }
    unquantized(node)?;
    if node.layout(0)? != Layout::Plain {
        return Err(Unsupported::Layout(node.layout(0)?));
    }
    let shape = node.shape(0)?;
    let given = node.constant(1).ok_or(Unsupported::NotConstant("axis"))?;
    let given = given.to_i64().and_then(|v| v.first().copied()).ok_or(Unsupported::NotConstant("axis"))?;
    let at = axis(given, shape.len())?;
    let dims = (shape[..at].iter().product(), shape[at], shape[at + 1..].iter().product());
    match node.element(0)? {
        ElementType::F32 => Ok(typed::<f32>(dims, op)),
        ElementType::I64 => Ok(typed::<i64>(dims, op)),
        ElementType::I32 => Ok(typed::<i32>(dims, op)),
        other => Err(Unsupported::ElementType(other)),
    }
}
