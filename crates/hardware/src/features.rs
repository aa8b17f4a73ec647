//! Instruction sets that kernels choose by, as the standard library's run-time detection sees them.

macro_rules! detected {
    ($detect:ident: $($name:tt)*) => {{
        let mut found = Vec::new();
        $(if std::arch::$detect!($name) { found.push($name); })*
        found
    }};
}

/// Names of the instruction sets that this processor and its operating system offer, of those that kernels use.
pub fn features() -> Vec<&'static str> {
    #[cfg(target_arch = "x86_64")]
    return detected!(is_x86_feature_detected:
        "sse4.2" "avx" "avx2" "fma" "f16c" "avxvnni" "avx512f" "avx512bw" "avx512dq" "avx512vl" "avx512vnni" "avx512bf16" "avx512fp16");
    #[cfg(target_arch = "aarch64")]
    return detected!(is_aarch64_feature_detected: "neon" "fp16" "dotprod" "i8mm" "bf16" "sve" "sve2" "lse");
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    Vec::new()
}
