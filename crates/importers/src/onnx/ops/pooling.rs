//! Pooling.

use armet_graph::ops::{GlobalPool, Pool, PoolKind};

use super::convolution::{auto_pad, steps};
use super::{Entry, onnx};
use crate::onnx::error::Invalid;
use crate::onnx::node::{NodeReader, Read};

pub(super) const ENTRIES: &[Entry] = &[
    onnx("MaxPool", 1, |n| pool(n, PoolKind::Max)).moves(1),
    onnx("AveragePool", 1, |n| pool(n, PoolKind::Average)),
    onnx("LpPool", 1, |n| {
        let p = real_exponent(n)?;
        pool(n, PoolKind::Lp { p })
    }),
    onnx("LpPool", 2, |n| {
        let p = exponent(n)?;
        pool(n, PoolKind::Lp { p })
    }),
    onnx("GlobalMaxPool", 1, |n| global(n, PoolKind::Max)).moves(1),
    onnx("GlobalAveragePool", 1, |n| global(n, PoolKind::Average)),
    onnx("GlobalLpPool", 1, |n| {
        let p = real_exponent(n)?;
        global(n, PoolKind::Lp { p })
    }),
    onnx("GlobalLpPool", 2, |n| {
        let p = exponent(n)?;
        global(n, PoolKind::Lp { p })
    }),
];

/// The first versions had a real number here.
fn real_exponent(n: &NodeReader<'_, '_>) -> Read<u32> {
    let p = n.float_or("p", 2.0)?;
    if p.fract() == 0.0 && p >= 1.0 { Ok(p as u32) } else { Err(n.unsupported("p")) }
}

fn exponent(n: &NodeReader<'_, '_>) -> Read<u32> {
    let p = n.int_or("p", 2)?;
    u32::try_from(p).ok().filter(|p| *p > 0).ok_or_else(|| n.refuse("p", "must be positive").into())
}

fn global(n: &mut NodeReader<'_, '_>, kind: PoolKind) -> Read {
    let x = n.input(0)?;
    n.emit(GlobalPool { kind }, vec![Some(x)])
}

/// Pooling over a window.
pub(super) fn pool(n: &mut NodeReader<'_, '_>, kind: PoolKind) -> Read {
    let op = attributes(n, kind)?;
    let x = n.input(0)?;
    n.emit(op, vec![Some(x)])
}

/// The attributes of pooling over a window.
pub(super) fn attributes(n: &mut NodeReader<'_, '_>, kind: PoolKind) -> Read<Pool> {
    if !n.has("kernel_shape") {
        return Err(Invalid::MissingAttribute("kernel_shape").into());
    }
    Ok(Pool {
        kind,
        kernel: steps(n, "kernel_shape")?,
        strides: steps(n, "strides")?,
        dilations: steps(n, "dilations")?,
        pads: n.sizes("pads")?,
        auto_pad: auto_pad(n)?,
        ceil_mode: n.flag("ceil_mode", false)?,
        count_include_pad: n.flag("count_include_pad", false)?,
        column_major: n.flag("storage_order", false)?,
    })
}
