//! One file per operator, named as in the graph's list.

pub(crate) mod binary;
pub(crate) mod cast;
pub(crate) mod concat;
pub(crate) mod convert_layout;
pub(crate) mod expand;
pub(crate) mod pad;
pub(crate) mod reshape;
pub(crate) mod slice;
pub(crate) mod split;
mod support;
pub(crate) mod tile;
pub(crate) mod transpose;
pub(crate) mod unary;
pub(crate) mod where_select;
