//! The value itself, of any kind.

/// The value itself, of any kind.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Identity;

super::support::pending!(Identity);
