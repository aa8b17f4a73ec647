//! The same bits read as another element type.

use armet_runtime::{Lowered, NodeView, Unsupported};

use super::support::{plain, unquantized};

pub(crate) fn lower(node: NodeView<'_>) -> Result<Lowered, Unsupported> {
    unquantized(node)?;
    plain(node)?;
    Ok(Lowered::Alias)
}
