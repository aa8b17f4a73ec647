//! The tile kernels, best first.

use super::tile::TileKernel;
use crate::isa::{Isa, Isas};

/// The tile kernels of one instruction set.
#[derive(Debug)]
pub(crate) struct Entry {
    /// Name of the strided kernels.
    pub(crate) name: &'static str,
    /// Name of the indirect kernels.
    pub(crate) indirect_name: &'static str,
    pub(crate) isa: Isa,
    /// Floats of one vector.
    pub(crate) lanes: usize,
    /// Vectors of a whole panel.
    pub(crate) vectors: usize,
    /// `strided[rows - 1][vectors - 1]`.
    pub(crate) strided: &'static [&'static [TileKernel]],
    /// `indirect[rows - 1][vectors - 1]`.
    pub(crate) indirect: &'static [&'static [TileKernel]],
}

/// The tile kernels, best first. The last one is for every machine.
pub(crate) static GEMM_F32: &[Entry] = &[
    #[cfg(target_arch = "x86_64")]
    super::avx512::ENTRY,
    #[cfg(target_arch = "x86_64")]
    super::avx2::ENTRY,
    #[cfg(target_arch = "aarch64")]
    super::neon::ENTRY,
    super::scalar::ENTRY,
];

/// Tile kernels that this machine can run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Kernel(&'static Entry);

impl Kernel {
    /// The best of those that `isas` allows.
    pub(crate) fn choose(isas: Isas) -> Kernel {
        Kernel(GEMM_F32.iter().find(|entry| isas.has(entry.isa)).unwrap_or(&super::scalar::ENTRY))
    }

    pub(crate) fn entry(self) -> &'static Entry {
        self.0
    }

    /// Rows of the largest tile.
    pub(crate) fn rows(self) -> usize {
        self.0.strided.len()
    }

    /// Columns of a whole panel.
    pub(crate) fn columns(self) -> usize {
        self.0.lanes * self.0.vectors
    }
}

impl PartialEq for Kernel {
    fn eq(&self, other: &Kernel) -> bool {
        self.0.name == other.0.name
    }
}
