//! Custom operators from shared libraries.
//!
//! `include/armet_operators.h` is the interface and says what each side owes the other. [`load`] opens a library, checks that
//! both speak the same version, and gives its operators as registrations like those written in Rust. Whoever names a library
//! trusts it as the program itself: its code runs in this process. What it says of itself is checked all the same: a library
//! of another version, missing parts, types that make no sense and errors of callbacks are told in words.

mod abi;
mod call;
mod library;

pub use library::{LibraryError, load};

/// The version of the interface; a library of another one is refused.
pub const ABI: u32 = 1;
