//! The element types of ONNX and TFLite, and the Rust types that stand for them.

use bytemuck::{Pod, Zeroable};
use half::{bf16, f16};

/// What one element of a tensor is. The names are ONNX's, shortened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ElementType {
    /// IEEE single precision.
    F32,
    /// IEEE half precision.
    F16,
    /// Brain float: the upper half of a single.
    Bf16,
    /// IEEE double precision.
    F64,
    /// Signed integers, two's complement.
    I8,
    /// 16-bit signed integer.
    I16,
    /// 32-bit signed integer.
    I32,
    /// 64-bit signed integer.
    I64,
    /// 8-bit unsigned integer.
    U8,
    /// 16-bit unsigned integer.
    U16,
    /// 32-bit unsigned integer.
    U32,
    /// 64-bit unsigned integer.
    U64,
    /// One byte, 0 or 1.
    Bool,
    /// UTF-8 text of any length.
    String,
    /// Pair of singles.
    Complex64,
    /// Pair of doubles.
    Complex128,
    /// 8-bit float, 4 exponent bits, finite only, with NaN.
    F8E4M3Fn,
    /// As `F8E4M3Fn`, no negative zero.
    F8E4M3Fnuz,
    /// 8-bit float, 5 exponent bits.
    F8E5M2,
    /// As `F8E5M2`, no negative zero and no infinities.
    F8E5M2Fnuz,
    /// 8-bit power of two.
    F8E8M0,
    /// 4-bit float, two to a byte, low nibble first.
    F4E2M1,
    /// 4-bit signed integer, two to a byte, low nibble first.
    I4,
    /// 4-bit unsigned integer, two to a byte, low nibble first.
    U4,
    /// 2-bit signed integer, four to a byte, low bits first.
    I2,
    /// 2-bit unsigned integer, four to a byte, low bits first.
    U2,
}

impl ElementType {
    /// Bits one element takes; 0 for text.
    pub const fn bits(self) -> usize {
        match self {
            Self::Complex128 => 128,
            Self::F64 | Self::I64 | Self::U64 | Self::Complex64 => 64,
            Self::F32 | Self::I32 | Self::U32 => 32,
            Self::F16 | Self::Bf16 | Self::I16 | Self::U16 => 16,
            Self::I8
            | Self::U8
            | Self::Bool
            | Self::F8E4M3Fn
            | Self::F8E4M3Fnuz
            | Self::F8E5M2
            | Self::F8E5M2Fnuz
            | Self::F8E8M0 => 8,
            Self::F4E2M1 | Self::I4 | Self::U4 => 4,
            Self::I2 | Self::U2 => 2,
            Self::String => 0,
        }
    }

    /// Whole bytes one element takes; `None` for text and for types that share a byte.
    pub const fn byte_size(self) -> Option<usize> {
        match self.bits() {
            0 | 2 | 4 => None,
            bits => Some(bits / 8),
        }
    }

    /// Bytes that `count` elements take, rounded up to whole bytes; `None` on overflow.
    pub const fn bytes_for(self, count: usize) -> Option<usize> {
        match count.checked_mul(self.bits()) {
            Some(bits) => Some(bits.div_ceil(8)),
            None => None,
        }
    }

    /// Whether values are real numbers in some floating format.
    pub const fn is_float(self) -> bool {
        matches!(
            self,
            Self::F32
                | Self::F16
                | Self::Bf16
                | Self::F64
                | Self::F8E4M3Fn
                | Self::F8E4M3Fnuz
                | Self::F8E5M2
                | Self::F8E5M2Fnuz
                | Self::F8E8M0
                | Self::F4E2M1
        )
    }

    /// Whether values are integers (bool is not).
    pub const fn is_integer(self) -> bool {
        matches!(
            self,
            Self::I8
                | Self::I16
                | Self::I32
                | Self::I64
                | Self::U8
                | Self::U16
                | Self::U32
                | Self::U64
                | Self::I4
                | Self::U4
                | Self::I2
                | Self::U2
        )
    }

    /// The name that ONNX gives the type (`float`, `int64`, ...).
    pub const fn name(self) -> &'static str {
        match self {
            Self::F32 => "float32",
            Self::F16 => "float16",
            Self::Bf16 => "bfloat16",
            Self::F64 => "float64",
            Self::I8 => "int8",
            Self::I16 => "int16",
            Self::I32 => "int32",
            Self::I64 => "int64",
            Self::U8 => "uint8",
            Self::U16 => "uint16",
            Self::U32 => "uint32",
            Self::U64 => "uint64",
            Self::Bool => "bool",
            Self::String => "string",
            Self::Complex64 => "complex64",
            Self::Complex128 => "complex128",
            Self::F8E4M3Fn => "float8e4m3fn",
            Self::F8E4M3Fnuz => "float8e4m3fnuz",
            Self::F8E5M2 => "float8e5m2",
            Self::F8E5M2Fnuz => "float8e5m2fnuz",
            Self::F8E8M0 => "float8e8m0",
            Self::F4E2M1 => "float4e2m1",
            Self::I4 => "int4",
            Self::U4 => "uint4",
            Self::I2 => "int2",
            Self::U2 => "uint2",
        }
    }
}

impl std::fmt::Display for ElementType {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

/// One boolean element: a byte that is 0 or 1. A type of its own so that a `u8` view of a boolean tensor is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Zeroable, Pod)]
#[repr(transparent)]
pub struct Bool(pub u8);

impl Bool {
    /// Whether the byte is not zero.
    pub const fn get(self) -> bool {
        self.0 != 0
    }
}

impl From<bool> for Bool {
    fn from(value: bool) -> Self {
        Self(u8::from(value))
    }
}

/// A Rust type that is the element of a tensor.
pub trait Element: Pod + PartialEq + std::fmt::Debug + Send + Sync {
    /// The element type it stands for.
    const TYPE: ElementType;
}

macro_rules! elements {
    ($($rust:ty => $kind:ident),* $(,)?) => {
        $(impl Element for $rust { const TYPE: ElementType = ElementType::$kind; })*
    };
}
elements! {
    f32 => F32, f16 => F16, bf16 => Bf16, f64 => F64, i8 => I8, i16 => I16, i32 => I32, i64 => I64,
    u8 => U8, u16 => U16, u32 => U32, u64 => U64, Bool => Bool,
}
