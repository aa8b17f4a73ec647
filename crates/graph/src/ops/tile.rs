//! Repetition along each axis.

/// Repetition along each axis: inputs are data and repeats.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Tile;

super::support::pending!(Tile);
