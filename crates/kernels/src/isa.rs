//! The instruction sets that kernels are written for, and the set of them that a caller allows.
//!
//! Detection happens only through `is_x86_feature_detected!` and `is_aarch64_feature_detected!`. A kernel is chosen
//! from a table by [`Isas::has`]; an [`Isas`] value never holds an instruction set that this machine lacks, so a
//! kernel chosen that way is safe to call. Which sets are allowed is always an argument, never global state.

use std::fmt;

/// An instruction set: one column of every kernel table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Isa {
    /// Portable Rust, on every machine.
    Scalar,
    /// AVX2 with FMA and F16C.
    Avx2,
    /// AVX-VNNI: 8-bit dot products in 256-bit registers.
    AvxVnni,
    /// AVX-512 F, BW, DQ, VL and CD, with everything of [`Isa::Avx2`].
    Avx512,
    /// AVX-512 VNNI: 8-bit dot products in 512-bit registers.
    Avx512Vnni,
    /// Advanced SIMD, the baseline of aarch64.
    Neon,
    /// Half-precision arithmetic in Advanced SIMD.
    NeonFp16,
    /// `sdot` and `udot`.
    NeonDotprod,
    /// `smmla`, `ummla`, `usmmla` and `usdot`.
    NeonI8mm,
}

impl Isa {
    /// Every instruction set, on whatever architecture.
    pub const ALL: [Isa; 9] = [
        Isa::Scalar,
        Isa::Avx2,
        Isa::AvxVnni,
        Isa::Avx512,
        Isa::Avx512Vnni,
        Isa::Neon,
        Isa::NeonFp16,
        Isa::NeonDotprod,
        Isa::NeonI8mm,
    ];

    /// Whether the machine that runs this has it.
    pub fn is_available(self) -> bool {
        match self {
            Isa::Scalar => true,
            #[cfg(target_arch = "x86_64")]
            Isa::Avx2 => {
                is_x86_feature_detected!("avx2")
                    && is_x86_feature_detected!("fma")
                    && is_x86_feature_detected!("f16c")
            }
            #[cfg(target_arch = "x86_64")]
            Isa::AvxVnni => Isa::Avx2.is_available() && is_x86_feature_detected!("avxvnni"),
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512 => {
                Isa::Avx2.is_available()
                    && is_x86_feature_detected!("avx512f")
                    && is_x86_feature_detected!("avx512bw")
                    && is_x86_feature_detected!("avx512dq")
                    && is_x86_feature_detected!("avx512vl")
                    && is_x86_feature_detected!("avx512cd")
            }
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512Vnni => Isa::Avx512.is_available() && is_x86_feature_detected!("avx512vnni"),
            #[cfg(target_arch = "aarch64")]
            Isa::Neon => std::arch::is_aarch64_feature_detected!("neon"),
            #[cfg(target_arch = "aarch64")]
            Isa::NeonFp16 => std::arch::is_aarch64_feature_detected!("fp16"),
            #[cfg(target_arch = "aarch64")]
            Isa::NeonDotprod => std::arch::is_aarch64_feature_detected!("dotprod"),
            #[cfg(target_arch = "aarch64")]
            Isa::NeonI8mm => std::arch::is_aarch64_feature_detected!("i8mm"),
            #[cfg(not(target_arch = "x86_64"))]
            Isa::Avx2 | Isa::AvxVnni | Isa::Avx512 | Isa::Avx512Vnni => false,
            #[cfg(not(target_arch = "aarch64"))]
            Isa::Neon | Isa::NeonFp16 | Isa::NeonDotprod | Isa::NeonI8mm => false,
        }
    }

    /// The name used in kernel names, settings and reports.
    pub const fn name(self) -> &'static str {
        match self {
            Isa::Scalar => "scalar",
            Isa::Avx2 => "avx2",
            Isa::AvxVnni => "avxvnni",
            Isa::Avx512 => "avx512",
            Isa::Avx512Vnni => "avx512vnni",
            Isa::Neon => "neon",
            Isa::NeonFp16 => "neon_fp16",
            Isa::NeonDotprod => "neon_dotprod",
            Isa::NeonI8mm => "neon_i8mm",
        }
    }

    /// The instruction set with this [name](Isa::name).
    pub fn from_name(name: &str) -> Option<Isa> {
        Isa::ALL.into_iter().find(|isa| isa.name() == name)
    }

    /// The instruction sets whose instructions a kernel for this one may use as well.
    const fn implied(self) -> u16 {
        let own = self.bit() | Isa::Scalar.bit();
        match self {
            Isa::Scalar | Isa::Avx2 | Isa::Neon => own,
            Isa::AvxVnni | Isa::Avx512 => own | Isa::Avx2.bit(),
            Isa::Avx512Vnni => own | Isa::Avx512.bit() | Isa::Avx2.bit(),
            Isa::NeonFp16 | Isa::NeonDotprod | Isa::NeonI8mm => own | Isa::Neon.bit(),
        }
    }

    const fn bit(self) -> u16 {
        1 << self as u16
    }
}

