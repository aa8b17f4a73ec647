//! One file per command.

pub(crate) mod bench;
pub(crate) mod demo;
pub(crate) mod detect;
pub(crate) mod inspect;
pub(crate) mod ocr;
pub(crate) mod run;

mod files;
pub(crate) mod inputs;
mod network;
mod report;
pub(crate) mod sizes;
mod summary;

/// Version, with the commit it was built from where that is known.
pub(crate) const VERSION: &str = env!("ARMET_VERSION");
