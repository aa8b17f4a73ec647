//! The same bits read as another element type.

use armet_runtime::{Lowered, NodeView, Unsupported};

use super::support::{plain, unquantized};
use crate::direct;

pub(crate) fn lower(node: NodeView<'_>) -> Result<Lowered, Unsupported> {
    unquantized(node)?;
    plain(node)?;
    // A copy: a value that is an input of the model is shown with the input's own type.
    Ok(direct("copy", |b| b.output_bytes(0).copy_from_slice(b.bytes(0))))
}
