//! The largest or smallest elements along an axis.

use armet_graph::ops::TopK;
use armet_kernels::reduce::{TopK as Wanted, top_k};
use armet_runtime::{Bindings, CompileContext, Lowered, NodeView, Unsupported};
use armet_tensor::{Element, ElementType};

use super::support::{around, axis, plain, unquantized};
use crate::packed;

pub(crate) fn lower(op: &TopK, node: NodeView<'_>) -> Result<Lowered, Unsupported> {
    fn typed<T: Element + PartialOrd>(wanted: Wanted) -> Lowered {
        packed(move |context: &CompileContext<'_>| {
            let scratch = wanted.scratch_length(context.threads) * size_of::<u32>();
            Ok((format!("top_k_{}", T::TYPE), scratch, move |b: &mut Bindings<'_>| {
                let (values, indices) = (b.optional_output(0), b.optional_output(1));
                let scratch = b.scratch();
                top_k::<T>(b.team(), wanted, b.input(0), values, indices, scratch);
            }))
        })
    }
    unquantized(node)?;
    plain(node)?;
    let shape = node.shape(0)?;
    let at = axis(op.axis, shape.len())?;
    let outputs = node.node().outputs.iter().position(Option::is_some).ok_or(Unsupported::RunTimeShape)?;
    let k = node.output_shape(outputs)?[at];
    let (outer, len, inner) = around(&shape, at);
    if u32::try_from(len).is_err() {
        return Err(Unsupported::Shapes(format!("an axis of {len} elements")));
    }
    let wanted = Wanted { outer, axis: len, inner, k, largest: op.largest };
    match node.element(0)? {
        ElementType::F32 => Ok(typed::<f32>(wanted)),
        ElementType::F64 => Ok(typed::<f64>(wanted)),
        ElementType::I64 => Ok(typed::<i64>(wanted)),
        ElementType::I32 => Ok(typed::<i32>(wanted)),
        ElementType::U8 => Ok(typed::<u8>(wanted)),
        ElementType::I8 => Ok(typed::<i8>(wanted)),
        other => Err(Unsupported::ElementType(other)),
    }
}
