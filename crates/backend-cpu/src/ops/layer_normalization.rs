//! Normalization over the trailing axes.

use armet_graph::ops::LayerNormalization;
use armet_kernels::normalize as kernel;
use armet_runtime::{Lowered, NodeView, Unsupported};
use armet_tensor::{ElementType, Layout};

use super::support::{axis, unquantized};
use crate::{Cpu, direct};

pub(crate) fn lower(cpu: Cpu, op: &LayerNormalization, node: NodeView<'_>) -> Result<Lowered, Unsupported> {
    unquantized(node)?;
    let shape = node.shape(0)?;
    if node.element(0)? != ElementType::F32 {
        return Err(Unsupported::ElementType(node.element(0)?));
    }
    if node.layout(0)? != Layout::Plain {
        return Err(Unsupported::Layout(node.layout(0)?));
    }
    if node.node().outputs.iter().skip(1).any(Option::is_some) {
        return Err(Unsupported::Attribute { name: "outputs", value: "mean and deviation".into() });
    }
    let at = axis(op.axis, shape.len())?;
    let row: usize = shape[at..].iter().product();
    for index in [1, 2].into_iter().filter(|&i| node.has_input(i)) {
        if node.element(index)? != ElementType::F32 {
            return Err(Unsupported::ElementType(node.element(index)?));
        }
        if node.shape(index)?.elements() != row {
            return Err(Unsupported::Shapes("scale and bias do not cover the normalized axes".into()));
        }
    }
    let (isas, epsilon) = (cpu.isas, op.epsilon);
    let ones = vec![1.0f32; if node.has_input(1) { 0 } else { row }];
    if op.root_mean_square {
        if node.has_input(2) {
            return Err(Unsupported::Attribute { name: "bias", value: "with root mean square".into() });
        }
        return Ok(direct(format!("rms_norm_f32_{}", isas.best()), move |b| {
            let scale = b.optional_input(1).unwrap_or(&ones);
            kernel::rms_norm(isas, b.team(), b.input(0), scale, epsilon, b.output(0));
        }));
    }
    Ok(direct(format!("layer_norm_f32_{}", isas.best()), move |b| {
        let scale = b.optional_input(1).unwrap_or(&ones);
        kernel::layer_norm(isas, b.team(), b.input(0), scale, b.optional_input(2), epsilon, b.output(0));
    }))
}
