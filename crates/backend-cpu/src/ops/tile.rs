//! Repeats along axes.

use armet_kernels::transpose::Tiling;
use armet_runtime::{Lowered, NodeView, Unsupported};

use super::support::{element_size, same_layout, same_storage, shapes};
use crate::direct;

pub(crate) fn lower(node: NodeView<'_>) -> Result<Lowered, Unsupported> {
    same_storage(node)?;
    let layout = same_layout(node)?;
    let shape = node.shape(0)?;
    let size = element_size(node.element(0)?)?;
    let output = node.output_shape(0)?;
    if shape.len() != output.len() || shape.contains(&0) {
        return Err(Unsupported::Shapes("nothing to repeat".into()));
    }
    let repeats: Vec<usize> =
        layout.physical(&shape).iter().zip(layout.physical(&output).iter()).map(|(i, o)| o / i).collect();
    let copy = Tiling::new(&layout.physical(&shape), &repeats, size).map_err(shapes)?;
    Ok(direct(format!("tile_{size}"), move |b| copy.run(b.team(), b.bytes(0), b.output_bytes(0))))
}
