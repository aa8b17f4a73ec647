//! Rotary embedding, by angles of each position or of the positions that are given.

use armet_graph::ops::RotaryEmbedding;
use armet_kernels::rotary::{self as kernel, Angles, Sizes};
use armet_runtime::{Bindings, Lowered, NodeView, RunError, Unsupported};
use armet_tensor::ElementType;

use super::support::{plain, unquantized};
use crate::{Cpu, fallible};

/// Which row of angles a position has.
#[derive(Clone, Copy)]
enum Positions {
    /// The angles of batch items and positions lie in order.
    InOrder,
    /// One number: the position of the first element.
    First,
    /// One for each batch item and position.
    Each,
}

pub(crate) fn lower(cpu: Cpu, op: &RotaryEmbedding, node: NodeView<'_>) -> Result<Lowered, Unsupported> {
    unquantized(node)?;
    plain(node)?;
    for index in 0..3 {
        if node.element(index)? != ElementType::F32 {
            return Err(Unsupported::ElementType(node.element(index)?));
        }
    }
    let (shape, angles) = (node.shape(0)?, node.shape(1)?);
    let half = angles.last().copied().unwrap_or(0);
    let count = angles.elements().checked_div(half).unwrap_or(0);
    // Rows of heads in memory, and of how many of them one position is.
    let (heads, size, length, repeats) = match (shape.dims(), op.heads) {
        (&[_, heads, length, size], _) => (1, size, length, heads),
        (&[_, length, width], Some(heads)) if heads > 0 => (heads, width / heads, length, 1),
        _ => return Err(Unsupported::Rank(shape.len())),
    };
    if half * 2 > size {
        return Err(Unsupported::Shapes("more elements are turned than there are".into()));
    }
    let rows = shape.elements().checked_div(heads * size).unwrap_or(0);
    let sizes = Sizes { rows, heads, size, half, interleaved: op.interleaved };
    let (positions, wide) = if node.has_input(3) {
        let wide = match node.element(3)? {
            ElementType::I64 => true,
            ElementType::I32 => false,
            other => return Err(Unsupported::ElementType(other)),
        };
        (if node.shape(3)?.len() == 1 { Positions::First } else { Positions::Each }, wide)
    } else {
        (Positions::InOrder, false)
    };
    let name = node.node().name.clone();
    Ok(fallible(format!("rotary_f32_{}", cpu.isas.best()), 0, move |bind: &mut Bindings<'_>| {
        let y = bind.output::<f32>(0);
        let (wide, narrow): (&[i64], &[i32]) = match positions {
            Positions::InOrder => (&[], &[]),
            _ if wide => (bind.input(3), &[]),
            _ => (&[], bind.input(3)),
        };
        let given = |index: usize| match (wide.get(index), narrow.get(index)) {
            (Some(at), _) => *at,
            (None, Some(at)) => i64::from(*at),
            (None, None) => 0,
        };
        // Negative positions count from the last row of angles.
        let resolved = |at: i64| {
            let at = if at < 0 { at.saturating_add_unsigned(count as u64) } else { at };
            usize::try_from(at).ok().filter(|at| *at < count)
        };
        let angle = |row: usize| {
            let (item, at) = (row / (length * repeats), row % length);
            match positions {
                Positions::InOrder => Some(item * length + at).filter(|at| *at < count),
                Positions::First => resolved(given(0).saturating_add(at as i64)),
                Positions::Each => resolved(given(item * length + at)),
            }
        };
        if half > 0
            && let Some(row) = (0..rows).find(|row| angle(*row).is_none())
        {
            let reason = format!("there are angles of {count} positions, none for position {}", row % length);
            return Err(RunError::Kernel { node: name.clone(), reason });
        }
        let angles = Angles { cos: bind.input(1), sin: bind.input(2) };
        let angle = |row: usize| angle(row).unwrap_or(0);
        kernel::rotary(cpu.isas, bind.team(), sizes, bind.input(0), y, angles, &angle);
        Ok(())
    }))
}
