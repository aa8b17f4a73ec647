//! One file per operator, named as in the graph's list.

pub(crate) mod batch_normalization;
pub(crate) mod binary;
pub(crate) mod cast;
pub(crate) mod concat;
pub(crate) mod conv;
pub(crate) mod convert_layout;
mod epilogue;
pub(crate) mod expand;
pub(crate) mod gather;
pub(crate) mod global_pool;
pub(crate) mod instance_normalization;
pub(crate) mod layer_normalization;
pub(crate) mod matmul;
pub(crate) mod pad;
pub(crate) mod pool;
pub(crate) mod recurrent;
pub(crate) mod reduce;
pub(crate) mod reshape;
pub(crate) mod resize;
pub(crate) mod slice;
pub(crate) mod softmax;
pub(crate) mod split;
mod support;
pub(crate) mod tile;
pub(crate) mod transpose;
pub(crate) mod unary;
pub(crate) mod where_select;
