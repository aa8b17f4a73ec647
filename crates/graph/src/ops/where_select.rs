//! Elements of the second input where the first is true, of the third elsewhere; all broadcast.

/// Elements of the second input where the first is true, of the third elsewhere; all broadcast.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Where;

super::support::pending!(Where);
