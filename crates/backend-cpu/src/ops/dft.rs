//! The discrete Fourier transform.

use armet_graph::ops::Dft;
use armet_kernels::dft as kernel;
use armet_runtime::{Bindings, CompileContext, Lowered, NodeView, Unsupported};
use armet_tensor::ElementType;

use super::support::{around, axis, plain, unquantized};
use crate::packed;

pub(crate) fn lower(op: &Dft, node: NodeView<'_>) -> Result<Lowered, Unsupported> {
    unquantized(node)?;
    plain(node)?;
    if node.element(0)? != ElementType::F32 {
        return Err(Unsupported::ElementType(node.element(0)?));
    }
    let number = |index: usize, what| -> Result<Option<i64>, Unsupported> {
        if !node.has_input(index) {
            return Ok(None);
        }
        let given = node.constant(index).and_then(|t| t.to_i64()?.first().copied());
        given.map(Some).ok_or(Unsupported::NotConstant(what))
    };
    let (shape, output) = (node.shape(0)?, node.output_shape(0)?);
    let rank = shape.len();
    let at = axis(number(2, "axis")?.unwrap_or(-2), rank)?;
    if at + 1 >= rank {
        return Err(Unsupported::Rank(rank));
    }
    let (outer, len, inner) = around(&shape[..rank - 1], at);
    let n = match number(1, "the length")? {
        Some(given) => usize::try_from(given).map_err(|e| Unsupported::Shapes(e.to_string()))?,
        None if op.onesided && !op.inverse => len,
        None => output[at],
    };
    let complex = shape[rank - 1] == 2;
    if op.inverse && op.onesided && !complex {
        return Err(Unsupported::Shapes("a real signal of real frequencies".into()));
    }
    let lines = kernel::Lines { outer, len, inner, complex, n, inverse: op.inverse, onesided: op.onesided };
    Ok(packed(move |context: &CompileContext<'_>| {
        let dft = kernel::Dft::new(lines);
        let scratch = dft.scratch_length(context.threads) * size_of::<f32>();
        Ok(("dft_f32".to_owned(), scratch, move |b: &mut Bindings<'_>| {
            let (y, scratch) = (b.output(0), b.scratch());
            dft.run(b.team(), b.input(0), y, scratch);
        }))
    }))
}
