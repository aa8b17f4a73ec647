//! The same tensor laid out otherwise in memory; input and result say how in their `layout`.

/// The same tensor laid out otherwise in memory; input and result say how in their `layout`.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ConvertLayout;

super::support::pending!(ConvertLayout);
