//! Pooling over a sliding window.

use armet_graph::ops::window::{self, Axis};
use armet_graph::ops::{Pool, PoolKind};
use armet_kernels::elementwise::Number;
use armet_kernels::layout::ChannelOrder;
use armet_kernels::pool::Pool2d;
use armet_runtime::{Lowered, NodeView, Unsupported};
use armet_tensor::{Element, ElementType, Layout};

use super::support::{plain, same_layout, same_storage, unquantized};
use crate::{Cpu, direct};

/// The window of a spatial axis with its padding resolved; missing lists mean 1, or 0 for padding.
fn axis(op: &Pool, index: usize, count: usize, len: usize) -> Result<Axis, Unsupported> {
    let at = |list: &[usize], i: usize, otherwise: usize| list.get(i).copied().unwrap_or(otherwise);
    let axis = Axis {
        kernel: at(&op.kernel, index, 1),
        stride: at(&op.strides, index, 1),
        dilation: at(&op.dilations, index, 1),
        begin: at(&op.pads, index, 0),
        end: at(&op.pads, index + count, 0),
    };
    if axis.kernel == 0 || axis.stride == 0 || axis.dilation == 0 {
        return Err(Unsupported::Shapes("window sizes must be positive".into()));
    }
    Ok(window::resolve(op.auto_pad, axis, len))
}

/// Maxima and where they are.
fn with_indices<T: Element + Number>(pool: Pool2d, lowest: T, column_major: bool) -> Lowered {
    direct(format!("pool_max_indices_{}", T::TYPE), move |b| {
        let (y, indices) = (b.optional_output(0), b.output(1));
        pool.max_with_indices::<T>(b.team(), lowest, column_major, b.input(0), (y, indices));
    })
}

pub(crate) fn lower(cpu: Cpu, op: &Pool, node: NodeView<'_>) -> Result<Lowered, Unsupported> {
    same_storage(node)?;
    // The values may be left out where the indices are wanted.
    let layout = if node.node().outputs.first().is_some_and(Option::is_some) {
        same_layout(node)?
    } else {
        node.layout(0)?
    };
    let wants_indices = node.node().outputs.iter().skip(1).any(Option::is_some);
    let first = node.node().outputs.iter().position(Option::is_some).ok_or(Unsupported::RunTimeShape)?;
    let (shape, output) = (node.shape(0)?, node.output_shape(first)?);
    // A row of one pixel height stands for one spatial axis.
    let (height, width, out_h, out_w, vertical, horizontal) = match (shape.dims(), output.dims()) {
        ([_, _, h, w], [_, _, oh, ow]) => (*h, *w, *oh, *ow, axis(op, 0, 2, *h)?, axis(op, 1, 2, *w)?),
        ([_, _, w], [_, _, ow]) => {
            let point = Axis { kernel: 1, stride: 1, dilation: 1, begin: 0, end: 0 };
            (1, *w, 1, *ow, point, axis(op, 0, 1, *w)?)
        }
        _ => return Err(Unsupported::Rank(shape.len())),
    };
    let pool = Pool2d {
        batch: shape[0],
        channels: shape[1],
        in_h: height,
        in_w: width,
        out_h,
        out_w,
        kernel_h: vertical.kernel,
        kernel_w: horizontal.kernel,
        stride_h: vertical.stride,
        stride_w: horizontal.stride,
        dilation_h: vertical.dilation,
        dilation_w: horizontal.dilation,
        pad_top: vertical.begin,
        pad_left: horizontal.begin,
        pad_bottom: vertical.end,
        pad_right: horizontal.end,
        order: if layout == Layout::Plain { ChannelOrder::First } else { ChannelOrder::Last },
    };
    let isas = cpu.isas;
    let element = node.element(0)?;
    if wants_indices {
        unquantized(node)?;
        plain(node)?;
        return match element {
            ElementType::F32 => Ok(with_indices(pool, f32::NEG_INFINITY, op.column_major)),
            ElementType::U8 => Ok(with_indices(pool, u8::MIN, op.column_major)),
            ElementType::I8 => Ok(with_indices(pool, i8::MIN, op.column_major)),
            other => Err(Unsupported::ElementType(other)),
        };
    }
    match (op.kind, element) {
        (PoolKind::Max, ElementType::F32) => Ok(direct(format!("pool_max_f32_{}", isas.best()), move |b| {
            pool.max(isas, b.team(), f32::NEG_INFINITY, b.input(0), b.output(0));
        })),
        (PoolKind::Max, ElementType::U8) => Ok(direct(format!("pool_max_u8_{}", isas.best()), move |b| {
            pool.max(isas, b.team(), u8::MIN, b.input(0), b.output(0));
        })),
        (PoolKind::Max, ElementType::I8) => Ok(direct(format!("pool_max_i8_{}", isas.best()), move |b| {
            pool.max(isas, b.team(), i8::MIN, b.input(0), b.output(0));
        })),
        (PoolKind::Average, ElementType::F32) => {
            let count_include_pad = op.count_include_pad;
            Ok(direct(format!("pool_average_f32_{}", isas.best()), move |b| {
                pool.average(isas, b.team(), count_include_pad, b.input(0), b.output(0));
            }))
        }
        (PoolKind::Lp { .. }, _) => Err(Unsupported::Operator("LpPool")),
        _ => Err(Unsupported::ElementType(element)),
    }
}
