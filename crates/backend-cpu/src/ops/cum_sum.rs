//! Running sums along an axis.

use armet_graph::ops::CumSum;
use armet_kernels::elementwise::Number;
use armet_kernels::gather::cumulative_sum;
use armet_runtime::{Lowered, NodeView, Unsupported};
use armet_tensor::{Element, ElementType, Layout};

use super::support::{axis, unquantized};
use crate::direct;

pub(crate) fn lower(op: &CumSum, node: NodeView<'_>) -> Result<Lowered, Unsupported> {
    fn typed<T: Element + Number>(dims: (usize, usize, usize), op: &CumSum) -> Lowered {
        let (exclusive, reverse) = (op.exclusive, op.reverse);
        direct(format!("cumulative_sum_{}", T::TYPE), move |b| {
            let y = b.output(0);
            cumulative_sum::<T>(b.team(), dims, exclusive, reverse, b.input(0), y);
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
