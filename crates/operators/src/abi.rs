//! The structs of `armet_operators.h`, field by field.

use std::ffi::{c_char, c_void};

/// Room for dimensions of a result.
pub(crate) const MAX_RANK: usize = 8;
/// Results may hold NaN though no input does.
pub(crate) const MAY_GIVE_NAN: u32 = 1;

pub(crate) const OK: i32 = 0;
pub(crate) const NEEDS_SHAPE: i32 = 2;
pub(crate) const NEEDS_VALUE: i32 = 3;

pub(crate) const ATTRIBUTE_INT: i32 = 1;
pub(crate) const ATTRIBUTE_FLOAT: i32 = 2;
pub(crate) const ATTRIBUTE_TEXT: i32 = 3;
pub(crate) const ATTRIBUTE_INTS: i32 = 4;
pub(crate) const ATTRIBUTE_FLOATS: i32 = 5;
pub(crate) const ATTRIBUTE_TENSOR: i32 = 6;

#[repr(C)]
#[derive(Debug)]
pub(crate) struct RawTensor {
    pub(crate) size: usize,
    pub(crate) element: i32,
    pub(crate) rank: i32,
    pub(crate) dims: *mut i64,
    pub(crate) data: *mut c_void,
    pub(crate) bytes: usize,
}

#[repr(C)]
#[derive(Debug)]
pub(crate) struct RawAttribute {
    pub(crate) size: usize,
    pub(crate) name: *const c_char,
    pub(crate) kind: i32,
    pub(crate) count: usize,
    pub(crate) ints: *const i64,
    pub(crate) floats: *const f32,
    pub(crate) text: *const c_char,
    pub(crate) tensor: *const RawTensor,
}

#[repr(C)]
#[derive(Debug)]
pub(crate) struct RawCall {
    pub(crate) size: usize,
    pub(crate) domain: *const c_char,
    pub(crate) name: *const c_char,
    pub(crate) opset: i64,
    pub(crate) attributes: *const *const RawAttribute,
    pub(crate) attribute_count: usize,
    pub(crate) inputs: *const *const RawTensor,
    pub(crate) input_count: usize,
    pub(crate) outputs: *const *mut RawTensor,
    pub(crate) output_count: usize,
    pub(crate) message: *mut c_char,
    pub(crate) message_size: usize,
    pub(crate) needed: usize,
}

/// A callback of an operator.
pub(crate) type Callback = unsafe extern "C" fn(*mut c_void, *mut RawCall) -> i32;
/// What a library exports.
pub(crate) type Entry = unsafe extern "C" fn(u32) -> *const RawLibrary;

#[repr(C)]
#[derive(Debug)]
pub(crate) struct RawOperator {
    pub(crate) size: usize,
    pub(crate) domain: *const c_char,
    pub(crate) name: *const c_char,
    pub(crate) first_opset: i64,
    pub(crate) last_opset: i64,
    pub(crate) flags: u32,
    pub(crate) infer: Option<Callback>,
    pub(crate) run: Option<Callback>,
    pub(crate) user: *mut c_void,
}

/// How every version's `RawLibrary` begins.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct RawHead {
    pub(crate) size: usize,
    pub(crate) abi: u32,
}

/// Where `size` and `abi` lie never changes, so that any version can be told.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct RawLibrary {
    pub(crate) size: usize,
    pub(crate) abi: u32,
    pub(crate) name: *const c_char,
    pub(crate) operators: *const *const RawOperator,
    pub(crate) operator_count: usize,
}
