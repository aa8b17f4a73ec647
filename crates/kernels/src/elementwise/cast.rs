//! ONNX `Cast` between all types of number.
//!
//! A float becomes an integer by dropping its fraction; what lies outside of the integer's range becomes its nearest end,
//! NaN zero (ONNX leaves both open). Integers keep their low bits. Floats are rounded to the nearest float of the other
//! type. Booleans are bytes of one and zero; everything but zero becomes one.

#![expect(unsafe_code, reason = "blocks of the output are handed to tasks")]

use half::{bf16, f16};

use crate::dispatch::{Loop, dispatch};
use crate::isa::Isas;
use crate::threads::{DisjointMut, Team};

/// A type whose values can be cast to `To`.
pub trait CastTo<To>: Copy {
    /// The value as `To`.
    fn cast_to(self) -> To;
}

macro_rules! plain {
    ($from:ty => $($to:ty),*) => { $(
        impl CastTo<$to> for $from {
            #[inline(always)]
            fn cast_to(self) -> $to {
                self as $to
            }
        }
    )* };
    ($($from:ty),*) => { $(
        plain!($from => i8, i16, i32, i64, u8, u16, u32, u64, f32, f64);
        impl CastTo<f16> for $from {
            #[inline(always)]
            fn cast_to(self) -> f16 {
                f16::from_f64(self as f64)
            }
        }
        impl CastTo<bf16> for $from {
            #[inline(always)]
            fn cast_to(self) -> bf16 {
                bf16::from_f64(self as f64)
            }
        }
    )* };
}

plain!(i8, i16, i32, i64, u8, u16, u32, u64, f64);
plain!(f32 => i8, i16, i32, i64, u8, u16, u32, u64, f32, f64);

macro_rules! half {
    ($half:ty, $other:ty => $($to:ty),*) => {
        impl CastTo<$half> for f32 {
            #[inline(always)]
            fn cast_to(self) -> $half {
                <$half>::from_f32(self)
            }
        }
        impl CastTo<$half> for $half {
            #[inline(always)]
            fn cast_to(self) -> $half {
                self
            }
        }
        impl CastTo<$other> for $half {
            #[inline(always)]
            fn cast_to(self) -> $other {
                <$other>::from_f32(self.to_f32())
            }
        }
        $(
            impl CastTo<$to> for $half {
                #[inline(always)]
                fn cast_to(self) -> $to {
                    self.to_f32() as $to
                }
            }
        )*
    };
}

half!(f16, bf16 => i8, i16, i32, i64, u8, u16, u32, u64, f32, f64);
half!(bf16, f16 => i8, i16, i32, i64, u8, u16, u32, u64, f32, f64);

/// `y[i] = x[i]` as another type.
///
/// # Panics
/// When `x` and `y` differ in length.
pub fn cast<From: CastTo<To> + Sync, To: Send>(isas: Isas, team: &Team, x: &[From], y: &mut [To]) {
    assert_eq!(x.len(), y.len(), "input and output differ in length");
    let output = DisjointMut::new(y);
    team.parallel_ranges(x.len(), 16 * 1024, 16, &|start, end| {
        // SAFETY: tasks have ranges that do not meet.
        let y = unsafe { output.slice_mut(start, end - start) };
        dispatch(isas, CastLoop { x: &x[start..end], y });
    });
}

struct CastLoop<'a, From, To> {
    x: &'a [From],
    y: &'a mut [To],
}

impl<From: CastTo<To>, To> Loop for CastLoop<'_, From, To> {
    type Output = ();

    #[inline(always)]
    fn run<const FMA: bool>(self) {
        for (y, &x) in self.y.iter_mut().zip(self.x) {
            *y = x.cast_to();
        }
    }
}

/// `y[i]` is one where `x[i]` is not zero.
///
/// # Panics
/// When `x` and `y` differ in length.
pub fn cast_to_bool<From: Copy + Default + PartialEq + Sync>(
    isas: Isas,
    team: &Team,
    x: &[From],
    y: &mut [u8],
) {
    assert_eq!(x.len(), y.len(), "input and output differ in length");
    let output = DisjointMut::new(y);
    team.parallel_ranges(x.len(), 16 * 1024, 16, &|start, end| {
        // SAFETY: tasks have ranges that do not meet.
        let y = unsafe { output.slice_mut(start, end - start) };
        dispatch(isas, BoolLoop { x: &x[start..end], y });
    });
}

struct BoolLoop<'a, From> {
    x: &'a [From],
    y: &'a mut [u8],
}

impl<From: Copy + Default + PartialEq> Loop for BoolLoop<'_, From> {
    type Output = ();

    #[inline(always)]
    fn run<const FMA: bool>(self) {
        for (y, &x) in self.y.iter_mut().zip(self.x) {
            *y = u8::from(x != From::default());
        }
    }
}
