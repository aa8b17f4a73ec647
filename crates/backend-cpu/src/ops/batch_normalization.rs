//! Scale and shift by stored statistics, per channel.

use armet_graph::ops::BatchNormalization;
use armet_kernels::normalize;
use armet_runtime::{Lowered, NodeView, Unsupported};
use armet_tensor::{ElementType, Layout, Tensor};

use super::support::{same_layout, unquantized};
use crate::{Cpu, direct};

pub(crate) fn lower(cpu: Cpu, op: &BatchNormalization, node: NodeView<'_>) -> Result<Lowered, Unsupported> {
    unquantized(node)?;
    let layout = same_layout(node)?;
    let shape = node.shape(0)?;
    let channels = *shape.get(1).ok_or(Unsupported::Rank(shape.len()))?;
    let statistic = |index: usize| -> Result<Vec<f32>, Unsupported> {
        let tensor: &Tensor = node.constant(index).ok_or(Unsupported::NotConstant("statistics"))?;
        let values = tensor.values::<f32>().map_err(|_| Unsupported::ElementType(tensor.element()))?;
        if values.len() == channels {
            Ok(values.into_owned())
        } else {
            Err(Unsupported::Shapes("statistics are not one per channel".into()))
        }
    };
    if node.element(0)? != ElementType::F32 {
        return Err(Unsupported::ElementType(node.element(0)?));
    }
    let (gamma, beta, mean, variance) = (statistic(1)?, statistic(2)?, statistic(3)?, statistic(4)?);
    let factor = |i: usize| f64::from(gamma[i]) / (f64::from(variance[i]) + f64::from(op.epsilon)).sqrt();
    let scale: Vec<f32> = (0..channels).map(|i| factor(i) as f32).collect();
    let shift: Vec<f32> =
        (0..channels).map(|i| (f64::from(beta[i]) - f64::from(mean[i]) * factor(i)) as f32).collect();
    let spatial: usize = shape[2..].iter().product();
    let dims = if layout == Layout::Plain { (shape[0], spatial) } else { (shape[0] * spatial, 1) };
    let isas = cpu.isas;
    Ok(direct(format!("scale_shift_f32_{}", isas.best()), move |b| {
        normalize::scale_shift(isas, b.team(), dims, b.input(0), &scale, &shift, b.output(0));
    }))
}