impl fmt::Display for Isa {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

/// The instruction sets that kernels may be chosen from: always a subset of what the machine has, always with
/// [`Isa::Scalar`], and closed under what an instruction set builds on (without AVX2 there is no AVX-512).
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Isas(u16);

impl Isas {
    /// All that this machine has.
    pub fn detect() -> Isas {
        Isas::only(&Isa::ALL)
    }

    /// Those of `wanted`, and what they build on, that this machine has.
    ///
    /// An instruction set that the machine lacks is left out together with those it would have brought; ask
    /// [`Isas::has`] where that matters.
    pub fn only(wanted: &[Isa]) -> Isas {
        let available =
            Isa::ALL.iter().filter(|isa| isa.is_available()).fold(0, |bits, isa| bits | isa.bit());
        let mut bits = Isa::Scalar.bit();
        for isa in wanted {
            if isa.implied() & !available == 0 {
                bits |= isa.implied();
            }
        }
        Isas(bits)
    }

    /// Portable code only.
    pub const fn scalar() -> Isas {
        Isas(Isa::Scalar.bit())
    }

    /// These without `isa` and without all that builds on it. Portable code always stays.
    #[must_use]
    pub fn without(self, isa: Isa) -> Isas {
        let bits = Isa::ALL
            .into_iter()
            .filter(|&other| self.has(other) && (other == Isa::Scalar || other.implied() & isa.bit() == 0))
            .fold(0, |bits, other| bits | other.bit());
        Isas(bits)
    }

    /// Whether `isa` is allowed and available.
    pub const fn has(self, isa: Isa) -> bool {
        self.0 & isa.bit() != 0
    }

    /// The allowed instruction sets, in the order of [`Isa::ALL`].
    pub fn iter(self) -> impl Iterator<Item = Isa> {
        Isa::ALL.into_iter().filter(move |&isa| self.has(isa))
    }

    /// The last of [`Isas::iter`]: what most kernels will be chosen for.
    pub fn best(self) -> Isa {
        self.iter().last().unwrap_or(Isa::Scalar)
    }
}

impl Default for Isas {
    fn default() -> Isas {
        Isas::detect()
    }
}

impl fmt::Debug for Isas {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Isas({self})")
    }
}

impl fmt::Display for Isas {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (position, isa) in self.iter().enumerate() {
            if position > 0 {
                formatter.write_str("+")?;
            }
            formatter.write_str(isa.name())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::{Isa, Isas};

    #[test]
    fn names_are_distinct_and_read_back() {
        for isa in Isa::ALL {
            assert_eq!(Isa::from_name(isa.name()), Some(isa));
            assert_eq!(isa.to_string(), isa.name());
        }
        assert_eq!(Isa::from_name("sse9"), None);
    }

    #[test]
    fn detection_agrees_with_each_instruction_set() {
        let detected = Isas::detect();
        for isa in Isa::ALL {
            assert_eq!(detected.has(isa), isa.is_available(), "{isa}");
        }
    }

    #[test]
    fn a_limit_never_exceeds_the_machine_and_keeps_scalar() {
        for isa in Isa::ALL {
            let limited = Isas::only(&[isa]);
            assert!(limited.has(Isa::Scalar));
            assert_eq!(limited.has(isa), isa.is_available());
            assert!(limited.iter().all(Isa::is_available));
        }
        assert_eq!(Isas::only(&[]), Isas::scalar());
        assert_eq!(Isas::scalar().best(), Isa::Scalar);
    }

    #[test]
    fn removing_one_removes_what_builds_on_it() {
        for isa in Isa::ALL {
            let rest = Isas::detect().without(isa);
            assert!(rest.has(Isa::Scalar));
            if isa != Isa::Scalar {
                assert!(!rest.has(isa));
            }
        }
        let without = Isas::detect().without(Isa::Avx2).without(Isa::Neon);
        assert_eq!(without, Isas::scalar());
        assert_eq!(without.to_string(), "scalar");
        assert!(!Isas::detect().without(Isa::Avx512).has(Isa::Avx512Vnni));
    }
}
