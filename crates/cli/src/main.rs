//! The armet command.

fn main() {}
