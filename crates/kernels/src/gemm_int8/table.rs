//! The 8-bit tile kernels, best first.

use super::tile::TileKernel;
use crate::isa::{Isa, Isas};

/// The tile kernels of one instruction set.
#[derive(Debug)]
pub(crate) struct Entry {
    /// Their name.
    pub(crate) name: &'static str,
    pub(crate) isa: Isa,
    /// Whether bytes of A are taken as signed.
    pub(crate) is_a_signed: bool,
    /// Columns of one vector.
    pub(crate) lanes: usize,
    /// Vectors of a whole panel.
    pub(crate) vectors: usize,
    /// `kernels[rows - 1][vectors - 1]`.
    pub(crate) kernels: &'static [&'static [TileKernel]],
}

/// The tile kernels, best first. The last one is for every machine.
pub(crate) static GEMM_INT8: &[Entry] = &[
    #[cfg(target_arch = "x86_64")]
    super::avx512vnni::ENTRY,
    #[cfg(target_arch = "x86_64")]
    super::avxvnni::ENTRY,
    #[cfg(target_arch = "x86_64")]
    super::avx2::ENTRY,
    #[cfg(target_arch = "aarch64")]
    super::neon_dotprod::ENTRY,
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
        Kernel(GEMM_INT8.iter().find(|entry| isas.has(entry.isa)).unwrap_or(&super::scalar::ENTRY))
    }

    pub(crate) fn entry(self) -> &'static Entry {
        self.0
    }

    /// Rows of the highest tile.
    pub(crate) fn rows(self) -> usize {
        self.0.kernels.len()
    }

    /// Columns of a whole panel.
    pub(crate) fn columns(self) -> usize {
        self.0.lanes * self.0.vectors
    }
}
